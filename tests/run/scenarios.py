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
    check("copy_on_write_next_is_1b",
          ("verdict", r["fit.verdict"], "does not fit"), ("status", r.status, 1), ("next", r["ladder.next"], "1b"),
          ("relief", r.rung("1b")["relief"]["low_bytes"], GIB),
          ("needs then", r.rung("1b")["needed_peak"]["high_bytes"], GIB),
          ("verdict then", r.rung("1b")["verdict"], "fits"),
          ("packing", r.rung("2")["state"], "does not apply"))
    text = r.text()
    check("copy_on_write_names_mapping_file_and_stack",
          *((word, word in text, True) for word in ("private writable mapping", "model.safetensors", "load_file")),
          ("tensor", r["peak.demand_peak.tensor"], "layers.3.weight"),
          ("frame", r["ladder.how.stack.1.function"], "MapAllocator::MapAllocator"))


def one_by_one():
    """--files, --tensors and --at of copy_on_write: four tensors of 256 MiB, copied from second 2 on, one a second."""
    trace = scenario("copy_on_write")
    r = Report(trace, "--tensors=2", "--at", "3.5s")
    shown = r["tensors_shown.tensors"]
    check("tensors_one_by_one",
          ("shown", len(shown), 2), ("twice in the pool", [t["duplicated_at_peak_bytes"] for t in shown], [256 * MIB] * 2),
          ("all of them", [t["name"] for t in r["tensors"]], [f"layers.{i}.weight" for i in range(4)]),
          ("order and place", [(t["order"], t["place"]) for t in r["tensors"]], [(i, i) for i in range(1, 5)]),
          ("copied", [t["copied"] for t in r["tensors"]], [exactly(256 * MIB)] * 4),
          ("factor", r["tensors.0.factor_high"], 2))
    layers = {layer["layer"]: layer["size"] for layer in r["at.layers"]}
    check("pool_at_a_time",
          ("device", layers["device"], exactly(GIB)), ("on the device", r["at.files.0.device"], exactly(512 * MIB)),
          ("mapped", r["at.files.0.mapped_bytes"], GIB), ("event", r["at.event"], "copy"),
          ("whose", r["at.blocks.0.stack.0.function"], "cuMemAlloc_v2"))
    text = " ".join(run(ANALYZE, "--files", "--tensors", "--at", "settled", trace).stdout.split())
    check("one_by_one_in_text", *((word, word in text, True) for word in (
        "The weight files, one by one", "private writable mapping x 1", "4 of 4 tensors", "The pool at one moment")))
    plain = run(ANALYZE, trace).stdout
    check("only_when_asked_for", ("files", "one by one" in plain, False), ("at", "at one moment" in plain, False))
    for wrong in ("12", "noon", "25:00"):
        check("at_" + wrong, ("status", run(ANALYZE, "--at", wrong, trace).returncode, 2))


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


def shards(count, promised, time=1):
    """A load of `count` shards of 1 GiB out of `promised`."""
    lines = []
    for i in range(count):
        path = f"/models/m/model-{i + 1:05}-of-{promised:05}.safetensors"
        host, device = hex(0x7f0000000000 + i * GIB), hex(0x100000000000 + i * GIB)
        lines += [dict(event="tensor", path=path, file_size=GIB, size=GIB, dtype="BF16", elements=GIB // 2,
                       text=f"layers.{i}.weight"),
                  dict(event="map", time=f"{time + i}s", addr=host, size=GIB, prot="read", flags="private", path=path),
                  dict(event="device_alloc", addr=device, size=GIB, stack=["cuMemAlloc_v2", "load", "main"]),
                  dict(event="copy", dst=device, src=host, size=GIB, how="h2d")]
    return lines


def written(name, *lines, **sample):
    """A trace of lines that only one check needs, after a sample of the start."""
    sample = dict(dict(mem_total="24GiB", mem_free="20GiB", mem_available="22GiB"), **sample)
    with open(f"{WORK}/{name}.jsonl", "w") as out:
        for line in (dict(event="sample", time="0s", reason="start", **sample), *lines):
            out.write(json.dumps(line) + "\n")
    return pack(f"{WORK}/{name}.jsonl", name)


