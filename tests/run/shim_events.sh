#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the shim notes of each wrapped call of libc, well made and failed: all events of tests/victim/calls against a
# list, ring-only. `UPDATE=1` writes the list anew; look at the difference before you keep it.
set -u
BUILD=${BUILD:?} T=${T:?}
here=$(cd "$(dirname "$0")" && pwd)
expected=$here/shim_events.expected

# Without addresses and identifiers; W is the weight file. Which call found anonymous pages depends on the kernel, what
# mlock answers on the user.
normal() {
	sed -E 's/^[0-9]+ [0-9]+ //
		/^(ring|stack) /d
		s/ (addr|new_addr|dev|ino|stack|id|words|source|result|target|took)=[0-9]+//g
		s/ file=[1-9][0-9]*/ file=W/
		s/ text=.*//' "$1"
}

mkdir "$T/lone" "$T/rings" "$T/folder"
cp "$BUILD/libsparktrace.so" "$T/lone/"
python3 - "$T/model.safetensors" <<'END'
import json, struct, sys
size = 4 << 20
head = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
head += b" " * (-len(head) % 8)
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(head)) + head + bytes(size))
END
LD_PRELOAD=$T/lone/libsparktrace.so SPARKTRACE_RING_DIR=$T/rings SPARKTRACE_QUIET=1 \
	"$BUILD/tests/victim/calls" "$T/model.safetensors" "$T/folder" >/dev/null
"$BUILD/tests/tools/ringcat" "$T"/rings/sparktrace-* >"$T/events"
normal "$T/events" >"$T/normal"
[ -z "${UPDATE:-}" ] || cp "$T/normal" "$expected"
if diff "$expected" "$T/normal" >"$T/diff"; then
	echo "ok every call is noted as it should"
else
	sed 's/^/# /' "$T/diff"
	echo "not ok every call is noted as it should - $(wc -l <"$T/diff") lines of difference"
fi

# A destination is the program's buffer: the second read went 100 bytes behind the first.
if awk '$3 == "read" { for (i = 4; i <= NF; i++) if ($i ~ /^addr=/) to[++n] = substr($i, 6) }
	END { exit !(n > 20 && to[2] - to[1] == 100) }' "$T/events"; then
	echo "ok reads have their destination"
else
	echo "not ok reads have their destination"
fi
# A revoke names the release that it takes back: munmap of a wrong address, realloc to an enormous size.
if awk '{ at[$1] = $3 } $3 == "revoke" { n++; split($4, t, "="); kinds = kinds " " at[t[2]] }
	END { exit !(n == 2 && kinds == " unmap free") }' "$T/events"; then
	echo "ok revokes name their release"
else
	echo "not ok revokes name their release"
fi
