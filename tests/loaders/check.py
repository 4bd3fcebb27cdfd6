#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The loader matrix: every row of `matrix` is run and compared; see check.sh.

    check.py [--keep] [--show] [--write] [--kept] [PATTERN...]

    PATTERN  only rows whose names match one
    --write  keep a small trace of each row that is green, and what others saw of it, in tests/loaders/traces; so does
             WRITE=1 in the environment
    --kept   compare these instead of running anything
    --show   print what was seen, in the words of the matrix"""

import argparse
import fnmatch
import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "run"))
sys.dont_write_bytecode = True

import rows
from compare import Seen, compare, repaired
from e2e import ANALYZE, Traced, cached, enter_own_world, facts
from evidence import Kept, dump, truth_of
from several import blind_outside, ledger_setting, merged_ledgers, report_of
from show import show
from simledger import FOLDER, LIB, PYTHON, ROOT, check, finish, victim

HERE = os.path.dirname(os.path.abspath(__file__))
TRACES = os.path.join(HERE, "traces")
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
# Copies last long enough to be seen from outside.
SLOW = {"SIMCUDA_DELAY": "cuStreamSynchronize:0:40"}
models = {}


def overlays(names):
    return os.pathsep.join(os.path.join(ROOT, ".venv", name) for name in names)


def environment(*names):
    """Of programs that are not traced, too: nothing is fetched, nothing written into a home folder."""
    return {
        "PYTHONPATH": overlays(names), "HF_HUB_OFFLINE": "1", "HF_HOME": os.path.join(FOLDER, "hf"),
        "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false", "LD_LIBRARY_PATH": LIB,
    }


def make_model(name):
    """{folder, paths, files, sizes, digests} of a model, made once."""
    if name not in models:
        folder = os.path.join(FOLDER, "model-" + name)
        os.mkdir(folder)
        maker = os.path.join(HERE, "models", name + ".py")
        env = {**os.environ, **environment("loaders")}
        done = subprocess.run([PYTHON, maker, folder], env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"not ok model_{name} - {done.stderr[-300:]}")
        with open(os.path.join(folder, "truth.json"), encoding="utf-8") as file:
            truth = json.load(file)
        paths = [os.path.join(folder, file) for file in sorted(truth["files"])]
        models[name] = {"folder": folder, "paths": paths, "sizes": {file: os.path.getsize(os.path.join(folder, file)) for file in truth["files"]}, **truth}
    return models[name]


def command(row, model):
    words = []
    for word in row.run.split():
        words += model["paths"] if word == "{files}" else [word.replace("{folder}", model["folder"])]
    if row.is_victim():
        return [victim(words[0]), *words[1:]]
    return [PYTHON, os.path.join(HERE, "programs", words[0]), *words[1:]]


again = []  # runs that differed from their row


def seen_in(row, truth, traces):
    """All that is known of a run: the report is of all its processes together."""
    return Seen(row, truth, report_of(traces, row), [dump(ANALYZE, trace) for trace in traces])


def traces_of(done):
    return [done.trace, *sorted(glob.glob(done.base + ".[0-9]*.zst"))]


def run(row, name=None):
    """Runs a row: (what ran, traces, truth). Its files in the test's folder have this name, or the row's."""
    name = name or row.name
    model = make_model(row.model)
    cached(model["paths"], warm=False)
    settings = {**environment(*row.overlays), "MODEL": model["folder"], "FILES": ":".join(model["paths"]), **SLOW, **row.settings}
    if row.traces:
        settings.update(ledger_setting(os.path.join(FOLDER, name)))
    done = Traced(name, *command(row, model), files=model["paths"], **settings)
    if row.traces:
        done.ledger = merged_ledgers(done.base)
        return done, traces_of(done), blind_outside(truth_of(done, model))
    return done, traces_of(done), truth_of(done, model)


def live(row, options):
    """Runs a row and compares it: what was seen of it. Witness, recorder and program are three processes on a machine that
    may keep any of them waiting: what differs is run once more, which is said and counted."""
    for name in (row.name, row.name + "-again"):
        done, traces, truth = run(row, name)
        seen = seen_in(row, truth, traces)
        if options.show:
            show(seen)
        wrong = facts(*compare(seen))
        if not wrong:
            break
        again.append(name)
        print(f"# {name}: {wrong}", flush=True)
    check(row.name, wrong and f"{wrong} {done.err[-200:] if truth['exit'] else ''}")
    if options.write and not wrong:
        Kept(TRACES, row.name).write(traces, truth)
    return seen


def kept(row, options):
    """Compares the kept traces of a row."""
    files = Kept(TRACES, row.name)
    if not files.traces():
        check(row.name + "_kept", "there is no trace of this row: tests/loaders/check.py --write makes it")
        return None
    seen = seen_in(row, files.read(), files.traces())
    if options.show:
        show(seen)
    check(row.name + "_kept", facts(*compare(seen)))
    return seen


def looked_at(row, options):
    """What was seen of a row. One that cannot even be looked at is one failure, and no reason to leave the others."""
    try:
        return (kept if options.kept else live)(row, options)
    except (SystemExit, LookupError, StopIteration, ValueError, subprocess.CalledProcessError) as error:
        check(row.name + ("_kept" if options.kept else ""), f"{type(error).__name__}: {error}")
        return None


def strangers():
    """Kept files that belong to no row."""
    names = sorted(name for name in os.listdir(TRACES) if name.endswith((".zst", ".truth")))
    known = [row.name + "." for row in rows.read().values()]
    check("kept_traces_have_rows", " ".join(name for name in names if not name.startswith(tuple(known))))


def prove(seen):
    """Predicted and real repairs, of rows that were looked at here."""
    for row in (each.row for each in seen.values()):
        for repair, other in row.proofs:
            if other in seen:
                check(f"{row.name}_{repair}_as_{other}", facts(*repaired(seen[row.name], seen[other], repair)))


def missing(row):
    """Why a row cannot be run here."""
    if row.skip:
        return row.skip
    absent = [name for name in row.overlays if not os.path.isdir(os.path.join(ROOT, ".venv", name))]
    return f"there is no .venv/{absent[0]}; scripts/python-env loaders makes it" if absent else ""


def chosen(patterns):
    return [row for row in rows.read().values() if not patterns or any(fnmatch.fnmatch(row.name, p) for p in patterns)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("patterns", nargs="*")
    for name in ("--write", "--kept", "--show"):
        parser.add_argument(name, action="store_true")
    options = parser.parse_args()
    options.write |= bool(os.environ.get("WRITE"))
    if not options.kept:
        enter_own_world()
    patterns = options.patterns or os.environ.get("ROWS", "").split()
    seen = {}
    for row in chosen(patterns):
        reason = missing(row) if not options.kept else row.skip
        if reason:
            print(f"skip {row.name} - {reason}")
            continue
        seen[row.name] = looked_at(row, options)
    print(f"# {len(seen)} rows of the loader matrix, {sum(not name.endswith('-again') for name in again)} of them run twice")
    prove({name: each for name, each in seen.items() if each})
    if options.kept and not patterns:
        strangers()
    finish()


if __name__ == "__main__":
    main()
