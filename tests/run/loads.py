# SPDX-License-Identifier: Apache-2.0
"""See loads.sh."""

import os
import shutil
import subprocess

from e2e import GIB, Report, Traced, between, cached, enter_own_world, exactly, facts, own_world, pack
from simledger import FOLDER, MIB, PAGE, check, finish, victim, weights

TENSORS = 8
NOBODY = 65534
LOOKS = 3 * 100 * 10**6  # SPARKTRACE_SAMPLE_LOAD is 100 ms: the last look is this many ns old at most
HOLD = ("--hold", "0.3")  # what is there at the end stays long enough to be seen from outside
# While the shim counts anonymous pages before an unmapping it has a table and a stack in the program's memory
# (preload/shim: struct scan, ASIDE_STACK), between two looks of the outside process.
SCANNER = 76 * 1024 + 64 * 1024


def seen_from_outside(name, run, report, path):
    """Device, anonymous and cached bytes and the moment of the peak, within what moved between two looks."""
    peak, size = run.moment(report, "load_modelled_peak"), os.path.getsize(path)
    at_peak = report.file(path)["at_peak"]
    earliest, latest = run.outside.peak_moment(run.last()["device_peak"] + run.last()["broken"], "device", "anon_files")
    anon = run.outside.highest("anon_files")
    looked = [record["time"] for record in run.dump("cached") if record["time"] <= peak]
    # A peak is a plateau: its moment is its beginning, its bytes are those of its end, and of the cache those of the
    # last look before that, which is older where the recorder was kept waiting.
    low, high = run.outside.around(min([peak - LOOKS, *looked[-1:]]), "cached", until=run.moment(report, "settled"))
    check(name, facts(
        ("device, ledger", report["peak.device_peak_bytes"], run.last()["device_peak"]),
        ("device, outside", report["peak.device_peak_bytes"], run.outside.highest("device")),
        ("anonymous, ledger", report["peak.load.anonymous_copies"], exactly(run.last()["broken"])),
        ("anonymous, outside", *between(anon, at_peak["anon"]["high_bytes"], anon + run.unseen())),
        ("moment of the peak", *between(earliest, peak, latest)),
        # Cached are whole pages, also the one in which the file ends.
        ("cached at the peak", *between(low - -size % PAGE, at_peak["cached"]["low_bytes"], high)),
        ("cached is exact", at_peak["cached"]["low_bytes"], at_peak["cached"]["high_bytes"]),
    ))


def copy_on_write(path):
    """Shows line 2: unmapped right after the last copy, from a cold and a warm cache; and held there for a while,
    where nothing moves and all figures must be the same."""
    for name, warm, settings in (
        ("cow_cold", False, {}), ("cow_warm", True, {}), ("cow_held", True, {"SIMCUDA_DELAY": "cuStreamSynchronize:1:400"}),
    ):
        cached([path], warm)
        run = Traced(name, victim("load_cow"), path, *HOLD, files=[path], **settings)
        r = run.report("--budget", "1.5GiB")
        anon = r["peak.load.anonymous_copies"]
        check(name, run.rc and run.out + run.err or facts(
            ("D", r.file(path)["settled"]["device"], exactly(GIB)),
            ("D at the peak", r.file(path)["at_peak"]["device"], exactly(GIB)),
            ("A, within 2 pages a tensor", *between(GIB, anon["low_bytes"], GIB + TENSORS * 2 * PAGE)),
            ("A is exact", anon["low_bytes"], anon["high_bytes"]),
            ("A once unmapped", r.file(path)["settled"]["anon"], exactly(0)),
            ("factor", f"{r['peak.load.load_factor']:.2f}", "2.00"),
            ("nothing else is modelled", r["peak.load.load_modelled"], exactly(GIB + anon["low_bytes"])),
            ("steady", r["peak.load.steady"], exactly(GIB)),
            # The copies are there until the mapping goes, which is after the last weight byte.
            ("phase", r["peak.demand_peak.phase"] in ("load", "settle") or r["peak.demand_peak.phase"], True),
        ))
        needs_repair(name + "_next_is_1b", run, r, path)
        seen_from_outside(name + "_outside", run, r, path)
        demand(name + "_demand", run, r)


def needs_repair(name, run, r, path):
    how = r["ladder.how"]
    frames = [(frame["function"], os.path.basename(frame["module"] or "")) for frame in how.get("stack", [])]
    text = run.report("--budget", "1.5GiB").text()
    # Mapped without write permission, nothing is there twice.
    repaired, low, high = r.rung("1b")["needed_peak"], *(GIB + bound for bound in rest(run, r)[:2])
    check(name, facts(
        ("verdict", r["fit.verdict"], "does not fit"), ("status", r.status, 1), ("next", r["ladder.next"], "1b"),
        ("verdict then", r.rung("1b")["verdict"], "fits"),
        *(("needs then", *between(low, repaired[end], high)) for end in ("low_bytes", "high_bytes")),
        ("file", how.get("file"), path), ("mapping", how.get("mapping"), "private writable mapping"),
        ("victim's function", ("main", "load_cow") in frames or frames, True),
        *((word, word in text, True) for word in ("private writable mapping", os.path.basename(path), "load (load_cow)")),
    ))


