# SPDX-License-Identifier: Apache-2.0
"""What sparktrace records of device memory on a real GPU, against NVML's bytes of the process and PyTorch's own
statistics. See scripts/check-gpu.

A row is a program that runs twice, alone and recorded. It passes when both did the same, and when at each of its stops

    V of the trace, summed from its events up to the stop, is what PyTorch has reserved of the driver, and
    has risen since the first stop by what NVML says, up to the driver's granularity for each block.

The table goes to standard output and to $TABLE. ROWS=PATTERN takes some of the rows. With CUDA_LIBRARIES=FOLDER the
same rows run on libraries in that folder: the simulated stack, where the check itself is checked.
"""

import fnmatch
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ["BUILD"]
T = os.environ["T"]
PYTHON = os.environ["GPU_PYTHON"]
LIBRARIES = os.environ.get("CUDA_LIBRARIES", "")
PROGRAMS = os.path.join(ROOT, "tests", "gpu", "programs.py")
ANALYZE = os.path.join(BUILD, "sparktrace-analyze")
MIB = 1 << 20
GRANULARITY = 2 * MIB  # of the driver, for each block
TEXT = {"capture_output": True, "text": True, "check": False}

ROWS = os.environ.get("ROWS", "*")

table = []
failed = 0


def say(name, wrong="", note=""):
    global failed
    failed += bool(wrong)
    wrong = " ".join(str(wrong).split())[:400] if wrong else ""
    print(f"not ok {name} - {wrong}" if wrong else f"ok {name}", flush=True)
    table.append((name, wrong or note or "as it should be"))


def skip(name, reason):
    reason = " ".join(reason.split())
    print(f"skip {name} - {reason}", flush=True)
    table.append((name, "skipped: " + reason))


def environment(traced, settings):
    env = {key: value for key, value in os.environ.items() if not key.startswith("SPARKTRACE") and key != "LD_PRELOAD"}
    if LIBRARIES:
        env["LD_LIBRARY_PATH"] = LIBRARIES
    if traced:
        env.update(LD_PRELOAD=os.path.join(BUILD, "libsparktrace.so"), SPARKTRACE_OUTPUT=traced)
    env.update(settings)
    return env


def wanted(name):
    return fnmatch.fnmatch(name, ROWS)


class Run:
    """A program alone and recorded: `wrong`, the stops of the recorded one, the events of its trace."""

    def __init__(self, name, command, settings):
        self.trace = os.path.join(T, name + ".zst")
        plain = subprocess.run(command, env=environment(None, settings), **TEXT)
        done = subprocess.run(command, env=environment(self.trace, settings), **TEXT)
        self.stops, self.results = self.read(done.stdout)
        self.wrong = ""
        if plain.returncode:
            self.wrong = f"fails without sparktrace: status {plain.returncode}: {plain.stderr[-300:]}"
        elif (plain.returncode, self.read(plain.stdout)[1]) != (done.returncode, self.results):
            self.wrong = f"differs: {plain.stdout[-200:]} and {done.returncode} {done.stdout[-200:]} {done.stderr[-300:]}"
        self.events = [] if self.wrong else self.dump()

    @staticmethod
    def read(text):
        """The stops, and every other line."""
        stops = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return {stop.pop("stop"): stop for stop in stops}, [line for line in text.splitlines() if not line.startswith("{")]

    def dump(self):
        done = subprocess.run([ANALYZE, "dump", self.trace], **TEXT)
        if done.returncode or not done.stdout:
            self.wrong = f"no trace: {done.stderr[-300:]}"
        return [json.loads(line) for line in done.stdout.splitlines()]

    def report(self):
        return json.loads(subprocess.run([ANALYZE, "--json", self.trace], **TEXT).stdout)


def device_bytes(events, mark=None):
    """V up to a mark, or at its highest: (bytes, blocks), by sums that share nothing with the analyzer."""
    live, handles, mapped, highest = {}, {}, {}, 0
    for event in events:
        kind = event["event"]
        if kind == "mark" and event["text"] == mark:
            return sum(live.values()) + sum(handles.values()), len(live) + len(handles)
        if kind == "device_alloc" and not event["result"] and event["flags"] == "none" and event["how"] != "context":
            live[event["addr"]] = event["size"]
        elif kind == "device_free":
            live.pop(event["addr"], None)
        elif kind == "handle_create" and not event["result"]:
            handles[event["handle"]] = event["size"]
        elif kind == "handle_map":
            mapped[event["addr"]] = event["handle"]
        elif kind == "handle_unmap":
            at = int(event["addr"], 16)
            for addr in [a for a in mapped if at <= int(a, 16) < at + event["size"]]:
                handles.pop(mapped.pop(addr), None)
        elif kind == "handle_release" and event["handle"] not in mapped.values():
            handles.pop(event["handle"], None)
        highest = max(highest, sum(live.values()) + sum(handles.values()))
    return highest, 0


