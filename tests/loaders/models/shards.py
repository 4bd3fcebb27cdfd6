# SPDX-License-Identifier: Apache-2.0
"""Three safetensors files and their index."""

import json
import os

from layers import shards
from making import digest, finish, folder, write_safetensors

files, everything = {}, {}
parts = shards()
for number, tensors in enumerate(parts, 1):
    name = f"model-{number:05}-of-{len(parts):05}.safetensors"
    write_safetensors(os.path.join(folder(), name), {key: ("BF16", shape, data) for key, (shape, data) in tensors.items()})
    files[name] = {key: data for key, (_, data) in tensors.items()}
    everything.update(files[name])
index = {
    "metadata": {"total_size": sum(map(len, everything.values()))},
    "weight_map": {key: name for name, tensors in files.items() for key in tensors},
}
with open(os.path.join(folder(), "model.safetensors.index.json"), "w", encoding="utf-8") as file:
    json.dump(index, file)
finish(folder(), files, {"plain": digest(everything)})
