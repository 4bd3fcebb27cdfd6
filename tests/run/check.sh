#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `check` and `check --update` on packed traces (issue 5, Shows lines 4 and 7): each exit status with its sentence, the
# baseline file, limits as people write them.
exec python3 "$(dirname "$0")/check_packed.py"
