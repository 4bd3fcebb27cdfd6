# SPDX-License-Identifier: Apache-2.0
"""See diff.sh. Without arguments it is the test; with one, the program of that case."""

import json
import os
import random
import subprocess
import sys
import time

MIB = 1 << 20
TENSOR = 4 * MIB
SHARDS, TENSORS = 3, 4  # 48 MiB
# A tensor of the changed model: above what torch's allocator takes for several (20 MiB), so that it is a block of its own.
HEAD = 32 * MIB


# ---- a program, as people write it, and changes of it ---------------------------------------------------------------


def load_shard(path):
    from safetensors.torch import load_file

    time.sleep(random.random() / 20)
    if os.environ["CHANGE"] == "host":
        # The loader's other option: onto the CPU, and from there.
        return {name: tensor.to("cuda") for name, tensor in load_file(path, device="cpu").items()}
    return load_file(path, device="cuda")


def keep_copy(tensors):
    """A copy on the host that the program did not make before."""
    return [tensors["layer.1.0.weight"].cpu() for _ in range(5)]


def duplicate(tensors):
    """The same on the device: 40 MiB in two blocks of 20."""
    return [tensors["layer.1.0.weight"].repeat(5) for _ in range(2)]


def load_model(workers):
    """The shards by so many threads, which come to them when they do."""
    from concurrent.futures import ThreadPoolExecutor

    import torch

    tensors, kept = {}, []
    with ThreadPoolExecutor(workers) as pool:
        for part in pool.map(load_shard, os.environ["WEIGHTS"].split(":")):
            tensors.update(part)
    if os.environ["CHANGE"] == "clone":
        kept.append(keep_copy(tensors))
    if os.environ["CHANGE"] == "duplicate":
        kept.append(duplicate(tensors))
    torch.cuda.synchronize()
    return tensors, kept


# ---- the test -------------------------------------------------------------------------------------------------------