def compare(run, pool_keeps):
    """What differs at a stop, and the figures for the table."""
    lines, base = [], None
    for name, stop in run.stops.items():
        if "reserved" not in stop:
            continue
        ours, count = device_bytes(run.events, name)
        base = base or (ours, stop["nvml"])
        if ours != stop["reserved"] and not (pool_keeps and stop["allocated"] <= ours <= stop["reserved"]):
            return f"at {name} the trace has {ours}, PyTorch has reserved {stop['reserved']}", ""
        rise = None
        if stop["nvml"] is not None and base[1] is not None:
            rise = stop["nvml"] - base[1]
            if not pool_keeps and abs(rise - (ours - base[0])) > GRANULARITY * max(count, 1):
                return f"at {name} the trace rose by {ours - base[0]}, NVML by {rise}", ""
        told = "[N/A]" if rise is None else f"+{rise / MIB:.1f}"
        lines.append(f"{name}: trace {ours / MIB:.1f}, PyTorch {stop['reserved'] / MIB:.1f}, NVML {told} MiB")
    return "" if lines else "no stops", "; ".join(lines)


def programs(name, case, *arguments, pool_keeps=False, expect=None, **settings):
    if not wanted(name):
        return None
    run = Run(name, [PYTHON, PROGRAMS, case, *arguments], settings)
    wrong, note = (run.wrong, "") if run.wrong else compare(run, pool_keeps)
    if not wrong and expect:
        wrong, more = expect(run)
        note = "; ".join(filter(None, (note, more)))
    say(name, wrong, note)
    return run


def refusal(run):
    """The refused request is a failure in the report, and in no peak."""
    report = run.report()
    failures = report["failures"]
    highest = max(device_bytes(run.events, stop)[0] for stop in run.stops)
    if not failures:
        return "the report names no failed request", ""
    if report["peak"]["device_peak_bytes"] > highest + GRANULARITY:
        return f"device peak {report['peak']['device_peak_bytes']}, at no stop more than {highest}", ""
    return "", f"refused: {failures[0]['asked_bytes'] / MIB:.0f} MiB"


def load_expectation(path, version, relief):
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        payload = size - 8 - int.from_bytes(file.read(8), "little")

    def expect(run):
        copied = sum(e["size"] for e in run.events if e["event"] == "copy" and e["how"] == "h2d" and not e["result"])
        kernel = run.stops["anonymous"]
        anon = run.report()["peak"]["load"]["anonymous_copies"]
        if kernel["version"] != version:
            return f"safetensors {kernel['version']} was loaded, not {version}", ""
        if copied < payload:
            return f"{copied} bytes copied to the device, the file has {payload}", ""
        if relief and kernel["bytes"]:
            return f"relief left {kernel['bytes']} anonymous bytes in the mapping", ""
        if not anon["low_bytes"] - MIB <= kernel["bytes"] <= anon["high_bytes"] + MIB:
            return f"the kernel counts {kernel['bytes']} anonymous bytes in the mapping, the report {anon}", ""
        return "", f"weights {payload / MIB:.1f} MiB, anonymous in the mapping {kernel['bytes'] / MIB:.1f} MiB"

    return expect


def overlay(version):
    return {} if version is None else {"PYTHONPATH": os.path.join(ROOT, ".venv", "safetensors-" + version)}


def own_version():
    done = subprocess.run([PYTHON, "-c", "import safetensors; print(safetensors.__version__)"], **TEXT)
    return done.stdout.strip()


def loads(path):
    """By each version at hand, and the oldest once more with the mapping made read-only."""
    if subprocess.run([PYTHON, PROGRAMS, "make", path], env=environment(None, {}), **TEXT).returncode:
        return say("loads", "the checkpoint could not be made")
    digests = {}
    for version, folder in ((own_version(), None), ("0.7.0", "0.7"), ("0.5.3", "0.5")):
        for relief in ("", "readonly") if folder == "0.7" else ("",):
            name = f"load_safetensors_{version}" + ("_relief" if relief else "")
            if folder and not os.path.isdir(overlay(folder)["PYTHONPATH"]):
                skip(name, "this version is not installed (scripts/python-env)")
                continue
            run = programs(name, "load", path, expect=load_expectation(path, version, relief), SPARKTRACE_RELIEF=relief, **overlay(folder))
            if run:
                digests[name] = "".join(run.results)
    if not digests:
        return None
    return say("loads_are_identical", "" if len(set(digests.values())) == 1 and all(digests.values()) else digests)


