#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the report says of small hand-written runs. Each check is one fact worked out by hand."""
import json
import os
import subprocess
import sys

MIB, GIB = 1 << 20, 1 << 30
ANALYZE = os.environ["BUILD"] + "/sparktrace-analyze"
WORK = os.environ["T"]
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../scenario")
failed = 0


def check(name, *facts):
    """A fact is (what, seen, expected)."""
    global failed
    wrong = [f"{what}: {seen!r}, expected {expected!r}" for what, seen, expected in facts if seen != expected]
    failed += bool(wrong)
    print(f"not ok {name} - {'; '.join(wrong)}" if wrong else f"ok {name}", flush=True)


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, **more)


def pack(source, name):
    out = f"{WORK}/{name}.zst"
    done = run(ANALYZE, "pack", source, "-o", out)
    if done.returncode:
        sys.exit(f"not ok pack_{name} - {done.stderr.strip()}")
    return out


def scenario(name):
    return pack(f"{FOLDER}/{name}.jsonl", name)


class Report:
    """The JSON report, its exit status, and paths into it: report["peak.load.load_factor"]."""

    def __init__(self, trace, *options):
        done = run(ANALYZE, "--json", *options, trace)
        self.status, self.options, self.trace, self.stderr = done.returncode, options, trace, done.stderr
        try:
            self.root = json.loads(done.stdout)
        except json.JSONDecodeError as error:
            sys.exit(f"not ok json - {trace}: {error}: {done.stdout[:200]} {done.stderr[:200]}")

    def __getitem__(self, path):
        value = self.root
        for key in path.split("."):
            value = value[int(key)] if isinstance(value, list) else value[key]
        return value

    def rung(self, name):
        return next(rung for rung in self["ladder.rungs"] if rung["rung"] == name)

    def text(self):
        return run(ANALYZE, *self.options, self.trace).stdout


def exactly(size):
    return {"low_bytes": size, "high_bytes": size}


def order():
    trace = scenario("order")
    r = Report(trace, "--reserve", "8GiB")
    check("order_flush_is_next",
          ("budget now", r["fit.budget_now_bytes"], 32 * GIB),
          ("budget after flush", r["fit.budget_after_flush_bytes"], 102 * GIB),
          ("needed", r["fit.needed_peak"], exactly(60 * GIB)),
          ("verdict", r["fit.verdict"], "fits after flush"),
          ("relief", r.rung("1")["relief"], exactly(70 * GIB)),
          ("next", r["ladder.next"], "1"), ("status", r.status, 0))
    r = Report(trace, "--reserve", "8GiB", "--tried", "1")
    check("order_after_flush_is_not_4",
          ("next is 4", r["ladder.next"] == "4", False), ("next is 1", r["ladder.next"] == "1", False),
          ("next is none", r["ladder.next"] == "none", False))


def copy_on_write():
    r = Report(scenario("copy_on_write"), "--budget", "1.5GiB")
    check("copy_on_write_residency",
          ("A", r["peak.load.anonymous_copies"], exactly(GIB)),
          ("D", r["files.0.at_peak.device"], exactly(GIB)),
          ("double", r["peak.load.anonymous_double"], exactly(GIB)),
          ("factor", r["peak.load.load_factor"], 2),
          ("modelled", r["peak.load.load_modelled"], exactly(2 * GIB)),
          ("steady", r["peak.load.steady"], exactly(GIB)),
          ("peak / steady", r["peak.load.load_peak_to_steady"], 2))
    # U = one thread x one size class of 256 MiB.
    check("copy_on_write_next_is_1b",
          ("verdict", r["fit.verdict"], "does not fit"), ("status", r.status, 1), ("next", r["ladder.next"], "1b"),
          ("relief", r.rung("1b")["relief"]["low_bytes"], 768 * MIB),
          ("needs then", r.rung("1b")["needed_peak"]["high_bytes"], 1280 * MIB),
          ("verdict then", r.rung("1b")["verdict"], "fits"),
          ("packing", r.rung("2")["state"], "does not apply"))
    text = r.text()
    check("copy_on_write_names_mapping_file_and_stack",
          *((word, word in text, True) for word in ("private writable mapping", "model.safetensors", "load_file")),
          ("tensor", r["peak.demand_peak.tensor"], "layers.3.weight"),
          ("frame", r["ladder.how.stack.1.function"], "MapAllocator::MapAllocator"))


def read_only():
    r = Report(scenario("read_only"), "--budget", "1.5GiB")
    check("read_only_is_reclaimable",
          ("A", r["peak.load.anonymous_copies"], exactly(0)),
          ("D", r["files.0.settled.device"], exactly(GIB)),
          ("factor", r["peak.load.load_factor"], 1),
          ("reclaimable, at most", r["peak.load.reclaimable_double"]["high_bytes"], GIB),
          ("1b", r.rung("1b")["state"], "does not apply"),
          ("verdict", r["fit.verdict"], "fits"), ("next", r["ladder.next"], "none"), ("status", r.status, 0))


