#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The traced program is not harmed: output, files, exit status, descriptors, threads and children are the same with
# the shim and without, idle, recording, and when no recording can be made (Shows 11); and who does not touch the
# pool leaves no file and starts nothing (Shows 13).
# timeout: 300
set -u
BUILD=${BUILD:?} T=${T:?}
shim=$BUILD/libsparktrace.so
victim=$BUILD/tests/victim
weights=$T/model.safetensors
rings=$T/rings
here=$(cd "$(dirname "$0")/.." && pwd)
# Not a wrapper script of it (pyenv): that one forks a lot before it becomes Python.
python=$(python3 -c 'import sys; print(sys.executable)')
unset LD_PRELOAD SPARKTRACE

ok() { echo "ok $1"; }
bad() { echo "not ok $1 - $2"; }
verdict() { if [ -z "$2" ]; then ok "$1"; else bad "$1" "$2"; fi; }

make_weights() {
	"$python" - "$weights" <<-'END'
		import json, os, struct, sys
		size = 4 << 20
		head = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
		head += b" " * (-len(head) % 8)
		with open(sys.argv[1], "wb") as file:
		    file.write(struct.pack("<Q", len(head)) + head + os.urandom(size))
	END
}

# run NAME COMMAND...: leaves NAME.out, NAME.err, NAME.exit and the folder NAME.d, in which it ran.
run() {
	local name=$T/$1
	shift
	rm -rf "$name.d"
	mkdir "$name.d"
	(cd "$name.d" && "$@" >"$name.out" 2>"$name.err" </dev/null)
	echo $? >"$name.exit"
}

# traced NAME COMMAND...: the same under the shim, which keeps its own files elsewhere.
traced() {
	local name=$1
	shift
	rm -rf "$rings" "$T/traces"
	mkdir "$rings" "$T/traces"
	run "$name" env LD_PRELOAD="$shim" SPARKTRACE_RING_DIR="$rings" SPARKTRACE_OUTPUT="$T/traces/run.zst" "$@"
}

# What differs between two runs, or nothing. The lines of the shim on stderr are another test's concern.
difference() {
	local plain=$T/$1 shimmed=$T/$2
	for part in out exit; do
		cmp -s "$plain.$part" "$shimmed.$part" || {
			echo "$part differs: $(diff "$plain.$part" "$shimmed.$part" | head -n 3 | tr '\n' ' ')"
			return
		}
	done
	diff <(grep -v '^sparktrace: ' "$plain.err") <(grep -v '^sparktrace: ' "$shimmed.err") >"$T/diff" ||
		echo "stderr differs: $(head -n 3 "$T/diff" | tr '\n' ' ')"
	diff -r "$plain.d" "$shimmed.d" >"$T/diff" || echo "files differ: $(head -n 3 "$T/diff" | tr '\n' ' ')"
}

# same NAME COMMAND...: with and without.
same() {
	local name=$1
	shift
	run plain "$@"
	traced shimmed "$@"
	verdict "$name" "$(difference plain shimmed)"
}

# Rings and traces of the last traced run.
left_behind() { find "$rings" "$T/traces" -type f; }

# A recording was made, so that the comparison before was worth something.
recorded() {
	if [ -n "$(left_behind)" ]; then
		ok "$1, and it was recorded"
	else
		bad "$1, and it was recorded" "no ring and no trace"
	fi
}

same_and_recorded() {
	same "$@"
	recorded "$1"
}

# idle NAME COMMAND...: the same, and nothing is left behind. A ring is made before a recorder is started.
idle() {
	command -v "$2" >/dev/null || {
		echo "skip $1 - $2 is not installed"
		return
	}
	same "$@"
	verdict "$1 leaves no file and starts nothing" "$(left_behind)"
}

# Where the output lies in a place made for the test: mount NAME OPTIONS, in a mount namespace of its own.
in_mount() {
	local where=$1 options=$2 keep=$3
	shift 3
	# shellcheck disable=SC2016 # the inner shell's
	unshare -m sh -c 'mount -t tmpfs -o "$1" none "$0" && { [ -z "$2" ] || mount -o remount,"$2" "$0"; } && shift 2 && exec "$@"' \
		"$where" "$options" "$keep" "$@"
}

# hindered NAME LINES COMMAND...: as without the shim; LINES (a pattern) is how many lines it says.
hindered() {
	local name=$1 lines=$2
	shift 2
	run plain "$victim/calls" "$weights" .
	run shimmed "$@" "$victim/calls" "$weights" .
	verdict "$name: nothing changes" "$(difference plain shimmed)"
	said=$(grep -c '^sparktrace: ' "$T/shimmed.err")
	verdict "$name: $lines line on stderr" "$([[ $said == "$lines" ]] || echo "$said lines: $(head -n 2 "$T/shimmed.err")")"
	SPARKTRACE_QUIET=1 run shimmed "$@" "$victim/calls" "$weights" .
	verdict "$name: silent when asked" "$(head -n 1 "$T/shimmed.err")"
}

