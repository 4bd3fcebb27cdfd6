# SPDX-License-Identifier: Apache-2.0
"""BF16, three shards, and a LoRA adapter for it in adapter/."""

import os

import torch
from making import digest, finish, folder
from peft import LoraConfig, get_peft_model
from tiny import contents, fill, make, save

model = make(torch.bfloat16)
files = save(model, folder(), "14MB")
model = get_peft_model(model, LoraConfig(r=64, target_modules=["q_proj", "o_proj", "up_proj"]))
for name, parameter in model.named_parameters():
    if "lora_" in name:
        fill(parameter, name)
where = os.path.join(folder(), "adapter")
model.save_pretrained(where)
# Beside the shards, so that all weight files are in one folder; were its configuration there too, transformers would load
# the adapter by itself.
os.rename(os.path.join(where, "adapter_model.safetensors"), os.path.join(folder(), "adapter_model.safetensors"))
os.symlink("../adapter_model.safetensors", os.path.join(where, "adapter_model.safetensors"))
adapter = {name.replace(".default", ""): tensor for name, tensor in model.state_dict().items() if "lora_" in name}
files["adapter_model.safetensors"] = {name: tensor.nbytes for name, tensor in adapter.items()}
finish(folder(), files, {"plain": digest(contents(model.state_dict()))})
