# SPDX-License-Identifier: Apache-2.0
# Sourced by the checks beside it: where the sources are, and how a check says its result.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
BUILD=${BUILD:-$PWD/build}

# Files of the tree, committed or about to be, that match the patterns.
sources() {
	git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do
		[ ! -e "$file" ] || echo "$file"
	done | sort -u
}

# check NAME COMMAND...: runs it; what it prints are its complaints, and its status is the result.
check() {
	local name=$1 output
	shift
	if output=$("$@" 2>&1); then
		echo "ok lint_$name"
	else
		printf '%s\n' "$output" | sed 's/^/# /'
		echo "not ok lint_$name"
	fi
}

# Fails, showing its input, when there is any.
nothing() {
	local input
	input=$(cat)
	[ -z "$input" ] || { printf '%s\n' "$input"; return 1; }
}

compile_flags() {
	local dir
	echo -std=c11 -D_GNU_SOURCE -DST_VERSION='"0"' -Iinclude -I.
	for dir in "${CUDA_HOME:-/usr/local/cuda}/include" /usr/local/cuda/include .venv/cuda-headers/include; do
		[ ! -d "$dir" ] || { echo -isystem "$dir"; return; }
	done
}
