#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The loader matrix, live: one result a row. ROWS="PATTERN..." limits it.
# timeout: 2400
exec python3 "$(dirname "$0")/check.py"
