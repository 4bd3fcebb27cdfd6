# SPDX-License-Identifier: Apache-2.0
"""The tensors of the plain models in one GGUF file, F16, under the names that llama.cpp gives them."""

import os
import struct

from layers import shards
from making import digest, finish, folder

ALIGN = 32
F16 = 1
STRING, UINT32 = 8, 4


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def padded(data):
    return data + b"\0" * (-len(data) % ALIGN)


tensors = {}
for part in shards():
    for name, content in part.items():
        tensors[name.replace("embed.", "token_embd.").replace("layers.", "blk.")] = content
keys = [string("general.architecture") + struct.pack("<I", STRING) + string("llama"),
        string("general.alignment") + struct.pack("<II", UINT32, ALIGN)]
infos, data = b"", b""
for name, (shape, content) in tensors.items():
    infos += string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), F16, len(data))
    data += padded(content)
head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys) + infos
with open(os.path.join(folder(), "model.gguf"), "wb") as file:
    file.write(padded(head) + data)
contents = {name: content for name, (_, content) in tensors.items()}
finish(folder(), {"model.gguf": contents}, {"plain": digest(contents)})
