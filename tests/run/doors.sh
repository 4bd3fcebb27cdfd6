#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every way to the driver is seen once, and nobody notices (Shows line 5).
exec python3 "$(dirname "$0")/doors.py"
