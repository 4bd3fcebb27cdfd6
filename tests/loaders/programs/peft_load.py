# SPDX-License-Identifier: Apache-2.0
"""peft: a LoRA adapter on top of a model that is on the device."""

import os

import early  # pylint: disable=unused-import
from common import folder, loaded
from peft import PeftModel
from transformers import AutoModelForCausalLM

base = AutoModelForCausalLM.from_pretrained(folder(), device_map="cuda")
model = PeftModel.from_pretrained(base, os.path.join(folder(), "adapter"))
tensors = model.state_dict()
del base, model
loaded(tensors)
