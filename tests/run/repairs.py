#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""See repairs.sh. Figures are worked out by hand: 1 GiB of weights in four tensors of 256 MiB, one thread."""
import json
import os
import subprocess
import sys

MIB, GIB = 1 << 20, 1 << 30
ANALYZE = os.environ["BUILD"] + "/sparktrace-analyze"
WORK = os.environ["T"]
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../scenario")
failed = 0


def check(name, *facts):
    """A fact is (what, seen, expected)."""
    global failed
    wrong = [f"{what}: {seen!r}, expected {expected!r}" for what, seen, expected in facts if seen != expected]
    failed += bool(wrong)
    print(f"not ok {name} - {'; '.join(wrong)[:400]}" if wrong else f"ok {name}", flush=True)


def between(low, high):
    return {"low_bytes": low, "high_bytes": high}


def exactly(size):
    return between(size, size)


class Scenario:
    """A scenario of tests/scenario, with words replaced: its report."""

    def __init__(self, name, *changes, options=("--budget", "1.1GiB")):
        with open(f"{FOLDER}/{name}.jsonl", encoding="utf-8") as file:
            text = file.read()
        for old, new in changes:
            if old not in text:
                sys.exit(f"not ok {name} - there is no `{old}` in it")
            text = text.replace(old, new)
        source, self.trace, self.options = f"{WORK}/{name}.jsonl", f"{WORK}/{name}.zst", options
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        subprocess.run([ANALYZE, "pack", source, "-o", self.trace], check=True)
        done = subprocess.run([ANALYZE, "--json", *options, self.trace], capture_output=True, text=True, check=False)
        self.root = json.loads(done.stdout)
        self.loader = self.root["loaders"][0] if self.root["loaders"] else None

    def ids(self):
        return [repair["id"] for repair in self.root["repairs"]]

    def repair(self, name):
        return next(repair for repair in self.root["repairs"] if repair["id"] == name)

    def rung(self):
        return next(rung for rung in self.root["ladder"]["rungs"] if rung["rung"] == "1b")

    def text(self):
        done = subprocess.run([ANALYZE, *self.options, self.trace], capture_output=True, text=True, check=False)
        return " ".join(done.stdout.split())


def named(name, scenario, *words):
    loader = scenario.loader
    keys = ("name", "version", "function", "line", "caller", "caller_line")
    check(name, *((key, loader[key], word) for key, word in zip(keys, words)))


def prediction(scenario, repair, modelled):
    predicted = scenario.repair(repair)["predicted"]
    return [
        (f"{repair}, modelled", predicted["modelled"], modelled), (f"{repair}, demand", predicted["demand"], modelled),
        (f"{repair}, factor", (predicted["factor_low"], predicted["factor_high"]),
         (modelled["low_bytes"] / GIB, modelled["high_bytes"] / GIB)),
    ]


def mapped():
    s = Scenario("loader_mapped")
    named("safetensors_is_named", s, "safetensors", "0.7.0", "load_file", 313, "main", 40)
    check("safetensors_0.7_repairs",
          ("repairs", s.ids(), ["relief-readonly", "safetensors-0.8", "relief-readonly-drop"]),
          *prediction(s, "relief-readonly", exactly(GIB)), *prediction(s, "safetensors-0.8", exactly(GIB + 256 * MIB)),
          ("next", s.root["ladder"]["next"], "1b"), ("relief", s.rung()["relief"], exactly(GIB)),
          ("needs then", s.rung()["needed_peak"], exactly(GIB)),
          ("command", s.repair("relief-readonly")["command"],
           "SPARKTRACE_RELIEF=readonly LD_PRELOAD=/usr/lib/libsparktrace.so python3 train.py --epochs 3"),
          ("upgrade", s.repair("safetensors-0.8")["command"], "pip install --upgrade 'safetensors>=0.8.0'"))
    text = s.text()
    check("safetensors_0.7_text", *((word, word in text, True) for word in (
        "Loaded by safetensors 0.7.0, load_file (torch.py:313), called from main (my train.py:40).",
        "SPARKTRACE_RELIEF=readonly", "it saves 1.00 GiB, load factor 1.00 then", "saves 768.0 MiB, load factor 1.25")))


