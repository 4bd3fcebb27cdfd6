# SPDX-License-Identifier: Apache-2.0
"""safetensors: every rank of a torchrun loads all of it onto the device that they share, one after the other."""

import os
import socket
import sys

RANKS = "2"


def free_port():
    """Runs side by side must not meet at one."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


if "RANK" not in os.environ:
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", RANKS, "--master-port", free_port()]
    os.execv(sys.executable, [sys.executable, *launcher, __file__, *sys.argv[1:]])

import torch.distributed as ranks
from common import device, files, loaded
from safetensors.torch import load_file

ranks.init_process_group("gloo")
for turn in range(ranks.get_world_size()):
    if turn == ranks.get_rank():
        tensors = {}
        for path in files():
            tensors.update(load_file(path, device=device()))
        kept = dict(tensors)  # what the first one has stays while the next one loads
        loaded(tensors)
    ranks.barrier()
ranks.destroy_process_group()
