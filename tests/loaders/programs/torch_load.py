# SPDX-License-Identifier: Apache-2.0
"""torch.load, one file after the other: torch_load.py cpu|cuda [mmap] [trusted]"""

import sys

import torch
from common import device, files, loaded

tensors = {}
for path in files():
    tensors.update(
        torch.load(path, map_location=device(), mmap="mmap" in sys.argv, weights_only="trusted" not in sys.argv)
    )
loaded(tensors)
