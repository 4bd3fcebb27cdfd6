#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Several processes of one run on the simulated GB10 (issue 4, Shows line 5): torchrun with two ranks, multiprocessing
# spawn and fork, an engine with workers. Their traces taken together, against the sum by time of the simulated
# drivers' ledgers, and against what was seen from outside.
# timeout: 480
exec python3 "$(dirname "$0")/ranks.py"
