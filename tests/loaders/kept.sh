#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kept traces of the loader matrix against their rows and against what others saw when they were made: one result
# a row; and that a wrong row is found out. Needs the analyzer only.
python3 "$(dirname "$0")/check.py" --kept
kept=$?
python3 "$(dirname "$0")/wrong.py" && exit $kept
