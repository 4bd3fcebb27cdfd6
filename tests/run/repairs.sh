#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Loaders named and repairs offered, by scenarios of tests/scenario with figures worked out by hand (issue 4, item 4).
exec python3 "$(dirname "$0")/repairs.py"