def between_shards():
    """Names promise three shards more: the load is not complete although all that was touched was read."""
    refused = dict(event="device_alloc", time="3s", size=GIB, result=2)
    r = Report(written("between_shards", *shards(1, 4), refused,
                       dict(event="exit", time="3.1s", how="exited", status=1)), "--budget", "2.5GiB")
    check("death_between_shards",
          ("died in", r["fit.died_in"], "load"), ("missing", r["peak.load.shards_missing"], 3),
          # The last shard may be nearly empty.
          ("needed", r["fit.needed_modelled"], {"low_bytes": 3 * GIB, "high_bytes": 4 * GIB}),
          ("packing", r.rung("2")["state"], "does not apply"), ("status", r.status, 1))
    r = Report(written("some_shards", *shards(2, 4), dict(event="exit", time="9s", how="exited")), "--budget", "4GiB")
    check("part_of_the_shards_is_a_load",
          ("needed", r["fit.needed_peak"], exactly(2 * GIB)), ("next", r["ladder.next"], "none"))


def made_before():
    """A model that is made on the device before its weights are read is not needed twice."""
    shard, buffer = "/models/m/model.safetensors", "0x7a0000000000"
    moves = [(dict(event="read", time=f"{2 + i}s", path=shard, offset=i * GIB // 4, size=GIB // 4, addr=buffer),
              dict(event="copy", dst=hex(0x100000000000 + i * GIB // 4), src=buffer, size=GIB // 4, how="h2d"))
             for i in range(2)]
    r = Report(written("made_before",
                       dict(event="tensor", path=shard, file_size=GIB, size=GIB, dtype="BF16", text="w"),
                       dict(event="device_alloc", time="1s", addr="0x100000000000", size=GIB),
                       dict(event="pinned_alloc", addr=buffer, size=GIB // 4), *sum(moves, ()),
                       dict(event="exit", time="9s", how="signaled", status=9)), "--budget", "2GiB")
    check("death_of_a_model_made_before",
          ("died in", r["fit.died_in"], "load"),
          ("needed", r["fit.needed_modelled"], {"low_bytes": GIB + GIB // 4, "high_bytes": 7 * GIB // 4}))


def second_load():
    """What another model brings later is no part of the load."""
    late = "/models/other.safetensors"
    r = Report(written("second_load", *shards(1, 1), dict(event="mark", time="5s", text="step 1"),
                       dict(event="tensor", path=late, file_size=2 * GIB, size=2 * GIB, text="w"),
                       dict(event="map", time="100s", addr="0x7a0000000000", size=2 * GIB, prot="read",
                            flags="private", path=late),
                       dict(event="exit", time="110s", how="exited")), "--budget", "8GiB")
    check("second_load", ("factor", r["peak.load.load_factor"], 1), ("loaded", r["peak.load.loaded"], exactly(GIB)))


def limits():
    grown = dict(event="sample", time="3s", reason="timer", rss_anon="6GiB", mem_free="15GiB", mem_available="17GiB")
    r = Report(written("cgroup", grown, dict(event="exit", time="9s", how="exited"), rss_anon="1GiB",
                       cgroup_limit="2GiB"))
    check("cgroup_limit_is_named",
          ("verdict", r["fit.verdict"], "does not fit"), ("host", r["fit.host_needed_bytes"], 5 * GIB),
          ("next", r["ladder.next"], "outside the ladder"),
          ("text", "5.00 GiB of host memory at least" in r.text(), True))
    r = Report(written("watermark", dict(event="exit", time="9s", how="exited"), watermark="6GiB"))
    check("watermark_is_kept_back", ("budget", r["fit.budget_now_bytes"], 14 * GIB),
          ("text", "6.00 GiB are kept back" in r.text(), True))


def half_a_request():
    """Handles were refused half-way: how much was wanted nobody knows, so nothing fits."""
    lines = [dict(event="handle_create", time="1s", handle="0x1", size=GIB, location="device"),
             dict(event="handle_create", handle="0x0", size=GIB, location="device", result=2),
             dict(event="handle_release", handle="0x1"), dict(event="exit", time="9s", how="exited", status=1)]
    r = Report(written("half_a_request", *lines), "--budget", "8GiB")
    check("half_a_request", ("verdict", r["fit.verdict"], "cannot tell"), ("status", r.status, 3),
          ("device", r["peak.device_peak_bytes"], 0), ("text", "2.00 GiB or more" in r.text(), True))


def killed_in_steps():
    r = Report(written("killed_in_steps", *shards(1, 1), dict(event="mark", time="5s", text="step 1"),
                       dict(event="exit", time="9s", how="signaled", status=9)))
    check("killed_in_steps", ("died in", r["fit.died_in"], "steps"), ("status", r.status, 3))


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


def host_only():
    """Weights that are read into host memory: no factor of device bytes, no word on what is twice there."""
    path = "/models/m/model.safetensors"
    trace = written("host_only", dict(event="open", time="1s", path=path, file_size=GIB),
                    dict(event="alloc", addr="0x7a0000000000", size=GIB),
                    dict(event="read", time="2s", path=path, size=GIB, addr="0x7a0000000000"),
                    dict(event="sample", time="3s", reason="timer", mem_free="18GiB", mem_available="21GiB",
                         rss_anon=GIB), dict(event="exit", time="9s", how="exited"), rss_anon=0)
    r = Report(trace)
    check("host_only", ("demand", r["peak.load.load_demand"], exactly(GIB)),
          ("text", "no device memory; demand of the load 1.00 GiB" in r.text(), True),
          ("twice", "pool twice" in r.text(), False))


def endless():
    """More texts and pools than any program has cost no more than a bounded number of them."""
    many = [dict(event="coverage", time="1s", text=f"thing {i}") for i in range(1000)]
    pools = [dict(event="pool_create", time="1s", pool=hex(i + 1), location="device") for i in range(2000)]
    r = Report(written("endless", *many, *pools, dict(event="exit", time="9s", how="exited")))
    coverage = r["recording.coverage"]
    check("endless", ("texts", len(coverage), 256), ("things", sum(row["count"] for row in coverage), 1000),
          ("verdict", r["fit.verdict"], "fits"))


def cut_and_damaged():
    """Whatever is left of a trace, the report is made of it or says why not, and claims no fit."""
    with open(pack(f"{FOLDER}/copy_on_write.jsonl", "whole"), "rb") as file:
        whole = file.read()
    seen = set()
    for name, left in [*((f"cut at {n}", whole[:n]) for n in (*range(0, len(whole), 37), 328, 336, len(whole) - 1)),
                       *((f"damaged at {n}", whole[:n] + b"\xff\xff" + whole[n + 2:])
                         for n in range(340, len(whole) - 2, 29))]:
        with open(f"{WORK}/left.zst", "wb") as file:
            file.write(left)
        for json_too in ((), ("--json",)):
            status = run(ANALYZE, *json_too, "--budget", "8GiB", f"{WORK}/left.zst").returncode
            if status not in (2, 3):
                seen.add(f"{name}: status {status}")
    check("cut_and_damaged", ("wrong", sorted(seen), []))


def python_stack():
    """The line of the library, who owns it, and who of the program's own code called it."""
    r = Report(scenario("python_stack"))
    text = " ".join(r.text().split())
    frames = [[(f["function"], f["line"], f["package"], f["version"]) for f in failure["python_stack"]] for failure in r["failures"]]
    check("python_stack",
          ("library", "called from alloc_block (libtorch_cuda.so), from python: convert (torch 2.15.0, module.py:11) < "
           "Module._apply (module.py:901) < Module._apply (module.py:902) < Module._apply (module.py:902) < ... < "
           "main (train.py:7) < ..." in text, True),
          ("own code", "called from python: main (train.py:7) < (cut short)" in text, True),
          ("no Python", "called from alloc_block (libtorch_cuda.so) < _PyEval_EvalFrameDefault (python3.11)" in text, True),
          ("frames", [len(stack) for stack in frames], [8, 1, 0]),
          ("innermost", frames[0][0], ("Module._apply.<locals>.convert", 11, "torch", "2.15.0")),
          ("loader", frames[0][4], ("load_file", 321, "safetensors", "0.8.0")),
          ("own frame", frames[0][6], ("main", 7, None, None)),
          ("module's owner", (r["failures.0.stack.0.package"], r["failures.0.stack.0.version"]), ("torch", "2.15.0")))


for part in (order, copy_on_write, one_by_one, read_only, caching_allocator, staging, dead_load, between_shards, made_before,
             second_load, limits, half_a_request, killed_in_steps, cache_unknown, whole_program, errors,
             host_only, endless, cut_and_damaged, python_stack):
    part()
sys.exit(failed > 0)
