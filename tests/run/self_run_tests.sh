#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 60
# scripts/run-tests is what decides whether anything else here passed: fake programs of every kind, and
# the counts and the exit status that they must give.
set -u
runner=$PWD/scripts/run-tests
export BUILD=$T/build
unset COUNTS TEST_TIMEOUT RUN

# name, expected last line, expected exit status, then the fake programs (body of a shell script each)
expect() {
	local name=$1 line=$2 status=$3 i=0 got last body
	local -a programs=()
	shift 3
	for body in "$@"; do
		i=$((i + 1))
		printf '#!/bin/sh\n%s\n' "$body" >"$T/$name.$i"
		chmod +x "$T/$name.$i"
		programs+=("$T/$name.$i")
	done
	"$runner" "${programs[@]}" >"$T/$name.out" 2>&1
	got=$?
	last=$(tail -n 1 "$T/$name.out")
	if [ "$last" = "$line" ] && [ $got -eq "$status" ]; then
		echo "ok run_tests_$name"
	else
		sed 's/^/# /' "$T/$name.out"
		echo "not ok run_tests_$name - status $got, last line '$last'"
	fi
}

expect counts '3 passed, 0 failed, 2 skipped' 0 \
	'echo "ok a"; echo "ok b"; echo "skip c - no such machine"' 'echo 1..2; echo "ok 1 - d"; echo "not ok 2 # SKIP e"; exit 0'
expect failure '1 passed, 1 failed, 0 skipped' 1 'echo "ok a"; echo "not ok b - why"; exit 1'
expect failure_told_by_word_only '1 passed, 1 failed, 0 skipped' 1 'echo "ok a"; echo "not ok b - why"'
expect says_nothing '0 passed, 1 failed, 0 skipped' 1 'true'
expect fails_silently '1 passed, 1 failed, 0 skipped' 1 'echo "ok a"; exit 3'
expect crashes '1 passed, 1 failed, 0 skipped' 1 'echo "ok a"; kill -SEGV $$'
expect stops_early '1 passed, 1 failed, 0 skipped' 1 'echo 1..3; echo "ok 1 - a"'
expect takes_too_long '1 passed, 1 failed, 0 skipped' 1 '# timeout: 1
echo "ok a"; sleep 20'
expect takes_too_long_and_ignores_it '0 passed, 1 failed, 0 skipped' 1 '# timeout: 1
trap "" TERM; while :; do sleep 1; done'
expect only_skips '0 passed, 0 failed, 1 skipped' 0 'echo "skip a - reason"'
expect no_program '0 passed, 0 failed, 0 skipped' 1
expect words_that_only_look_alike '1 passed, 0 failed, 0 skipped' 0 'echo "ok a"; echo "okay"; echo "  ok b"; echo "not okay"'
expect has_no_input '1 passed, 0 failed, 0 skipped' 0 'read line || echo "ok a"'
expect stderr_counts '1 passed, 0 failed, 0 skipped' 0 'echo "ok a" >&2'
expect own_folder '2 passed, 0 failed, 0 skipped' 0 '[ -d "$T" ] && [ -z "$(ls "$T")" ] && >"$T/left" && echo "ok a"' \
	'[ -z "$(ls "$T")" ] && echo "ok a"'

printf '#!/bin/sh\necho "ok a"\necho "not ok b"\n' >"$T/add" && chmod +x "$T/add"
COUNTS=$T/counts "$runner" "$T/add" >"$T/add.out"
COUNTS=$T/counts "$runner" "$T/add" "$T/add" >"$T/add.out"
if [ "$(tr '\n' ';' <"$T/counts")" = '1 1 0;2 2 0;' ]; then
	echo "ok run_tests_adds_up"
else
	echo "not ok run_tests_adds_up - $(cat "$T/counts")"
fi
if grep -q 'add: not ok b' "$T/add.out" && grep -q '| ok a' "$T/add.out"; then
	echo "ok run_tests_shows_the_log_of_a_failure"
else
	echo "not ok run_tests_shows_the_log_of_a_failure"
fi
if grep -q 'skip c - no such machine' "$T/counts.out"; then
	echo "ok run_tests_tells_why_it_skipped"
else
	echo "not ok run_tests_tells_why_it_skipped"
fi

# Programs of tests that link the shim's objects leave a ring, and the next recorder would look for it where all others are.
cp "$(command -v printenv)" "$T/printenv"
SPARKTRACE_RING_DIR=$T/rings "$runner" "$T/printenv" >/dev/null
if grep -q "^SPARKTRACE_RING_DIR=$BUILD/tmp/printenv" "$BUILD/log/printenv.log"; then
	echo "ok run_tests_keeps_rings_apart"
else
	echo "not ok run_tests_keeps_rings_apart - $(grep RING "$BUILD/log/printenv.log")"
fi
