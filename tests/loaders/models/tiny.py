# SPDX-License-Identifier: Apache-2.0
"""A Llama small enough for a test, saved by transformers itself as a sharded checkpoint, and what is in it."""

import json
import os
import random

import torch
from making import digest, finish
from transformers import LlamaConfig, LlamaForCausalLM

SHAPE = {"vocab_size": 2048, "hidden_size": 1024, "intermediate_size": 1536, "num_hidden_layers": 2, "num_attention_heads": 16,
         "num_key_value_heads": 4, "max_position_embeddings": 512}


def raw(tensor):
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def contents(tensors):
    return {name: raw(tensor) for name, tensor in tensors.items()}


def fill(tensor, seed):
    """Numbers from -1 to 1 that no other tensor has."""
    generator = torch.Generator().manual_seed(random.Random(seed).getrandbits(63))
    with torch.no_grad():
        tensor.uniform_(-1, 1, generator=generator)


def make(dtype, shape=()):
    torch.set_default_dtype(dtype)
    model = LlamaForCausalLM(LlamaConfig(**{**SHAPE, **dict(shape)}))
    torch.set_default_dtype(torch.float32)
    for name, parameter in model.named_parameters():
        fill(parameter, name)
    return model


def save(model, folder, shard):
    """The checkpoint's files: {file: {tensor: bytes}}."""
    model.save_pretrained(folder, max_shard_size=shard)
    with open(os.path.join(folder, "model.safetensors.index.json"), encoding="utf-8") as file:
        where = json.load(file)["weight_map"]
    files = {}
    for name, tensor in model.state_dict().items():
        files.setdefault(where[name], {})[name] = tensor.nbytes
    return files


def tell(model, folder, shard, more=()):
    """`more`: further digests."""
    files = save(model, folder, shard)
    finish(folder, files, {"plain": digest(contents(model.state_dict())), **dict(more)})
