# SPDX-License-Identifier: Apache-2.0
"""BF16, three shards, and a tokenizer that knows the letters."""

import string

import torch
from making import folder
from tiny import make, tell
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

SPECIAL = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}

tell(make(torch.bfloat16), folder(), "14MB")
words = {word: number for number, word in enumerate([*SPECIAL.values(), *string.ascii_lowercase])}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL).save_pretrained(folder())