def make_model(folder, more=0, sizes=(TENSOR,) * TENSORS):
    """Shards of a model as safetensors has them: paths. `more`: bytes of a tensor of the last shard beside its own."""
    os.makedirs(folder)
    paths = []
    for shard in range(SHARDS):
        path = os.path.join(folder, f"model-{shard + 1:05}-of-{SHARDS:05}.safetensors")
        tensors = {f"layer.{shard}.{i}.weight": size for i, size in enumerate(sizes)}
        if more and shard == SHARDS - 1:
            tensors["lm_head.weight"] = more
        header, at = {}, 0
        for name, size in tensors.items():
            header[name] = {"dtype": "BF16", "shape": [size // 2], "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text + bytes(at))
        paths.append(path)
    return paths


def record(name, paths, change="", workers=1, **settings):
    """The trace of one run."""
    from e2e import SHIM
    from simledger import FOLDER, LIB, PYTHON, check

    trace = os.path.join(FOLDER, name + ".zst")
    env = {key: value for key, value in os.environ.items() if not key.startswith(("SIMCUDA_", "SPARKTRACE"))}
    env.update(
        SIMCUDA_GB10="1", LD_LIBRARY_PATH=LIB, LD_PRELOAD=SHIM, SPARKTRACE_OUTPUT=trace, WEIGHTS=":".join(paths),
        CHANGE=change, **settings,
    )
    command = [PYTHON, os.path.abspath(__file__), str(workers)]
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        check(name + "_ran", (done.returncode, done.stderr[-300:]))
    return trace


def diff(before, after, *options):
    """(exit status, standard output, its first line)"""
    from e2e import ANALYZE

    done = subprocess.run([ANALYZE, "diff", *options, before, after], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stdout.split("\n")[0] or done.stderr.strip()


def check_same(name, before, after):
    """Nothing above the noise, and --fail-on finds nothing either. Which threads get a shard is chance."""
    from e2e import facts
    from simledger import check

    status, _, first = diff(before, after, "--fail-on", "0", "--fail-on", "load_factor")
    root = json.loads(diff(before, after, "--json")[1])
    different = [row["metric"] for row in root["peaks"]["rows"] if row["state"] in ("grew", "shrank") and row["class"] != "pool"]
    check(name, facts(
        ("status", status, 0), ("first line", first, "nothing changed above the noise"),
        ("parts", [part["name"] for kind in ("files", "tensors", "stacks") for part in root[kind]["parts"]], []),
        ("peaks", different, []), ("notes", [note["text"] for note in root["notes"] if "loader threads" not in note["text"]], []),
    ))


def check_changed(name, before, after, words, status=1, fail_on="16MiB"):
    """`words` are in the first line, in this order, and --fail-on has its status. Back again, it is no growth."""
    from e2e import facts
    from simledger import check

    found, _, first = diff(before, after, "--fail-on", fail_on)
    at, missing = 0, []
    for word in words:
        place = first.find(word, at)
        missing += [word] if place < 0 else []
        at = max(place, at)
    back = diff(after, before, "--fail-on", fail_on)
    check(name, facts(
        ("status", found, status), ("not in the first line, in this order", missing, []),
        ("back", (back[0], back[2][0]), (0, "-")),
    ) and (first, missing, found, back[0], back[2]))


def changes(model, larger, before):
    """Of a changed program: the change on the first line, with its number, its file and its function."""
    from simledger import OLD_SAFETENSORS

    shard = lambda number: f"file model-{number:05}-of-{SHARDS:05}.safetensors"
    check_changed("added_copies_on_the_host", before, record("clone", model, "clone"),
                  ["+20.0 MiB load_host_peak: ", " -> ", "; stack keep_copy.<locals>.<listcomp> < keep_copy"])
    # The load is over by then: no metric of the load.
    check_changed("added_copies_on_the_device", before, record("duplicate", model, "duplicate"),
                  ["+40.0 MiB run_device_peak: ", "; stack duplicate.<locals>.<listcomp> < duplicate"])
    check_changed("one_more_tensor", before, record("larger", larger),
                  ["+32.0 MiB load_device_peak: ", shard(SHARDS), "; tensor lm_head.weight", "; stack load_file < load_shard"])
    # Every shard is gone before the next one comes: what one of them is.
    copied = ["+16.0 MiB load_anonymous_copy_peak: 0 bytes -> 16.0 MiB", "; file model-0000", "; stack load_file < load_shard"]
    old = record("old", model, PYTHONPATH=OLD_SAFETENSORS)
    check_changed("another_version_of_the_loader", before, old, copied, fail_on="load_anonymous_copy_peak=15MiB")
    return old


def copied_pages(path):
    """Bytes of all pages that the tensors of a file lie in."""
    from simledger import PAGE

    with open(path, "rb") as file:
        begin = 8 + int.from_bytes(file.read(8), "little")
    return -(-(begin + TENSORS * TENSOR) // PAGE) * PAGE - begin // PAGE * PAGE


def notes(before, old, model):
    from e2e import exactly, facts
    from simledger import check

    root = json.loads(diff(before, old, "--json")[1])
    file = root["files"]["parts"][0]
    check("json_says_the_same", facts(
        ("notes", [note["text"] for note in root["notes"]], ["safetensors 0.8.0 -> 0.7.0"]),
        ("verdict", root["verdict"]["text"], diff(before, old)[2]), ("metric", file["metric"], "load_anonymous_copy_peak"),
        ("change", file["change"], exactly(copied_pages(model[0]))),
        ("before", file["before"], exactly(0)),
        ("mapping", file["detail"].split(";")[0], "private writable mapping"), ("loader", "safetensors 0.7.0, load_file" in file["detail"], True),
        ("line", "called from load_shard (diff.py:" in file["detail"], True),
    ))


def statuses(before, after):
    """2: usage, unreadable input; 3: cannot tell."""
    from e2e import ANALYZE, facts
    from simledger import FOLDER, check

    wrong = os.path.join(FOLDER, "no.zst")
    with open(wrong, "wb") as file:
        file.write(b"no trace at all")
    run = lambda *words: subprocess.run([ANALYZE, "diff", *words], capture_output=True, text=True, check=False)
    check("statuses", facts(
        ("one operand", run(before).returncode, 2), ("three", run(before, after, after).returncode, 2),
        ("no trace", run(before, wrong).returncode, 2), ("it is named", wrong in run(before, wrong).stderr, True),
        ("missing", run(wrong + "x", after).returncode, 2), ("no metric", run("--fail-on", "load_x=1", before, after).returncode, 2),
        ("no size", run("--fail-on", "load_host_peak=1.5.5GiB", before, after).returncode, 2),
        ("sampled", run("--fail-on", "pool_peak", before, after).returncode, 3),
        ("that only", run("--fail-on", "load_device_peak=1MiB", before, after).returncode, 0),
        ("--help", run("--help").returncode, 0),
    ))


def main():
    from e2e import enter_own_world
    from simledger import FOLDER, finish

    enter_own_world()
    model, moved = make_model(os.path.join(FOLDER, "a")), make_model(os.path.join(FOLDER, "b", "snapshot"))
    larger = make_model(os.path.join(FOLDER, "c"), HEAD)
    before = record("before", model)
    check_same("same_program_elsewhere", before, record("again", moved))
    # Of many sizes: in another order the allocator packs them otherwise.
    mixed = make_model(os.path.join(FOLDER, "d"), sizes=[MIB * size + 1024 * size for size in (9, 1, 7, 2, 5, 3)])
    threads = [record(f"threads{i}", mixed, workers=3) for i in range(3)]
    for i in (1, 2):
        check_same(f"same_program_with_threads_{i}", threads[0], threads[i])
    old = changes(model, larger, before)
    # By two threads both shards that are there at once, or one: not asked here.
    check_changed("another_option_of_the_loader", before, record("host", model, "host"),
                  ["+16.0 MiB load_anonymous_copy_peak: 0 bytes -> 16.0 MiB", "; file model-0000", "; stack load_file < load_shard"],
                  fail_on="load_anonymous_copy_peak=15MiB")
    notes(before, old, model)
    statuses(before, os.path.join(FOLDER, "clone.zst"))
    finish()


if len(sys.argv) > 1:
    everything = load_model(int(sys.argv[1]))
    time.sleep(0.2)
else:
    main()
