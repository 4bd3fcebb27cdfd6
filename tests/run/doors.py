# SPDX-License-Identifier: Apache-2.0
"""Shows line 5: device memory through every door is counted once, and the program cannot tell.

Programs of tests/door run over small drivers of their own and over the simulated one, with and without the
shim: what they print must be the same, and the trace must hold what they did.

With RUN, an emulator and its arguments, the programs (built by $CC) and the shim run in it, and what needs neither
recorder nor simulated driver is tested: the rings are read, by $ANALYZE.
"""
import contextlib
import glob
import json
import os
import subprocess
import sys

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
T = os.path.abspath(os.environ["T"])
RUN = os.environ.get("RUN", "").split()
ANALYZE = os.environ.get("ANALYZE", BUILD + "/sparktrace-analyze")
SHIM = BUILD + "/libsparktrace.so"
SIMCUDA = BUILD + "/tests/simcuda/lib"
SOURCE = os.path.abspath("tests/door")
CC = os.environ.get("CC", "gcc").split()
CUDA = next((p for p in ("/usr/local/cuda/include", os.path.abspath(".venv/cuda-headers/include"))
             if os.path.exists(p + "/cudaTypedefs.h")), None)
TOOLKIT = "/usr/local/cuda/lib64"
MIB = 1 << 20

failed = 0


def result(name, why=""):
    global failed
    failed += bool(why)
    print("not ok %s - %s" % (name, why) if why else "ok %s" % name, flush=True)


def build(output, source, *options):
    path = os.path.join(T, output)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    subprocess.run(CC + ["-O2", "-Wall", "-Wextra", "-o", path, os.path.join(SOURCE, source), *options], check=True)
    return path


def library(output, source, *options):
    return build(output, source, "-shared", "-fPIC", "-fno-builtin", *options)


def environment(libraries, shim):
    """The variables of a program to be tested."""
    env = {"LD_LIBRARY_PATH": libraries}
    if shim:
        env.update(LD_PRELOAD=SHIM, SPARKTRACE_OUTPUT=T + "/trace.zst", SPARKTRACE_RING_DIR=T + "/ring")
    if RUN:
        env["SPARKTRACE_QUIET"] = "1"  # there is no recorder
    return env


