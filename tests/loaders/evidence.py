# SPDX-License-Identifier: Apache-2.0
"""What is known of one run of a row. `truth` is what others than sparktrace said: the program, the simulated driver's
ledger and the outside process; it is plain data, kept beside a trace that is kept. The trace is sparktrace's side."""

import glob
import json
import os
import shutil
import subprocess

WORDS = {"anonymous": "heap"}  # the driver's to the matrix's
HOLD = 90 * 10**6  # ns for which a program leaves all as it is when its load is over (programs/common.py)



def said(out):
    """What the programs said: one dictionary a process, in the order in which they began."""
    processes = []
    for line in out.splitlines():
        words = line.split()
        if words[:1] == ["begin"]:
            processes.append({"begin": int(words[1])})
        elif words[:1] == ["loaded"] and processes:
            values = dict(zip(words[2::2], words[3::2]))
            processes[-1].update(
                loaded=int(words[1]), count=int(values["count"]), bytes=int(values["bytes"]), sha256=values["sha256"]
            )
        elif words[:1] == ["dropped"] and processes:
            processes[-1]["dropped"] = int(words[1])
    return processes


def copied(ledger, until):
    """Bytes that the driver copied to the device, by the kind of memory they came from, in the matrix's words."""
    sums = {}
    for line in ledger:
        if line["rc"] == 0 and line["t"] <= until and "HtoD" in line["op"] and line.get("source"):
            source = WORDS.get(line["source"], line["source"])
            sums[source] = sums.get(source, 0) + line["size"]
    return sums


def changes(column):
    """The looks (start, end, value) in which the value was not that of the look before and of the one after."""
    values = [None, *(value for _, _, value in column), None]
    return [look for at, look in enumerate(column, 1) if not values[at - 1] == values[at] == values[at + 1]]


def longest_gap(column, begin, end):
    """The longest time, ns, of which no look tells, between two moments."""
    starts = [begin, *(start for start, _, _ in column if begin < start < end), end]
    return max(after - before for before, after in zip(starts, starts[1:]))


def truth_of(run, model):
    """Of a traced run (tests/run/e2e.py) with one ledger."""
    processes = said(run.out)
    until = max((process.get("loaded", 0) for process in processes), default=0)
    begin = min((process["begin"] for process in processes), default=0)
    last = run.ledger[-1] if run.ledger else {}
    sees = lambda *names: run.outside.highest(*names) if run.outside.column(*names) else None
    before = run.outside.around(begin, "rss_anon")[0] if begin else 0
    return {
        "exit": run.rc, "processes": processes, "files": model["files"], "sizes": model["sizes"],
        "digests": model["digests"], "copied": copied(run.ledger, until),
        "ledger": {name: last.get(name, 0) for name in ("device_peak", "pinned_peak", "total_peak", "broken", "stubs")},
        "outside": {
            "anon_files": sees("anon_files"), "anon_step": run.outside.rise("anon_files"), "cached": sees("cached"),
            "mapped": changes(run.outside.column("mapped")),
            "gap": longest_gap(run.outside.column("rss_anon"), begin, until + HOLD),
            "rss_anon": max((value for at, _, value in run.outside.column("rss_anon") if begin <= at <= until + HOLD), default=before)
            - before,
        },
    }


class Kept:
    """The traces of a row and the truth beside them, in tests/loaders/traces: ROW.zst, those of further processes as
    ROW.PID.zst, and ROW.truth (JSON)."""

    def __init__(self, folder, name):
        self.folder, self.base = folder, os.path.join(folder, name)
        self.truth = self.base + ".truth"

    def traces(self):
        return [path for path in (self.base + ".zst", *sorted(glob.glob(self.base + ".[0-9]*.zst"))) if os.path.exists(path)]

    def write(self, traces, truth):
        for path in self.traces():
            os.remove(path)
        for path in traces:
            shutil.copyfile(path, os.path.join(self.folder, os.path.basename(path)))
        with open(self.truth, "w", encoding="utf-8") as file:
            json.dump(truth, file, indent=1, sort_keys=True)
            file.write("\n")

    def read(self):
        with open(self.truth, encoding="utf-8") as file:
            return json.load(file)


def dump(analyze, trace):
    done = subprocess.run([analyze, "dump", trace], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
