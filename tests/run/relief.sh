#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPARKTRACE_RELIEF (issue 4, item 8 and Shows line 6): a program that stores into its mapped weights, handles SIGSEGV or
# dies of it behaves as without; copies of mapped weights stay without a second copy; `drop` keeps a load within one
# shard of page cache.
# timeout: 480
exec python3 "$(dirname "$0")/relief.py"
