# SPDX-License-Identifier: Apache-2.0
"""Programs on the simulated CUDA stack, and what its ledger says about them. Used by scripts in tests/run."""

import json
import os
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
LIB = os.path.join(BUILD, "tests", "simcuda", "lib")
PYTHON = os.path.join(ROOT, ".venv", "bin", "python")
OLD_SAFETENSORS = os.path.join(ROOT, ".venv", "safetensors-0.7")
FOLDER = os.environ.get("T") or tempfile.mkdtemp(prefix="simcuda-")
MIB = 1 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")

failed = 0


def check(name, wrong):
    """One line of result; `wrong` is what is not as it should be, or something false."""
    global failed
    if wrong:
        failed += 1
        print(f"not ok {name} - {str(wrong)[:300]}", flush=True)
    else:
        print(f"ok {name}", flush=True)


def raised(kind, error, trace):
    """What nobody caught is a failure too, and says which line of the test it comes from."""
    traceback.print_exception(kind, error, trace)
    frames = [frame for frame in traceback.extract_tb(trace) if frame.filename.startswith(os.path.join(ROOT, "tests"))]
    at = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}: {frames[-1].line}" if frames else "no line of a test"
    check("exception", f"{kind.__name__}: {error} at {at}")


sys.excepthook = raised


def wait_for_recorder(ring):
    """Until it is done, half a minute at most: it takes its ring away then. A program that was killed did not wait for it,
    another one does for two seconds."""
    end = time.monotonic() + 30
    while os.path.exists(ring) and time.monotonic() < end:
        time.sleep(0.05)


def differ(found, wanted):
    """What differs between two dictionaries, only where something is wanted."""
    return {key: (found.get(key), value) for key, value in wanted.items() if found.get(key) != value}


def victim(name):
    return os.path.join(BUILD, "tests", "victim", name)


def environment(ledger, **settings):
    env = {key: value for key, value in os.environ.items() if not key.startswith("SIMCUDA_")}
    env["SIMCUDA_LEDGER"] = ledger
    env["LD_LIBRARY_PATH"] = LIB
    env.update({key: str(value) for key, value in settings.items()})
    return env


class Run:
    """A program that runs, or ran: rc, out (stdout and stderr together), and the ledger's lines."""

    count = 0

    def __init__(self, *command, **settings):
        Run.count += 1
        self.path = os.path.join(FOLDER, f"ledger-{Run.count}")
        self.process = subprocess.Popen(
            [str(word) for word in command],
            env=environment(self.path, **settings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait(self):
        self.out, _ = self.process.communicate()
        self.rc = self.process.returncode
        return self

    def lines(self):
        """Lines so far; one that is being written is left out."""
        if not os.path.exists(self.path):
            return []
        with open(self.path, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def last(self):
        return self.lines()[-1]

    def ops(self, name):
        return [line for line in self.lines() if line["op"] == name]

    def stubs(self):
        return sorted({line["op"] for line in self.lines() if line.get("stub")})


def run(*command, **settings):
    return Run(*command, **settings).wait()


def process_memory(pid):
    """Bytes of /proc/PID/status by name."""
    values = {}
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if rest.strip().endswith("kB"):
                values[name] = int(rest.split()[0]) * 1024
    return values


def weights(name, tensors, mib):
    """A safetensors file in the test's folder, not in the page cache."""
    path = os.path.join(FOLDER, name)
    subprocess.run(
        [os.path.join(BUILD, "tests", "tools", "make_safetensors"), "-c", path, str(tensors), str(mib)], check=True
    )
    return path


def finish():
    raise SystemExit(1 if failed else 0)
