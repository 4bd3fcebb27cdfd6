# SPDX-License-Identifier: Apache-2.0
"""fastsafetensors: all files by one call."""

import sys

from common import files, loaded
from fastsafetensors import SafeTensorsFileLoader, SingleGroup

loader = SafeTensorsFileLoader(SingleGroup(), "cuda:0", nogds="gds" not in sys.argv)
loader.add_filenames({0: files()})
buffer = loader.copy_files_to_device()
tensors = {name: buffer.get_tensor(name) for name in loader.get_keys()}
buffer.close()
loader.close()
loaded(tensors)
