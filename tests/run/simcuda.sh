#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The simulated CUDA stack by itself, without sparktrace: what its ledger says against what victims did, and
# against what the kernel says about them.
exec python3 "$(dirname "$0")/simcuda.py"