def caching_allocator():
    trace = scenario("caching_allocator")
    options = ("--budget", "1.25GiB", "--band", "0", "--pack", "2048")
    r = Report(trace, *options, "--optimizer-bytes", "0")
    check("caching_allocator_packing",
          ("f", r["ladder.packing.factor"], 0.5), ("pack", r["ladder.packing.pack"], 1024),
          ("next", r["ladder.next"], "2"), ("needed", r["fit.needed_peak"], exactly(1536 * MIB)),
          ("needs then", r.rung("2")["needed_peak"], exactly(1280 * MIB)),
          ("verdict then", r.rung("2")["verdict"], "fits"),
          ("1b", r.rung("1b")["state"], "does not apply"), ("status", r.status, 1))
    r = Report(trace, *options)
    check("caching_allocator_without_optimizer_bytes",
          ("state", r.rung("2")["state"], "cannot tell"), ("next", r["ladder.next"], "2"),
          ("missing", "--optimizer-bytes" in r["ladder.missing_input"], True),
          ("f low", r["ladder.packing.factor_low"], None), ("f high", r["ladder.packing.factor_high"], 0.5))
    r = Report(trace, *options, "--optimizer-bytes", "512MiB")
    check("caching_allocator_all_optimizer", ("state", r.rung("2")["state"], "does not apply"),
          ("next is 2", r["ladder.next"] == "2", False))


def staging():
    trace = scenario("staging")
    r = Report(trace)
    check("staging_modelled",
          ("S", r["peak.load.staging_pinned_and_not_bytes"], 64 * MIB),
          ("P", r["peak.load.pinned_peak_bytes"], 64 * MIB),
          ("modelled", r["peak.load.load_modelled"], exactly(1088 * MIB)),
          ("factor", r["peak.load.load_factor"], 1.0625),
          ("A", r["peak.load.anonymous_copies"], exactly(0)))
    check("staging_every_range_attributed",
          ("files", len(r["files"]), 4), ("loaded", r["peak.load.loaded"], exactly(GIB)),
          *((f"file {i}", (f["loaded"], f["settled"]["device"], f["exact"]), (exactly(256 * MIB), exactly(256 * MIB), True))
            for i, f in enumerate(r["files"])),
          *((t["name"], t["device"], exactly(256 * MIB)) for t in r["tensors"]))
    dump = run(ANALYZE, "dump", trace).stdout.splitlines()
    lines = [json.loads(line) for line in dump]
    for line in lines:
        if line["event"] == "read":
            line["addr"] = "0x0"
    edited = f"{WORK}/staging_blind.jsonl"
    with open(edited, "w") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
    r = Report(pack(edited, "staging_blind"))
    devices = [f["settled"]["device"] for f in r["files"]]
    check("staging_without_destinations",
          ("D is an interval", all(d["low_bytes"] < d["high_bytes"] for d in devices), True),
          ("D at most", max(d["high_bytes"] for d in devices), 256 * MIB),
          ("exact", any(f["exact"] for f in r["files"]), False),
          ("said in text", "4 files the device bytes are an interval" in r.text(), True))


def dead_load():
    r = Report(scenario("dead_load"), "--budget", "1.25GiB")
    check("dead_load_needs_the_whole",
          ("observed", r["fit.observed_modelled"], exactly(1280 * MIB)),
          ("needed", r["fit.needed_modelled"], exactly(2 * GIB)),
          ("verdict", r["fit.verdict"], "does not fit"), ("status", r.status, 1),
          ("rung 1", r.rung("1")["verdict"], "does not fit"),
          ("outcome", "never got" in r["failures.0.outcome"], True), ("died in", r["fit.died_in"], "load"))
    r = Report(scenario("dead_load"))
    check("dead_load_never_fits",
          ("verdict", r["fit.verdict"], "cannot tell"), ("status", r.status, 3),
          ("rungs", {rung["verdict"] for rung in r["ladder.rungs"]}, {"cannot tell"}))
    r = Report(scenario("retried_load"), "--budget", "1.25GiB", "--band", "0")
    check("retried_load_is_no_oom",
          ("outcomes", {f["outcome"] for f in r["failures"]}, {"retried with success: not an OOM"}),
          ("requests", len(r["failures"]), 3),
          ("needed", r["fit.needed_peak"], exactly(1280 * MIB)), ("next", r["ladder.next"], "none"),
          ("status", r.status, 0))


def cache_unknown():
    r = Report(scenario("cache_unknown"))
    check("cache_unknown_is_not_full",
          ("cached", r["files.0.at_end.cached"], None), ("why", r["files.0.cache_error"], "EPERM"),
          ("text", "cached: unknown (EPERM)" in r.text(), True))


def whole_program():
    """Both outputs of every scenario: valid, the same verdict, no placeholder left over."""
    for name in sorted(os.listdir(FOLDER)):
        r = Report(scenario(name[:-6]))
        text = r.text()
        check(f"text_agrees_{name[:-6]}", ("placeholder", "{" in text, False),
              ("verdict", r["fit.verdict"] in text.lower(), True),
              ("next", f"Next: {r['ladder.next']}" in text, True), ("schema", r["schema_version"], 1),
              ("stderr", r.stderr, ""),
              ("width", max(map(len, text.splitlines())) <= 120, True))


def errors():
    missing = run(ANALYZE, f"{WORK}/absent.zst")
    check("absent_trace", ("status", missing.returncode, 2), ("stdout", missing.stdout, ""),
          ("named", "absent.zst" in missing.stderr, True))
    wrong = run(ANALYZE, "--budget", "much", scenario("order"))
    check("wrong_option", ("status", wrong.returncode, 2), ("named", "--budget" in wrong.stderr, True))
    full = subprocess.run([ANALYZE, scenario("order")], stdout=open("/dev/full", "w"), stderr=subprocess.PIPE)
    check("full_output", ("status", full.returncode, 2))


for part in (order, copy_on_write, read_only, caching_allocator, staging, dead_load, cache_unknown, whole_program,
             errors):
    part()
sys.exit(failed > 0)
