# SPDX-License-Identifier: Apache-2.0
"""BF16, about 1 GiB in five shards."""

import torch
from making import folder
from tiny import make, tell

SHAPE = {"vocab_size": 4096, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 11}

tell(make(torch.bfloat16, SHAPE), folder(), "240MB")