def host(run):
    """Smallest and largest size of the rest of the program's memory up to the peak. The outside process subtracts one
    file of /proc from another: only where the mapping stood still between its looks do the two belong together. Where it
    never did, all looks are taken, whose bounds are wider."""
    column = run.outside.column("anon_files", "rss_anon")
    anon = [value for _, _, value in run.outside.column("anon_files")]
    until = anon.index(max(anon)) + 1
    others = [both - files for (_, _, both), files in zip(column[:until], anon)]
    still = [others[i] for i in range(1, until - 1) if anon[i - 1] == anon[i] == anon[i + 1]] or others
    return min(still), max(still)


def rest(run, r):
    """Bounds of H + N, changes since the first sample: H from outside, N as it was sampled, which in a world of our
    own is this script and its tools. And the largest size of all the others."""
    samples = [s for s in run.dump("sample") if s["time"] <= run.moment(r, "load_demand_peak")]
    base_low, base_high = run.outside.around(samples[0]["time"], "rss_anon")
    others = [s["other_anon"] for s in samples]
    # Shared memory without the simulated device, which grows between the looks at the one and at the other.
    shared = [s["rss_shmem"] - s["sim_device"] for s in samples]
    low, high = (sum(bound(values) - values[0] for values in (others, shared)) for bound in (min, max))
    least, most = host(run)
    return low + least - base_high, high + most - base_low + SCANNER, max(others)


def demand(name, run, r):
    """M = V + A + H + N, what nobody can take back: V and A from the ledger."""
    low, high, others = rest(run, r)
    exact, seen = run.last()["device_peak"] + run.last()["broken"], r["peak.load_demand_peak.demand"]
    check(name, facts(
        # This script has some 20 MiB, its tools next to nothing. What shares the program's memory is nobody else.
        ("others", *(between(0, others, 32 * MIB) if own_world() else (True, True))),
        *((end, *between(exact + low, seen[end], exact + high)) for end in ("low_bytes", "high_bytes")),
    ))


def read_only(path):
    for name, warm in (("read_only_cold", False), ("read_only_warm", True)):
        cached([path], warm)
        run = Traced(name, victim("load_cow"), "--read-only", path, *HOLD, files=[path])
        r = run.report("--budget", "1.5GiB")
        double, in_cache = r["peak.load.reclaimable_double"], run.outside.highest("cached")
        check(name, run.rc and run.out + run.err or facts(
            ("A", r["peak.load.anonymous_copies"], exactly(0)),
            ("A from outside", run.outside.highest("anon_files"), 0),
            ("D", r.file(path)["settled"]["device"], exactly(GIB)),
            ("factor", r["peak.load.load_factor"], 1),
            ("reclaimable, at most", *between(0, double["high_bytes"], GIB)),
            ("reclaimable, from outside", *between(min(in_cache, GIB) - run.outside.rise("cached"), double["high_bytes"], in_cache)),
            ("1b", r.rung("1b")["state"], "does not apply"),
            ("verdict", r["fit.verdict"], "fits"), ("next", r["ladder.next"], "none"), ("status", r.status, 0),
        ))
        seen_from_outside(name + "_outside", run, r, path)


def dead(shards):
    """Shows line 6: the sixth of eight shards finds no room."""
    run = Traced("dead", victim("load_dead"), *shards, files=shards, SIMCUDA_LIMIT=1280 * MIB)
    r = run.report("--budget", "1.25GiB")
    check("dead_load", facts(
        ("exit", (run.rc, "dead at shard 6 of 8" in run.out), (1, True)),
        ("device, ledger", r["peak.device_peak_bytes"], run.last()["device_peak"]),
        ("observed", r["fit.observed_modelled"], exactly(1280 * MIB)),
        ("needed", r["fit.needed_modelled"], exactly(2 * GIB)),
        ("verdict", r["fit.verdict"], "does not fit"), ("status", r.status, 1), ("died in", r["fit.died_in"], "load"),
        ("rung 1", r.rung("1")["verdict"], "does not fit"),
        ("failures", len(r["failures"]), 1), ("asked", r["failures.0.asked_bytes"], 256 * MIB),
        ("outcome", "never got" in r["failures.0.outcome"] or r["failures.0.outcome"], True),
    ))
    run = Traced("retried", victim("load_dead"), "--retry", *shards, files=shards, SIMCUDA_LIMIT=1280 * MIB)
    r = run.report("--budget", "1.25GiB")
    refused = [line for line in run.ledger if line["rc"] == 2]
    check("retried_load_is_no_oom", facts(
        ("exit", run.rc, 0),
        ("outcomes", {failure["outcome"] for failure in r["failures"]}, {"retried with success: not an OOM"}),
        ("failures", len(r["failures"]), len(refused)), ("died in", r["fit.died_in"], None),
        ("device, ledger", r["peak.device_peak_bytes"], run.last()["device_peak"]),
        ("needed", r["fit.needed_modelled"], exactly(1280 * MIB)),
    ))


