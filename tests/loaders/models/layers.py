# SPDX-License-Identifier: Apache-2.0
"""The tensors of the plain models: three shards of 12 to 13 MiB, BF16, of few sizes as in real models, and small ones.
[{name: (shape, bytes)}]"""

from making import noise


def layer(number):
    shapes = {f"layers.{number}.{name}.weight": (640, 1024) for name in ("q", "k", "v", "o")}
    shapes.update({f"layers.{number}.{name}.weight": (1280, 1024) for name in ("gate", "up", "down")})
    return {**shapes, f"layers.{number}.norm.weight": (1024,)}


SHAPES = ({"embed.weight": (2000, 1024), "head.weight": (2000, 1024), "extra.weight": (2000, 1024)}, layer(0), layer(1))


def size(shape):
    total = 2
    for length in shape:
        total *= length
    return total


def shards():
    return [{name: (shape, noise(size(shape), name)) for name, shape in shapes.items()} for shapes in SHAPES]
