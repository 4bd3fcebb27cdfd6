#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# README's CI section as a reader would use it, word for word, with the real PyTorch as theirs: installed into a folder
# of its own, baseline, no growth, a growth. Then the script and the workflow of scripts/ci, and the wrapper's edges.
# timeout: 300
python=.venv/bin/python
[ -x "$python" ] || python=python3
exec "$python" "$(dirname "$0")/recipe.py"
