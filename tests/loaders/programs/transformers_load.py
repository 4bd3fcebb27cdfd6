# SPDX-License-Identifier: Apache-2.0
"""transformers: transformers_load.py cuda|auto|cpu [DTYPE] [no-mmap]"""

import sys

import early  # pylint: disable=unused-import
import torch
from common import folder, loaded
from transformers import AutoModelForCausalLM

options = {"device_map": sys.argv[1]}
for word in sys.argv[2:]:
    options.update({"disable_mmap": True} if word == "no-mmap" else {"dtype": getattr(torch, word)})
model = AutoModelForCausalLM.from_pretrained(folder(), **options)
tensors = model.state_dict()
del model
loaded(tensors)
