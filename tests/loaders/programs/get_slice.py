# SPDX-License-Identifier: Apache-2.0
"""safetensors: every tensor as a slice, as tensor parallel loaders do."""

import sys

from common import device, files, loaded
from safetensors import safe_open

options = {"backend": "pread"} if "pread" in sys.argv else {}
tensors = {}
for path in files():
    with safe_open(path, framework="pt", device=device(), **options) as file:
        for name in file.keys():
            tensors[name] = file.get_slice(name)[:]
loaded(tensors)
