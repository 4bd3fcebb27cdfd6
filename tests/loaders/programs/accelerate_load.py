# SPDX-License-Identifier: Apache-2.0
"""accelerate: half of a model on the device, half offloaded to disk."""

import os
import tempfile

import early  # pylint: disable=unused-import
import torch
from accelerate import init_empty_weights, load_checkpoint_and_dispatch
from common import folder, loaded
from transformers import AutoConfig, AutoModelForCausalLM

with init_empty_weights():
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder()), dtype=torch.bfloat16)
places = {"model.embed_tokens": 0, "model.rotary_emb": 0, "model.layers.0": 0}
places.update({"model.layers.1": "disk", "model.norm": "disk", "lm_head": "disk"})
with tempfile.TemporaryDirectory(dir=os.environ.get("T")) as offload:
    load_checkpoint_and_dispatch(model, folder(), device_map=places, offload_folder=offload, dtype=torch.bfloat16)
    tensors = {name: tensor for name, tensor in model.named_parameters() if tensor.device.type == "cuda"}
    del model
    loaded(tensors)
