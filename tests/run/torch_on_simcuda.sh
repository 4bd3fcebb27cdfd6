#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The real PyTorch CUDA wheel on the simulated stack, without sparktrace: what programs see, and what the
# ledger says about it. Without the Python environment (scripts/python-env) it is skipped.
exec python3 "$(dirname "$0")/torch_on_simcuda.py"
