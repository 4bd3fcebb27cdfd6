# SPDX-License-Identifier: Apache-2.0
"""transformers with bitsandbytes: bitsandbytes_load.py 4|8"""

import sys

import bitsandbytes  # pylint: disable=unused-import
import early  # pylint: disable=unused-import
import torch
from common import folder, loaded
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

OPTIONS = {
    "4": {
        "load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": torch.bfloat16,
        "bnb_4bit_use_double_quant": True,
    },
    "8": {"load_in_8bit": True},
}
config = BitsAndBytesConfig(**OPTIONS[sys.argv[1]])
model = AutoModelForCausalLM.from_pretrained(folder(), device_map="cuda", quantization_config=config)
tensors = dict(model.named_parameters())
del model
loaded(tensors)
