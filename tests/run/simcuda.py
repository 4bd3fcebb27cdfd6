# SPDX-License-Identifier: Apache-2.0
"""See simcuda.sh."""

import ctypes
import json
import os
import signal
import subprocess
import time

from simledger import LIB, MIB, PAGE, ROOT, Run, check, differ, finish, process_memory, run, victim, weights

# Peaks of each family of tests/victim/families.c. A pool grows by 2 MiB.
FAMILIES = {
    "plain": {"device_peak": 3 * MIB},
    "pitched": {"device_peak": 1024 * 1000},
    "managed": {"device_peak": 0},
    "pinned": {"device_peak": 4 * MIB, "pinned_peak": 6 * MIB, "total_peak": 10 * MIB},
    "registered": {"device_peak": 0, "pinned_peak": 0},
    "async": {"device_peak": 10 * MIB},
    "pool": {"device_peak": 6 * MIB},
    "vmm": {"device_peak": 40 * MIB},
    "array": {"device_peak": MIB // 2},
    "copies": {"device_peak": 4 * MIB},
    "sets": {"device_peak": MIB},
    "events": {"device_peak": 0},
}


def names(file):
    with open(os.path.join(ROOT, "tests/simcuda/exports", file), encoding="utf-8") as lines:
        return [line.split() for line in lines]


def test_families():
    for family, peaks in FAMILIES.items():
        done = run(victim("families"), family)
        wanted = {"device": 0, "pinned": 0, "managed": 0, "stubs": 0, **peaks}
        check(f"family_{family}", done.rc and done.out or differ(done.last(), wanted))


def test_doors():
    done = run(victim("doors"), 64)
    allocs = [line for line in done.lines() if line["op"] == "cuMemAlloc_v2"]
    check("doors_reach_the_driver_once_each", done.rc or len(allocs) != 5 or differ(done.last(), {"device_peak": 320 * MIB}))
    done = run(victim("door_dlopen"), 64)
    check("door_dlopen", done.rc or differ(done.last(), {"device_peak": 128 * MIB, "device": 0}))


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def test_copy_on_write():
    path = weights("cow.safetensors", 4, 128)
    # Held between the last copy and the unmapping: what the kernel counts must be what the ledger says.
    held = Run(victim("load_cow"), path, SIMCUDA_GB10=1, SIMCUDA_DELAY="cuStreamSynchronize:1:1500")
    wait_for(lambda: len(held.ops("cuMemcpyHtoDAsync_v2")) == 4)
    memory = process_memory(held.process.pid)
    held.wait()
    last = held.last()
    check("cow_broken", not 128 * MIB <= last["broken"] <= 128 * MIB + 4 * 2 * PAGE and last)
    check("cow_source", {line["source"] for line in held.ops("cuMemcpyHtoDAsync_v2")} != {"file_private_writable"})
    check("cow_kernel_device", not 128 * MIB <= memory["RssShmem"] <= 129 * MIB and memory)
    check("cow_kernel_anonymous", not last["broken"] <= memory["RssAnon"] <= last["broken"] + 4 * MIB and memory)
    for name, options, settings in (("read_only", ["--read-only"], {"SIMCUDA_GB10": 1}), ("discrete", [], {})):
        done = run(victim("load_cow"), *options, path, **settings)
        check(f"cow_{name}_breaks_nothing", done.rc or differ(done.last(), {"broken": 0, "copied": 128 * MIB}))


def test_limit():
    shards = [weights(f"shard-{number}.safetensors", 1, 16) for number in range(8)]
    dead = run(victim("load_dead"), *shards, SIMCUDA_LIMIT=80 * MIB)
    refused = [line["size"] for line in dead.lines() if line["rc"] == 2]
    check("limit", dead.rc != 1 or refused != [16 * MIB] or differ(dead.last(), {"device_peak": 80 * MIB}))
    alive = Run(victim("load_dead"), "--retry", *shards, "--hold", 1.5, SIMCUDA_LIMIT=80 * MIB)
    wait_for(lambda: alive.ops("cuMemcpyHtoDAsync_v2")[7:])
    time.sleep(0.3)
    memory = process_memory(alive.process.pid)
    alive.wait()
    last = alive.last()
    check("retry", alive.rc or differ(last, {"device_peak": 80 * MIB, "copied": 128 * MIB}))
    check("freed_memory_goes_back", not last["device"] <= memory["RssShmem"] <= last["device"] + MIB and (memory, last))


def test_staging():
    done = run(victim("load_staging"), weights("staging.safetensors", 2, 192))
    wanted = {"device": 192 * MIB, "pinned_peak": 64 * MIB, "copied": 192 * MIB, "broken": 0}
    sources = {line["source"] for line in done.ops("cuMemcpyHtoDAsync_v2")}
    check("staging", done.rc or sources != {"pinned"} or differ(done.last(), wanted))


def test_injection():
    done = run(victim("families"), "plain", SIMCUDA_FAIL="cuMemcpyDtoH_v2:1:700")
    check("fail", done.rc != 3 or ": 700" not in done.out or not [x for x in done.lines() if x.get("injected")])
    started = time.monotonic()
    done = run(victim("families"), "plain", SIMCUDA_DELAY="cuMemAlloc_v2:1:300,cuMemFree_v2:1:300")
    check("delay", done.rc or not time.monotonic() - started > 0.6)


def test_killed():
    path = weights("killed.safetensors", 64, 64)
    victim_run = Run(victim("load_steps"), path, 1000000, 1, SIMCUDA_LAZY=1)
    wait_for(lambda: victim_run.lines()[500:])
    victim_run.process.send_signal(signal.SIGKILL)
    victim_run.wait()
    with open(victim_run.path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    check("ledger_of_a_killed_program", not json.loads(lines[-1])["device_peak"] >= 64 * MIB)


def test_exports():
    driver = ctypes.CDLL(os.path.join(LIB, "libcuda.so.1"))
    check("driver_exports", [row[0] for row in names("driver.txt") if not hasattr(driver, row[0])])
    text = subprocess.run(
        ["nm", "-D", "--defined-only", os.path.join(LIB, "libcudart.so.13")], capture_output=True, text=True, check=True
    ).stdout
    found = {line.split()[2] for line in text.splitlines()}
    check("runtime_exports", [row[0] for row in names("runtime.txt") if f"{row[0]}@@libcudart.so.13" not in found])
    text = subprocess.run(
        ["nm", "-D", "--undefined-only", os.path.join(LIB, "libcuda.so.1")], capture_output=True, text=True, check=True
    ).stdout
    used = {line.split()[1].split("@")[0] for line in text.splitlines()}
    check("own_system_calls_are_raw", used & {"mmap", "mmap64", "munmap", "open", "open64", "openat", "read", "write", "malloc"})


def resolve(driver, name, version, flags=0):
    function, status = ctypes.c_void_p(), ctypes.c_int(-1)
    rc = driver.cuGetProcAddress_v2(name.encode(), ctypes.byref(function), version, ctypes.c_uint64(flags), ctypes.byref(status))
    return rc, function.value, status.value


def address(driver, name):
    return ctypes.cast(getattr(driver, name), ctypes.c_void_p).value


def test_resolver():
    driver = ctypes.CDLL(os.path.join(LIB, "libcuda.so.1"))
    wrong = []
    for base, version, export in names("resolver.txt"):
        twin = export.endswith(("_ptsz", "_ptds"))
        if resolve(driver, base, int(version), 2 if twin else 0) != (0, address(driver, export), 0):
            wrong.append(export)
    check("resolver_table", wrong)
    check("resolver_newest_covered", resolve(driver, "cuMemAlloc", 12000)[1] != address(driver, "cuMemAlloc_v2"))
    check("resolver_version_too_low", resolve(driver, "cuMemCreate", 10000) != (0, None, 2))
    check("resolver_unknown", resolve(driver, "cuNoSuchThing", 13000) != (0, None, 1))
    check("resolver_version_too_high", resolve(driver, "cuMemAlloc", 99000)[0] != 1)
    check("resolver_falls_back_to_legacy", resolve(driver, "cuMemAlloc", 13000, 2) != (0, address(driver, "cuMemAlloc_v2"), 0))
    probe = ctypes.c_void_p()
    check("resolver_empty_probe", driver.cuGetProcAddress_v2(b"", ctypes.byref(probe), 0, ctypes.c_uint64(0), None) in (0, 34))


PROGRAM = """
import ctypes, os, sys
driver = ctypes.CDLL("libcuda.so.1")
context, block, free, total = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_size_t()
def call(name, *args):
    return getattr(driver, name)(*args)
"""


def python(text, **settings):
    done = run("python3", "-c", PROGRAM + text, **settings)
    return done, done.out.split()


def test_rules():
    start = 'call("cuInit", 0); call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)\n'
    done, words = python('print(call("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(4096)))')
    check("not_initialized_before_cuInit", words != ["3"] and done.out)
    alloc = 'print(call("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(1 << 20)), flush=True)\n'
    done, words = python(start + alloc)
    check("no_context_is_current", words != ["201"] and done.out)
    start += 'call("cuCtxSetCurrent", context)\n'
    done, words = python(start + alloc + "if os.fork() == 0:\n    " + alloc + "    os._exit(0)\nos.wait()")
    check("fork_child_has_no_driver", words != ["0", "3"] and done.out)
    done, words = python(start + 'print(call("cuGraphCreate", ctypes.byref(context), 0))')
    check("stub_is_logged", (words, done.stubs()) != (["801"], ["cuGraphCreate"]) and done.out)
    info = 'print(call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total)), free.value, total.value)'
    done, words = python(start + alloc + info, SIMCUDA_LIMIT=64 * MIB)
    check("info_discrete", words != ["0", "0", str(63 * MIB), str(64 * MIB)] and done.out)
    meminfo = 'print(*(int(l.split()[1]) * 1024 for l in open("/proc/meminfo") if l.startswith(("MemTotal", "MemFree"))))'
    done, words = python(start + info + "\n" + meminfo, SIMCUDA_GB10=1)
    total, free = int(words[3]), int(words[4])
    check("info_of_one_pool", (int(words[2]) != total or abs(int(words[1]) - free) > 256 * MIB) and done.out)
    done, words = python('print(driver.simcuda_version(), hasattr(driver, "simcuda_nothing"))')
    check("recognisable", words != ["1", "False"] and done.out)


def test_management():
    text = (
        'nvml = ctypes.CDLL("libnvidia-ml.so.1"); nvml.nvmlInit_v2(); count = ctypes.c_uint(); h = ctypes.c_void_p()\n'
        "memory = (ctypes.c_ulonglong * 3)(); nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))\n"
        "nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(h))\n"
        "print(count.value, nvml.nvmlDeviceGetMemoryInfo(h, memory), nvml.nvmlDeviceGetGpuFabricInfoV(h, None))"
    )
    done, words = python(text, SIMCUDA_GB10=1)
    check("nvml_of_one_pool", words != ["1", "3", "3"] and done.out)
    done, words = python(text)
    check("nvml_discrete", words != ["1", "0", "3"] and done.out)


def main():
    for test in (
        test_exports, test_resolver, test_rules, test_management, test_families, test_doors, test_copy_on_write,
        test_limit, test_staging, test_injection, test_killed,
    ):
        test()
    finish()


main()
