# SPDX-License-Identifier: Apache-2.0
"""A row of the matrix against what was seen: by others (`truth`, see evidence.py), in the trace's records (Story) and by
the report. Each function gives triples (what, seen, expected), for e2e.facts()."""

import fnmatch
from collections import Counter

from e2e import between
from rows import KIB, MIB, PAGE, Sizes
from story import Story

SCALARS = 64 * KIB  # buffers and scalars that come from the heap whatever the loader
# What a program allocates beside its weights during a load (modules that are imported late, the CUDA context).
PROGRAM = 48 * MIB
CALL = 10**6  # ns between the record of an unmapping, which is made before the call, and its effect
POPULATE = 300 * 10**6  # ns: mmap with MAP_POPULATE reads the file
SEEN = 40 * 10**6  # ns for which everything stands still after each copy (check.SLOW)


def inside(bounds, value):
    return between(bounds[0], value, bounds[1]) if bounds else (True, True)


class Seen:
    """One run of a row: all that compare() looks at."""

    def __init__(self, row, truth, report, dumps):
        self.row, self.truth, self.report = row, truth, report
        self.sizes = Sizes(truth["files"], truth["sizes"])
        self.until = max((process.get("loaded", 0) for process in truth["processes"]), default=0)
        self.dropped = max((process.get("dropped", 0) for process in truth["processes"]), default=0)
        self.stories = [Story(lines, truth["files"], self.until) for lines in dumps]

    def bounds(self, key, rough=False):
        return self.sizes.bounds(getattr(self.row, key), rough)

    def files(self):
        """The report's rows of weight files; a file that nobody touched has none."""
        return [file for file in self.report["files"] if file["path"].rpartition("/")[2] in self.truth["files"]]


def program(seen):
    """The load worked: nothing of it is a fact about a loader that failed."""
    row, truth = seen.row, seen.truth
    key, _, reason = (row.digest or "plain").partition(" ")
    yield "exit", truth["exit"], int(row.exit or 0)
    yield "processes that loaded", sum("loaded" in process for process in truth["processes"]), int(row.traces or 1)
    for process in truth["processes"] if key != "none" else ():
        yield "tensors", process.get("sha256"), truth["digests"][key]
    if key == "none" and not reason:
        yield "digest", "none", "none REASON"
    yield "stubs called", truth["ledger"]["stubs"], 0
    yield "events lost", sum(story.lost for story in seen.stories), 0


def way(seen):
    """How the bytes went to the device: as the driver saw it, and as the trace tells it."""
    wanted = dict(text.split(maxsplit=1) for text in seen.row.bytes)
    told = Counter()
    for story in seen.stories:
        told.update(story.copied)
    for source in sorted({*wanted, *seen.truth["copied"], *told}):
        copied = seen.truth["copied"].get(source, 0)
        bounds = seen.sizes.bounds(wanted[source]) if source in wanted else (0, SCALARS if source == "heap" else 0)
        yield f"copied from {source}, driver", *inside(bounds, copied)
        if not seen.row.is_victim() or source != "cufile":
            yield f"copied from {source}, trace", told[source], copied


def mappings(seen):
    for file in seen.truth["files"]:
        wanted = [mapping for mapping in seen.row.maps if fnmatch.fnmatch(file, mapping.pattern)]
        kinds = Counter({(mapping.prot, mapping.flags): 0 for mapping in wanted})
        for mapping in wanted:
            kinds[mapping.prot, mapping.flags] += mapping.count
        found = [(story, mapped) for story in seen.stories for mapped in story.maps if mapped.file == file]
        yield f"mappings of {file}", Counter((mapped.prot, mapped.flags) for _, mapped in found), kinds
        yield from ends(seen, wanted, found)
        yield from reported(seen, file, found)


def ends(seen, wanted, found):
    """Mappings of one kind may end in several ways: each way must have its number of them."""
    for mapping in wanted:
        alike = [pair for pair in found if (pair[1].prot, pair[1].flags) == (mapping.prot, mapping.flags)]
        fits = sum(story.ended(mapped, mapping.ends, seen.dropped) for story, mapped in alike)
        name = f"{mapping.prot} {mapping.flags} mappings of {mapping.pattern} that end with `{mapping.ends}`"
        yield name, fits if fits < mapping.count else mapping.count, mapping.count


def reported(seen, file, found):
    """The report counts the same mappings."""
    counts = [m["count"] for each in seen.files() if each["path"].endswith("/" + file) for m in each["mappings"]]
    yield f"mappings of {file}, report", sum(counts), len(found)


