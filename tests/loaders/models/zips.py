# SPDX-License-Identifier: Apache-2.0
"""The same tensors in three files of torch.save."""

import os

import torch
from layers import shards
from making import digest, finish, folder

files, everything = {}, {}
parts = shards()
for number, tensors in enumerate(parts, 1):
    name = f"pytorch_model-{number:05}-of-{len(parts):05}.bin"
    saved = {
        key: torch.frombuffer(bytearray(data), dtype=torch.bfloat16).reshape(shape) for key, (shape, data) in tensors.items()
    }
    torch.save(saved, os.path.join(folder(), name))
    files[name] = {key: data for key, (_, data) in tensors.items()}
    everything.update(files[name])
finish(folder(), files, {"plain": digest(everything)})
