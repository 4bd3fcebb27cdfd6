# SPDX-License-Identifier: Apache-2.0
"""See ranks.sh. Without arguments it is the test; with one, the program of that case."""

import json
import os
import socket
import subprocess
import sys
import threading
import time

MIB = 1 << 20
BALLAST = 96 * MIB


def launcher():
    """Two ranks, at a port of their own: runs side by side must not meet."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(one.getsockname()[1])]


# ---- programs, as people write them ---------------------------------------------------------------------------------


def load_all():
    import torch
    from safetensors.torch import load_file

    tensors = {}
    for path in os.environ["WEIGHTS"].split(":"):
        tensors.update(load_file(path, device="cuda"))
    torch.cuda.synchronize()
    return tensors


def case_torchrun():
    """Each rank loads all of it when the one before has: what they need at one time is less than what each needs."""
    import torch.distributed as dist

    dist.init_process_group("gloo")
    for turn in range(dist.get_world_size()):
        if turn == dist.get_rank():
            kept = load_all()
        dist.barrier()
    print(dist.get_rank(), len(kept), flush=True)
    time.sleep(0.3)
    dist.destroy_process_group()


def case_fsdp():
    """Each rank keeps half of each layer; what it gathers for a step it gives back. Both are on the only device."""
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard

    os.environ["LOCAL_RANK"] = "0"
    dist.init_process_group("gloo")
    mesh = dist.init_device_mesh("cuda", (dist.get_world_size(),))
    with torch.device("meta"):
        model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024, bias=False) for _ in range(8)])
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh).to_empty(device="cuda")
    model(torch.empty(4, 1024, device="cuda"))
    torch.cuda.synchronize()
    own = sum(parameter.to_local().nbytes for parameter in model.parameters())
    os.write(1, f"{dist.get_rank()} {own}\n".encode())  # in one piece: the other rank writes too
    time.sleep(0.3)
    dist.destroy_process_group()


def worker(number):
    time.sleep(0.3 * number)
    kept = load_all()
    print(number, len(kept), flush=True)
    time.sleep(0.6)


def pool_of(how):
    import multiprocessing

    context = multiprocessing.get_context(how)
    workers = [context.Process(target=worker, args=(number,)) for number in range(2)]
    for process in workers:
        process.start()
    for process in workers:
        process.join()
    raise SystemExit(max(abs(process.exitcode) for process in workers))


def case_spawn():
    pool_of("spawn")


def case_fork():
    """What the parent has, every copy of it seems to have too."""
    import safetensors.torch  # noqa: F401  loads torch, which touches no device

    ballast = b"x" * BALLAST
    pool_of("fork")
    del ballast


def case_engine():
    """A parent that never touches the pool, and its engine's workers, which are other programs."""
    command = [os.environ["VICTIM"], os.environ["WEIGHTS"].split(":")[0], "--hold", "1"]
    workers = []
    for _ in range(2):
        workers.append(subprocess.Popen(command))
        time.sleep(0.4)
    raise SystemExit(max(process.wait() for process in workers))


def case_sequence():
    """The same one after the other: each finds the trace of the one before under the name that it wants."""
    command = [os.environ["VICTIM"], os.environ["WEIGHTS"].split(":")[0]]
    raise SystemExit(max(subprocess.run(command, check=False).returncode for _ in range(3)))


def case_copies():
    """A traced parent with copies of itself that do nothing: what they have is its memory, and no one's beside."""
    with open(os.environ["WEIGHTS"].split(":")[0], "rb") as file:
        file.read(MIB)
    ballast = b"x" * BALLAST
    time.sleep(1.2)
    for _ in range(2):
        if not os.fork():
            time.sleep(1.5)
            os._exit(0)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    del ballast


# ---- who looks from outside -----------------------------------------------------------------------------------------


