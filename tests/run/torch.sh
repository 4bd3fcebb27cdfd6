#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The real PyTorch on the simulated GB10, recorded (issue 3, Shows lines 3, 4 and the torch part of 5): the report
# against the simulated driver's ledger and against a second process that watches.
# timeout: 480
exec python3 "$(dirname "$0")/torch_e2e.py"