hindrances() {
	local preload="LD_PRELOAD=$shim" output=$T/small/run.zst
	mkdir -p "$T/small" "$T/lone" "$T/rings"
	cp "$shim" "$T/lone/"
	hindered "missing recorder" 1 env LD_PRELOAD="$T/lone/libsparktrace.so" SPARKTRACE_RING_DIR="$T/lone"
	hindered "wrong settings" 1 env "$preload" SPARKTRACE_RING_SIZE=lots SPARKTRACE_UNWIND=up \
		SPARKTRACE_RING_DIR="$T/rings" SPARKTRACE_OUTPUT="$T/small/wrong.zst"
	hindered "no folder for the ring" 1 env "$preload" SPARKTRACE_RING_DIR=/no/where
	if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null; then
		echo "skip full and read-only file systems - needs mount namespaces"
		return
	fi
	# shellcheck disable=SC2016 # the inner shell's
	hindered "full /dev/shm and disk" 1 in_mount /dev/shm size=64k "" \
		unshare -m sh -c 'mount -t tmpfs -o size=64k none "$0" && exec "$@"' "$T/small" \
		env "$preload" SPARKTRACE_OUTPUT="$output"
	hindered "full /dev/shm" 0 in_mount /dev/shm size=64k "" env "$preload" SPARKTRACE_OUTPUT="$T/beside.zst"
	verdict "full /dev/shm: the trace is there" "$([ -s "$T/beside.zst" ] || echo "no $T/beside.zst")"
	hindered "full disk" 1 in_mount "$T/small" size=4k,nr_inodes=1 "" \
		env "$preload" SPARKTRACE_RING_DIR="$T/rings" SPARKTRACE_OUTPUT="$output"
	hindered "read-only folder" 1 in_mount "$T/small" size=64k ro \
		env "$preload" SPARKTRACE_RING_DIR="$T/rings" SPARKTRACE_OUTPUT="$output"
}

# Events behind the subprocesses still come, from the thread that started them.
still_recorded() {
	# Its own folder: a recorder of the tests before that is still at work takes up the dead rings beside its own.
	local rings=$T/alone
	traced shimmed env SPARKTRACE_QUIET=1 LD_PRELOAD="$T/lone/libsparktrace.so" "$victim/forks" "$weights"
	# Of all rings the one of the program itself: only it has more than one child.
	left_behind | while read -r ring; do
		"$BUILD/tests/tools/ringcat" "$ring" >"$T/events"
		if [ "$(grep -c ' child ' "$T/events")" -gt 1 ]; then break; fi
	done
	# touch(3 << 20) is the last thing that forks does.
	verdict "events after the children" "$(awk '$3 == "child" { children++ }
		$3 == "map" && / size=3145728 / { map = children; tid = $2 }
		NR == 2 { main = $2 }
		END { if (!(map > 8 && tid == main)) print "map behind " map + 0 " children, thread " tid }' "$T/events")"
	verdict "revoked execs" "$(awk '$3 == "child" && / how=3 / { n++ } $3 == "revoke" { r++ }
		END { if (n != 9 || r != 10) print n " execs, " r " revokes" }' "$T/events")"
	verdict "each fork child that touches has a ring of its own" \
		"$([ "$(left_behind | wc -l)" -eq 5 ] || left_behind | tr '\n' ' ')"
}

# shellcheck disable=SC2016 # what stands in single quotes is for bash, perl and sh
idlers() {
	idle bash bash -c 'x=$(echo a | cat); (exit 3); echo $x $? & wait; exit 5'
	idle ls ls -l /usr/bin
	idle gcc sh -c 'gcc -o six "$0" && ./six; echo $?; rm six' "$T/six.c"
	idle perl perl -e 'print `echo x`; exit 4'
	idle git git hash-object /etc/passwd
	idle tar sh -c "tar cf - /etc/passwd 2>/dev/null | tar tf -"
	idle python "$python" -c \
		'import json, subprocess; print(subprocess.run(["ls", "/"], capture_output=True).stdout)'
	idle "early calls" "$victim/early" /etc/passwd
	idle "wrong setting" env SPARKTRACE_RING_SIZE=lots sh -c 'ls / | cat'
	verdict "wrong setting: who records nothing says nothing" "$(head -n 1 "$T/shimmed.err")"
}

make_weights
printf 'int main(void) { return 6; }\n' >"$T/six.c"
idlers
same_and_recorded "every wrapped call" "$victim/calls" "$weights" .
same_and_recorded "children of all sorts" "$victim/forks" "$weights"
same_and_recorded "threads, signals, cancellation, longjmp" "$victim/threads" "$weights" 20
same_and_recorded "early calls on weights" "$victim/early" "$weights"
same_and_recorded "marks" "$victim/marks" "$weights"
same_and_recorded "python" "$python" "$here/victim/python_life.py" "$weights" new
# shellcheck disable=SC2016 # the inner shell's
same "few descriptors" bash -c 'ulimit -S -n 5 && exec "$@"' few "$victim/early" "$weights"
verdict "few descriptors: the trace is there" "$([ -s "$T/traces/run.zst" ] || head -n 1 "$T/shimmed.err")"
SPARKTRACE_RING_SIZE=8MiB same_and_recorded "traps" "$victim/traps" "$weights"
verdict "a weight file behind more files than there is room for" \
	"$(zstd -dcq "$T"/traces/*.zst | grep -q late.safetensors || echo "not in the trace")"
hindrances
still_recorded
