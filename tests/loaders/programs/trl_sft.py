# SPDX-License-Identifier: Apache-2.0
"""TRL: a model is loaded, then three steps of supervised fine-tuning of a LoRA adapter."""

import os
import tempfile

import early  # pylint: disable=unused-import
from common import folder, loaded, say
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

model = AutoModelForCausalLM.from_pretrained(folder(), device_map="cuda")
loaded(model.state_dict(), keep=True)
texts = Dataset.from_list([{"text": "a b c d e f g h"}] * 16)
with tempfile.TemporaryDirectory(dir=os.environ.get("T")) as output:
    settings = SFTConfig(output, max_steps=3, per_device_train_batch_size=2, max_length=64, report_to="none", save_strategy="no", bf16=True)
    trainer = SFTTrainer(
        model, settings, train_dataset=texts, processing_class=AutoTokenizer.from_pretrained(folder()),
        peft_config=LoraConfig(r=8, target_modules="all-linear"),
    )
    trainer.train()
say("steps", trainer.state.global_step)
os._exit(0)  # torch's autograd thread may abort a normal exit, which is no matter of ours
