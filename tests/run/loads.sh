#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Loads in C on the simulated GB10 (issue 3, Shows lines 2, 6, 7, 8 and 12): the report against the simulated
# driver's ledger and against a second process that watches.
# timeout: 300
exec python3 "$(dirname "$0")/loads.py"
