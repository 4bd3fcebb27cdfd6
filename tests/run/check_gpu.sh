#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The check for machines with a GPU (scripts/check-gpu) checked where there is none: its rows on the simulated stack,
# its loads on the simulated GB10.
# timeout: 600
set -u
export GPU_PYTHON="$PWD/.venv/bin/python" CUDA_LIBRARIES="$BUILD/tests/simcuda/lib" SIMCUDA_LIMIT=1073741824
failed=0
ROWS='[!l]*' TABLE="$T/table" python3 tests/gpu/check_gpu.py || failed=1
rm -f "$T"/*.zst
ROWS='load*' TABLE="$T/table-gb10" SIMCUDA_GB10=1 python3 tests/gpu/check_gpu.py || failed=1
exit $failed
