# SPDX-License-Identifier: Apache-2.0
"""What a trace tells of the weight files of a row, from its records: mappings and when each ended, advice, and where the
copies to the device came from."""

import bisect
import os
from collections import Counter

ADVICE = {0: "normal", 1: "random", 2: "sequential", 3: "willneed", 4: "dontneed", 8: "free", 14: "hugepage", 22: "populate_read", 23: "populate_write"}


def within(blocks, addr):
    """Does it lie in one of the blocks {address: size}?"""
    starts = sorted(blocks)
    at = bisect.bisect_right(starts, addr) - 1
    return at >= 0 and addr < starts[at] + blocks[starts[at]]


class Mapped:
    """A mapping of a weight file; pieces is what of it is left."""

    def __init__(self, line, file):
        self.file, self.prot, self.flags, self.born = file, line["prot"], line["flags"], line["time"]
        self.start, self.end, self.gone = int(line["addr"], 16), int(line["addr"], 16) + line["size"], None
        self.pieces = [(self.start, self.end)]
        self.sizes = [(self.born, self.end - self.start)]  # what was left of it, from when on

    def cut(self, start, end, time):
        pieces = []
        for low, high in self.pieces:
            pieces += [(low, min(high, start))] if low < start else []
            pieces += [(max(low, end), high)] if high > end else []
        if self.pieces and not pieces:
            self.gone = time
        if pieces != self.pieces:
            self.sizes.append((time, sum(high - low for low, high in pieces)))
        self.pieces = pieces

    def covers(self, addr):
        return any(low <= addr < high for low, high in self.pieces)

    def kind(self):
        """As the simulated driver names the source of a copy."""
        if "shared" in self.flags:
            return "file_shared"
        return "file_private_writable" if "write" in self.prot else "file_private"


class Story:
    """Of one process. `files` are base names of its weight files; copies after `until` are not the load's."""

    def __init__(self, lines, files, until):
        self.wanted, self.until = set(files), until
        self.names, self.opens, self.maps, self.moves = {}, {}, [], []
        self.advice, self.copied, self.pinned, self.registered = Counter(), Counter(), {}, {}
        self.lost = 0
        for line in sorted(lines, key=lambda line: line.get("time", 0)):
            handle = getattr(self, "on_" + line["event"], None)
            if handle:
                handle(line)

    def weight(self, line):
        name = self.names.get(line.get("file"))
        return name if name in self.wanted else None

    def on_file(self, line):
        self.names[line["id"]] = os.path.basename(line["text"])

    def on_lost(self, line):
        self.lost += line["count"]

    def on_open(self, line):
        if self.weight(line):
            self.opens.setdefault(self.weight(line), []).append(line["time"])

    def on_map(self, line):
        start = int(line["addr"], 16)
        for mapped in self.maps if "fixed" in line["flags"] else ():
            mapped.cut(start, start + line["size"], line["time"])
        if self.weight(line):
            self.maps.append(Mapped(line, self.weight(line)))

    def on_unmap(self, line):
        start = int(line["addr"], 16)
        for mapped in self.maps:
            mapped.cut(start, start + line["size"], line["time"])

    def on_fadvise(self, line):
        if self.weight(line):
            self.advice[self.weight(line), "fadvise " + ADVICE.get(line["advice"], str(line["advice"]))] += 1

    def on_advise(self, line):
        mapped = self.over(int(line["addr"], 16))
        if mapped:
            self.advice[mapped.file, "madvise " + ADVICE.get(line["advice"], str(line["advice"]))] += 1

    def on_read(self, line):
        if self.weight(line):
            self.moves.append((line["time"], self.weight(line)))

    def on_pinned_alloc(self, line):
        if line["result"] == 0:
            self.pinned[int(line["addr"], 16)] = line["size"]

    def on_register(self, line):
        if line["result"] == 0:
            self.registered[int(line["addr"], 16)] = line["size"]

    def on_pinned_free(self, line):
        self.pinned.pop(int(line["addr"], 16), None)

    def on_unregister(self, line):
        self.registered.pop(int(line["addr"], 16), None)

    def on_copy(self, line):
        if line["how"] != "h2d" or line["result"] or line["time"] > self.until:
            return
        addr = int(line["src"], 16)
        mapped = self.over(addr)
        if mapped:
            self.moves.append((line["time"], mapped.file))
        self.copied[mapped.kind() if mapped else self.kind(addr)] += line["size"]

    def over(self, addr):
        return next((mapped for mapped in self.maps if mapped.covers(addr)), None)

    def kind(self, addr):
        """Of memory that is no mapping of weights, as the simulated driver names it."""
        if within(self.pinned, addr):
            return "pinned"
        return "registered" if within(self.registered, addr) else "heap"

    def next_shard(self, mapped):
        """When another weight file was first opened after this mapping was made."""
        later = [min(times) for file, times in self.opens.items() if file != mapped.file and min(times) > mapped.born]
        return min(later, default=self.until)

    def ended(self, mapped, ends, dropped):
        """Whether the mapping ended as the matrix says (rows.ENDS)."""
        gone = mapped.gone or float("inf")
        if ends == "open":
            moved = [time for time, file in self.moves if file == mapped.file and mapped.born <= time <= gone]
            return gone < self.until and gone <= self.next_shard(mapped) and not moved
        if ends == "shard":
            return gone <= self.next_shard(mapped) and gone < self.until
        if ends == "load":
            others = [other for other in self.maps if other.file != mapped.file]
            return gone < self.until and (not others or any(other.born < gone and (other.gone or gone) > mapped.born for other in others))
        if ends == "tensors":
            return self.until < gone <= (dropped or 0)
        return gone > (dropped or self.until)
