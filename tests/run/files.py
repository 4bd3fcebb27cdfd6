# SPDX-License-Identifier: Apache-2.0
"""See files.sh. Without arguments it is the test; with some, the program of that case."""

import json
import os
import subprocess
import sys
import threading
import time

MIB = 1 << 20
SIZES = (3, 1, 6, 2, 4)  # of the tensors, MiB: no two alike
LOADERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.venv/loaders")


# ---- programs -------------------------------------------------------------------------------------------------------


def make(folder):
    """The checkpoints, by the packages that write them; and what those that read them say of their tensors."""
    import safetensors
    import torch
    from safetensors.torch import save_file

    tensors = {f"layers.{i}.weight": torch.full((mib << 18,), float(i)) for i, mib in enumerate(SIZES)}
    torch.save(tensors, folder + "/model.pt")
    save_file(tensors, folder + "/model.safetensors")
    os.makedirs(folder + "/sharded", exist_ok=True)
    weight_map = {}
    for number, (name, tensor) in enumerate(tensors.items(), 1):
        weight_map[name] = f"model-{number:05}-of-{len(tensors):05}.safetensors"
        save_file({name: tensor}, f"{folder}/sharded/{weight_map[name]}")
    with open(folder + "/sharded/model.safetensors.index.json", "w", encoding="utf-8") as file:
        json.dump({"metadata": {"total_size": sum(SIZES) * MIB}, "weight_map": weight_map}, file)
    said = {"model.pt": torch_ranges(folder + "/model.pt"), "model.safetensors": safetensors_ranges(folder + "/model.safetensors")}
    try:
        said["model.gguf"] = gguf_make(folder + "/model.gguf", tensors)
    except ImportError:
        pass
    print(json.dumps(said))


def torch_ranges(path):
    import torch

    reader = torch._C.PyTorchFileReader(path)  # pylint: disable=protected-access
    names = [f"layers.{i}.weight" for i in range(len(SIZES))]
    return {name: [reader.get_record_offset(f"data/{i}"), SIZES[i] * MIB] for i, name in enumerate(names)}


def safetensors_ranges(path):
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    return {
        name: [8 + length + entry["data_offsets"][0], entry["data_offsets"][1] - entry["data_offsets"][0]]
        for name, entry in header.items() if name != "__metadata__"
    }


def gguf_make(path, tensors):
    import gguf

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_token_list([f"t{i}" for i in range(5000)])
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return {t.name: [int(t.data_offset), int(t.n_bytes)] for t in gguf.GGUFReader(path).tensors}


def open_torch(path, **more):
    import torch

    return torch.load(path, weights_only=True, **more)


def open_safetensors(path):
    from safetensors.torch import load_file

    return load_file(path)


def open_gguf(path):
    import gguf
    import mmap
    import torch

    reader = gguf.GGUFReader(path)
    reader.data._mmap.madvise(mmap.MADV_WILLNEED)  # pylint: disable=protected-access
    return {t.name: torch.from_numpy(t.data) for t in reader.tensors}


