# SPDX-License-Identifier: Apache-2.0
"""What the load programs share: where the model is, and what they tell the test. Times are those of CLOCK_MONOTONIC, as
in traces and in the simulated driver's ledger."""

import gc
import hashlib
import os
import sys
import time

import torch

HOLD = 0.1  # s: what is there at the end of a load stays long enough to be seen from outside
began = False


def say(*words):
    print(*words, flush=True)


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def begin():
    """What comes now is the load. files() and folder() say it by themselves."""
    global began
    if not began:
        began = True
        say("begin", now())


def device():
    return next(word for word in sys.argv[1:] if word.startswith(("cpu", "cuda")))


def folder():
    begin()
    return os.environ["MODEL"]


def files():
    begin()
    return os.environ["FILES"].split(":")


def raw(tensor):
    """The bytes of a tensor, where it is; kernels of the simulated device do nothing, so it must be contiguous there."""
    host = tensor.detach().cpu().contiguous()
    return host.reshape(-1).view(torch.uint8).numpy().data


def digest(tensors):
    total = hashlib.sha256()
    for name in sorted(tensors):
        total.update(name.encode())
        total.update(raw(tensors[name]))
    return total.hexdigest()


def loaded(tensors, keep=False):
    """Says when the load was over and what came of it, and drops the tensors."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    done = now()
    time.sleep(HOLD)
    size = sum(tensor.nbytes for tensor in tensors.values())
    say("loaded", done, "count", len(tensors), "bytes", size, "sha256", digest(tensors))
    if not keep:
        tensors.clear()
        gc.collect()
        say("dropped", now())
