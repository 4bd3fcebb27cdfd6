#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Python frames of stacks against what Python itself says there, and the distributions that own the files.
# timeout: 180
exec python3 "$(dirname "$0")/python_frames.py"
