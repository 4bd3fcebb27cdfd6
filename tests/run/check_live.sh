#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `check` on the real PyTorch over the simulated GB10 (issue 5, Shows lines 1, 2 and 3): a regression staged with two
# versions of safetensors, ten runs under load that must not differ, and limits that only the right program breaks.
# timeout: 300
exec python3 "$(dirname "$0")/check_live.py"
