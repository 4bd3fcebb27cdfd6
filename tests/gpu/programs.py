# SPDX-License-Identifier: Apache-2.0
"""The programs of check_gpu.py: each allocates or loads, and at its stops says what NVML, PyTorch and the driver tell of it.

    python programs.py CASE [FILE...]

A line of JSON a stop; the stop's name is also a mark in the trace. What the program has computed comes last, and must be
the same with and without sparktrace.
"""

import ctypes
import hashlib
import json
import os
import sys

MIB = 1 << 20


class Process(ctypes.Structure):
    """nvmlProcessInfo_t"""

    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gpu", ctypes.c_uint), ("compute", ctypes.c_uint)]


def nvml_bytes():
    """Device bytes of this process, or None where NVML does not tell (no library, [N/A], another PID namespace)."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    device, count, rows = ctypes.c_void_p(), ctypes.c_uint(64), (Process * 64)()
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)):
        return None
    if nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), rows):
        return None
    used = [row.used for row in rows[: count.value] if row.pid == os.getpid()]
    return used[0] if used and used[0] < 1 << 62 else None


mark = getattr(ctypes.CDLL(None), "sparktrace_mark", lambda name: None)


def stop(torch, name):
    torch.cuda.synchronize()
    mark(name.encode())
    statistics = torch.cuda.memory_stats()
    print(json.dumps({
        "stop": name, "nvml": nvml_bytes(), "free": torch.cuda.mem_get_info()[0],
        "reserved": statistics["reserved_bytes.all.current"], "allocated": statistics["allocated_bytes.all.current"],
    }), flush=True)


def result(text):
    print("result", text, flush=True)


def blocks(torch):
    """Sizes on both sides of the caching allocator's classes."""
    return [torch.empty(size, dtype=torch.uint8, device="cuda") for size in (MIB, 5 * MIB, 96 * MIB, 301 * MIB + 512)]


def case_allocations(torch):
    """Blocks, some given back to the allocator's cache, all given back to the driver."""
    held = blocks(torch)
    stop(torch, "held")
    del held[2:]
    stop(torch, "cached")
    torch.cuda.empty_cache()
    stop(torch, "emptied")
    result([block.numel() for block in held])


def case_pinned(torch):
    """Pinned host memory is no device memory."""
    host = torch.arange(48 * MIB, dtype=torch.uint8).pin_memory()
    device = host.to("cuda", non_blocking=True)
    stop(torch, "held")
    result(hashlib.sha256(device.cpu().numpy().tobytes()).hexdigest())


def case_refused(torch):
    """A request that no device can meet, and that still fits the addresses that PyTorch reserves (9/8 of it)."""
    held = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    stop(torch, "held")
    try:
        torch.empty(torch.cuda.mem_get_info()[1] // 16 * 17, dtype=torch.uint8, device="cuda")
        result("not refused")
    except torch.cuda.OutOfMemoryError:
        result("refused")
    stop(torch, "refused")
    more = torch.empty(32 * MIB, dtype=torch.uint8, device="cuda")
    stop(torch, "more")
    result(held.numel() + more.numel())


def anonymous(path):
    """Bytes of a file's mappings that became anonymous, as the kernel counts them."""
    total, ours = 0, False
    with open("/proc/self/smaps", encoding="utf-8", errors="replace") as file:
        for line in file:
            words = line.split()
            if not words[0].endswith(":"):
                ours = len(words) >= 6 and words[5] == path
            elif ours and words[0] == "Anonymous:":
                total += int(words[1]) * 1024
    return total


def case_load(torch, path):
    """Every tensor of a file onto the device, the file held open to the end, as large libraries do."""
    import safetensors

    digest = hashlib.sha256()
    with safetensors.safe_open(path, framework="pt", device="cuda") as file:
        kept = {name: file.get_tensor(name) for name in file.keys()}
        torch.cuda.synchronize()
        print(json.dumps({"stop": "anonymous", "bytes": anonymous(path), "version": safetensors.__version__}), flush=True)
        stop(torch, "loaded")
        for name in sorted(kept):
            digest.update(kept[name].cpu().view(torch.uint8).numpy().tobytes())
    result(digest.hexdigest())


def case_make(torch, path):
    """A checkpoint: one large tensor, some of a few MiB, some small ones."""
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(1)
    sizes = [96 * MIB] + [9 * MIB] * 12 + [4096] * 8
    save_file({f"t{i}": torch.randint(0, 256, (size,), dtype=torch.uint8, generator=generator) for i, size in enumerate(sizes)}, path)


def main():
    import torch

    first = None
    if sys.argv[1] != "make":
        first = torch.empty(1, device="cuda")  # with the context comes NVML's row of this process
        stop(torch, "base")
    globals()["case_" + sys.argv[1]](torch, *sys.argv[2:])
    del first


main()
