# SPDX-License-Identifier: Apache-2.0
"""See cufile.sh."""

import itertools
import os
import subprocess
import sys
import zlib

from e2e import SHIM, Traced, enter_own_world, exactly, facts
from simledger import LIB, MIB, check, finish, victim, weights

PAGE = 4096
TENSORS, SIZE = 6, 24  # MiB: a page and more of the last tensor's end is asked for behind the file's end


def pieces(size):
    """What the victim's WAY reads, as (offset, size); see tests/victim/cufile_load.h."""
    whole = -(-size // PAGE) * PAGE
    half = size // 2
    return {
        "read": [(at, min(4 * MIB, size - at)) for at in range(0, whole, 4 * MIB)],
        "readv": [(0, half), (half, size - half)],
        "async": [(0, size)],
        "batch": [(0, half), (half, size - half)],
    }


def plain(program, way, path, mode):
    """What the program says without us: its words that are no times."""
    env = dict(os.environ, LD_LIBRARY_PATH=LIB, SIMCUDA_CUFILE=mode)
    done = subprocess.run([victim(program), way, path], env=env, capture_output=True, text=True, check=False)
    return done.returncode, words(done.stdout)


def words(text):
    return [word for word in text.split() if not (word.isdigit() and len(word) > 11)]


def sum_of(path):
    with open(path, "rb") as file:
        return zlib.adler32(file.read())


def case(program, way, mode, path):
    run = Traced(f"{program}-{way}-{mode}", victim(program), way, path, files=[path], SIMCUDA_CUFILE=mode)
    size = os.path.getsize(path)
    events = run.dump()
    number = next(event["id"] for event in events if event["event"] == "file" and event["text"] == path)
    reads = [event for event in events if event["event"] == "read" and event["file"] == number]
    direct = [event for event in reads if event["how"] == "cufile"]
    block = next(line for line in run.ledger if line["op"] == "cuMemAlloc_v2")
    base = int(block["addr"], 16)
    header = size - 24 * MIB
    report = run.report()
    file = report.file(path)
    check(
        f"cufile_{program}_{way}_{mode}",
        facts(
            ("with us and without", (run.rc, words(run.out)), plain(program, way, path, mode)),
            ("same bytes", f"sum {sum_of(path)}\n" in run.out, True),
            ("ranges", [(event["offset"], event["size"]) for event in direct], pieces(size)[way]),
            ("to", [int(event["addr"], 16) - base for event in direct], [event["offset"] for event in direct]),
            # The victim reads the header first.
            ("other reads", [(event["how"], event["size"]) for event in reads if event["how"] != "cufile"],
             [("pread", 8), ("pread", header - 8)]),
            ("device bytes of the file", file["at_peak"]["device"], exactly(24 * MIB)),
            ("exact", file["exact"], True),
            ("staging", report["peak.load.staging_peak_bytes"], 0),
            ("pinned", report["peak.load.pinned_peak_bytes"], run.last()["pinned_peak"]),
            ("device", report["peak.load.device_peak_bytes"], run.last()["device_peak"]),
        ),
    )


LOOKUPS = """
import ctypes
for lookup in (lambda: ctypes.CDLL("libcufile.so.0"), lambda: ctypes.CDLL(None).cuFileRead, lambda: ctypes.CDLL("libm.so.6").cuFileRead):
    try:
        print(lookup())
    except (OSError, AttributeError) as error:
        print(str(error).partition(": ")[2])
"""


def without():
    """Where there is no libcufile, nothing of ours looks like one."""
    said = []
    for preload in ({}, {"LD_PRELOAD": SHIM}):
        env = {key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
        done = subprocess.run([sys.executable, "-c", LOOKUPS], env={**env, **preload}, capture_output=True, text=True, check=False)
        said.append((done.returncode, done.stdout, done.stderr))
    if "cannot open" not in said[0][1]:
        print("skip cufile_absent - this machine has a libcufile")
        return
    check("cufile_absent", facts(("lookups", said[1], said[0]), ("symbols", said[0][1].count("undefined symbol: cuFileRead"), 2)))


def main():
    enter_own_world()
    without()
    path = weights("model.safetensors", TENSORS, SIZE)
    for program, way, mode in itertools.product(
        ("load_cufile", "load_cufile_dlsym"), ("read", "readv", "async", "batch"), ("compat", "threads", "direct")
    ):
        case(program, way, mode, path)
    finish()


main()
