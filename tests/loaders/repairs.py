#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What rung 1b predicts, against really repaired runs; see `repairs`.

    repairs.py [PATTERN...]    only lines whose `ROW` or `ROW/REPAIR` matches one"""

import copy
import fnmatch
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "run"))
sys.dont_write_bytecode = True

import check as matrix
import rows
from e2e import MIB, Report, Traced, between, cached, enter_own_world, facts
from simledger import FOLDER, check, finish, victim, weights

HERE = os.path.dirname(os.path.abspath(__file__))
COW = "load_cow"  # a C program: no matrix row, no package
NEVER = 1 << 62
COW_SIZE, COW_TENSORS = 256, 8  # MiB


class Line:
    """One line of `repairs`."""

    def __init__(self, text):
        self.row, self.repair, *words = text.split()
        self.demand = "demand" in words
        self.model = next((word[6:] for word in words if word.startswith("model=")), None)
        words = [word for word in words if word != "demand" and not word.startswith("model=")]
        self.settings = dict(word.split("=", 1) for word in words if "=" in word)
        self.other = next((word for word in words if "=" not in word), self.row)
        self.name = f"{self.row}/{self.repair}"


def read_lines():
    with open(os.path.join(HERE, "repairs"), encoding="utf-8") as file:
        return [Line(text) for text in map(str.strip, file) if text and not text.startswith("#")]


class Ran:
    """A run of a load: what it says of itself, what the simulated driver says of it, what the report says."""

    def __init__(self, done, digests):
        self.done, self.digests, self.report = done, digests, Report(done.trace)
        self.ledger = done.last() if done.ledger else {}

    def failed(self):
        return self.done.rc and (self.done.rc, self.done.err[-200:])

    def predicted(self, repair):
        return next((r for r in self.report["repairs"] if r["id"] == repair), None)


def cow(settings):
    path = os.path.join(FOLDER, "cow.safetensors")
    if not os.path.exists(path):
        weights("cow.safetensors", COW_TENSORS, COW_SIZE)
    cached([path], warm=False)
    name = "-".join(["cow", *settings.values()])
    return Ran(Traced(name, victim(COW), path, "--hold", "0.3", files=[path], **settings), [])


def run(name, model, settings):
    """A row of the matrix with more in its environment; the C program under its own name."""
    if name == COW:
        return cow(settings)
    row = copy.copy(rows.read()[name])
    row.model = model or row.model
    row.name, row.settings = "-".join([name, *settings.values()]).replace(",", "-"), {**row.settings, **settings}
    done, _, truth = matrix.run(row)
    return Ran(done, [process.get("sha256") for process in truth["processes"]])


def missing(line):
    """Why this line cannot be run here."""
    reasons = [matrix.missing(rows.read()[name]) for name in {line.row, line.other} if name != COW]
    return next((reason for reason in reasons if reason), "")


def near(bounds, value):
    """Inside the interval, or within 3 % or 1 MiB of it."""
    low, high = bounds["low_bytes"], bounds["high_bytes"]
    return between(low - max(low * 3 // 100, MIB), value, high + max(high * 3 // 100, MIB))


def measured(line, repair, before, after):
    """Device, pinned and broken bytes by the driver's ledger; with the heap by the report of the repaired run."""
    predicted, load = repair["predicted"], after.report["peak.load.load_modelled"]
    total = after.ledger["total_peak"]
    yield "modelled, low", *near(predicted["modelled"], load["low_bytes"])
    yield "modelled, high", *near(predicted["modelled"], load["high_bytes"])
    # What is staged in the heap is no business of the driver.
    staged = after.report["peak.load.staging_peak_bytes"]
    yield "total, ledger", *near({**predicted["modelled"], "low_bytes": predicted["modelled"]["low_bytes"] - staged}, total)
    if line.demand:
        was, need, then, relief = before.report["fit.needed_peak"], after.report["fit.needed_peak"], predicted["demand"], repair["relief"]
        margin = was["high_bytes"] * 3 // 100  # for the difference as well: of two needs, each within 3 %
        yield "demand, at least", *between(then["low_bytes"] - margin, need["high_bytes"], NEVER)
        yield "demand, at most", *between(0, need["low_bytes"], then["high_bytes"] + margin)
        yield "relief, at least", *between(relief["low_bytes"] - margin, was["high_bytes"] - need["low_bytes"], NEVER)
        yield "relief, at most", *between(-NEVER, was["low_bytes"] - need["high_bytes"], relief["high_bytes"] + margin)
    yield "tensors", after.digests, before.digests


def offered(line, repair, before):
    """The repair has a source, and says what to type: the very command line that was run, with what to put before it."""
    words = [f"{name}={value}" for name, value in line.settings.items()]
    yield "source", bool(repair["source"]), True
    yield "command", [word for word in words if word not in repair["command"]], []
    yield "it saves", repair["relief_modelled"]["high_bytes"] > 0 or repair["relief"]["high_bytes"] > 0, True
    if repair["kind"] == "environment":
        line = next(r["text"] for r in before.done.dump("info") if r["text"].startswith("cmdline="))
        yield "the run's own command", line.split("=", 1)[1] in repair["command"], True


def compare(line):
    before = run(line.row, line.model, {})
    if before.failed():
        return before.failed()
    repair = before.predicted(line.repair)
    if not repair:
        return f"not offered, but {[r['id'] for r in before.report['repairs']]} to {before.report['loaders']}"
    after = run(line.other, line.model, line.settings)
    return after.failed() or facts(*offered(line, repair, before), *measured(line, repair, before, after))


def main():
    enter_own_world()
    patterns = sys.argv[1:] or os.environ.get("ROWS", "").split()
    count = 0
    for line in read_lines():
        if patterns and not any(fnmatch.fnmatch(name, p) for p in patterns for name in (line.row, line.name)):
            continue
        reason = missing(line)
        if reason:
            print(f"skip {line.name} - {reason}")
            continue
        check(line.name, compare(line))
        count += 1
    print(f"# {count} repairs predicted and done")
    finish()


main()