def open_bytes(path):
    """The whole file as Python reads it, and tensors that are views of that."""
    import torch

    with open(path, "rb") as file:
        data = file.read()
    return {
        name: torch.frombuffer(data, dtype=torch.float32, offset=offset, count=size // 4)
        for name, (offset, size) in safetensors_ranges(path).items()
    }


OPEN = {
    "torch": open_torch, "torch_mmap": lambda path: open_torch(path, mmap=True), "safetensors": open_safetensors, "gguf": open_gguf,
    "bytes": open_bytes,
}


def load(kind, path):
    """Tensors on the host, where the program says they are; then to the device, the last one first, the second half by
    another thread. Half-way it waits, and says when."""
    import torch

    host = OPEN[kind](path)
    told = {"at": {name: [tensor.data_ptr(), tensor.nbytes] for name, tensor in host.items()}, "threads": []}
    torch.cuda.synchronize()
    order, device = list(reversed(host)), {}

    def copy(names):
        told["threads"].append(threading.get_native_id())
        for name in names:
            device[name] = host[name].cuda()
        torch.cuda.synchronize()

    half = len(order) // 2
    copy(order[:half])
    time.sleep(0.3)
    told["half_way"], told["order"] = time.monotonic_ns(), order
    time.sleep(0.3)
    other = threading.Thread(target=copy, args=(order[half:],))
    other.start()
    other.join()
    print(json.dumps(told))


def load_bytes(path):
    """safetensors copies every tensor out of the bytes, which are gone before the first one goes to the device."""
    import torch
    from safetensors.torch import load

    with open(path, "rb") as file:
        tensors = load(file.read())
    device = {name: tensor.cuda() for name, tensor in tensors.items()}
    torch.cuda.synchronize()
    time.sleep(0.3)
    print(len(device))


def load_file_cuda(path, deadly=False):
    import signal
    import torch
    from safetensors.torch import load_file

    tensors = load_file(path, device="cuda")
    torch.cuda.synchronize()
    print(json.dumps(list(tensors)), flush=True)
    time.sleep(0.5)  # the recorder comes to the index
    if deadly:
        os.kill(os.getpid(), signal.SIGKILL)


# ---- the test -------------------------------------------------------------------------------------------------------


def exactly(size):
    return {"low_bytes": size, "high_bytes": size}


def unlike(found, truth, slack):
    """Intervals that do not hold the truth, or are wider than `slack` a value: nothing is what is right."""
    return {
        one: (found[one], size) for one, size in truth.items()
        if not found[one]["low_bytes"] <= size <= found[one]["high_bytes"] or found[one]["high_bytes"] - found[one]["low_bytes"] > slack
    }


def copied_by(ledger, told):
    """Bytes copied out of each tensor, by the driver's ledger and where the program said its tensors were; and the order."""
    sums, order = dict.fromkeys(told["at"], 0), []
    for line in ledger:
        if not line["op"].startswith("cuMemcpyHtoD") or line["rc"]:
            continue
        src = int(line["src"], 16)
        for name, (at, size) in told["at"].items():
            if at <= src < at + size:
                sums[name] += line["size"]
                order += [name] if name not in order else []
    return sums, order


def run_case(name, kind, path, **settings):
    from e2e import Traced, cached
    from simledger import PYTHON

    cached([path], warm=False)
    env = {"PYTHONPATH": LOADERS, **settings}
    return Traced(name, PYTHON, os.path.abspath(__file__), "load", kind, path, files=[path], **env)


def tensors_are_told(name, run, path, said, slack):
    """--tensors against the ledger's copies by source address, and the package's own ranges."""
    from e2e import facts
    from simledger import check

    told = json.loads(run.out)
    copied, order = copied_by(run.ledger, told)
    r = run.report("--tensors=3")
    rows = {t["name"]: t for t in r["tensors"] if t["file"] == path}
    top = r["tensors_shown.tensors"]
    by_size = sorted(said, key=lambda one: -said[one][1])
    check(name + "_tensors", facts(
        ("ranges", {one: [rows[one]["offset_bytes"], rows[one]["size_bytes"]] for one in rows}, said),
        ("type", {t["dtype"] for t in rows.values()}, {"F32"}),
        ("copied, ledger", unlike({one: rows[one]["copied"] for one in rows}, copied, slack), {}),
        ("device", unlike({one: rows[one]["device"] for one in rows}, {one: said[one][1] for one in rows}, slack), {}),
        ("order of copies, ledger", order, told["order"]),
        ("thread of the first and the last", [rows[told["order"][0]]["thread"], rows[told["order"][-1]]["thread"]],
         [told["threads"][0], rows[told["order"][-1]]["thread"] if kind_reads(rows) else told["threads"][1]]),
        ("as which", [rows[one]["order"] for one in touched_order(rows, told)], list(range(1, len(rows) + 1))),
        ("place in the file", [one for one in sorted(rows, key=lambda one: rows[one]["place"])], sorted(said, key=lambda one: said[one][0])),
        ("shown", len(top), 3), ("all with copies alike: by size", [t["name"] for t in top] == by_size[:3] or staged(rows), True),
    ))
    return r, told, copied


def kind_reads(rows):
    return any(t["read_bytes"] >= t["size_bytes"] for t in rows.values())


def staged(rows):
    """Then some are in the pool twice beyond their size, and come first for that."""
    return any(t["staging_at_peak_bytes"] or t["anon_at_peak"]["high_bytes"] != t["size_bytes"] for t in rows.values())


def touched_order(rows, told):
    """Read into memory first, a program touches tensors in its own order; else as it copies them."""
    return sorted(rows, key=lambda one: rows[one]["first_touch_ns"]) if kind_reads(rows) else told["order"]


def files_are_told(name, r, told, path, slack, mapping, advice):
    from e2e import facts
    from simledger import check

    file = r.file(path)
    text = " ".join(subprocess.run([*r.command, "--files"], capture_output=True, text=True, check=False).stdout.split())
    mapped = [(m["kind"], m["copied_bytes"]) for m in file["mappings"] if m["copied_bytes"]]
    total = sum(SIZES) * MIB
    check(name + "_file", facts(
        ("payload", file["payload_bytes"], total), ("copied", total - slack <= file["copied_bytes"] <= total, True),
        ("loaded", unlike({path: file["loaded"]}, {path: total}, slack), {}), ("exact", file["exact"], not slack),
        ("order", file["order"], 1), ("opened", file["opened"], True),
        ("threads", {t["thread"] for t in file["threads"]} >= set(told["threads"]), True),
        ("read", file["read_bytes"] < MIB if mapping else total <= file["read_bytes"] < total + MIB, True),
        ("copied out of", mapped, [(mapping, total)] if mapping else []),
        ("advice", [a["advice"] for a in file["advice"]], advice),
        ("touched", 0 < file["first_touch_ns"] <= file["last_touch_ns"], True),
        ("text", "The weight files, one by one" in text and path in text, True),
    ))


def half_way(name, run, told, copied, slack):
    """--at half-way: just the copies that the ledger has up to then."""
    from e2e import Report, facts
    from simledger import check

    since = told["half_way"] - run.dump("process")[0]["start"]
    r = Report(run.trace, "--at", f"{since}ns")
    before = [line for line in run.ledger if line["t"] <= told["half_way"]]
    bytes_then = sum(copied[one] for one in told["order"][: len(told["order"]) // 2])
    end, late = Report(run.trace, "--at", "end"), Report(run.trace, "--at", "2h")
    layers = {layer["layer"]: layer["size"] for layer in r["at.layers"]}
    check(name + "_half_way", facts(
        ("shown", r["at.shown"], True), ("device, ledger", layers["device"], exactly(before[-1]["device"])),
        ("D", unlike({"D": r["at.files.0.device"]}, {"D": bytes_then}, slack), {}),
        ("blocks", sum(b["size_bytes"] for b in r["at.blocks"] if b["region"] == "device"), before[-1]["device"]),
        ("end", [layer["size"] for layer in end["at.layers"] if layer["layer"] == "device"], [exactly(run.last()["device"])]),
        ("after the end", (late["at.shown"], late["at.time_ns"]), (False, 7200 * 10**9)),
        ("words", "The run never came to `steps-peak`" in " ".join(text_at(run, "steps-peak").split()), True),
    ))


def text_at(run, word):
    from e2e import ANALYZE

    return subprocess.run([ANALYZE, "--at", word, run.trace], capture_output=True, text=True, check=False).stdout


def one_loader(name, kind, path, said, slack=0, mapping=None, advice=(), **settings):
    """slack: bytes that the loader takes through a buffer of its own, which no call shows."""
    from simledger import check

    run = run_case(name, kind, path, **settings)
    if run.rc or not run.out:
        check(name, (run.rc, run.out, run.err[-300:]))
        return
    r, told, copied = tensors_are_told(name, run, path, said, slack)
    files_are_told(name, r, told, path, slack, mapping, list(advice))
    half_way(name, run, told, copied, slack)


def through_slots(path, said):
    """safetensors 0.8 to the device: copies out of a pinned slot. No call shows which tensor; the interval holds it."""
    from e2e import Traced, cached, facts
    from simledger import PYTHON, check

    cached([path], warm=False)
    run = Traced("slots", PYTHON, os.path.abspath(__file__), "load_file", path, files=[path])
    r = run.report("--tensors")
    rows = {t["name"]: t for t in r["tensors"]}
    sizes = [line["size"] for line in run.ledger if line["op"].startswith("cuMemcpyHtoD") and line["size"] >= MIB]
    check("slots_tensors", facts(
        ("copies, ledger", sorted(sizes), sorted(size for _, size in said.values())),
        ("ranges", {one: [t["offset_bytes"], t["size_bytes"]] for one, t in rows.items()}, said),
        ("copied", [one for one, t in rows.items() if not t["copied"]["low_bytes"] <= t["size_bytes"] <= t["copied"]["high_bytes"]], []),
        ("device, all of the file is there", [t["device"] for t in rows.values()], [exactly(t["size_bytes"]) for t in rows.values()]),
    ))


def through_bytes(path, said):
    """safetensors.torch.load(): Python reads the file into one block and shrinks it by realloc(). That is staging all along,
    and no other memory of the load, which is what safetensors copies out of it; the device has the file, by the ledger."""
    from e2e import ANALYZE, Traced, cached, facts
    from simledger import PYTHON, check

    cached([path], warm=False)
    run = Traced("bytes_load", PYTHON, "-W", "ignore", os.path.abspath(__file__), "load_bytes", path, files=[path])
    r, total = run.report("--tensors"), sum(SIZES) * MIB
    sizes = [line["size"] for line in run.ledger if line["op"].startswith("cuMemcpyHtoD") and line["size"] >= MIB]
    measured = json.loads(subprocess.run(
        [ANALYZE, "check", "--json", "--metric", "load_staging_peak=1", "--metric", "load_host_peak=1", run.trace],
        capture_output=True, text=True, check=False).stdout)
    value = {line["metric"]: (line["value_low_bytes"], line["value_high_bytes"]) for line in measured["lines"][:2]}
    host = value["load_host_peak"]
    whole = [record for record in run.dump("alloc") if record["how"] == "realloc" and record["size"] > total]
    check("bytes_load", (run.rc or run.out.split() != [str(len(SIZES))]) and (run.rc, run.out, run.err[-200:]) or facts(
        ("the block was shrunk", len(whole), 1), ("copies, ledger", sorted(sizes), sorted(size for _, size in said.values())),
        ("staging", value["load_staging_peak"], (total, total)), ("staging, report", r["peak.load.staging_peak_bytes"], total),
        ("host: what was copied out of the bytes", total <= host[0] == host[1] < total + MIB, True),
        ("read", total <= r.file(path)["read_bytes"] < total + MIB, True),
        ("loaded", r.file(path)["loaded"], exactly(total)), ("D", r.file(path)["settled"]["device"], exactly(total)),
        ("device", {t["name"]: t["device"] for t in r["tensors"]}, {name: exactly(size) for name, (_, size) in said.items()}),
    ))


def sharded(folder):
    """One shard of five, and the index that names them: opened or not, each has its size and its tensors. Then the same
    by a program that is killed there: what was not loaded is known to the byte."""
    from e2e import Traced, cached, facts
    from simledger import PYTHON, check, wait_for_recorder

    path = folder + "/sharded/model-00003-of-00005.safetensors"
    for deadly in (False, True):
        cached([path], warm=False)
        run = Traced("killed" if deadly else "sharded", PYTHON, os.path.abspath(__file__), "killed" if deadly else "load_file", path)
        if deadly:
            wait_for_recorder(run.dump("head")[0]["ring"])
        r = run.report("--files")
        files = {os.path.basename(file["path"]): file for file in r["files"]}
        names = [f"model-{i:05}-of-00005.safetensors" for i in range(1, 6)]
        total = sum(SIZES) * MIB
        check(run.base.rsplit("/", 1)[1], facts(
            ("index", [(i["total_bytes"], i["shards"], i["tensors"]) for i in r["indexes"]], [(total, 5, 5)]),
            ("files", sorted(files), names), ("opened", [name for name in files if files[name]["opened"]], [os.path.basename(path)]),
            ("payloads", [files[name]["payload_bytes"] for name in names], [mib * MIB for mib in SIZES]),
            ("tensors", sorted(t["name"] for t in r["tensors"]), [f"layers.{i}.weight" for i in range(5)]),
            ("missing", r["peak.load.shards_missing"], 4), ("finished", r["peak.load.finished"], not deadly),
            ("remaining", r["peak.load.remaining"], exactly(total - SIZES[2] * MIB if deadly else 0)),
        ))


def main():
    from e2e import enter_own_world
    from simledger import FOLDER, LIB, OLD_SAFETENSORS, PYTHON, check, finish

    if not os.path.exists(PYTHON):
        print("skip files - there is no .venv; scripts/python-env makes it")
        return
    enter_own_world()
    env = dict(os.environ, LD_LIBRARY_PATH=LIB, PYTHONPATH=LOADERS)
    made = subprocess.run([PYTHON, os.path.abspath(__file__), "make", FOLDER], env=env, capture_output=True, text=True, check=False)
    if made.returncode:
        check("make", made.stderr[-300:])
        finish()
    said = json.loads(made.stdout)
    torch, safe, gguf = (FOLDER + "/" + name for name in ("model.pt", "model.safetensors", "model.gguf"))
    one_loader("torch_mmap", "torch_mmap", torch, said["model.pt"], mapping="private writable mapping", advice=["sequential"])
    one_loader("torch_plain", "torch", torch, said["model.pt"], slack=64 * 1024)
    one_loader("safetensors_0.8", "safetensors", safe, said["model.safetensors"], mapping="private writable mapping", advice=["sequential"])
    one_loader("safetensors_0.7", "safetensors", safe, said["model.safetensors"], mapping="private writable mapping",
               advice=["sequential"], PYTHONPATH=OLD_SAFETENSORS)
    if "model.gguf" in said:
        one_loader("gguf_memmap", "gguf", gguf, said["model.gguf"], mapping="shared read-only mapping", advice=["willneed"])
    else:
        print("skip gguf_memmap - the package gguf is not there; scripts/python-env brings it")
    one_loader("bytes", "bytes", safe, said["model.safetensors"])
    through_bytes(safe, said["model.safetensors"])
    through_slots(safe, said["model.safetensors"])
    sharded(FOLDER)
    finish()


PROGRAMS = {"make": make, "load": load, "load_bytes": load_bytes, "load_file": load_file_cuda, "killed": lambda path: load_file_cuda(path, True)}

if len(sys.argv) > 1:
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
else:
    main()
