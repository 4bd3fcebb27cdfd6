# SPDX-License-Identifier: Apache-2.0
"""See relief.sh. With an argument it is the program of that case."""

import json
import os
import re
import subprocess
import sys
import time

MIB = 1 << 20
SHARDS = 4
SHARD = 64 * MIB


# ---- programs -------------------------------------------------------------------------------------------------------


def map_privately(path):
    import mmap

    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


def case_faulthandler(when):
    """CPython's own handler, before or after the weights are mapped; then a real crash, which it reports."""
    import faulthandler

    weights = map_privately(os.environ["WEIGHTS"]) if when == "after" else None
    faulthandler.enable()
    weights = weights or map_privately(os.environ["WEIGHTS"])
    for at in range(0, len(weights), 100000):
        weights[at] = (weights[at] + 1) % 256
    print(sum(weights[::100000]), flush=True)
    faulthandler._sigsegv()


def case_blocking(_):
    """A Python program that blocks all signals, and starts others meanwhile."""
    import signal

    weights = map_privately(os.environ["WEIGHTS"])
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    weights[5000] = 7
    script = "import signal; print(sorted(int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, [])))"
    subprocess.run([sys.executable, "-c", script], check=True)
    print(sorted(int(number) for number in signal.pthread_sigmask(signal.SIG_SETMASK, before)))
    print(weights[5000], sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))


def digest(tensors):
    import hashlib

    import torch

    total = hashlib.sha256()
    for name in sorted(tensors):
        total.update(bytes(tensors[name].cpu().contiguous().view(torch.uint8).flatten().numpy()))
    return total.hexdigest()[:16]


def paths():
    return os.environ["WEIGHTS"].split(":")


def case_load_file(_):
    """To the device, file by file."""
    import torch
    from safetensors.torch import load_file

    tensors = {}
    for path in paths():
        tensors.update({f"{path[-12:]}.{name}": tensor for name, tensor in load_file(path, device="cuda").items()})
    torch.cuda.synchronize()
    print(len(tensors), digest(tensors))


def case_keep_mapped(_):
    """As transformers does: all shards stay mapped to the end, every tensor is copied straight out of its mapping."""
    import torch
    from safetensors import safe_open

    files = [safe_open(path, framework="pt") for path in paths()]
    tensors = {}
    for number, file in enumerate(files):
        for name in file.keys():
            tensors[f"{number}.{name}"] = file.get_tensor(name).to("cuda")
    torch.cuda.synchronize()
    print(len(tensors), digest(tensors))
    del files


def case_in_place(_):
    """A model on the CPU that is its mapping, changed in place from several threads, partly copied before that."""
    import torch
    from safetensors.torch import load_file

    torch.set_num_threads(4)
    tensors = load_file(paths()[0])
    first = sorted(tensors)[0]
    before = tensors[first].to("cuda")
    for tensor in tensors.values():
        tensor.view(torch.uint8).bitwise_xor_(0x5A)
    print(digest(tensors), digest({"before": before}), digest({"after": tensors[first].to("cuda")}))
    tensors[first].copy_(before)
    print(digest(tensors))


def case_torch_mmap(_):
    import torch

    tensors = torch.load(paths()[0], mmap=True, map_location="cuda", weights_only=True)
    print(len(tensors), digest(tensors))


def case_torch_read(_):
    import torch

    for path in paths():
        tensors = torch.load(path, map_location="cuda", weights_only=True)
        print(len(tensors), digest(tensors), flush=True)


