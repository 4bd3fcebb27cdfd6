# SPDX-License-Identifier: Apache-2.0
"""gguf: the reader's tensors are views of one mapping of the file."""

import torch
from common import device, files, loaded
from gguf import GGUFReader

tensors = {}
for path in files():
    for tensor in GGUFReader(path).tensors:
        tensors[tensor.name] = torch.from_numpy(tensor.data).to(device())
loaded(tensors)
