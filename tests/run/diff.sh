#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `diff` of real PyTorch loads on the simulated stack (issue 5, Shows 6): the same program twice, at other addresses, in
# other folders, with other timings of its threads; and programs that were changed, whose change must come first.
# timeout: 480
exec python3 "$(dirname "$0")/diff.py"
