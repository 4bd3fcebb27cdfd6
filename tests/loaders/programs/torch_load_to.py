# SPDX-License-Identifier: Apache-2.0
"""torch.load to the host, then a copy of each tensor to the device: torch_load_to.py cuda [mmap]"""

import sys

import torch
from common import device, files, loaded

tensors = {}
for path in files():
    state = torch.load(path, map_location="cpu", mmap="mmap" in sys.argv)
    tensors.update((name, tensor.to(device())) for name, tensor in state.items())
    del state
loaded(tensors)