def lives(mapped):
    """(bytes, from, until, from as others may see it) of what was left of a mapping, in whole pages. The record of a
    mapping is made when the call is over, and one that fills its pages takes its time."""
    ends = [time for time, _ in mapped.sizes[1:]] + [float("inf")]
    early = POPULATE if "populate" in mapped.flags else 0
    return [(-(-size // PAGE) * PAGE, born, gone, born - early) for (born, size), gone in zip(mapped.sizes, ends)]


def mapped_from_outside(seen):
    """Each look of a process that looked from outside: what was mapped all the while, and what for some of it."""
    maps = [life for story in seen.stories for mapped in story.maps for life in lives(mapped)]
    for start, end, value in seen.truth["outside"]["mapped"]:
        low = sum(size for size, born, gone, _ in maps if born < start and gone > end + CALL)
        high = sum(size for size, _, gone, early in maps if early < end and gone > start - CALL)
        yield "mapped, outside", *between(low, value, high)


def device(seen):
    ledger = seen.truth["ledger"]
    for end in ("low_bytes", "high_bytes"):
        settled = sum(file["settled"]["device"][end] for file in seen.files())
        yield f"device bytes of the files, {end}", *inside(seen.bounds("device"), settled)
    yield "device peak, ledger", seen.report["peak.device_peak_bytes"], ledger["device_peak"]
    if not seen.row.trains:
        yield "device peak of the load, ledger", seen.report["peak.load.device_peak_bytes"], ledger["device_peak"]
    yield "pinned peak, ledger", seen.report["peak.pinned_peak_bytes"], ledger["pinned_peak"]
    yield "pinned peak", *inside(seen.bounds("pinned"), ledger["pinned_peak"])


def anonymous(seen):
    """Copy-on-write copies: the row, the ledger's sum and the outside process's highest look."""
    outside, high = seen.truth["outside"], seen.report["peak.load.anonymous_copies"]["high_bytes"]
    bounds = seen.bounds("anonymous")
    if bounds:
        slack = 2 * PAGE * seen.sizes.count if bounds[1] else 0
        for end in ("low_bytes", "high_bytes"):
            yield f"anonymous copies, {end}", *between(bounds[0], seen.report["peak.load.anonymous_copies"][end], bounds[1] + slack)
    at_most = outside["anon_files"] + outside["anon_step"] if outside["gap"] < SEEN else high
    yield "anonymous copies, outside", *between(outside["anon_files"], high, at_most)
    broken, told = seen.truth["ledger"]["broken"], sum(file["anon_peak_bytes"] for file in seen.files())
    yield "copy-on-write broken, ledger", told, broken


def heap(seen):
    """Weights in anonymous heap: staging where they go on to the device, else the host memory that the load added. From
    outside it is part of all that the program allocated meanwhile, and where the outside process got no processor in
    time it saw nothing of it."""
    bounds, load, outside = seen.bounds("heap", rough=True), seen.report["peak.load"], seen.truth["outside"]
    if not bounds:
        return
    low = bounds[0] if outside["gap"] < SEEN else 0
    yield "weights in heap, outside", *between(low, outside["rss_anon"], bounds[1] + PROGRAM)
    if seen.row.bytes:
        yield "weights in heap", *inside(bounds, load["staging_peak_bytes"])
        return
    # An interval: samples come when they can. It holds what is so, and never all of it twice.
    least = load["load_demand"]["low_bytes"] - load["load_modelled"]["high_bytes"]
    most = load["load_demand"]["high_bytes"] - load["load_modelled"]["low_bytes"]
    yield "weights in heap, at least", *between(-MIB, least, bounds[1])
    yield "weights in heap, at most", *between(bounds[0], most, bounds[1] + seen.sizes.names["W"])


def cache(seen):
    bounds = seen.bounds("cache", rough=True)
    cached = [file["settled"]["cached"] for file in seen.files()]
    if bounds and None not in cached:
        yield "page cache", *inside(bounds, sum(each["low_bytes"] for each in cached))
        yield "page cache, outside", *inside(bounds, seen.truth["outside"]["cached"])


def advice(seen):
    wanted = Counter()
    for text in seen.row.advice:
        call, what, *count = text.split()
        for file in seen.truth["files"]:
            wanted[file, f"{call} {what}"] = int(count[0]) if count else 1
    found = Counter()
    for story in seen.stories:
        found.update(story.advice)
    yield "advice", found, wanted


def named(seen):
    """The report names the loader and its version, and what to repair, the best first."""
    found = [f"{part['name']} {part['version']}" for loader in seen.report["loaders"] for part in loader["parts"]]
    if not seen.row.is_victim():
        yield "loader", seen.row.loader in found or found, True
    repairs, wanted = [repair["id"] for repair in seen.report["repairs"]], seen.row.repair.split()
    if wanted == ["none"]:
        yield "repairs", repairs, []
    elif wanted:
        yield "first repair", repairs[:1], wanted[:1]
        yield "repairs that are missing", [name for name in wanted if name not in repairs], []


def repaired(seen, other, repair):
    """What the report of a row predicts of a repair, against the load that was really repaired (issue 4, Shows 3)."""
    found = [each["predicted"]["modelled"] for each in seen.report["repairs"] if each["id"] == repair]
    yield f"{repair} is proposed", bool(found), True
    really = other.report["peak.load.load_modelled"]
    for predicted in found:
        name = f"{repair}, predicted and as it is in {other.row.name}"
        low, high = predicted["low_bytes"] * 97 // 100, predicted["high_bytes"] * 103 // 100
        yield name, *between(low, really["high_bytes"], high)


PARTS = (program, way, mappings, mapped_from_outside, device, anonymous, heap, cache, advice, named)


def compare(seen):
    """Triples of everything. A program that did not get through says nothing else."""
    first = list(program(seen))
    if any(found != wanted for _, found, wanted in first):
        return first
    return [triple for part in PARTS for triple in part(seen)]
