#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The story of single files and tensors (issue 4, item 3): what --files, --tensors and --at say of loads by the real
# packages, against the simulated driver's ledger of copies, and against what these packages say of their own files.
# timeout: 480
exec python3 "$(dirname "$0")/files.py"