def steps(path):
    """Shows line 7, live: f is 0.5 but for the host bytes that the program takes meanwhile."""
    run = Traced("steps", victim("load_steps"), path, 4, 128, files=[path])
    r = run.report("--budget", "1.25GiB", "--band", "0", "--pack", "2048", "--optimizer-bytes", "0")
    check("steps", run.rc and run.out + run.err or facts(
        ("device, ledger", r["peak.device_peak_bytes"], run.last()["device_peak"]),
        ("device", r["peak.device_peak_bytes"], 1536 * MIB),
        ("activations", r["ladder.packing.activations"], exactly(512 * MIB)),
        ("pack", r["ladder.packing.pack"] in (1024, 896) or r["ladder.packing"], True),
        ("next", r["ladder.next"], "2"), ("1b", r.rung("1b")["state"], "does not apply"),
        ("verdict", r["fit.verdict"], "does not fit"), ("status", r.status, 1),
    ))


def staging(shards):
    """Shows line 8: everything through one pinned buffer of 64 MiB; then without knowing where the reads went."""
    run = Traced("staging", victim("load_staging"), *shards, files=shards)
    r = run.report()
    check("staging", run.rc and run.out + run.err or facts(
        ("S", r["peak.load.staging_pinned_and_not_bytes"], 64 * MIB),
        ("P", r["peak.load.pinned_peak_bytes"], 64 * MIB), ("P, ledger", run.last()["pinned_peak"], 64 * MIB),
        ("device, ledger", r["peak.device_peak_bytes"], run.last()["device_peak"]),
        ("modelled", r["peak.load.load_modelled"], exactly(1088 * MIB)),
        ("modelled, ledger", run.last()["total_peak"], 1088 * MIB),
        ("factor", r["peak.load.load_factor"], 1.0625), ("A", r["peak.load.anonymous_copies"], exactly(0)),
        ("anonymous, outside", run.outside.highest("anon_files"), 0),
    ))
    check("staging_every_range_attributed", facts(
        ("files", len(r["files"]), 4), ("loaded", r["peak.load.loaded"], exactly(GIB)),
        *((path, [r.file(path)[key] for key in ("loaded", "copied_bytes", "exact")], [exactly(256 * MIB), 256 * MIB, True]) for path in shards),
        *((path, r.file(path)["settled"]["device"], exactly(256 * MIB)) for path in shards),
        ("tensors", len(r["tensors"]), 4), *((t["name"], t["device"], exactly(256 * MIB)) for t in r["tensors"]),
    ))
    lines = run.dump()
    for line in lines:
        if line["event"] == "read":
            del line["addr"]
    r = Report(pack(lines, "staging_blind"))
    devices = [r.file(path)["settled"]["device"] for path in shards]
    check("staging_without_destinations", facts(
        ("D is an interval", all(d["low_bytes"] < d["high_bytes"] == 256 * MIB for d in devices) or devices, True),
        ("exact", [r.file(path)["exact"] for path in shards], [False] * 4),
        ("said in text", "4 files the device bytes are an interval" in r.text(), True),
    ))


def unknown(path):
    """Shows line 12: nobody may ask how much of another's file is cached, and unknown is not full."""
    become = shutil.which("setpriv")
    if os.getuid() or not become:
        print("skip unknown_is_not_full - only root can become nobody")
        return
    prefix = [become, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    folder = os.path.join(FOLDER, "nobody")
    os.mkdir(folder)
    os.chown(folder, NOBODY, NOBODY)
    os.chmod(path, 0o644)
    cached([path], warm=False)
    if subprocess.run([*prefix, "cat", victim("map_only")], stdout=subprocess.DEVNULL, check=False).returncode:
        print("skip unknown_is_not_full - nobody may not enter the build folder")
        return
    run = Traced("nobody/unknown", victim("map_only"), path, 500, files=[path], prefix=prefix)
    r = run.report()
    check("unknown_is_not_full", run.rc and run.out + run.err or facts(
        ("outside may not know either", {row["cached"] for row in run.outside.rows}, {-1}),
        ("mapped", *between(os.path.getsize(path), r.file(path)["mapped_bytes"], os.path.getsize(path) + PAGE)),
        ("cached", [r.file(path)[at]["cached"] for at in ("at_peak", "settled", "at_end")], [None] * 3),
        ("why", r.file(path)["cache_error"], "EPERM"),
        ("text", "cached: unknown (EPERM)" in r.text(), True),
    ))


def main():
    enter_own_world()
    path = weights("model.safetensors", TENSORS, 1024)
    copy_on_write(path)
    read_only(path)
    steps(path)
    unknown(path)
    os.remove(path)
    shards = [weights(f"model-{number:05}-of-00008.safetensors", 1, 256) for number in range(1, 9)]
    dead(shards)
    staging(shards[:4])
    finish()


main()
