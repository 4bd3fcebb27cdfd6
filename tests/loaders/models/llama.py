# SPDX-License-Identifier: Apache-2.0
"""BF16, three shards."""

import torch
from making import folder
from tiny import make, tell

tell(make(torch.bfloat16), folder(), "14MB")
