# SPDX-License-Identifier: Apache-2.0
"""Rows whose load is that of several processes: one report and one truth of all of them."""

import glob
import json

from e2e import ANALYZE, Report
from evidence import dump

NEVER = 1 << 62  # ns: no look from outside tells anything


def whose(trace):
    """What tells of a trace to which run it belongs."""
    lines = dump(ANALYZE, trace)
    infos = [line["text"] for line in lines if line["event"] == "info" and line["text"].startswith(("run=", "env.RANK=", "env.MASTER_PORT="))]
    return [(line["pid"], line["ppid"], line["start"]) for line in lines if line["event"] == "process"], infos, lines[-1]["event"]


class Together(Report):
    """The report of all traces together, and of each process what only its own report has."""

    def __init__(self, traces):
        try:
            super().__init__(traces[0], *traces[1:])
        except SystemExit as error:
            raise SystemExit(f"{error}; of one run? {[whose(trace) for trace in traces]}") from error
        alone = [Report(trace) for trace in traces]
        self.root["files"] = list(self.files(alone))
        for key in ("loaders", "repairs"):
            self.root[key] = next((report[key] for report in alone if report[key]), [])

    def files(self, alone):
        """Each process' files; page cache is everybody's, and counts with the first."""
        cached = {file["path"]: file["cached"] for file in self["run.files"]}
        for report in alone:
            for file in report["files"]:
                file["settled"]["cached"] = cached.pop(file["path"], {"low_bytes": 0, "high_bytes": 0})
                yield file


def report_of(traces, row):
    return Together(traces) if row.traces else Report(traces[0])


def ledger_setting(base):
    """Each driver keeps a ledger of its own."""
    return {"SIMCUDA_LEDGER": base + ".ledger.%p"}


def merged_ledgers(base):
    """One ledger of them all: lines by time, with the sums of all drivers; a process that ended holds nothing."""
    lines = []
    for number, path in enumerate(sorted(glob.glob(base + ".ledger.*"))):
        with open(path, encoding="utf-8") as file:
            lines += [(line["t"], number, line) for line in map(json.loads, file)]
    lasts, peaks = {}, {"device": 0, "pinned": 0}
    for _, number, line in sorted(lines, key=lambda each: each[:2]):
        lasts[number] = dict(line) if line["op"] != "end" else {**line, "device": 0, "pinned": 0}
        sums = {name: sum(last[name] for last in lasts.values()) for name in ("device", "pinned", "broken", "stubs", "copied")}
        peaks = {name: max(peaks[name], sums[name]) for name in peaks}
        line.update(sums, device_peak=peaks["device"], pinned_peak=peaks["pinned"])
    return [line for *_, line in sorted(lines, key=lambda each: each[:2])]


def blind_outside(truth):
    """The process that looks from outside sees the launcher alone: what it says of its memory says nothing of the ranks."""
    truth["outside"].update(anon_files=0, anon_step=0, mapped=[], gap=NEVER, rss_anon=0)
    return truth
