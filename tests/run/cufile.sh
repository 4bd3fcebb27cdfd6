#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# GPUDirect Storage: reads of files to the device, through both doors to libcufile and in every way that bytes may
# travel inside it.
exec python3 "$(dirname "$0")/cufile.py"
