#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the report says of loads with transformers, against the simulated driver's ledger, other processes and the model.

    shows.py [relief] [conversion] [quantiser]"""

import copy
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "run"))
sys.dont_write_bytecode = True

import check as matrix
import rows
from e2e import MIB, Report, between, enter_own_world, exactly, facts
from simledger import PAGE, check, finish

ROUNDS = 3  # plain and relieved runs side by side, each so often


class Ran:
    """A row of the matrix, perhaps with another model and more in its environment."""

    def __init__(self, name, row, model=None, settings=()):
        row = copy.copy(rows.read()[row])
        row.name, row.model, row.settings = name, model or row.model, {**row.settings, **dict(settings)}
        self.done, _, self.truth = matrix.run(row)
        self.report, self.ledger = Report(self.done.trace), self.truth["ledger"]
        self.process = self.truth["processes"][-1] if self.truth["processes"] else {}
        self.sizes = [size for tensors in self.truth["files"].values() for size in tensors.values()]
        self.weights = sum(self.sizes)

    def failed(self):
        wrong = self.done.rc or "loaded" not in self.process
        return wrong and (self.done.rc, self.done.out[-100:], self.done.err[-200:])

    def took(self):
        return self.process["loaded"] - self.process["begin"]

    def sites(self, kind):
        return self.report[f"temporaries.{kind}.sites"]


def within(seen, wanted):
    return between(wanted * 97 // 100, seen, wanted * 103 // 100)


def packages(site):
    return {frame["package"] for frame in site["python_stack"]}


# ---- transformers 5 with safetensors 0.8, 1 GiB, and its relief ------------------------------------------------------


def plain_load(run):
    """All shards stay mapped, copies come straight from them, so the weights are there twice: nothing of it sampled."""
    r, w, ledger = run.report, run.weights, run.ledger
    anon, slack = r["peak.load.anonymous_copies"], len(run.sizes) * 2 * PAGE
    source = [loader["copied_from"] for loader in r["loaders"]]
    mapped = sum(-(-size // PAGE) * PAGE for size in run.truth["sizes"].values())
    return facts(
        ("tensors", run.process["sha256"], run.truth["digests"]["plain"]),
        ("loader", [(loader["name"], loader["version"]) for loader in r["loaders"]], [("transformers", "5.24.0")]),
        ("weights", r["peak.load.weights_bytes"], w),
        ("copied from, driver", run.truth["copied"].get("file_private_writable"), w),
        ("copied from, report", source[0]["private_writable_mapping_bytes"], w),
        ("mapped to the end", (r["peak.load.all_stayed_mapped"], r["peak.load.mapped_at_end_bytes"]), (True, mapped)),
        ("mapped at once, outside", max(value for _, _, value in run.truth["outside"]["mapped"]), mapped),
        ("A", *between(w, anon["low_bytes"], w + slack)), ("A, ledger", anon, exactly(ledger["broken"])),
        ("modelled, ledger", r["peak.load.load_modelled"], exactly(ledger["total_peak"] + ledger["broken"])),
        ("factor", *between(2, r["peak.load.load_factor"], 2.1)),
        ("said", "stayed mapped to the end of the load" in run.done.report().text(), True),
    )


def relieved_load(before, repair, after):
    r, ledger, predicted = after.report, after.ledger, repair["predicted"]
    return facts(
        ("tensors", after.process["sha256"], before.process["sha256"]),
        ("relieved", r["relief.mappings"], len(after.truth["files"])),
        ("A, ledger", ledger["broken"], 0), ("A", r["peak.load.anonymous_copies"], exactly(0)),
        ("peak, low", *within(r["peak.load.load_modelled"]["low_bytes"], predicted["modelled"]["low_bytes"])),
        ("peak, high", *within(r["peak.load.load_modelled"]["high_bytes"], predicted["modelled"]["high_bytes"])),
        ("peak, ledger", *within(ledger["total_peak"], predicted["modelled"]["high_bytes"])),
        ("factor", *between(1, r["peak.load.load_factor"], 1.1)),
    )


def proposal(run):
    """The repair for which the replay brings the factor to at most 1.1, and the command to type for it."""
    found = [repair for repair in run.report["repairs"] if repair["id"] == "relief-readonly"]
    if not found:
        return None, f"not offered, but {[repair['id'] for repair in run.report['repairs']]}"
    return found[0], facts(
        ("factor then", *between(1, found[0]["predicted"]["factor_high"], 1.1)),
        ("command", "SPARKTRACE_RELIEF=readonly" in found[0]["command"], True),
        ("saves", *between(run.weights, found[0]["relief_modelled"]["low_bytes"], run.ledger["broken"])),
    )


def relief():
    # Nothing is delayed here: it is the copies that take time.
    settings = {"plain": {"SIMCUDA_DELAY": ""}, "relieved": {"SIMCUDA_DELAY": "", "SPARKTRACE_RELIEF": "readonly"}}
    runs = {"plain": [], "relieved": []}
    for turn in range(ROUNDS):
        for kind, more in settings.items():
            run = Ran(f"1gib-{kind}-{turn}", "transformers-5-cuda", "llama_1gib", more)
            if run.failed():
                check(f"1gib_{kind}", run.failed())
                return
            runs[kind].append(run)
    before, after = runs["plain"][0], runs["relieved"][0]
    check("1gib_plain", plain_load(before))
    repair, wrong = proposal(before)
    check("1gib_proposal", wrong)
    if repair:
        check("1gib_relieved", relieved_load(before, repair, after))
    # The fastest of each: what else the machine does only adds.
    ratio = min(run.took() for run in runs["relieved"]) / min(run.took() for run in runs["plain"])
    check("1gib_relieved_is_not_slower", ratio > 1.25 and f"{ratio:.2f} times the plain load")


# ---- temporaries -----------------------------------------------------------------------------------------------------


def conversion():
    """Each tensor becomes half of its size on the host; blocks from 1 MiB on are recorded, and each worker has one."""
    run = Ran("conversion", "transformers-5-fp32-to-bf16")
    if run.failed():
        check("conversion", run.failed())
        return
    halves = [size // 2 for size in run.sizes if size // 2 >= MIB]
    host = run.report["temporaries.host"]
    sites = [site for site in run.sites("host") if site["purpose"] == "conversion"]
    workers = min(4, os.cpu_count())
    check("conversion", facts(
        ("tensors", run.process["sha256"], run.truth["digests"]["bfloat16"]),
        ("purpose", host["purpose"], "conversion"), ("bytes", host["purpose_made_bytes"], sum(halves)),
        ("blocks", sum(site["count"] for site in sites), len(halves)),
        ("at once", *between(max(halves), max(site["at_once_bytes"] for site in sites), workers * max(halves))),
        ("largest", max(site["largest_bytes"] for site in sites), max(halves)),
        ("went to the device", sum(site["copied_bytes"] for site in sites), sum(halves)),
        ("native", all(any("_to_copy" in (frame["function"] or "") for frame in site["stack"]) for site in sites), True),
        ("python", [site for site in sites if "transformers" not in packages(site)], []),
        ("said", "conversion made" in run.done.report().text(), True),
    ))


def came_and_went(ledger, begin, end):
    """Bytes and number of device blocks that were asked for and given back between two times."""
    live, count, total = {}, 0, 0
    for line in ledger:
        if line["rc"] or not begin <= line["t"] <= end:
            continue
        if line["op"].startswith("cuMemAllocAsync"):
            live[line["addr"]] = line["size"]
        elif line["op"].startswith("cuMemFreeAsync") and line["addr"] in live:
            count, total = count + 1, total + live.pop(line["addr"])
    return count, total


def quantiser():
    """With CUDA's own allocator the driver sees each block: the quantiser's come and go under its stack."""
    run = Ran("quantiser", "bitsandbytes-0.50-4bit", None, {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})
    if run.failed():
        check("quantiser", run.failed())
        return
    device, sites = run.report["temporaries.device"], run.sites("device")
    # From the first weight file to the copy of the last tensor; what transformers allocates before is no part of the load.
    first = min(record["time"] for record in run.done.dump("open"))
    last = max(line["t"] for line in run.done.ledger if "HtoD" in line["op"] and line["size"] in run.sizes)
    count, total = came_and_went(run.done.ledger, first, last)
    quantised = [site for site in sites if site["purpose"] == "quantise"]
    check("quantiser", facts(
        ("blocks, ledger", device["count"], count), ("bytes, ledger", device["total_bytes"], total),
        ("at once", *between(1, device["at_once_bytes"], total)),
        ("quantised", bool(quantised), True),
        ("bitsandbytes", [site for site in quantised if not {"bitsandbytes", "transformers"} & packages(site)], []),
        ("by bitsandbytes", any("bitsandbytes" in packages(site) for site in quantised), True),
    ))
    cached = Ran("quantiser-cached", "bitsandbytes-0.50-4bit")
    # In torch's own cache the blocks stay, and full-precision tensors follow each other in them.
    reused = cached.report["temporaries.reused"]
    check("quantiser_in_a_cache", cached.failed() or facts(
        ("overwritten", *between(MIB, reused["total_bytes"], cached.weights)),
        ("at once", *between(MIB, reused["at_once_bytes"], cached.ledger["device_peak"])),
    ))


def main():
    enter_own_world()
    shows = {"relief": relief, "conversion": conversion, "quantiser": quantiser}
    reason = matrix.missing(rows.read()["transformers-5-cuda"])
    for name in sys.argv[1:] or shows:
        if reason:
            print(f"skip {name} - {reason}")
        else:
            shows[name]()
    finish()


main()
