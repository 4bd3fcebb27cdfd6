#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What rung 1b predicts, against runs that were really repaired: one result a line of `repairs`. ROWS="PATTERN..." limits it.
# timeout: 900
exec python3 "$(dirname "$0")/repairs.py"