def versions():
    """0.10 is newer than 0.8, a release candidate is older than its release, and a guess is none."""
    for version, wanted in (
        ("0.7.0", "safetensors-0.8"), ("0.8.0rc1", "safetensors-0.8"), ("0.8.0.dev0", "safetensors-0.8"),
        ("0.8.0", "safetensors-get-tensor"), ("0.8.1+local", "safetensors-get-tensor"), ("0.10.0", "safetensors-get-tensor"),
    ):
        s = Scenario("loader_mapped", ("safetensors 0.7.0", f"safetensors {version}"))
        special = [name for name in s.ids() if name.startswith("safetensors")]
        check(f"version_{version}", ("version", s.loader["version"], version), ("repair", special[:1], [wanted]))
    s = Scenario("loader_mapped", ("safetensors 0.7.0 /venv/lib/python3.11/site-packages/safetensors", "other 1.0 /opt/other"))
    check("no_package_no_loader", ("name", s.loader["name"], None), ("version", s.loader["version"], None),
          ("unknown", "an unknown loader, by its signature: maps, copies straight out of private writable mappings"
           in s.loader["words"], True),
          ("repairs", s.ids(), ["relief-readonly", "read-only-mapping", "pinned-slots", "relief-readonly-drop"]))


def native():
    """A program without any package: known by its module where that says it, never with a version."""
    python = '{"event":"frames"'
    s = Scenario("loader_mapped", (python, '{"event":"module","start":"0x1000","end":"0x3000","offset":0,"text":"/usr/bin/llama-server"}\n# '))
    check("llama_server", ("name", s.loader["name"], "llama.cpp"), ("version", s.loader["version"], None),
          ("words", "llama.cpp (version unknown)" in s.loader["words"], True))


def heap():
    s = Scenario("loader_heap")
    named("torch_is_named", s, "torch", "2.15.0", "_load.<locals>.load_tensor", 2154, "<module>", 9)
    check("torch_load_repairs", ("repairs", s.ids(), ["torch-mmap"]), *prediction(s, "torch-mmap", exactly(GIB)))
    s = Scenario("loader_heap", ("torch 2.15.0", "torch 2.0.1"))
    check("torch_2.0_has_no_mmap", ("repairs", s.ids(), []))
    s = Scenario("loader_heap", ("torch 2.15.0 ", "runai-model-streamer 0.17.1 "))
    # One buffer of the largest tensor.
    check("model_streamer", ("name", s.loader["name"], "runai-model-streamer"), ("repairs", s.ids(), ["runai-memory-limit"]),
          *prediction(s, "runai-memory-limit", between(GIB, GIB + 256 * MIB)),
          ("command", s.repair("runai-memory-limit")["command"].split()[0], "RUNAI_STREAMER_MEMORY_LIMIT=0"))


def pinned():
    s = Scenario("loader_pinned")
    check("pinned_file", ("name", s.loader["name"], "fastsafetensors"), ("repairs", s.ids(), ["fastsafetensors-0.5"]),
          *prediction(s, "fastsafetensors-0.5", between(GIB + 16 * MIB, GIB + 128 * MIB)))
    s = Scenario("loader_pinned", ("fastsafetensors 0.3.2", "fastsafetensors 0.5.0"))
    check("pinned_file_0.5", ("repairs", s.ids(), ["fastsafetensors-direct"]))


def hostile():
    """Names and versions of a trace are anybody's: they are text, and nothing but text."""
    s = Scenario("loader_mapped", ("safetensors 0.7.0", "safetensors 99999999999999999999999999.x\\u0007y"),
                 ("train.py --epochs 3", "\\u001b[2J%s%n"), ("load_file ", "%s%s "))
    command = s.repair("relief-readonly")["command"]
    check("hostile_texts", ("command keeps %s", "%s%n" in command, True), ("no escape", "\x1b" in s.text(), False),
          ("no upgrade of the future", "safetensors-0.8" in s.ids(), False))


for test in (mapped, versions, native, heap, pinned, hostile):
    test()
sys.exit(1 if failed else 0)
