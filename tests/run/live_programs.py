# SPDX-License-Identifier: Apache-2.0
"""Programs that load weights, as people write them; run by check_live.py: live_programs.py CASE. WEIGHTS names the files,
with ":" between. The tensors stay until the end."""

import contextlib
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

MIB = 1 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")


def weights():
    return os.environ["WEIGHTS"].split(":")


def shards_open(stack, device):
    from safetensors import safe_open

    return [stack.enter_context(safe_open(path, framework="pt", device=device)) for path in weights()]


def case_all_open():
    """Every shard is open while tensors are fetched by name, as large libraries do."""
    tensors = []
    with contextlib.ExitStack() as stack:
        for shard in shards_open(stack, "cuda"):
            for name in shard.keys():
                tensors.append(shard.get_tensor(name))
    return tensors


def case_every_way():
    """Staged, straight out of the mapping, copied on the host, and read: something of every metric."""
    import torch

    kept = case_all_open()
    with contextlib.ExitStack() as stack:
        for shard in shards_open(stack, "cpu"):
            mapped = [shard.get_tensor(name) for name in shard.keys()]
            half = len(mapped) // 2
            kept += [tensor.to("cuda") for tensor in mapped[:half]]
            kept += [tensor.clone() for tensor in mapped[half:]]
    with open(weights()[0], "rb", buffering=0) as file:
        kept.append(torch.frombuffer(bytearray(file.read()), dtype=torch.uint8))
    return kept


def case_threads():
    """A pool of threads fetches tensors, as transformers does."""
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(max_workers=4) as pool:
        jobs = [pool.submit(shard.get_tensor, name) for shard in shards_open(stack, "cuda") for name in shard.keys()]
        return [job.result() for job in jobs]


def case_parallel():
    """Whole files in a pool of threads."""
    from safetensors.torch import load_file

    with ThreadPoolExecutor(max_workers=4) as pool:
        return list(pool.map(lambda path: load_file(path, device="cuda"), weights()))


def host_load():
    from safetensors.torch import load_file

    return [tensor for path in weights() for tensor in load_file(path).values()]


def case_map():
    """Tensors on the CPU that are their mapping; nobody looks at them."""
    return host_load()


def case_touch():
    """A byte of every page is looked at."""
    import torch

    tensors = host_load()
    return tensors, [tensor.view(torch.uint8).flatten()[::PAGE].sum().item() for tensor in tensors]


def case_clone():
    """Every tensor is copied out of its mapping."""
    return [tensor.clone() for tensor in host_load()]


def case_write():
    """Every tensor is changed where it is: in a private mapping, which breaks copy-on-write."""
    return [tensor.mul_(2) for tensor in host_load()]


def case_read():
    """Whole files through a small buffer that is used again and again."""
    buffer = bytearray(MIB)
    for path in weights():
        with open(path, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def main():
    import torch

    kept = globals()["case_" + sys.argv[1]]()
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    time.sleep(0.2)
    return kept


main()
