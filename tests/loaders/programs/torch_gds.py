# SPDX-License-Identifier: Apache-2.0
"""torch.cuda.gds: a file's data into one storage on the device; tensors are views of it."""

import json
import os

import torch
from common import files, loaded

tensors = {}
for path in files():
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    storage = torch.UntypedStorage(os.path.getsize(path) - 8 - length, device="cuda")
    torch.cuda.gds.GdsFile(path, os.O_RDONLY).load_storage(storage, 8 + length)
    data = torch.tensor([], dtype=torch.uint8, device="cuda").set_(storage)
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        tensors[name] = data[start:end].view(torch.bfloat16).reshape(entry["shape"])
loaded(tensors)
