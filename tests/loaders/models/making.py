# SPDX-License-Identifier: Apache-2.0
"""What makers of models share. A maker is started as `NAME.py FOLDER`; it leaves weight files there and truth.json, which
says what is in them without anybody's report. Standard library only; makers themselves may use torch."""

import hashlib
import json
import os
import random
import sys

MIB = 1 << 20


def folder():
    return sys.argv[1]


def noise(size, seed):
    """Bytes that no other tensor has."""
    return random.Random(seed).randbytes(size)


def digest(contents):
    """Of {name: bytes}, as programs/common.py computes it of tensors."""
    total = hashlib.sha256()
    for name in sorted(contents):
        total.update(name.encode())
        total.update(contents[name])
    return total.hexdigest()


def write_safetensors(path, tensors):
    """tensors: {name: (dtype, shape, bytes)}, in this order."""
    header, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, _, data in tensors.values():
            file.write(data)


def finish(where, files, digests):
    """files: {weight file: {tensor: bytes, or their number}}; digests: {name in the matrix: SHA-256}."""
    sizes = {
        file: {name: data if isinstance(data, int) else len(data) for name, data in tensors.items()}
        for file, tensors in files.items()
    }
    with open(os.path.join(where, "truth.json"), "w", encoding="utf-8") as file:
        json.dump({"files": sizes, "digests": digests}, file)
