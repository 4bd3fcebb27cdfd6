# SPDX-License-Identifier: Apache-2.0
"""Run:ai model streamer: tensors come as views of its buffer."""

import sys

from common import device, files, loaded
from runai_model_streamer import SafetensorsStreamer

tensors = {}
with SafetensorsStreamer() as streamer:
    streamer.stream_files(files(), device="cuda" if "stream" in sys.argv else "cpu")
    for name, tensor in streamer.get_tensors():
        tensors[name] = tensor.to(device())
loaded(tensors)
