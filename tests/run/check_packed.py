# SPDX-License-Identifier: Apache-2.0
"""See check.sh. Runs are written by hand: 1 GiB of weights is mapped and copied to the device, tensor by tensor."""

import json
import os
import re
import shutil
import subprocess
import sys

from e2e import ANALYZE, FOLDER, GIB, MIB, facts, pack
from simledger import check

PATH = "/models/m/model.safetensors"
DEVICE, MAPPING = 0x100000000000, 0x7F0000000000
NAMES = "load_device_peak load_staging_peak load_anonymous_copy_peak load_host_peak load_modelled_peak load_factor" \
    " load_mapped_peak load_read_amplification pool_peak".split()
ENV = {key: value for key, value in os.environ.items() if not key.startswith("GITHUB_")}
pids = iter(range(1000, 2000))


def load(writable=False, version="0.8.0", threads=1, page_size=4096, pool="simulated", infos=(), extra=(), weights=GIB,
         available=22 * GIB, exit_status=0):
    """The records of a run. A writable mapping costs a copy of each page; `extra` comes before its end."""
    pid = next(pids)
    quarter = weights // 4
    settings = {"boot_id": "check", "run": f"{pid}.{pid} python", "setting.SPARKTRACE_HEAP_THRESHOLD": "1MiB",
                "setting.SPARKTRACE_RELIEF": "off", **dict(infos)}
    frame = {"thread": pid, "stack": 1}
    yield {"event": "process", "time": 0, "pid": pid, "ppid": 1, "page_size": page_size, "pool": pool, "cpus": 2, "start": 1}
    yield from ({"event": "info", "time": 0, "text": f"{name}={value}"} for name, value in settings.items())
    yield {"event": "sample", "time": 0, "reason": "start", "mem_total": 24 * GIB, "mem_free": 20 * GIB, "mem_available": 22 * GIB}
    yield {"event": "package", "text": f"safetensors {version} /env/site-packages/safetensors"}
    yield {"event": "code", "id": 1, "line": 300, "text": "load_file /env/site-packages/safetensors/torch.py"}
    yield {"event": "code", "id": 2, "line": 1, "text": "<module> /home/user/train.py"}
    yield {"event": "stack", "id": 1, "words": ["0x100100"]}
    yield {"event": "frames", "id": 1, "words": ["0x100000141", "0x20000000c"]}
    for i in range(4):
        yield {"event": "tensor", "path": PATH, "file_size": weights, "offset": i * quarter, "size": quarter, "dtype": "BF16",
               "elements": quarter // 2, "text": f"layers.{i}.weight"}
    yield {"event": "map", "time": "1s", "addr": MAPPING, "size": weights, "prot": "read|write" if writable else "read",
           "flags": "private", "path": PATH, **frame}
    yield {"event": "device_alloc", "time": "1.1s", "addr": DEVICE, "size": weights, **frame}
    for i in range(4):
        yield {"event": "copy", "time": f"{i + 2}s", "dst": DEVICE + i * quarter, "src": MAPPING + i * quarter, "size": quarter,
               "how": "h2d", **frame, "thread": pid + i % threads}
    if writable:
        yield {"event": "anon", "time": "6s", "addr": MAPPING, "size": weights, "path": PATH, "bytes": weights, "reason": "unmap",
               "source": "pagemap_scan", "complete": 1, "words": [MAPPING, MAPPING + weights]}
    yield {"event": "unmap", "time": "6s", "addr": MAPPING, "size": weights, "thread": pid}
    yield {"event": "sample", "time": "6.5s", "reason": "timer", "mem_total": 24 * GIB, "mem_free": 18 * GIB,
           "mem_available": available}
    yield from extra
    yield {"event": "sync", "time": "7s", "how": "context", "thread": pid}
    yield {"event": "exit", "time": "8s", "how": "exited", "status": exit_status}


def run_of(name, **changes):
    return pack([{k: v for k, v in line.items()} for line in load(**changes)], name)


class Check:
    """What `check` says of its arguments: status, out, err, and of a JSON result its parts."""

    def __init__(self, *arguments, env=None):
        done = subprocess.run([ANALYZE, "check", *map(str, arguments)], capture_output=True, text=True, check=False,
                              env={**ENV, **(env or {})})
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.first = self.out.split("\n", 1)[0]

    def json(self):
        return json.loads(self.out)


def texts(rows):
    return " | ".join(row["text"] for row in rows)


def said(name, arguments, status, *words, wrong=()):
    """Checks a status, and that all words are said, and said in the JSON as in the text; none of `wrong` is."""
    text, data = Check(*arguments), Check("--json", *arguments)
    found = " ".join(text.out.split())
    missing = [word for word in words if word not in found] + [word for word in wrong if word in found]
    check(name, facts(("status", text.status, status), ("status with --json", data.status, status),
                      ("missing or wrong", missing, []), ("stderr", text.err, "")) or
          facts(("status in JSON", data.json()["status"], status), ("verdict in JSON", data.json()["verdict"], text.first)))
    return data


def in_folder(name):
    return os.path.join(FOLDER, name)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def baseline_of(name, *traces):
    path = in_folder(name)
    done = Check("--baseline", path, "--update", *traces)
    if done.status:
        sys.exit(f"not ok baseline_{name} - {done.out} {done.err}")
    return path


# ---- line 4: what cannot be compared, each with its sentence --------------------------------------------------------


def damaged(trace, name):
    """The trace with its second half's first bytes turned over: a block of it can no longer be read."""
    with open(trace, "rb") as file:
        data = bytearray(file.read())
    middle = len(data) // 2
    for i in range(middle, middle + 16):
        data[i] ^= 0xFF
    path = in_folder(name)
    with open(path, "wb") as file:
        file.write(data)
    return path


def not_comparable():
    plain = run_of("plain")
    baseline = baseline_of("line4.json", plain)
    said("same_load", ["--baseline", baseline, run_of("again")], 0, "ok: ", "within their limits")

    lost = run_of("lost", extra=[{"event": "lost", "time": "6.6s", "count": 17, "bytes": 4096}])
    said("lost_events", ["--baseline", baseline, lost], 3, "cannot tell: ", lost, "17 events", "lost")
    broken = damaged(plain, "broken.zst")
    said("damaged_block", ["--baseline", baseline, broken], 3, "cannot tell: ", broken, "damaged")

    gap = {"event": "coverage", "time": "0.5s", "text": "anonymous pages of weight mappings are unknown: pagemap: Permission denied"}
    said("gap_in_a_gated_class", ["--baseline", baseline, run_of("gap", extra=[gap])], 3, "cannot tell: ",
         "anonymous pages of weight mappings are unknown")
    other = {"event": "coverage", "time": "0.5s", "text": "no Python frames: this is a test"}
    said("gap_elsewhere_changes_nothing", ["--baseline", baseline, run_of("elsewhere", extra=[other])], 0, "ok: ",
         wrong=["no Python frames"])

    said("page_size", ["--baseline", baseline, run_of("page_size", page_size=65536)], 3,
         "the page size differs: 4096 bytes in the baseline, 65536 bytes in")
    segments = run_of("segments", infos=[("env.PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")])
    said("allocator_mode", ["--baseline", baseline, segments], 3, "the allocator mode differs: block in the baseline, ",
         "expandable_segments:True")
    said("loader_threads", ["--baseline", baseline, run_of("threads", threads=4)], 3,
         "the number of loader threads differs: 1 in the baseline, 4 in")
    said("simulated_against_real", ["--baseline", baseline, run_of("real", pool="uma")], 3,
         "the kind of device differs: simulated in the baseline, unified in")
    said("nothing_is_compared_then", ["--baseline", baseline, run_of("real_cow", pool="uma", writable=True)], 3,
         "cannot tell", wrong=["grew from"])
    said("limits_are_judged_all_the_same", ["--baseline", baseline, "--budget", "1.5GiB", in_folder("real_cow.zst")], 1,
         "+512.0 MiB: ", "--budget 1.5GiB")
    plainly = [line for line in load() if line["event"] in ("head", "process", "info", "sample", "exit")]
    said("no_load", ["--baseline", baseline, pack(plainly, "nothing")], 3, "cannot tell: ", "no weights were loaded")


def versions():
    baseline = baseline_of("version.json", run_of("v8"))
    said("version_is_printed", ["--baseline", baseline, run_of("v7", version="0.7.0")], 0, "safetensors 0.8.0 -> 0.7.0", "ok: ")
    said("version_is_compared", ["--baseline", baseline, run_of("v7cow", version="0.7.0", writable=True)], 1,
         "safetensors 0.8.0 -> 0.7.0", "+1.00 GiB: ", "anonymous copies of the weights grew from 0 bytes to 1.00 GiB",
         "private writable mapping", "model.safetensors", "load_file (torch.py:321)", "safetensors 0.7.0")


def wrong_usage():
    trace, file = run_of("usage"), in_folder("usage.json")
    good = read(baseline_of("good.json", trace))
    line = 1 + good[: good.index('"load_host_peak"')].count("\n")
    rows = [
        ("unknown_metric_in_baseline", good.replace("load_host_peak", "load_frob_peak"), f"{file}:{line}: ", "load_frob_peak"),
        ("baseline_cut", good[: good.index('"load_host_peak"')], f"{file}:", ""),
        ("baseline_of_conflict", "<<<<<<< HEAD\n" + good, f"{file}:1: ", ""),
        ("newer_baseline", good.replace('"schema": 1', '"schema": 2'), f"{file}:", "newer"),
    ]
    for name, text, *words in rows:
        write(file, text)
        done = Check("--baseline", file, trace)
        check(name, facts(("status", done.status, 2), ("says", all(word in done.err for word in words) or done.err, True),
                          ("says nothing else", done.out, "")))
        again = Check("--baseline", file, "--update", trace)
        check(f"{name}_is_not_overwritten", facts(("status", again.status, 2), ("file", read(file), text)))
    missing = in_folder("missing.json")
    for name, arguments, words in (
        ("missing_baseline", ["--baseline", missing, trace], f"check --baseline {missing} --update"),
        ("unknown_option", ["--frob", trace], "--frob"),
        ("unknown_metric", ["--metric", "load_frob_peak=1GiB", trace], "load_frob_peak"),
        ("metric_without_limit", ["--metric", "load_host_peak", trace], "NAME=LIMIT"),
        ("size_of_no_unit", ["--budget", "1 furlong", trace], "furlong"),
        ("nothing_to_compare_with", [trace], "--baseline"),
        ("no_trace", ["--baseline", in_folder("good.json")], "which trace"),
        ("trace_that_is_none", ["--budget", "1GiB", in_folder("good.json")], "good.json"),
        ("update_of_nothing", ["--update", trace], "--baseline"),
        ("update_onto_a_trace", ["--baseline", trace, "--update", trace], "does not overwrite"),
    ):
        done = Check(*arguments)
        check(name, facts(("status", done.status, 2), ("says", words in done.err or done.err, True), ("else", done.out, "")))


# ---- line 7: the file ---------------------------------------------------------------------------------------------------


def differing(a, b):
    """Keys on the lines that are not in both."""
    return {re.match(r'\s*"([^"]*)"', line).group(1) for line in set(a.splitlines()) ^ set(b.splitlines())}


def the_file():
    first, again = baseline_of("first.json", run_of("file")), baseline_of("again.json", run_of("file2"))
    text, data = read(first), json.loads(read(first))
    keys = re.findall(r'^ *"((?:load|pool)_\w+)": ', text, re.M)
    check("a_metric_a_line", facts(("metrics", keys, sorted(set(NAMES) - {"pool_peak"})), ("newline", text.endswith("}\n"), True),
                                   ("lines are short", max(map(len, text.splitlines())) < 110, True)))
    ordered = json.dumps(json.loads(text, object_pairs_hook=list))
    check("keys_are_sorted", facts(("sorted", ordered, json.dumps(sorted_pairs(json.loads(text, object_pairs_hook=list))))))
    check("written_twice_is_the_same", facts(("text", text, read(again))))
    check("values_are_the_runs", facts(
        ("device", data["metrics"]["load_device_peak"], GIB), ("anonymous", data["metrics"]["load_anonymous_copy_peak"], 0),
        ("mapped", data["metrics"]["load_mapped_peak"], GIB), ("factor", data["metrics"]["load_factor"], 1),
        ("weights", data["weights"], GIB), ("tensor", data["scale"]["largest_tensor"], GIB // 4),
        ("versions", data["versions"], {"safetensors": "0.8.0"}), ("schema", data["schema"], 1)))
    block = {"event": "alloc", "time": "1.5s", "addr": "0x7e0000000000", "size": 8 * MIB, "how": "malloc", "stack": 1}
    host = read(baseline_of("host.json", run_of("host", extra=[], infos=[]))), read(baseline_of("host2.json", pack(
        [line for row in load() for line in ([row, {**block, "thread": row["thread"]}] if row.get("time") == "1.1s" else [row])], "host2")))
    check("a_number_that_moves_is_its_line", facts(("lines", differing(*host), {
        "load_host_peak", "load_host_peak, stack load_file < <module>"})))
    os.chmod(first, 0o600)
    baseline_of("first.json", run_of("file3", writable=True))
    check("mode_stays", facts(("mode", os.stat(first).st_mode & 0o777, 0o600)))
    check("nothing_is_left_beside_it", facts(("files", [name for name in os.listdir(FOLDER) if name.startswith("first.json.")], [])))


def sorted_pairs(value):
    """An object as a list of pairs, sorted at every depth; [low, high] stays."""
    if isinstance(value, list) and value and isinstance(value[0], (list, tuple)):
        return sorted([key, sorted_pairs(inner)] for key, inner in value)
    return value


def update():
    path = in_folder("update.json")
    first = Check("--baseline", path, "--update", run_of("u1"))
    check("update_writes", facts(("status", first.status, 0), ("says", path in first.first, True)))
    before = read(path)
    lost = run_of("u2", writable=True, extra=[{"event": "lost", "time": "6.6s", "count": 1, "bytes": 64}])
    said("update_refuses_lost_events", ["--baseline", path, "--update", lost], 3, "not written", "1 events", "lost")
    died = pack([line for line in load(writable=True) if line.get("time") not in ("4s", "5s", "6s", "6.5s", "7s", "8s")] +
                [{"event": "exit", "time": "9s", "how": "signaled", "status": 9}], "u3")
    refused = Check("--baseline", path, "--update", died)
    check("update_refuses_a_load_that_did_not_end", facts(("status", refused.status, 3), ("file", read(path), before)))
    check("refused_update_leaves_the_file", facts(("file", read(path), before)))
    grown = Check("--baseline", path, "--update", run_of("u4", writable=True))
    row = next((line.split() for line in grown.out.splitlines() if "load_anonymous_copy_peak" in line), [])
    check("update_says_what_changed", facts(("status", grown.status, 0), (
        "row", row, ["load_anonymous_copy_peak", "1.00", "GiB", "0", "bytes", "changed"])))
    back = Check("--baseline", path, "--json", run_of("u5")).json()
    check("better_passes_and_asks_for_an_update", facts(
        ("status", back["status"], 0), ("verdict", back["verdict"].startswith("-1.00 GiB: "), True),
        ("asks", "--update" in texts(back["notes"]), True)))


# ---- limits, several runs -----------------------------------------------------------------------------------------------


def limits():
    trace = run_of("limits", writable=True)
    for name, arguments, status, words in (
        ("budget_kept", ["--budget", "2GiB"], 0, "--budget 2GiB is 2,147,483,648 bytes"),
        ("budget_is_exact", ["--budget", "2147483647"], 1, "+1 bytes: "),
        ("budget_in_decimal", ["--budget", "2GB"], 1, "--budget 2GB is 2,000,000,000 bytes"),
        ("budget_with_a_fraction", ["--budget", "1.5GiB"], 1, "+512.0 MiB: "),
        ("metric_kept", ["--metric", "load_anonymous_copy_peak=1GiB"], 0, "1,073,741,824 bytes"),
        ("metric_broken", ["--metric", "load_anonymous_copy_peak=100MB"], 1, "100,000,000 bytes"),
        ("ratio_kept", ["--metric", "load_factor=2"], 0, "2.0000"),
        ("ratio_broken", ["--metric", "load_factor=1.9999"], 1, "+0.0001: "),
        ("two_limits", ["--metric", "load_factor=2", "--metric", "load_anonymous_copy_peak=1"], 1, "load_anonymous_copy_peak=1"),
        ("fits", ["--fit", "6.5GiB"], 0, "the run needs 2.00 GiB"),
        ("does_not_fit", ["--fit", "5GiB"], 1, "+1.00 GiB: "),
        ("limit_of_sampled_metric_wants_three_runs", ["--metric", "pool_peak=1TiB"], 3, "3 runs"),
    ):
        said(name, [*arguments, trace], status, words)
    report = subprocess.run([ANALYZE, "--pool", "5GiB", "--uma", trace], capture_output=True, check=False)
    check("fit_is_the_reports_verdict", facts(("status", report.returncode, 1)))


def several_runs():
    calm, busy = {"available": 21 * GIB}, {"available": 12 * GIB}
    runs = [run_of(f"several{i}", **(calm if i == 1 else busy)) for i in range(3)]
    path = baseline_of("several.json", *runs)
    check("smallest_of_three_pool_peaks", facts(("pool", json.loads(read(path))["metrics"]["pool_peak"], GIB)))
    data = said("three_runs", ["--baseline", path, *runs], 0, "ok: ", "in the runs", "1.00 to 10.00 GiB").json()
    check("three_runs_are_three", facts(("runs", [row["path"] for row in data["runs"]], runs)))
    noisy = [run_of(f"noisy{i}", **busy) for i in range(3)]
    said("noise_in_all_three_fails", ["--baseline", path, *noisy], 1, "+9.00 GiB: ", "pool_peak")
    two = said("two_runs_do_not_judge_it", ["--baseline", path, *noisy[:2]], 0, "from 3 runs on").json()
    check("it_is_shown", facts(("state", next(line["state"] for line in two["lines"] if line["metric"] == "pool_peak"), "shown")))
    one = said("largest_counts_of_exact_metrics", ["--baseline", path, runs[0], run_of("cow", writable=True), runs[2]], 1,
               "+1.00 GiB: ").json()
    parts = json.loads(read(baseline_of("largest.json", runs[0], run_of("cow3", writable=True))))["largest"]
    check("parts_of_a_baseline_are_the_largest_runs", facts(
        ("copies", parts.get("load_anonymous_copy_peak, file model.safetensors"), GIB)))
    row = next(line for line in one["lines"] if line["metric"] == "load_anonymous_copy_peak")
    check("spread_is_said", facts(("spread", (row["spread_low_bytes"], row["spread_high_bytes"]), (0, GIB))))
    said("runs_apart", ["--baseline", path, runs[0], run_of("apart", threads=2)], 3, "loader threads differs: 1 in", "2 in")
    said("named_thrice_is_one_run", ["--metric", "pool_peak=1TiB", runs[0], runs[0], runs[0]], 3, "there is 1")
    folder = in_folder("folder")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(runs[0], os.path.join(folder, "run.zst"))
    for name, operands in (("twice", [folder, folder]), ("file_as_well", [folder, runs[0]])):
        done = Check("--budget", "1TiB", *operands)
        check(f"folder_{name}", facts(("status", done.status, 2), ("says", "the same run" in done.err or done.err, True)))
    said("trace_as_baseline", ["--baseline", runs[0], run_of("cow2", writable=True)], 1, "+1.00 GiB: ", "model.safetensors",
         "0 bytes -> 1.00 GiB")


def main():
    for part in (not_comparable, versions, wrong_usage, the_file, update, limits, several_runs):
        part()


main()
