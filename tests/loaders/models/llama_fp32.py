# SPDX-License-Identifier: Apache-2.0
"""FP32, three shards, and what they are as BF16."""

import torch
from making import digest, folder
from tiny import contents, make, tell

model = make(torch.float32)
converted = {name: tensor.to(torch.bfloat16) for name, tensor in model.state_dict().items()}
tell(model, folder(), "28MB", {"bfloat16": digest(contents(converted))})
