#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the checkpoints of this folder, and beside each what the package that reads it says of its tensors:
lines "offset size dtype elements name". Needs torch, safetensors, transformers and gguf; run by hand:
    LD_LIBRARY_PATH=build/tests/simcuda/lib python3 tests/unit/checkpoint/make.py FOLDER
The files here are of torch 2.15.0, gguf 0.19.0, transformers 5.24.0, safetensors 0.8.0."""
import json
import os
import sys

import gguf
import numpy
import torch

FOLDER = sys.argv[1]
DTYPES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16", torch.int64: "I64", torch.uint16: "U16",
          torch.float8_e4m3fn: "F8_E4M3", torch.bool: "BOOL", torch.float64: "F64", torch.int32: "I32", torch.uint8: "U8"}


def expected(name, rows):
    with open(os.path.join(FOLDER, name + ".expected"), "w", encoding="utf-8") as file:
        file.writelines("%d %d %s %d %s\n" % row for row in rows)


def mapped_at(path, address):
    """The offset in the file of an address in its mapping, as the kernel says."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        for line in file:
            words = line.split()
            low, high = (int(word, 16) for word in words[0].split("-"))
            if low <= address < high and words[-1] == os.path.realpath(path):
                return address - low + int(words[2], 16)
    raise SystemExit(f"{path}: {address:#x} is not mapped")


def tensors_of(value, name=()):
    if isinstance(value, torch.Tensor):
        yield ".".join(name), value
    elif isinstance(value, torch.nn.Module):
        for key, tensor in value.state_dict(keep_vars=True).items():
            yield ".".join((*name, key)), tensor
    elif isinstance(value, (dict, list, tuple)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from tensors_of(inner, (*name, str(key)))


def torch_file(name, value, **more):
    path = os.path.join(FOLDER, name)
    torch.save(value, path, **more)
    loaded = torch.load(path, mmap=True, weights_only=False)
    rows = []
    for key, tensor in tensors_of(loaded):
        extent = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
        rows.append((mapped_at(path, tensor.data_ptr()), extent * tensor.element_size(), DTYPES[tensor.dtype], tensor.numel(), key))
    expected(name, rows)


def gguf_file(name):
    path = os.path.join(FOLDER, name)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_token_list([f"token{i}" for i in range(3000)])
    writer.add_array("some.floats", [1.0, 2.5])
    writer.add_bool("some.flag", True)
    writer.add_custom_alignment(64)
    for i in range(2):
        writer.add_tensor(f"blk.{i}.attn_q.weight", numpy.arange(96, dtype=numpy.float32).reshape(8, 12))
        for kind in ("Q4_0", "Q8_0", "Q6_K", "Q4_K", "BF16", "F16"):
            quant = getattr(gguf.GGMLQuantizationType, kind)
            elements, size = gguf.GGML_QUANT_SIZES[quant]
            raw = numpy.zeros((3, 512 // elements * size), dtype=numpy.uint8)
            writer.add_tensor(f"blk.{i}.{kind}.weight", raw, raw_dtype=quant)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    expected(name, [(t.data_offset, t.n_bytes, t.tensor_type.name, t.n_elements, t.name) for t in gguf.GGUFReader(path).tensors])


def sharded(name):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, vocab_size=64)
    LlamaForCausalLM(config).save_pretrained(os.path.join(FOLDER, name), max_shard_size="8KB")
    with open(os.path.join(FOLDER, name, "model.safetensors.index.json"), encoding="utf-8") as file:
        index = json.load(file)
    print(name, index["metadata"], len(set(index["weight_map"].values())))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 5)
        self.register_buffer("seen", torch.zeros(3, dtype=torch.int64))
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(5, 4, bias=False)])

    def forward(self, x):
        return x


torch.manual_seed(1)
net = Net()
optimizer = torch.optim.AdamW(net.parameters())
for parameter in net.parameters():
    parameter.grad = torch.ones_like(parameter)
optimizer.step()
whole = torch.arange(60, dtype=torch.float32).reshape(10, 6)
torch_file("state.pt", net.state_dict())
torch_file("training.pt", {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "step": 7, "lr": 0.5})
torch_file("views.pt", {"whole": whole, "rows": whole[2:4], "columns": whole[:, 1:3], "turned": whole.T, "pair": (whole[0], [whole[1]]),
                        "u16": torch.zeros(4, dtype=torch.uint16), "f8": torch.zeros(8, dtype=torch.float8_e4m3fn),
                        "half": torch.zeros(3, dtype=torch.bfloat16), "flags": torch.ones(5, dtype=torch.bool),
                        "parameter": torch.nn.Parameter(torch.zeros(2, 2))})
torch_file("module.pt", torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Sequential(torch.nn.Linear(2, 2))))
torch_file("protocol5.pt", {"a": torch.zeros(3), "b": [torch.zeros(2), torch.zeros(1)]}, pickle_protocol=5)
torch.save(net.state_dict(), os.path.join(FOLDER, "old.pt"), _use_new_zipfile_serialization=False)
gguf_file("tiny.gguf")
sharded("sharded")
