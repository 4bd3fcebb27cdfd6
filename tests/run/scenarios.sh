#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packs the scenarios in tests/scenario, analyzes them, and compares with figures computed by hand (issue 3,
# Shows lines 2, 6, 7, 8, 9 and 12).
exec python3 "$(dirname "$0")/scenarios.py"
