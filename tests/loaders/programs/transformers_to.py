# SPDX-License-Identifier: Apache-2.0
"""transformers: on the CPU first, then the whole model to the device."""

import early  # pylint: disable=unused-import
import torch
from common import folder, loaded
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained(folder(), device_map="cpu", dtype=torch.bfloat16)
model.to("cuda")
tensors = model.state_dict()
del model
loaded(tensors)
