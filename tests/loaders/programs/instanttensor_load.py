# SPDX-License-Identifier: Apache-2.0
"""InstantTensor: all files, tensor by tensor; each is a copy, or with `views` a view of its buffer on the device."""

import sys

from common import files, loaded
from instanttensor import safe_open

with safe_open(files(), framework="pt", device=0, copy="views" not in sys.argv) as file:
    loaded(dict(file.tensors()))
