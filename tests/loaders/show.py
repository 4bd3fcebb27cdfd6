# SPDX-License-Identifier: Apache-2.0
"""What was seen of a row, in the words of the matrix: to be compared with facts, never to be copied without them."""

from collections import Counter


def shown(size, names):
    """A size, with the letters that it may be."""
    letters = [name for name in ("W", "T", "S", "M", "F", "SLOTS") if names[name] and abs(size - names[name]) <= 64 * 1024]
    text = " ".join(letters) or "%.3f W" % (size / names["W"])
    return f"{size} ({text})" if size else "0"


def show(seen):
    names, truth, load = seen.sizes.names, seen.truth, seen.report["peak.load"]
    print(f"# [{seen.row.name}]", {name: names[name] for name in ("W", "T", "S", "F", "SLOTS")})
    for story in seen.stories:
        for mapped in story.maps:
            ends = [word for word in ("open", "shard", "load", "tensors", "exit") if story.ended(mapped, word, seen.dropped)]
            print(f"#   map = {mapped.prot} {mapped.flags} {'/'.join(ends)}   {mapped.file}")
        for (file, what), count in story.advice.items():
            print(f"#   advice = {what} {count}   {file}")
    print("#   bytes, driver:", {source: shown(size, names) for source, size in truth["copied"].items()})
    print("#   bytes, trace:", {source: shown(size, names) for story in seen.stories for source, size in Counter(story.copied).items()})
    print("#   device =", shown(sum(file["settled"]["device"]["high_bytes"] for file in seen.files()), names), "peak", truth["ledger"]["device_peak"])
    print("#   anonymous =", shown(load["anonymous_copies"]["high_bytes"], names), "outside", truth["outside"]["anon_files"], "broken", truth["ledger"]["broken"])
    print("#   heap =", shown(load["staging_peak_bytes"], names), "host", shown(load["load_demand"]["high_bytes"] - load["load_modelled"]["high_bytes"], names), "outside", shown(truth["outside"]["rss_anon"], names))
    print("#   pinned =", shown(truth["ledger"]["pinned_peak"], names))
    print("#   cache =", shown(sum((file["settled"]["cached"] or {"low_bytes": 0})["low_bytes"] for file in seen.files()), names), "outside", truth["outside"]["cached"])
    print("#   outside, longest gap:", truth["outside"]["gap"] // 10**6, "ms; processes", truth["processes"])
    for loader in seen.report["loaders"]:
        print("#   loader", loader["words"], [f"{part['name']} {part['version']}" for part in loader["parts"]])
    for repair in seen.report["repairs"]:
        print("#   repair", repair["id"], "load then", repair["predicted"]["modelled"], "now", load["load_modelled"])
