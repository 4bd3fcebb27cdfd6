# SPDX-License-Identifier: Apache-2.0
"""safetensors: whole files."""

import sys

from common import device, files, loaded
from safetensors.torch import load_file

options = {"backend": "pread"} if "pread" in sys.argv else {}
tensors = {}
for path in files():
    tensors.update(load_file(path, device=device(), **options))
loaded(tensors)
