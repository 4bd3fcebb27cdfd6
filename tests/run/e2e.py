# SPDX-License-Identifier: Apache-2.0
"""One traced program, and three who tell about it: sparktrace's report, the simulated driver's ledger, and a second
process that looks every 10 ms (tests/tools/outside). Used by loads.py and torch_e2e.py."""

import csv
import json
import os
import subprocess
import sys

from simledger import BUILD, FOLDER, LIB, MIB

GIB = 1024 * MIB
NEAR = MIB  # the moment of a peak is the first instant within 1 MiB of it
ANALYZE = os.path.join(BUILD, "sparktrace-analyze")
SHIM = os.path.join(BUILD, "libsparktrace.so")
OUTSIDE = os.path.join(BUILD, "tests", "tools", "outside")
NAMESPACE = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


def own_world():
    return os.environ.get("E2E_WORLD") == "own"


def enter_own_world():
    """
    Runs this script again where /proc shows only what it started itself: memory of other processes is part of the
    demand, and the machine is not ours alone. Where that is not allowed it goes on as it is.
    """
    if own_world() or subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode:
        return
    env = dict(os.environ, E2E_WORLD="own")
    # The first process of such a world is a shell, which takes in orphans; it must not become the program itself.
    script = ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, os.path.abspath(sys.argv[0]), *sys.argv[1:]]
    raise SystemExit(subprocess.run([*NAMESPACE, *script], env=env, check=False).returncode)


def cached(paths, warm):
    """Leaves the files wholly in the page cache, or not at all."""
    subprocess.run([os.path.join(BUILD, "tests", "tools", "make_safetensors"), "-d", *paths], check=True)
    for path in paths if warm else ():
        with open(path, "rb") as file:
            while file.read(8 * MIB):
                pass


def exactly(size):
    return {"low_bytes": size, "high_bytes": size}


def facts(*triples):
    """What of (what, seen, expected) is not so, for check()."""
    return "; ".join(f"{what}: {seen!r}, expected {expected!r}" for what, seen, expected in triples if seen != expected)


def between(low, value, high):
    """An expected triple's last two parts: True, or what is out of which bounds."""
    return (True if low <= value <= high else (low, value, high), True)


class Outside:
    """The rows of the outside process. The last one, and of a dead program any, tells of the machine and of files only;
    -1 is missing."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.rows = [{key: int(value) for key, value in row.items()} for row in csv.DictReader(file)]

    def column(self, *names):
        """(start of the look, its end, sum of these values) by time."""
        ours = {"anon_files", "rss_anon", "device", "mapped"}.intersection(names)
        return [
            (row["time_ns"] - row["took_ns"] // 2, row["time_ns"] + row["took_ns"] // 2, sum(row[name] for name in names))
            for row in self.rows
            if not (ours and row["rss_anon"] == -1) and all(row[name] != -1 for name in names)
        ]

    def highest(self, *names):
        return max(value for _, _, value in self.column(*names))

    def rise(self, *names):
        """The most by which the value rose from one look to the next."""
        values = [value for _, _, value in self.column(*names)]
        return max((after - before for before, after in zip(values, values[1:])), default=0)

    def around(self, time, *names, until=None):
        """The smallest and largest value from the last look that was over by `time` to the first that began after it,
        or after `until`."""
        column = self.column(*names)
        before = [i for i, (_, end, _) in enumerate(column) if end <= time]
        after = [i for i, (start, _, _) in enumerate(column) if start >= (until or time)]
        values = [value for _, _, value in column[before[-1] if before else 0 : after[0] + 1 if after else None]]
        return min(values), max(values)

    def peak_moment(self, top, *names):
        """Within which the value came within 1 MiB of `top`: from the look before the first such one to the one after it.
        Where no look saw so much, to the one after the last of those that saw the most."""
        column, most = self.column(*names), self.highest(*names)
        seen = most + NEAR >= top
        near = [i for i, (_, _, value) in enumerate(column) if value + NEAR >= (top if seen else most)]
        return column[max(near[0] - 1, 0)][0], column[min(near[0 if seen else -1] + 1, len(column) - 1)][1]


class Report:
    """The JSON report, its exit status, and paths into it: report["peak.load.load_factor"]."""

    def __init__(self, trace, *options):
        self.command = [ANALYZE, *options, trace]
        done = subprocess.run([*self.command, "--json"], capture_output=True, text=True, check=False)
        self.status = done.returncode
        try:
            self.root = json.loads(done.stdout)
        except json.JSONDecodeError as error:
            raise SystemExit(f"not ok json - {trace}: {error}: {done.stdout[:200]} {done.stderr[:200]}") from error

    def __getitem__(self, path):
        value = self.root
        for key in path.split("."):
            value = value[int(key)] if isinstance(value, list) else value[key]
        return value

    def rung(self, name):
        return next(rung for rung in self["ladder.rungs"] if rung["rung"] == name)

    def file(self, path):
        return next(file for file in self["files"] if file["path"] == path)

    def text(self):
        """The text report as one line: it wraps where it likes."""
        return " ".join(subprocess.run(self.command, capture_output=True, text=True, check=False).stdout.split())


class Traced:
    """A traced run: rc, out, err, ledger (its lines), outside, and the trace."""

    def __init__(self, name, *command, files=(), prefix=(), **settings):
        base = os.path.join(FOLDER, name)
        self.trace, self.base = base + ".zst", base
        env = {key: value for key, value in os.environ.items() if not key.startswith(("SIMCUDA_", "SPARKTRACE"))}
        env.update(
            SIMCUDA_GB10="1", SIMCUDA_LEDGER=base + ".ledger", LD_LIBRARY_PATH=LIB, OUTSIDE_PRELOAD=SHIM,
            SPARKTRACE_OUTPUT=self.trace,
        )
        env.update({key: str(value) for key, value in settings.items()})
        watch = [word for path in files for word in ("-f", path)]
        done = subprocess.run(
            [*prefix, OUTSIDE, "-o", base + ".csv", *watch, "--", *map(str, command)],
            env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )
        self.rc, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.outside = Outside(base + ".csv")
        self.ledger = []
        if os.path.exists(base + ".ledger"):
            with open(base + ".ledger", encoding="utf-8") as file:
                self.ledger = [json.loads(line) for line in file]

    def last(self):
        """The ledger's last line: its sums are the whole run's."""
        return self.ledger[-1]

    def unseen(self):
        """Anonymous bytes of the files that no look may have seen: what came between two looks, or what the ledger has at
        the end beyond what it had at the last look that saw the most, for that one may have come late."""
        start = max(self.outside.column("anon_files"), key=lambda look: (look[2], look[0]))[0]
        broken = max((line["broken"] for line in self.ledger if line["t"] <= start), default=0)
        return max(self.outside.rise("anon_files"), self.last()["broken"] - broken)

    def report(self, *options):
        return Report(self.trace, *options)

    def dump(self, event=None):
        """The trace's records, as dictionaries."""
        done = subprocess.run([ANALYZE, "dump", self.trace], capture_output=True, text=True, check=True)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return [line for line in lines if event in (None, line["event"])]

    def moment(self, report, peak):
        """When a peak of the report was, on the clock of the outside process."""
        return self.dump("process")[0]["start"] + report[f"peak.{peak}.time_ns"]


def pack(lines, name):
    """A trace made of records: its path."""
    path = os.path.join(FOLDER, name)
    with open(path + ".jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([ANALYZE, "pack", path + ".jsonl", "-o", path + ".zst"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"not ok pack_{name} - {done.stderr.strip()[:300]}")
    return path + ".zst"
