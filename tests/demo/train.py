# SPDX-License-Identifier: Apache-2.0
"""A training program as people write it: loads a sharded bf16 checkpoint onto the device, then takes steps.

usage: train.py [--prepare] [--checkpoint FOLDER] [--mib 1024] [--shards 4] [--steps 5]

    --prepare   only make the checkpoint, where it is missing, and drop its pages from the cache, so that
                the next run loads from disk
"""

import argparse
import contextlib
import os
import time

GIB = 1 << 30
HIDDEN = 2048


def layer_tensors(torch, generator, layer):
    """One layer of a small Llama: 128 MiB in bf16."""
    shapes = {
        "self_attn.q_proj": (HIDDEN, HIDDEN),
        "self_attn.k_proj": (HIDDEN, HIDDEN),
        "self_attn.v_proj": (HIDDEN, HIDDEN),
        "self_attn.o_proj": (HIDDEN, HIDDEN),
        "mlp.gate_proj": (4 * HIDDEN, HIDDEN),
        "mlp.up_proj": (4 * HIDDEN, HIDDEN),
        "mlp.down_proj": (HIDDEN, 4 * HIDDEN),
    }
    for name, shape in shapes.items():
        tensor = torch.empty(shape, dtype=torch.bfloat16).normal_(std=0.02, generator=generator)
        yield f"model.layers.{layer}.{name}.weight", tensor


def shard_paths(args):
    return [
        os.path.join(args.checkpoint, f"model-{number:05}-of-{args.shards:05}.safetensors")
        for number in range(1, args.shards + 1)
    ]


def checkpoint_make(args):
    import torch
    from safetensors.torch import save_file

    os.makedirs(args.checkpoint, exist_ok=True)
    layers = args.mib // 128
    generator = torch.Generator().manual_seed(0)
    for number, path in enumerate(shard_paths(args)):
        if os.path.exists(path):
            continue
        tensors = {}
        for layer in range(layers * number // args.shards, layers * (number + 1) // args.shards):
            tensors.update(layer_tensors(torch, generator, layer))
        save_file(tensors, path + ".part", metadata={"format": "pt"})
        os.rename(path + ".part", path)
        print(f"made {path}", flush=True)


def cache_drop(paths):
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def weights_load(paths):
    """As the large libraries do: all shards are open while tensors are fetched by name."""
    from safetensors import safe_open

    weights = {}
    with contextlib.ExitStack() as stack:
        shards = [stack.enter_context(safe_open(path, framework="pt", device="cuda")) for path in paths]
        for number, shard in enumerate(shards, 1):
            for name in shard.keys():
                weights[name] = shard.get_tensor(name)
            print(f"loaded shard {number} of {len(shards)}", flush=True)
    return weights


def train(torch, weights, steps):
    """The checkpoint is frozen; a small head on top of it learns."""
    head = torch.nn.Sequential(torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.GELU(), torch.nn.Linear(HIDDEN, 256)).cuda()
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-3)
    frozen = next(iter(weights.values()))
    for step in range(1, steps + 1):
        inputs = torch.nn.functional.linear(torch.randn(512, frozen.shape[1]).bfloat16().cuda(), frozen)
        loss = head(inputs[:, :HIDDEN].float()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        print(f"step {step} of {steps}: {torch.cuda.memory_allocated() / GIB:.2f} GiB allocated", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--checkpoint", default=".cache/demo-checkpoint")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5)
    args = parser.parse_args()
    paths = shard_paths(args)
    if not all(os.path.exists(path) for path in paths):
        checkpoint_make(args)
    if args.prepare:
        cache_drop(paths)
        return

    import safetensors
    import torch

    print(f"torch {torch.__version__}, safetensors {safetensors.__version__}, {torch.cuda.get_device_name()}")
    started = time.monotonic()
    weights = weights_load(paths)
    size = sum(tensor.nbytes for tensor in weights.values())
    print(f"loaded {len(weights)} tensors, {size / GIB:.2f} GiB, in {time.monotonic() - started:.1f} s", flush=True)
    train(torch, weights, args.steps)
    # torch's autograd thread may still want the interpreter when it shuts down, which aborts: let it go idle.
    time.sleep(0.5)


main()
