# SPDX-License-Identifier: Apache-2.0
"""One file of torch.save of 192 MiB: beside that, what a program allocates for itself is little."""

import os

import torch
from making import digest, finish, folder, noise

NAME, SHAPE = "pytorch_model.bin", (4096, 2048)
tensors = {f"layers.{i}.weight": noise(2 * SHAPE[0] * SHAPE[1], i) for i in range(12)}
saved = {key: torch.frombuffer(bytearray(data), dtype=torch.bfloat16).reshape(SHAPE) for key, data in tensors.items()}
torch.save(saved, os.path.join(folder(), NAME))
finish(folder(), {NAME: tensors}, {"plain": digest(tensors)})