def case_torch_save(_):
    import torch

    for path in paths():
        torch.manual_seed(len(path))
        torch.save({str(i): torch.randint(0, 256, (SHARD // 4,), dtype=torch.uint8) for i in range(4)}, path)


# ---- the test -------------------------------------------------------------------------------------------------------


def program(name, when, path, **settings):
    from simledger import LIB, PYTHON

    env = {"WEIGHTS": path, "LD_LIBRARY_PATH": LIB, **settings}
    return outcome([PYTHON if os.path.exists(PYTHON) else sys.executable, os.path.abspath(__file__), name, when], **env)


def outcome(command, **settings):
    """How it ended and what it said, addresses left out."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("SIMCUDA_", "SPARKTRACE"))}
    done = subprocess.run(
        [str(word) for word in command], env={**env, **settings}, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False, timeout=120,
    )
    return done.returncode, done.stdout, re.sub(r"0x[0-9a-f]+", "0x", done.stderr)


def records(folder):
    """All `relief` records of all traces in a folder. A program that was killed did not wait for its recorder, which goes
    on until the memory is back, 10 s at most."""
    from e2e import ANALYZE

    for _ in range(300):
        found, over = [], bool(os.listdir(folder))
        for name in sorted(os.listdir(folder)):
            done = subprocess.run([ANALYZE, "dump", os.path.join(folder, name)], capture_output=True, text=True, check=False)
            found += [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"event":"relief"')]
            over = over and '{"event":"trailer"' in done.stdout
        if over:
            break
        time.sleep(0.05)
    return found


count = 0


def relieved(run, **more):
    """The same under the shim with relief: what `run(**settings)` gives, and the relief records."""
    global count
    from e2e import SHIM
    from simledger import FOLDER

    count += 1
    folder = os.path.join(FOLDER, f"relief-{count}")
    os.mkdir(folder)
    settings = {"LD_PRELOAD": SHIM, "SPARKTRACE_RELIEF": "readonly", "SPARKTRACE_OUTPUT": folder + "/", **more}
    return run(**settings), records(folder)


def same(name, run, mappings):
    """As without; and relief was at work, or the comparison proves nothing. Returns its records."""
    from e2e import facts
    from simledger import check

    plain = run()
    seen, found = relieved(run)
    whats = [record["what"] for record in found]
    check(name, facts(("as without", seen, plain), ("given up", whats.count("off"), 0)))
    check(name + "_relieved", facts(
        ("mappings", whats.count("readonly") >= mappings, True), ("stores", "written" in whats, True),
    ))
    return found


def signals(path):
    from simledger import victim

    for program_name in ("relief_signals", "relief_around"):
        names = subprocess.run([victim(program_name)], capture_output=True, text=True, check=True).stdout.split()
        for case in names:
            for when in ("before", "after"):
                command = [victim(program_name), path, when, case]
                same(f"signals_{case}_{when}", lambda **settings: outcome(command, **settings), 2)


def writes(path, other):
    """Every way into a mapping; what the driver would write is made writable before the call, page by page."""
    from e2e import facts
    from simledger import PAGE, check, victim

    command = [victim("relief_writes"), path, other]
    found = same("writes", lambda **settings: outcome(command, **settings), 10)
    sizes = {(record["offset"], record["size"]) for record in found if record["what"] == "written"}
    pages = lambda at, size: (at // PAGE * PAGE, (at + size + PAGE - 1) // PAGE * PAGE - at // PAGE * PAGE)
    wanted = {
        "cuMemcpyDtoH": pages(11, 9000), "cuMemcpyDtoHAsync": pages(150000, 90000), "cuMemcpy": pages(400000, 77777),
        "cuMemcpyAsync": pages(600000, 7), "cuMemcpy2D": pages(1000000, 10 * 100000),
        "cuMemHostRegister": pages(2 * MIB, MIB), "read": pages(12345, 40000), "recv": pages(4095, 1000),
    }
    check("writes_of_others", facts(*((name, part in sizes, True) for name, part in wanted.items())))
    files = {record["file"] for record in found if record["what"] == "readonly"}
    check("writes_only_weights", facts(("files relieved", len(files), 1)))


def python(path):
    for when in ("before", "after"):
        same(f"faulthandler_{when}", lambda **settings: program("faulthandler", when, path, **settings), 1)
    same("blocking", lambda **settings: program("blocking", "", path, **settings), 1)


def off(path):
    """Where a store might be refused, nothing is relieved, and the trace says why."""
    from e2e import facts
    from simledger import check, victim

    command = ["sh", "-c", 'ulimit -d 1000000 && exec "$@"', "sh", victim("relief_signals"), path, "after", "own_pages"]
    run = lambda **settings: outcome(command, **settings)
    plain = run()
    seen, found = relieved(run)
    check("off", facts(
        ("as without", seen, plain), ("records", [(record["what"], record["result"]) for record in found], [("off", 12)]),
    ))


def traced(name, case, files, relief, **settings):
    from e2e import Traced, cached
    from simledger import PYTHON

    cached(files, warm=False)
    return Traced(
        f"{name}_{relief.replace(',', '_')}", PYTHON, os.path.abspath(__file__), case, "", files=files,
        WEIGHTS=":".join(files), SPARKTRACE_RELIEF=relief, **settings,
    )


plains = {}


def unrelieved(case, files, **settings):
    """The same without relief, once for all that compare with it."""
    key = (case, *files, *settings)
    if key not in plains:
        plains[key] = traced(f"plain_{len(plains)}", case, files, "off", **settings)
    return plains[key]


def no_copies(name, case, files, written=False, **settings):
    """On GB10 the driver copies what it reads out of a private writable mapping; out of a relieved one it does not."""
    from e2e import between, exactly, facts
    from simledger import check

    plain, run = unrelieved(case, files, **settings), traced(name, case, files, "readonly", **settings)
    r, before = run.report(), plain.report()
    size = sum(map(os.path.getsize, files))
    check(name, (plain.rc or run.rc) and (run.out, run.err[-200:]) or facts(
        ("as without", run.out, plain.out), ("copied twice without", *between(size // 8, plain.last()["broken"], size + MIB)),
        *(() if written else (
            ("A, ledger", run.last()["broken"], 0), ("A", r["peak.load.anonymous_copies"], exactly(0)),
            ("A, outside", run.outside.highest("anon_files"), 0),
        )),
        ("said", r["relief.mapped_bytes"] >= size, True), ("written", r["relief.written_bytes"] > 0, written),
        ("text", "sparktrace changed the program (SPARKTRACE_RELIEF=readonly)" in run.report().text(), True),
        ("not said without", (before["relief.on"], before["relief.mapped_bytes"]), (False, 0)),
    ))


def drops(name, case, files, relief="drop", **settings):
    """Never more of the files in the page cache than one of them, as a second process sees it every 10 ms."""
    from e2e import between, facts
    from simledger import check

    plain, run = unrelieved(case, files, **settings), traced("drop_" + name, case, files, relief, **settings)
    r, size = run.report(), sum(map(os.path.getsize, files))
    check("drop_" + name, (plain.rc or run.rc) and (run.out, run.err[-200:]) or facts(
        ("as without", run.out, plain.out),
        ("cached without", *between(size * 9 // 10, plain.outside.highest("cached"), size + MIB)),
        ("cached", *between(0, run.outside.highest("cached"), max(map(os.path.getsize, files)) + MIB)),
        ("A, ledger", run.last()["broken"] == 0 or relief == "drop", True),
        ("dropped", r["relief.dropped_bytes"] >= size * 9 // 10, True),
        ("text", "of page cache given back" in run.report().text(), True),
    ))


def main():
    from e2e import enter_own_world
    from simledger import FOLDER, OLD_SAFETENSORS, PYTHON, finish, weights

    enter_own_world()
    path, other = weights("small.safetensors", 8, 8), os.path.join(FOLDER, "other.data")
    with open(other, "wb") as file:
        file.write(bytes(i * 7 % 251 for i in range(MIB)) * 9)
    signals(path)
    writes(path, other)
    python(path)
    off(path)
    if not os.path.exists(PYTHON):
        print("skip relief_torch - there is no .venv; scripts/python-env makes it")
        finish()
    old = {"PYTHONPATH": OLD_SAFETENSORS}
    shards = [weights(f"model-{number:05}-of-{SHARDS:05}.safetensors", 8, SHARD // MIB) for number in range(1, SHARDS + 1)]
    no_copies("load_file", "load_file", shards, **old)
    no_copies("in_place", "in_place", shards[:1], written=True, **old)
    drops("load_file_0.7", "load_file", shards, relief="readonly,drop", **old)
    drops("keep_mapped", "keep_mapped", shards, relief="readonly,drop", **old)
    drops("load_file_0.8", "load_file", shards)
    for shard in shards:
        os.remove(shard)
    saved = [os.path.join(FOLDER, f"{number}.pt") for number in range(SHARDS)]
    program("torch_save", "", ":".join(saved))
    no_copies("torch_mmap", "torch_mmap", saved[:1])
    drops("torch_mmap", "torch_mmap", saved[:1], relief="readonly,drop")
    drops("torch_read", "torch_read", saved)
    finish()


if len(sys.argv) > 1:
    globals()["case_" + sys.argv[1]](sys.argv[2])
else:
    main()
