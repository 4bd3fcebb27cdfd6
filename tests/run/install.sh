#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `make install` lays down works where it lies: the shim by its bare name from any folder, the recorder
# found from there, the analyzer. `make install-sim` lays down what is ld.so's to find only by sparktrace-sim, which
# recipe.sh uses. `make uninstall` leaves nothing of both.
set -u
unset MAKEFLAGS MAKELEVEL MFLAGS
root=$T/root

if make -s O="$BUILD" install DESTDIR="$root" PREFIX=/usr; then
	echo "ok install"
else
	echo "not ok install"
fi
installed=$(cd "$root" && find . -type f | sort | tr '\n' ' ')
wanted='./usr/bin/sparktrace-analyze ./usr/include/sparktrace/sparktrace.h ./usr/lib/libsparktrace.so ./usr/libexec/sparktrace/sparktrace-recorder '
if [ "$installed" = "$wanted" ]; then
	echo "ok install_files"
else
	echo "not ok install_files - $installed"
fi

mkdir "$T/elsewhere"
cat >"$T/elsewhere/train.py" <<'PYTHON'
import mmap
header = b'{"weight":{"dtype":"U8","shape":[8388608],"data_offsets":[0,8388608]}}'
with open("model.safetensors", "wb") as f:
    f.write(len(header).to_bytes(8, "little") + header + bytes(8388608))
with open("model.safetensors", "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as m:
    print(sum(m[::4096]) >= 0)
PYTHON
cd "$T/elsewhere" || exit 1
output=$(LD_LIBRARY_PATH=$root/usr/lib LD_PRELOAD=libsparktrace.so python3 train.py 2>&1)
if [ "$output" = True ] && [ -s run.zst ]; then
	echo "ok installed_shim_records"
else
	echo "not ok installed_shim_records - '$output', $(ls)"
fi
if "$root/usr/bin/sparktrace-analyze" dump run.zst >dump 2>&1 && grep -q '"event":"file".*model\.safetensors' dump &&
	grep -q '"event":"trailer"' dump; then
	echo "ok installed_recorder_wrote_the_trace"
else
	head -n 20 dump
	echo "not ok installed_recorder_wrote_the_trace"
fi

cd "$OLDPWD" || exit 1
wanted=$(cd "$BUILD/tests/simcuda/lib" && find . -name 'lib*.so*' | sort)
if make -s O="$BUILD" install-sim DESTDIR="$root" PREFIX=/usr && make -s O="$BUILD" install-sim DESTDIR="$root" PREFIX=/usr &&
	[ "$(cd "$root/usr/lib/sparktrace-sim" && find . ! -name . | sort)" = "$wanted" ] &&
	[ "$(find "$root/usr/lib" -maxdepth 1 ! -type d)" = "$root/usr/lib/libsparktrace.so" ]; then
	echo "ok install_sim_in_a_folder_of_its_own"
else
	echo "not ok install_sim_in_a_folder_of_its_own - $(find "$root/usr/lib" | tr '\n' ' ')"
fi
odd=$(find "$root" -type f ! -perm 755 ! \( -name '*.h' -perm 644 \))
if [ -z "$odd" ] && [ -x "$root/usr/bin/sparktrace-sim" ] && [ "$(readlink "$root/usr/lib/sparktrace-sim/libcudart.so")" = libcudart.so.13 ]; then
	echo "ok install_modes"
else
	echo "not ok install_modes - $odd"
fi

make -s O="$BUILD" uninstall DESTDIR="$root" PREFIX=/usr
left=$(find "$root" ! -type d -o -name '*sparktrace*')
if [ -z "$left" ]; then
	echo "ok uninstall"
else
	echo "not ok uninstall - $left"
fi
cat >"$T/mark.c" <<'C'
#include <sparktrace/sparktrace.h>
int main(void)
{
	sparktrace_mark("step 1");
	return 0;
}
C
if ${CC:-gcc} -Wall -Wextra -Werror -Iinclude -o "$T/mark" "$T/mark.c" && "$T/mark"; then
	echo "ok mark_without_shim_does_nothing"
else
	echo "not ok mark_without_shim_does_nothing"
fi
