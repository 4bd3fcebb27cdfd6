# SPDX-License-Identifier: Apache-2.0
"""Shows line 10: after kill -9 at a random instant, trace and ring hold the last completed call.

Every round starts tests/victim/count under the shim, kills it after a random time (every second round
together with its recorder, recorder first or last), and looks for the last number that the victim wrote to
its pipe among the `map` records of the trace (which the analyzer completes from the ring), or of the ring
alone where no trace was begun.
"""
import glob
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
ROUNDS = int(os.environ.get("KILL_ROUNDS", "1000" if os.environ.get("LONG") else "200"))
SEED = int(os.environ.get("KILL_SEED", str(random.randrange(1 << 30))))


def recorders(ring_dir):
    """Recorders whose ring lies in ring_dir."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if len(words) > 1 and words[0].endswith(b"sparktrace-recorder") and words[1].startswith(ring_dir.encode()):
            found.append(int(path.split("/")[2]))
    return found


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def has_trace(path):
    """A recorder that was killed before it wrote the head leaves an empty file."""
    return os.path.exists(path) and os.path.getsize(path) > 0


def largest_map(command, may_vanish=False):
    """The largest n of the victim's numbered maps in a dump."""
    best = 0
    dump = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in dump.stdout:
        if line.startswith('{"event":"map"'):
            size = json.loads(line)["size"]
            best = max(best, size // 4096)
    errors = dump.stderr.read()
    if dump.wait() != 0 and not (may_vanish and "No such file" in errors):
        raise RuntimeError("dump failed with %d: %s" % (dump.returncode, errors.strip()))
    return best


def one_round(number, rng, weight):
    # A recorder that was not there yet when the others were killed may make its trace while the folder is cleared.
    with tempfile.TemporaryDirectory(prefix="kill", ignore_cleanup_errors=True) as folder:
        ring_dir = os.path.join(folder, "rings")
        os.mkdir(ring_dir)
        trace = os.path.join(folder, "run.zst")
        env = dict(os.environ, LD_PRELOAD=os.path.join(BUILD, "libsparktrace.so"), SPARKTRACE_OUTPUT=trace,
                   SPARKTRACE_RING_DIR=ring_dir)
        read_end, write_end = os.pipe()
        victim = subprocess.Popen([os.path.join(BUILD, "tests/victim/count"), weight, str(write_end), "20"],
                                  env=env, pass_fds=[write_end])
        os.close(write_end)
        data = os.read(read_end, 8)  # its first call is complete
        time.sleep(rng.random() ** 2 * 0.1)
        both = number % 2
        beside = recorders(ring_dir) if both else []
        order = [victim.pid] + beside if number % 4 == 1 else beside + [victim.pid]
        for pid in order:
            kill(pid)
        victim.wait()
        while True:
            more = os.read(read_end, 1 << 16)
            if not more:
                break
            data += more
        os.close(read_end)
        last = struct.unpack("<Q", data[len(data) // 8 * 8 - 8:len(data) // 8 * 8])[0]
        rings = glob.glob(os.path.join(ring_dir, "*"))
        analyze = os.path.join(BUILD, "sparktrace-analyze")
        found = 0
        if not has_trace(trace) and rings:
            found = largest_map([analyze, "dump", rings[0]], may_vanish=True)
        # The recorder may have begun the trace, and moved the records there, while the ring was read.
        if has_trace(trace) and found < last:
            found = largest_map([analyze, "dump", trace])
        for pid in recorders(ring_dir):
            kill(pid)
        if found < last:
            raise RuntimeError("round %d: wrote %d, the trace holds %d (trace %s, rings %s, both %d)" %
                               (number, last, found, os.path.exists(trace), rings, both))
        return last


def main():
    rng = random.Random(SEED)
    lost, calls = [], 0
    with tempfile.TemporaryDirectory(prefix="kill") as folder:
        weight = os.path.join(folder, "w.safetensors")
        with open(weight, "wb") as f:
            header = b'{"a":{"dtype":"U8","shape":[4096],"data_offsets":[0,4096]}}'
            f.write(struct.pack("<Q", len(header)) + header + bytes(4096))
        for number in range(ROUNDS):
            try:
                calls += one_round(number, rng, weight)
            except RuntimeError as e:
                lost.append(str(e))
    for text in lost[:10]:
        print("# " + text)
    name = "kill: %d of %d rounds hold the last call (%d calls, seed %d)" % (ROUNDS - len(lost), ROUNDS, calls, SEED)
    print(("ok " if not lost and calls > ROUNDS else "not ok ") + name)
    return 1 if lost or calls <= ROUNDS else 0


if __name__ == "__main__":
    sys.exit(main())