class Witness(threading.Thread):
    """Every few milliseconds: anonymous memory of a process and of all that descend from it, without the recorders."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.rows, self.names, self.over = pid, [], {}, False
        self.start()

    def descendants(self):
        found, todo = [], [self.pid]
        while todo:
            pid = todo.pop()
            found.append(pid)
            try:
                with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                    todo += map(int, file.read().split())
            except OSError:
                pass
        return found

    def anonymous(self, pid):
        try:
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                lines = dict(line.split(":", 1) for line in file if ":" in line)
        except OSError:
            return 0
        return int(lines.get("RssAnon", "0 kB").split()[0]) * 1024

    def run(self):
        while not self.over:
            before = time.monotonic_ns()
            values = {pid: self.anonymous(pid) for pid in self.descendants()}
            self.rows.append((before, time.monotonic_ns(), values))
            time.sleep(0.004)

    def stop(self):
        self.over = True
        self.join()

    def sum_at(self, moment, pids):
        """Of these processes, in the last look that began before."""
        row = [values for begin, _, values in self.rows if begin <= moment][-1]
        return sum(row.get(pid, 0) for pid in pids)


class Together:
    """A traced run of several processes: rc, out, its folder, the witness, each process' ledger."""

    def __init__(self, name, *command, files=(), stale=False, **settings):
        from e2e import SHIM, cached
        from simledger import BUILD, FOLDER, LIB

        self.folder = os.path.join(FOLDER, name)
        os.makedirs(os.path.join(self.folder, "ledgers"))
        cached(files, warm=False)
        env = {key: value for key, value in os.environ.items() if not key.startswith(("SIMCUDA_", "SPARKTRACE"))}
        env.update(
            SIMCUDA_GB10="1", SIMCUDA_LEDGER=os.path.join(self.folder, "ledgers", "%p"), LD_LIBRARY_PATH=LIB,
            LD_PRELOAD=SHIM, SPARKTRACE_OUTPUT=self.folder + "/", WEIGHTS=":".join(files),
            VICTIM=os.path.join(BUILD, "tests", "victim", "load_cow"), OMP_NUM_THREADS="1",
        )
        env.update({key: str(value) for key, value in settings.items()})
        if stale:
            subprocess.run([env["VICTIM"], files[0]], env=env, capture_output=True, check=True)
        process = subprocess.Popen(
            list(map(str, command)), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.witness = Witness(process.pid)
        self.out, self.err = process.communicate()
        self.witness.stop()
        self.rc, self.pid = process.returncode, process.pid

    def report(self, *options):
        from e2e import Report

        return Report(self.folder, *options)

    def ledger(self, pid):
        path = os.path.join(self.folder, "ledgers", str(pid))
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def copied(self, report):
        """Bytes that all drivers had copied to their devices by the moment of the peak."""
        moment = min(start_of(process["trace"])[0] for process in report["run.processes"]) + report["run.total.time_ns"]
        lines = (line for process in report["run.processes"] for line in self.ledger(process["pid"]))
        return sum(line["size"] for line in lines if line["op"].startswith("cuMemcpyHtoD") and line["t"] <= moment)

    def device(self, pids, kinds=("device", "pinned", "managed")):
        """(time, bytes of all devices) after every change; a process that ended has none."""
        changes = []
        for pid in pids:
            last = 0
            for line in self.ledger(pid):
                now = 0 if line["op"] == "end" else sum(line[kind] for kind in kinds)
                changes.append((line["t"], now - last))
                last = now
        total, sums = 0, []
        for moment, change in sorted(changes):
            total += change
            sums.append((moment, total))
        return sums


def at(sums, moment):
    return [0, *(value for when, value in sums if when <= moment)][-1]


# ---- the test -------------------------------------------------------------------------------------------------------


def start_of(trace):
    """Start of the program and first sample, CLOCK_MONOTONIC; is it a copy of its parent?"""
    from e2e import ANALYZE

    done = subprocess.run([ANALYZE, "dump", trace], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return (
        next(line["start"] for line in lines if line["event"] == "process"),
        min(line["time"] for line in lines if line["event"] == "sample"),
        any(line["event"] == "info" and line["text"].startswith("forked_from=") for line in lines),
    )


def running(starts, pids, moment):
    """Those that count then: a copy counts from its first sample on."""
    return {pid for pid, (_, sample, copy) in zip(pids, starts) if not copy or sample <= moment}


def demand_outside(run, processes):
    """The most that all processes of the run had together beyond what they had at its first sample: as the witness saw it,
    and what may have been between two of its looks."""
    starts = [start_of(process["trace"]) for process in processes]
    first = min(sample for _, sample, _ in starts)
    pids = [process["pid"] for process in processes]
    device = run.device(pids)
    # A copy of its parent has what the parent has, and brings what it comes to have of its own.
    base = sum(
        run.witness.sum_at(sample if copy else first, [pid])
        for pid, (begin, sample, copy) in zip(pids, starts) if copy or begin <= first
    )
    high = rise = 0
    before = None
    for begin, end, values in run.witness.rows:
        if end >= first:
            values = {pid: value for pid, value in values.items() if pid in running(starts, pids, end)}
            now = sum(values.get(pid, 0) for pid in pids) + max(at(device, begin), at(device, end))
            high, rise = max(high, now), max(rise, now - (now if before is None else before))
            before = now
    return high - base, high - base + rise


def run_facts(run, report, count):
    """What holds of every run: the totals are those of the ledgers, of the cache, and of the witness."""
    from e2e import between, facts

    processes = [process for process in report["run.processes"] if process["device_bytes"] or process["most_bytes"] > 16 * MIB]
    pids = [process["pid"] for process in processes]
    device = run.device(pids)
    total = report["run.total"]
    peak = max((value for _, value in device), default=0)
    files = report["run.files"]
    return facts(
        ("rc", (run.rc, run.err[-200:] if run.rc else ""), (0, "")),
        ("processes", len(processes), count),
        ("device, sum of the ledgers by time", total["device_peak_bytes"] + total["pinned_peak_bytes"], peak),
        ("processes of each file", {file["processes"] for file in files}, {count}),
        *(("cache once", *between(0.75 * file["size_bytes"], file["cached"]["high_bytes"], file["size_bytes"])) for file in files),
        ("cache layer", total["weight_cache"]["high_bytes"], sum(file["cached"]["high_bytes"] for file in files)),
        ("verdict", (report.status, total["verdict"] in ("fits", "fits after flush", "tight")), (0, True)),
        ("sum of peaks", *between(total["demand"]["low_bytes"] - total["others"]["high_bytes"] - MIB, total["sum_of_peaks_bytes"], 1 << 40)),
    )


def cache_outside(name, paths):
    """Bytes of the files in the page cache."""
    from e2e import OUTSIDE, Outside
    from simledger import FOLDER

    path = os.path.join(FOLDER, name + ".csv")
    watch = [word for file in paths for word in ("-f", file)]
    subprocess.run([OUTSIDE, "-o", path, *watch, "--", "sleep", "0.1"], check=True)
    return Outside(path).highest("cached")


def margin_of(truth):
    """3 %, or 4 MiB: the recorders' own memory is in nobody's figure, and two samples are never of one instant."""
    return max(truth * 3 // 100, 4 * MIB)


def demand_checks(name, run, report):
    """In a world of its own what else there is, is this test. Bounds hold the truth, and are not so wide as to say
    nothing: host blocks that came since the last sample stand in the upper one."""
    from e2e import facts, own_world
    from simledger import check

    if not own_world():
        print(f"skip {name}_demand - other processes of this machine are part of it")
        return
    demand, (truth, most) = report["run.total.demand"], demand_outside(run, report["run.processes"])
    others = max(report["run.total.others.high_bytes"], 0)  # the launcher, where it has no trace, and this test
    check(f"{name}_demand", facts(
        ("low", demand["low_bytes"] <= most + others + margin_of(truth) and demand["low_bytes"], demand["low_bytes"]),
        ("high", demand["high_bytes"] >= truth - margin_of(truth) and demand["high_bytes"], demand["high_bytes"]),
        ("width", demand["high_bytes"] - demand["low_bytes"] <= max(32 * MIB + margin_of(truth), truth // 3), True),
    ) and (demand, truth, most))


def common_checks(name, run, count, payload):
    from e2e import between, exactly, facts
    from simledger import PAGE, check

    report = run.report()
    size = sum(file["size_bytes"] for file in report["run.files"])
    copied = run.copied(report)
    check(name, run_facts(run, report, count))
    demand_checks(name, run, report)
    check(f"{name}_weights", facts(
        # Seldom the peak comes before the last byte: what else there is on the machine may have had its own.
        ("D of all", *between(copied, sum(file["on_device"]["high_bytes"] for file in report["run.files"]), count * payload)),
        ("D, exact", {file["on_device"]["low_bytes"] == file["on_device"]["high_bytes"] for file in report["run.files"]}, {True}),
        ("copied", sum(file["copied_bytes"] for file in report["run.files"]), count * payload),
        ("cache, outside", *between(0.75 * size, cache_outside(name, [file["path"] for file in report["run.files"]]), size + count * PAGE)),
        ("weights", report["peak.load.weights_bytes"], count * payload),
        ("the processes make the total", [sum(process["device_bytes"] for process in report["run.processes"])], [report["run.total.device_bytes"]]),
        ("copies of the processes", exactly(sum(process["anon"]["low_bytes"] for process in report["run.processes"])), report["run.total.anon"]),
    ))
    return report


def two_ranks(files, payload):
    """Shows line 5, with an older trace in the same folder."""
    from e2e import Report, facts
    from simledger import OLD_SAFETENSORS, PYTHON, check

    run = Together(
        "torchrun", PYTHON, *launcher(), os.path.abspath(__file__), "torchrun", files=files, stale=True, PYTHONPATH=OLD_SAFETENSORS,
    )
    report = common_checks("torchrun", run, 2, payload)
    ranks = {process["rank"]: process for process in report["run.processes"] if process["rank"] is not None}
    low = report["run.total.demand.low_bytes"] - max(report["run.total.others.high_bytes"], 0)
    alone = Report(ranks[0]["trace"])
    check("torchrun_ranks", facts(
        ("ranks", sorted(ranks), [0, 1]), ("world", report["run.world"], 2),
        ("each had its copies at its own time", report["run.total.sum_of_peaks_bytes"] > low + 16 * MIB, True),
        ("left out", report["run.left_out"], 1),
        ("which", os.path.basename(report["run.newest_left_out"]), "run.1.zst"),
        ("beside one of them", alone["run.siblings"], len(report["run.processes"]) - 1),
        ("A together", report["run.total.anon.high_bytes"] <= max(map(os.path.getsize, files)) + 64 * 4096, True),
    ))


def sharded():
    """Two ranks of FSDP over gloo. No weight file: the driver begins the recording."""
    from e2e import facts
    from simledger import PYTHON, check

    run = Together("fsdp", PYTHON, *launcher(), os.path.abspath(__file__), "fsdp")
    report = run.report()
    pids = [process["pid"] for process in report["run.processes"] if process["rank"] is not None]
    peaks = [max((value for _, value in run.device(pids, kinds)), default=0) for kinds in (("device", "managed"), ("pinned",))]
    check("fsdp", (run.rc and run.err[-200:]) or facts(
        ("shards", sorted(run.out.split()), sorted(["0", "1", str(16 * MIB), str(16 * MIB)])), ("ranks", len(pids), 2),
        ("device, sum of the ledgers by time", report["run.total.device_peak_bytes"], peaks[0]),
        ("pinned, likewise", report["run.total.pinned_peak_bytes"], peaks[1]),
    ))


def sequence(files, payload):
    """Three workers that never meet are one run, and what it needs is what one of them does."""
    from e2e import facts
    from simledger import check

    run = Together("sequence", sys.executable, os.path.abspath(__file__), "sequence", files=files)
    report = run.report()
    check("sequence", run.rc or facts(
        ("traces", sorted(os.path.basename(process["trace"]) for process in report["run.processes"]), ["run.1.zst", "run.2.zst", "run.zst"]),
        ("device", report["run.total.device_peak_bytes"], payload),
        ("sum of peaks", report["run.total.sum_of_peaks_bytes"] >= 3 * payload, True),
    ))


def copies(files):
    """N of a process whose forked children share its memory, as data loaders' workers do."""
    from e2e import ANALYZE, own_world
    from simledger import check

    run = Together("copies", sys.executable, os.path.abspath(__file__), "copies", files=files)
    done = subprocess.run([ANALYZE, "dump", os.path.join(run.folder, "run.zst")], capture_output=True, text=True, check=True)
    samples = [line for line in map(json.loads, done.stdout.splitlines()) if line["event"] == "sample"]
    others = [line["other_anon"] for line in samples if line["other_anon"] is not None]
    if own_world():
        check("copies_share_their_parents_memory", run.rc or max(others) - others[0] > BALLAST // 4 and others)
    else:
        print("skip copies - other processes of this machine are part of it")


def named(report):
    """The same by naming the files as by naming the folder; with an unrelated one beside them two reports."""
    from e2e import ANALYZE, facts
    from simledger import check

    traces = [process["trace"] for process in report["run.processes"]]
    done = subprocess.run([ANALYZE, "--json", *traces], capture_output=True, text=True, check=False)
    both = json.loads(done.stdout)
    text = subprocess.run([ANALYZE, *traces], capture_output=True, text=True, check=False).stdout
    check("named_one_by_one", facts(
        ("total", both["run"]["total"], report["run.total"]), ("rc", done.returncode, report.status),
        ("text", text.count("Did it fit?"), 1), ("lines of the run", text[: text.index("Did it fit?")].count("\n") <= 12, True),
    ))


def main():
    from e2e import enter_own_world
    from simledger import OLD_SAFETENSORS, PYTHON, check, finish, weights

    enter_own_world()
    files = [weights(f"model-0000{number}-of-00002.safetensors", 4, 32) for number in (1, 2)]
    payload = 32 * MIB
    script = os.path.abspath(__file__)
    engine = Together("engine", sys.executable, script, "engine", files=files[:1])
    named(common_checks("engine", engine, 2, payload))
    sequence(files[:1], payload)
    copies(files[:1])
    if not os.path.exists(PYTHON):
        print("skip ranks - there is no .venv; scripts/python-env makes it")
        finish()
    two_ranks(files, 2 * payload)
    sharded()
    for case in ("spawn", "fork"):
        run = Together(case, PYTHON, script, case, files=files, PYTHONPATH=OLD_SAFETENSORS)
        report = common_checks(case, run, 2, 2 * payload)
        if case == "fork":
            hosts = [process["host"]["high_bytes"] for process in report["run.processes"]]
            check("fork_counts_the_parent_once", any(host > BALLAST // 2 for host in hosts) and hosts)
    finish()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        globals()["case_" + sys.argv[1]]()
    else:
        main()