def run(command, libraries="", shim=False):
    """Standard output, standard error and status; the trace lies in $T."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("SPARKTRACE") and k != "LD_PRELOAD"}
    if RUN:
        command = RUN + [w for k, v in environment(libraries, shim).items() for w in ("-E", k + "=" + v)] + command
    else:
        env.update(environment(libraries, shim))
    done = subprocess.run(command, env=env, cwd=T, capture_output=True, text=True)
    return done.stdout, done.stderr, done.returncode


def forget():
    """Away with traces and rings of the last run."""
    os.makedirs(T + "/ring", exist_ok=True)
    for path in glob.glob(T + "/trace*.zst") + glob.glob(T + "/ring/*"):
        with contextlib.suppress(FileNotFoundError):  # the last run's recorder takes its ring away as well
            os.unlink(path)


def dump():
    """The events of the last run, none where it left no trace."""
    for path in glob.glob(T + "/ring/*") if RUN else glob.glob(T + "/trace.zst"):
        out = subprocess.run([ANALYZE, "dump", path], capture_output=True, text=True)
        return [json.loads(line) for line in out.stdout.splitlines()]
    return []


def traced(name, command, libraries=""):
    """Runs it twice and compares; returns the events of the traced run, or None when that already failed."""
    forget()
    plain = run(command, libraries)
    with_us = run(command, libraries, shim=True)
    if plain[0] != with_us[0] or plain[2] != with_us[2]:
        result(name, "status %d and %d, output\n%s\nand\n%s" % (plain[2], with_us[2], plain[0], with_us[0] + with_us[1]))
        return None
    if plain[2] or not plain[0]:
        result(name, "status %d without us: %s" % (plain[2], plain[1]))
        return None
    return dump()


def allocations(events, **fields):
    """Sizes of the device allocations that count: successful, and not inside another call."""
    return [e["size"] for e in events if e["event"] == "device_alloc" and e["result"] == 0 and e["flags"] == "none"
            and all(e[k] == v for k, v in fields.items())]


def coverage(events, text):
    return [e for e in events if e["event"] == "coverage" and text in e["text"]]


def seen(name, events, sizes, more=""):
    if events is not None:
        got = allocations(events)
        result(name, more or ("" if got == sizes else "allocations %s, expected %s" % (got, sizes)))


def drivers():
    soname = ["-Wl,-Bsymbolic,-soname,libcuda.so.1", "-ldl"]
    for kind, option in (("plain", []), ("hidden", ["-DHIDDEN"]), ("nested", ["-DNESTED"]), ("old", ["-DRESOLVER=0"])):
        library(kind + "/libcuda.so.1", "driver.c", *option, *soname)
    library("libcuda-3f2a.so", "driver.c", "-Wl,-Bsymbolic,-soname,libcuda-3f2a.so", "-ldl")


def weights():
    """A small file of weights."""
    path = T + "/model.safetensors"
    head = json.dumps({"w": {"dtype": "U8", "shape": [4096], "data_offsets": [0, 4096]}}).encode()
    with open(path, "wb") as f:
        f.write(len(head).to_bytes(8, "little") + head + bytes(4096))
    return path


def test_lookup():
    """dlsym and dlvsym answer as ever: handles, RTLD_NEXT from a second library, RTLD_DEFAULT, errors."""
    library("libnext.so", "next.c", "-Wl,--no-as-needed", "-lm", "-ldl")
    lookup = build("lookup", "lookup.c", "-L" + T, "-lnext", "-lm", "-ldl")
    events = traced("dlsym_answers_as_ever", [lookup], T)
    if events is not None:
        result("dlsym_answers_as_ever", "a program without driver left a trace" if events else "")


def test_plugins():
    """Linked, opening or trampoline plugins, in every scope; a driver without a resolver."""
    host = build("host", "host.c", "-ldl")
    library("linked.so", "plugin.c", "-DLINKED", "-Wl,--no-as-needed", T + "/plain/libcuda.so.1")
    library("trampoline.so", "plugin.c", "-DTRAMPOLINE", "-ldl")
    library("opens.so", "plugin.c", "-ldl")
    for plugin in ("linked", "trampoline", "opens"):
        for scope in ("local", "global"):
            name = "plugin_%s_%s" % (plugin, scope)
            events = traced(name, [host, T + "/%s.so" % plugin, scope], T + "/plain")
            seen(name, events, [MIB, MIB])
        name = "plugin_%s_deepbind_runs" % plugin
        events = traced(name, [host, T + "/%s.so" % plugin, "deepbind"], T + "/plain")
        if events is not None:
            result(name)
    events = traced("bypass_is_reported", [host, T + "/opens.so", "deepbind", "-", weights()], T + "/plain")
    if events is not None:
        result("bypass_is_reported", "" if coverage(events, "RTLD_DEEPBIND") else "no coverage record")
    events = traced("driver_without_resolver", [host, T + "/opens.so", "local"], T + "/old")
    seen("driver_without_resolver", events, [MIB, MIB])
    events = traced("second_driver_is_reported", [host, T + "/opens.so", "local", T + "/libcuda-3f2a.so"], T + "/plain")
    if events is not None:
        seen("second_driver_is_reported", events, [MIB, MIB],
             "" if coverage(events, "libcuda-3f2a.so") else "no coverage record")


def test_resolver():
    resolve = build("resolve", "resolve.c", "-ldl")
    for kind in ("plain", "hidden"):
        events = traced("resolver_" + kind, [resolve], T + "/" + kind)
        seen("resolver_" + kind, events, [MIB, 2 * MIB])
    events = traced("resolver_nested", [resolve], T + "/nested")
    seen("resolver_nested", events, [MIB, 2 * MIB])
    if events is not None:
        nested = [e for e in events if e["event"] == "device_alloc" and e["flags"] == "nested"]
        result("nested_call_is_marked", "" if len(nested) == 1 else "%d marked" % len(nested))


def test_five_doors():
    """Five blocks of 256 MiB held together: 1280 MiB at the peak, each once."""
    events = traced_values("five_doors", [BUILD + "/tests/victim/doors"])
    if events is None:
        return
    held = peak = 0
    live = {}
    for e in events:
        if e["event"] == "device_alloc" and e["result"] == 0 and e["flags"] == "none":
            live[e["addr"]] = e["size"]
        elif e["event"] == "device_free":
            live.pop(e["addr"], None)
        held = sum(live.values())
        peak = max(peak, held)
    result("five_doors", "" if (peak, held) == (1280 * MIB, 0) else "peak %d MiB, %d left" % (peak // MIB, held))
    result("five_doors_in_the_report", "" if device_peak() == 1280 * MIB else "device peak %s" % device_peak())


def device_peak():
    report = subprocess.run([ANALYZE, "--json", T + "/trace.zst"], capture_output=True, text=True).stdout
    return json.loads(report)["peak"]["device_peak_bytes"] if report else None


def test_refused_request():
    """Handles of a request that was refused half-way, twice, are not the peak; what came after it is."""
    if not CUDA:
        print("skip refused_request - no CUDA headers")
        return
    segments = build("segments", "segments.c", "-I" + CUDA, SIMCUDA + "/libcuda.so.1")
    os.environ["SIMCUDA_LIMIT"] = str(128 * MIB)
    events = traced("refused_request", [segments, "64", "96", "32"], SIMCUDA)
    del os.environ["SIMCUDA_LIMIT"]
    if events is None:
        return
    refused = [e for e in events if e["event"] == "handle_create" and e["result"] == 2]
    peak = device_peak()
    result("refused_request", "" if (len(refused), peak) == (2, 96 * MIB)
           else "%d refused, peak %s bytes" % (len(refused), peak))


def traced_values(name, command):
    """As traced(), for a program that prints addresses: only the status is compared."""
    forget()
    out, error, status = run(command, shim=True)
    if status:
        result(name, "status %d: %s" % (status, error))
        return None
    return dump()


# What entries.c does, as the trace must tell it; addresses are compared where two records mean the same thing.
ENTRIES = [
    ("context", dict(alive=1, device=0)),
    ("device_alloc", dict(how="plain", size=4 * MIB)),
    ("device_alloc", dict(how="plain", size=4 * MIB)),
    ("device_alloc", dict(how="pitched", asked=10000)),
    ("device_alloc", dict(how="managed", size=3 * MIB)),
    ("enter", dict(call="device_alloc", size=1 << 50)),
    ("device_alloc", dict(result=2, addr="0x0", size=1 << 50)),
    ("moment", dict(what="failed_allocation")),
    ("pinned_alloc", dict(size=MIB, attributes=1)),
    ("pinned_alloc", dict(size=2 * MIB, attributes=0)),
    ("register", dict(size=2 * MIB)),
    ("get_info", {}),
    ("get_info", {}),
    ("unregister", {}),
    ("pinned_free", {}),
    ("pinned_free", {}),
    ("device_free", {}),
    ("device_free", {}),
    ("device_free", {}),
    ("revoke", {}),
    ("pool_state", {}),
    ("pool_state", dict(threshold="0xfffffffffffffffe")),
    ("pool_create", dict(location="device")),
    ("pool_state", {}),
    ("device_alloc", dict(how="async", size=MIB)),
    ("device_alloc", dict(how="async", size=2 * MIB, stream="0x2")),
    ("device_alloc", dict(how="pool", size=3 * MIB)),
    ("device_free", dict(how="async")),
    ("device_free", dict(how="async", stream="0x2")),
    ("device_free", dict(how="plain")),
    ("pool_state", {}),
    ("pool_state", dict(reserved=0)),
    ("pool_destroy", {}),
    ("reserve", dict(size=8 * MIB)),
    ("handle_create", dict(size=2 * MIB, location="device", device=0)),
    ("handle_map", dict(size=2 * MIB)),
    ("handle_retain", {}),
    ("handle_release", {}),
    ("handle_release", {}),
    ("handle_unmap", dict(size=2 * MIB)),
    ("unreserve", dict(size=8 * MIB)),
    ("enter", dict(call="handle_create", size=1 << 50)),
    ("handle_create", dict(result=2, handle="0x0")),
    ("moment", dict(what="failed_allocation")),
    ("device_alloc", dict(how="array", size=65536)),
    ("device_free", dict(how="array")),
    ("copy", {"size": 10, "how": "h2d", "async": 0, "stream": "0x0"}),
    ("copy", {"size": 11, "how": "h2d", "async": 0, "stream": "0x2"}),
    ("copy", {"size": 12, "how": "h2d", "async": 1}),
    ("copy", {"size": 13, "how": "h2d", "async": 1, "stream": "0x2"}),
    ("copy", {"size": 14, "how": "d2h", "async": 0}),
    ("copy", {"size": 15, "how": "d2h", "async": 1}),
    ("copy", {"size": 16, "how": "d2d"}),
    ("copy", {"size": 17, "how": "d2d"}),
    ("copy", {"size": 18, "how": "unified", "async": 0}),
    ("copy", {"size": 19, "how": "unified", "async": 1}),
    ("copy", {"size": 200, "how": "h2d", "async": 0}),
    ("copy", {"size": 200, "how": "h2d", "async": 1}),
    ("copy", {"size": 256, "how": "d2h", "async": 0}),
    ("copy", {"size": 20, "how": "unified", "async": 1}),
    ("copy", {"size": 21, "how": "unified", "async": 1}),
    ("memset", dict(size=30)),
    ("memset", dict(size=62)),
    ("memset", dict(size=128)),
    ("memset", dict(size=33)),
    ("memset", dict(size=136, stream="0x2")),
    ("memset", dict(size=50)),
    ("sync", dict(how="wait_event")),
    ("sync", dict(how="event")),
    ("sync", dict(how="stream")),
    ("sync", dict(how="stream", handle="0x2")),
    ("sync", dict(how="context")),
    ("context", dict(alive=0, device=0)),
]


def find_difference(events):
    device = [e for e in events if e["event"] in {kind for kind, _ in ENTRIES}]
    for i, (kind, fields) in enumerate(ENTRIES):
        if i >= len(device):
            return "%s is missing (number %d)" % (kind, i)
        got = device[i]
        if got["event"] != kind or any(got[k] != v for k, v in fields.items()):
            return "number %d is %s, expected %s %s" % (i, got, kind, fields)
    return "" if len(device) == len(ENTRIES) else "%d events too many" % (len(device) - len(ENTRIES))


def test_entries():
    if not CUDA:
        print("skip entries - no CUDA headers")
        return
    entries = build("entries", "entries.c", "-I" + CUDA, SIMCUDA + "/libcuda.so.1")
    events = traced("entries", [entries], SIMCUDA)
    if events is None:
        return
    result("entries", find_difference(events))
    frames = {e["id"]: e["words"] for e in events if e["event"] == "stack"}
    unknown = [e for e in events if e["event"] in ("device_alloc", "copy") and not frames.get(e["stack"])]
    result("entries_have_stacks", "%d events without" % len(unknown) if unknown else "")


def test_toolkit():
    """The real runtime, dynamic and static: it binds to our wrappers only, and the program sees no difference."""
    kinds = (("dynamic", ["-L" + TOOLKIT, "-l:libcudart.so.13", "-Wl,-rpath," + TOOLKIT], TOOLKIT + "/libcudart.so.13"),
             ("static", [TOOLKIT + "/libcudart_static.a", "-ldl", "-lrt", "-lpthread"], TOOLKIT + "/libcudart_static.a"))
    alone = T + "/driver-alone"  # without the simulated runtime
    os.makedirs(alone, exist_ok=True)
    os.symlink(SIMCUDA + "/libcuda.so.1", alone + "/libcuda.so.1")
    for kind, options, needed in kinds:
        name = "toolkit_runtime_" + kind
        if not CUDA or not os.path.exists(needed):
            print("skip %s - no %s" % (name, needed))
            continue
        program = build(kind, "runtime.c", "-I" + CUDA, *options)
        if traced(name, [program], alone) is None:
            continue
        error = run([program], alone, shim=True)[1]
        words = [line.split() for line in error.splitlines() if line.startswith("bare")]
        right = words and words[0][1] == "0" and int(words[0][3]) > 100
        result(name, "" if right else "its pointers: %s" % error)


def test_cublas():
    """Its constructor asks dlsym before ours ran, and it carries a runtime of its own."""
    if not os.path.exists(TOOLKIT + "/libcublas.so.13"):
        print("skip toolkit_cublas - no %s/libcublas.so.13" % TOOLKIT)
        return
    program = build("cublas", "cublas.c", "-L" + TOOLKIT, "-l:libcublas.so.13", "-l:libcublasLt.so.13",
                    "-Wl,-rpath," + TOOLKIT + ",--allow-shlib-undefined")
    if traced("toolkit_cublas", [program], T + "/driver-alone") is not None:
        result("toolkit_cublas")


drivers()
test_lookup()
test_plugins()
test_resolver()
if RUN:
    sys.exit(1 if failed else 0)
test_five_doors()
test_refused_request()
test_entries()
test_toolkit()
test_cublas()
sys.exit(1 if failed else 0)
