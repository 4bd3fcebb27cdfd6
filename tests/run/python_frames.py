#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python frames of stacks against what Python itself says there, and the distributions that own the files against
importlib.metadata.

PYTHONS: commands of further interpreters to try, separated by ':' (each takes a script and its arguments)."""
import glob
import json
import os
import subprocess
import sys

from simledger import wait_for_recorder

WORK, BUILD = os.environ["T"], os.environ["BUILD"]
ANALYZE, SHIM = BUILD + "/sparktrace-analyze", BUILD + "/libsparktrace.so"
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VICTIM = TESTS + "/victim/python_stacks.py"
WEIGHTS = WORK + "/model.safetensors"
MIB = 1 << 20
DEPTH = 64  # Python frames of a stack at most
PYTHON = subprocess.run([sys.executable, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=True).stdout.strip()


def check(name, *facts):
    """A fact is (what, seen, expected)."""
    wrong = [f"{what}: {seen!r}, expected {expected!r}"[:600] for what, seen, expected in facts if seen != expected]
    print(f"not ok {name} - {'; '.join(wrong[:3])}" if wrong else f"ok {name}", flush=True)


def dump(path):
    done = subprocess.run([ANALYZE, "dump", path], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def whole(path):
    """The records of a trace whose recorder is done: it may still be looking for who owns the files."""
    wait_for_recorder(dump(path)[0]["ring"])
    return dump(path)


class Run:
    """A traced run in a folder of its own."""

    def __init__(self, name, *command, **settings):
        self.folder = f"{WORK}/{name}"
        os.makedirs(self.folder)
        env = {key: value for key, value in os.environ.items() if not key.startswith("SPARKTRACE")}
        env.update(LD_PRELOAD=SHIM, SPARKTRACE_RING_SIZE="16MiB", **settings)
        done = subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False)
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.records = {}
        for path in sorted(glob.glob(self.folder + "/*.zst")):
            records = whole(path)
            self.records[next(r["pid"] for r in records if r["event"] == "process")] = records

    def all(self, event, pid=None):
        return [r for key, records in self.records.items() if pid in (None, key) for r in records if r["event"] == event]

    def said(self):
        """What the program says of its loads: (pid, size, frames), innermost first."""
        return [(line["pid"], line["size"], [tuple(frame) for frame in line["stack"]]) for line in map(json.loads, self.out.splitlines())]

    def frames(self, pid, size):
        """What the trace says of the load of that size: frames, and whether they were cut."""
        code = {r["id"]: r["text"].partition(" ")[::2] for r in self.all("code", pid)}
        stack = {r["id"]: r for r in self.all("frames", pid)}
        use = [r for r in self.all("map", pid) + self.all("alloc", pid) if r["size"] == size]
        if len(use) != 1:
            return f"{len(use)} records of {size} bytes", None
        found = stack.get(use[0]["stack"])
        if not found:
            return [], False
        words = [int(str(word), 0) for word in found["words"]]
        return [(*code.get(word >> 32, ("?", "?")), word & 0xFFFFFFFF) for word in words], found["flags"] == "cut"


def same_frames(name, run, least):
    said = run.said()
    check(name, ("exit status", (run.status, run.err), (0, "")), ("loads", len(said) >= least, True),
          *((f"load of {size} in {pid}", run.frames(pid, size), (frames[:DEPTH], len(frames) > DEPTH)) for pid, size, frames in said),
          ("coverage", [r["text"] for r in run.all("coverage") if "Python" in r["text"]], []))


def interpreters():
    """One with a shared libpython and one without are two cases, where the machine has both."""
    system = "/usr/bin/python3"
    others = os.environ.get("PYTHONS", "").split(":")
    if os.path.exists(system) and not os.path.samefile(system, PYTHON):
        others.append(system)
    return [PYTHON, PYTHON + " -X dev", *filter(None, others)]


def of_versions():
    for number, command in enumerate(interpreters()):
        run = Run(f"frames_{number}", *command.split(), VICTIM, WEIGHTS)
        same_frames(f"frames_{number} ({command})", run, 60)
        version = subprocess.run([*command.split(), "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"],
                                 capture_output=True, text=True, check=False).stdout.strip()
        infos = {r["text"] for r in run.all("info") if r["text"].startswith("python=")}
        check(f"version_{number}", ("info", infos, {"python=" + version}))


def of_one_definition():
    run = Run("once", PYTHON, VICTIM, WEIGHTS)
    for kind in "code", "frames":
        twice = [pid for pid in run.records if len(ids := [r["id"] for r in run.all(kind, pid)]) != len(set(ids))]
        check(f"{kind}_defined_once", ("processes with one defined twice", twice, []))


def of_stress():
    same_frames("threads_come_and_go", Run("stress", PYTHON, VICTIM, WEIGHTS, "stress"), 160)


def of_off():
    run = Run("off", PYTHON, VICTIM, WEIGHTS, SPARKTRACE_PYTHON_STACKS="off")
    check("off", ("exit status", run.status, 0), ("stacks", bool(run.all("stack")), True),
          ("code", run.all("code"), []), ("frames", run.all("frames"), []))


SECCOMP = """
import ctypes, runpy, struct, sys
number = int(sys.argv[1])
def op(code, k, true=0, false=0): return struct.pack("HBBI", code, true, false, k)
program = op(0x20, 0) + op(0x15, number, 0, 1) + op(0x06, 0x00050001) + op(0x06, 0x7fff0000)
buffer = ctypes.create_string_buffer(program)
class Filter(ctypes.Structure): _fields_ = [("length", ctypes.c_ushort), ("at", ctypes.c_void_p)]
libc = ctypes.CDLL(None)
assert not libc.prctl(38, 1, 0, 0, 0) and not libc.prctl(22, 2, ctypes.byref(Filter(4, ctypes.addressof(buffer))), 0, 0)
"""


def of_refusal():
    number = {"x86_64": 310, "aarch64": 270}[os.uname().machine]
    script = WORK + "/refused.py"
    with open(script, "w", encoding="utf-8") as file:
        file.write(SECCOMP + f"sys.argv = [{VICTIM!r}, {WEIGHTS!r}]\nrunpy.run_path({VICTIM!r}, run_name='__main__')\n")
    run = Run("refused", PYTHON, script, str(number))
    said = {r["text"] for r in run.all("coverage") if "Python" in r["text"]}
    check("kernel_refuses", ("exit status", (run.status, run.err), (0, "")), ("loads", len(run.said()) > 60, True),
          ("frames", run.all("frames"), []), ("coverage", said, {"no Python frames: the kernel refuses process_vm_readv"}))


def of_no_python():
    run = Run("c", BUILD + "/tests/victim/map_only", WEIGHTS, "1")
    check("no_python", ("stacks", bool(run.all("stack")), True), ("frames", run.all("frames") + run.all("code"), []),
          ("coverage", [r for r in run.all("coverage") if "Python" in r["text"]], []),
          ("version", [r for r in run.all("info") if r["text"].startswith("python=")], []))


def install(site, name, version, files):
    """A distribution as pip leaves it."""
    info = f"{name}-{version}.dist-info"
    files = dict(files, **{f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: nobody\n"})
    record = "".join(f"{path},sha256=x,{len(text)}\n" for path, text in files.items()) + f"../../bin/{name},,\n{info}/RECORD,,\n"
    for path, text in dict(files, **{f"{info}/RECORD": record}).items():
        os.makedirs(os.path.dirname(f"{site}/{path}"), exist_ok=True)
        with open(f"{site}/{path}", "w", encoding="utf-8") as file:
            file.write(text)


LOAD = "import mmap\n\ndef load(file, size):\n    return mmap.mmap(file.fileno(), size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)\n"


def of_packages():
    site = WORK + "/some place/site"  # as pip install --target makes one
    install(site, "Toy_Loader", "1.2.3", {"toy/__init__.py": "", "toy/deep/load.py": LOAD})
    install(site, "single", "7", {"single_file.py": LOAD})
    install(site, "ns-one", "0.1", {"shared/one/load.py": LOAD})
    install(site, "ns-two", "0.2+cpu", {"shared/two/load.py": LOAD})
    install(site, "other", "9", {"other/__init__.py": ""})
    for part, text in ("own/load.py", LOAD), ("toy/deep/__init__.py", ""), ("own/__init__.py", ""):
        os.makedirs(os.path.dirname(f"{site}/{part}"), exist_ok=True)
        with open(f"{site}/{part}", "w", encoding="utf-8") as file:
            file.write(text)
    modules = ["toy.deep.load", "single_file", "shared.one.load", "shared.two.load", "own.load"]
    with open(WORK + "/uses.py", "w", encoding="utf-8") as file:
        file.write(f"import sys\nfile = open({WEIGHTS!r}, 'rb')\nkept = []\n")
        file.writelines(f"import {module}\nkept.append({module}.load(file, {MIB + 16 * i + 16}))\n" for i, module in enumerate(modules))
    run = Run("packages", PYTHON, WORK + "/uses.py", PYTHONPATH=site)
    expected = {f"Toy_Loader 1.2.3 {site}/toy", f"single 7 {site}/single_file.py", f"ns-one 0.1 {site}/shared/one/load.py",
                f"ns-two 0.2+cpu {site}/shared/two/load.py"}
    check("packages", ("exit status", (run.status, run.err), (0, "")),
          ("records", {r["text"] for r in run.all("package") if site in r["text"]}, expected),
          ("frames", [[frame[0] for frame in run.frames(pid, MIB + 16 * i + 16)[0]] for pid in run.records for i in range(5)],
           [["load", "<module>"]] * 5))


def of_real_packages():
    """What importlib.metadata says of the files that it says are there."""
    venv = os.path.join(os.path.dirname(TESTS), ".venv/bin/python")
    if not os.path.exists(venv):
        print("skip real_package - no .venv; make demo brings it")
        return
    script = f"import numpy\nnumpy.memmap({WEIGHTS!r}, mode='r')\n"
    run = Run("numpy", venv, "-c", script)
    asked = subprocess.run([venv, "-c", "import importlib.metadata as m; d = m.distribution('numpy'); print(d.metadata['Name'], d.version, d.locate_file('numpy'))"],
                           capture_output=True, text=True, check=True).stdout.strip()
    check("real_package", ("exit status", (run.status, run.err), (0, "")), ("numpy", asked in {r["text"] for r in run.all("package")}, True))


with open(WEIGHTS, "wb") as weights:
    head = json.dumps({"w": {"dtype": "U8", "shape": [4 * MIB], "data_offsets": [0, 4 * MIB]}}).encode()
    weights.write(len(head).to_bytes(8, "little") + head + bytes(4 * MIB))
for test in of_versions, of_one_definition, of_stress, of_off, of_refusal, of_no_python, of_packages, of_real_packages:
    test()