def compiled(name, source, *libraries):
    """A C program of tests/, linked with the real driver; None where that cannot be done here."""
    include = next((p for p in ("/usr/local/cuda/include", os.path.join(ROOT, ".venv", "cuda-headers", "include"))
                    if os.path.exists(os.path.join(p, "cuda.h"))), None)
    if not include or not all(libraries):
        return None, "no CUDA headers" if not include else "no libcuda.so.1 or runtime to link with"
    out = os.path.join(T, name)
    done = subprocess.run(["gcc", "-O2", "-I", ROOT, "-I", include, "-o", out, os.path.join(ROOT, source), *libraries, "-ldl",
                           *("-Wl,-rpath," + os.path.dirname(library) for library in libraries)], **TEXT)
    return (out, "") if not done.returncode else (None, done.stderr[-200:])


def find_library(name, hint):
    """Where the dynamic linker, or the wheel beside PyTorch, has it."""
    if LIBRARIES:
        return os.path.join(LIBRARIES, name)
    listed = subprocess.run(["/sbin/ldconfig", "-p"], **TEXT).stdout.split("\n")
    found = [line.split("=> ")[1] for line in listed if line.strip().startswith(name + " ") and "=> " in line]
    return next((path for path in found + hint if os.path.exists(path)), None)


def site_packages():
    done = subprocess.run([PYTHON, "-c", "import torch, os; print(os.path.dirname(os.path.dirname(torch.__file__)))"], **TEXT)
    return done.stdout.strip()


def native(name, source, sizes, *libraries):
    """Its device peak in bytes, and its arguments."""
    if not wanted(name):
        return None
    program, reason = compiled(name, source, *libraries)
    if not program:
        return skip(name, reason)
    run = Run(name, [program, *map(str, sizes[1])], {})
    ours = device_bytes(run.events)[0]
    peak = None if run.wrong else run.report()["peak"]["device_peak_bytes"]
    wrong = run.wrong
    if not wrong and (ours, peak) != (sizes[0], sizes[0]):
        wrong = f"events say {ours}, the report {peak}, expected {sizes[0]}"
    return say(name, wrong, f"peak {sizes[0] / MIB:.0f} MiB")


def doors_program(name, driver, runtime):
    """Its output are addresses: only its status is compared."""
    if not wanted(name):
        return None
    program, reason = compiled(name, "tests/victim/doors.c", driver, runtime)
    if not program:
        return skip(name, reason)
    script = ["sh", "-c", '"$0" 64 >/dev/null && echo result done', program]
    run = Run(name, script, {})
    ours = device_bytes(run.events)[0]
    return say(name, run.wrong or ("" if ours == 320 * MIB else f"peak {ours}, expected {320 * MIB}"), "five doors, 320 MiB")


def integrated():
    code = "import torch; print(torch.cuda.get_device_properties(0).is_integrated)"
    return subprocess.run([PYTHON, "-c", code], env=environment(None, {}), **TEXT).stdout.strip() not in ("0", "False")


def main():
    driver = find_library("libcuda.so.1", ["/usr/local/nvidia/lib64/libcuda.so.1"])
    runtime = find_library("libcudart.so.13", [os.path.join(site_packages(), "nvidia", "cu13", "lib", "libcudart.so.13")])
    doors_program("doors", driver, runtime)
    native("vmm", "tests/door/segments.c", (224 * MIB, (64, 64, 32)), driver)
    programs("allocations", "allocations")
    programs("expandable_segments", "allocations", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    programs("stream_ordered", "allocations", pool_keeps=True, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    programs("pinned", "pinned")
    programs("refused", "refused", expect=refusal)
    if integrated():
        # Its handles would take all of the machine's memory before the driver refuses one.
        skip("refused_expandable", "the GPU shares the machine's memory")
    else:
        programs("refused_expandable", "refused", expect=refusal, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    loads(os.path.join(T, "model.safetensors"))
    text = "".join(f"{name:32} {what}\n" for name, what in table)
    with open(os.environ["TABLE"], "w", encoding="utf-8") as file:
        file.write(text)
    print(text, end="")
    sys.exit(1 if failed else 0)


main()
