# SPDX-License-Identifier: Apache-2.0
"""The rows of `matrix`, read and checked; and the quantities in them. Standard library only, also for scripts/lint/docs."""

import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
KIB, MIB, PAGE = 1 << 10, 1 << 20, os.sysconf("SC_PAGE_SIZE")

# Keys that a row may have: whether it must, and whether it may stand there more than once.
KEYS = {
    "like": (False, False), "loader": (True, False), "option": (True, False), "over": (True, False), "run": (True, False),
    "set": (False, False), "model": (True, False), "map": (True, True), "bytes": (True, True), "device": (True, False),
    "anonymous": (True, False), "heap": (True, False), "pinned": (True, False), "cache": (True, False),
    "advice": (True, True), "twice": (True, False), "repair": (False, False), "repaired": (False, True),
    "digest": (False, False), "traces": (False, False), "exit": (False, False), "skip": (False, False), "trains": (False, False),
    "note": (False, False),
}
NONE_SAYS = ("repair",)  # where `none` is not the same as a key that is not there
ENDS = ("open", "shard", "load", "tensors", "exit")


class Mistake(Exception):
    """A line of the matrix that is not one."""


class Mapping:
    """`PROT FLAGS ENDS [COUNT] [in PATTERN]`."""

    def __init__(self, text):
        words, _, self.pattern = text.partition(" in ")
        self.prot, self.flags, self.ends, *count = words.split()
        self.count = int(count[0]) if count else 1
        self.pattern = self.pattern.strip() or "*"
        if self.ends not in ENDS:
            raise Mistake(f"`{text}`: ENDS is one of {', '.join(ENDS)}")


class Row:
    """One row: its keys as attributes of strings, lists of them where a key may be repeated."""

    def __init__(self, name, keys):
        self.name, self.keys = name, keys
        for key, (must, many) in KEYS.items():
            values = keys.get(key, [])
            if must and not values:
                raise Mistake(f"[{name}] lacks `{key}`")
            if len(values) > 1 and not many:
                raise Mistake(f"[{name}] has `{key}` more than once")
            values = [] if values == ["none"] and (many or not must) and key not in NONE_SAYS else values
            setattr(self, key, values if many else values[0] if values else "")
        self.maps = [Mapping(text) for text in self.map]
        self.proofs = [text.split() for text in self.repaired]  # (repair, row of the repaired load)
        self.settings = dict(word.split("=", 1) for word in self.set.split())
        self.overlays = [] if self.over == "-" else self.over.split()

    def is_victim(self):
        return not self.run.split()[0].endswith(".py")


def parse(text):
    """[(name, {key: [values]})], with `like` resolved."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        head = re.fullmatch(r"\[([a-z0-9._-]+)\]", line)
        key, equals, value = (part.strip() for part in line.partition("="))
        if head:
            if head[1] in found:
                raise Mistake(f"line {number}: [{head[1]}] is there twice")
            keys = found[head[1]] = {}
        elif not equals or key not in KEYS or not found or not value:
            raise Mistake(f"line {number}: `{line}` is neither [name] nor a known key = value")
        else:
            keys.setdefault(key, []).append(value)
    return found


def resolve(found, name, seen=()):
    keys = dict(found[name])
    for other in keys.pop("like", []):
        if other not in found or other in seen:
            raise Mistake(f"[{name}] is like [{other}], which is not there or is like this one")
        keys = {**resolve(found, other, (*seen, name)), **keys}
    return keys


def parse_file():
    with open(os.path.join(HERE, "matrix"), encoding="utf-8") as file:
        return parse(file.read())


def read():
    found = parse_file()
    rows = {name: Row(name, resolve(found, name)) for name in found}
    for row in rows.values():
        for proof in row.proofs:
            if len(proof) != 2 or proof[1] not in rows:
                raise Mistake(f"[{row.name}]: `repaired = {' '.join(proof)}` is not a repair and a row")
    return rows


def power_of_two(size):
    return 1 << (size - 1).bit_length()


class Sizes:
    """What the letters of a quantity mean for a model: {file: {tensor: bytes}} and {file: bytes of the file}."""

    def __init__(self, tensors, files):
        shards = [sum(each.values()) for each in tensors.values()]
        sizes = [size for each in tensors.values() for size in each.values()]
        self.count = len(sizes)
        self.names = {
            "W": sum(sizes), "T": max(sizes), "SIZES": sizes, "S": max(files.values()), "M": max(shards), "F": sum(files.values()),
            "N": len(files), "P": power_of_two, "SLOTS": sum({power_of_two(size) for size in sizes}),
            "KIB": KIB, "MIB": MIB, "PAGE": PAGE, "sum": sum, "max": max, "min": min, "len": len, "set": set,
        }

    def value(self, text):
        return eval(text, {"__builtins__": {}, **self.names})  # pylint: disable=eval-used

    def bounds(self, text, rough=False):
        """(low, high) of a quantity, or None for one that is not compared."""
        if text == "?":
            return None
        low, dots, high = text.lstrip("~").partition("..")
        low, high = self.value(low), self.value(high if dots else low)
        margin = max(high * 3 // 100, MIB) if rough or text.startswith("~") else 0
        return low - margin, high + margin
