#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Nothing recorded is lost to kill -9 (Shows line 10). 200 rounds, 1,000 in check-long.
exec python3 "$(dirname "$0")/kill.py"
