# SPDX-License-Identifier: Apache-2.0
"""InstantTensor: all files, tensor by tensor; a copy of each is kept, as vLLM does."""

from common import files, loaded
from instanttensor import safe_open

tensors = {}
with safe_open(files(), framework="pt", device=0) as file:
    for name, tensor in file.tensors():
        tensors[name] = tensor.clone()
loaded(tensors)
