#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the report says of loads with transformers, in numbers: a load of 1 GiB and its relief, temporaries of a conversion
# and of a quantiser.
# timeout: 1200
exec python3 "$(dirname "$0")/shows.py" "$@"
