# SPDX-License-Identifier: Apache-2.0
"""What transformers and accelerate import in the middle of a first load, imported before it: 60 MiB that are no weights."""

# pylint: disable=unused-import
import accelerate
import torch.distributed.fsdp
import torch.distributed.tensor
import transformers.generation
import transformers.models.llama.modeling_llama
