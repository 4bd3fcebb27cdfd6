# SPDX-License-Identifier: Apache-2.0
"""One safetensors file of 96 MiB, as much as twelve times the pinned slot that a tensor of it needs."""

import os

from making import digest, finish, folder, noise, write_safetensors

NAME, SHAPE = "model.safetensors", (2048, 2048)
tensors = {f"layers.{i}.weight": noise(2 * SHAPE[0] * SHAPE[1], i) for i in range(12)}
write_safetensors(os.path.join(folder(), NAME), {key: ("BF16", SHAPE, data) for key, data in tensors.items()})
finish(folder(), {NAME: tensors}, {"plain": digest(tensors)})
