# SPDX-License-Identifier: Apache-2.0
"""That a wrong row is found out: a kept trace against its row with one value changed at a time. Called by kept.sh."""

import copy
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "run"))
sys.dont_write_bytecode = True

import rows
from check import TRACES, seen_in
from compare import compare
from e2e import facts
from evidence import Kept
from simledger import check, finish

ROW = "safetensors-0.7-load_file-cuda"
WRONG = {
    "loader": "safetensors 0.8.0", "map": "read|write private shard", "bytes": "pinned W", "device": "W/2",
    "anonymous": "W", "heap": "W", "pinned": "SLOTS", "cache": "F/2", "advice": "fadvise willneed",
    "repair": "torch-mmap", "digest": "other", "exit": "1",
}
ENDS = {
    "late": ["read private tensors", "read|write private shard"], "kept": ["read private open", "read|write private exit"],
    "early": ["read private open", "read|write private open"], "twice": ["read private open", "read|write private shard 2"],
}


def refused(name, truth, traces, keys):
    """The row with these keys must differ from what was seen."""
    found = rows.resolve(rows.parse_file(), ROW)
    row = rows.Row(ROW, {**found, **{key: value if isinstance(value, list) else [value] for key, value in keys.items()}})
    check(name + "_is_found_out", "" if facts(*compare(seen_in(row, truth, traces))) else f"{keys} went through")


def main():
    kept = Kept(TRACES, ROW)
    truth, traces = kept.read(), kept.traces()
    truth["digests"]["other"] = "0" * 64
    for key, value in WRONG.items():
        refused("wrong_" + key, truth, traces, {key: value})
    for name, value in ENDS.items():
        refused(f"mapping_{name}", truth, traces, {"map": value})
    for name in ("device_peak", "pinned_peak", "broken", "stubs"):
        other = copy.deepcopy(truth)
        other["ledger"][name] += rows.PAGE
        refused("ledgers_" + name, other, traces, {})
    for name, value in (("anon_files", rows.MIB), ("rss_anon", 1 << 30), ("cached", -8 * rows.MIB)):
        other = copy.deepcopy(truth)
        other["outside"][name] += value + other["outside"]["anon_files"]
        refused("outsides_" + name, other, traces, {})
    finish()


main()
