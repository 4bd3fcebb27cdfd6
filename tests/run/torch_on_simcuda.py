# SPDX-License-Identifier: Apache-2.0
"""See torch_on_simcuda.sh. Without arguments it is the test; with one, the program of that case."""

import os
import sys

MIB = 1 << 20
GIB = 1 << 30


def case_basics(torch):
    print(torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.get_device_name(), sep=",")
    host = torch.arange(MIB, dtype=torch.float32)
    print(torch.equal(host.cuda().cpu(), host))
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    end.record()
    torch.cuda.synchronize()
    print(start.elapsed_time(end) >= 0)
    with torch.cuda.stream(torch.cuda.Stream()):
        print(torch.equal(host.cuda().cpu(), host))
    print(len(torch.cuda.memory_snapshot()) > 0)


def case_pinned(torch):
    host = torch.arange(16 * MIB, dtype=torch.uint8).pin_memory()
    print(host.is_pinned(), torch.equal(host.cuda(non_blocking=True).cpu(), host))
    del host
    torch._C._host_emptyCache()


def case_memory(torch):
    """A request that cannot be met, then one that can."""
    try:
        torch.empty(9 * GIB, dtype=torch.uint8, device="cuda")
        print("no error")
    except torch.cuda.OutOfMemoryError:
        print("OutOfMemoryError")
    host = torch.arange(64 * MIB, dtype=torch.uint8)
    device = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    print(torch.equal(device.copy_(host).cpu(), host))


def case_threads(torch):
    import threading

    hosts = [torch.full((MIB,), number, dtype=torch.uint8) for number in range(8)]
    results = [False] * 8

    def work(number):
        results[number] = all(torch.equal(hosts[number].cuda().cpu(), hosts[number]) for _ in range(20))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(all(results))


def case_training(torch):
    layers = [torch.nn.Embedding(1000, 256), torch.nn.LayerNorm(256), torch.nn.Linear(256, 1000)]
    model = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    before = torch.cuda.memory_allocated()
    for _ in range(3):
        ids = torch.randint(0, 1000, (8, 64)).cuda()
        torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    parameters = sum(parameter.nbytes for parameter in model.parameters())
    states = torch.cuda.memory_allocated() - before
    print(2 * parameters <= states <= 2 * parameters + 2 * MIB)


def case_load(torch):
    import safetensors
    from safetensors.torch import load_file

    path = os.environ["WEIGHTS"]
    device = load_file(path, device="cuda")
    host = load_file(path)
    print(safetensors.__version__, len(device), all(torch.equal(device[name].cpu(), host[name]) for name in host))


def program(case):
    import torch

    globals()["case_" + case](torch)
    sys.stdout.flush()
    os._exit(0)  # torch's autograd thread may abort a normal exit, which is no matter of ours


# What may be asked for without being simulated. A name that is not here may hide a missing output.
STUBS_ALLOWED = set()


def expect(name, done, words, wanted, extra=None):
    from simledger import check, differ

    stubs = set(done.stubs()) - STUBS_ALLOWED
    found = done.out.split()
    check(name, (done.rc, done.out) if done.rc or found[-len(words) :] != words else stubs or differ(done.last(), wanted) or extra)


def test_programs(run):
    expect("basics", run("basics"), ["True,1,NVIDIA", "GB10", "(simulated)"] + ["True"] * 4, {"pinned_peak": 0})
    expect("pinned", run("pinned"), ["True", "True"], {"pinned_peak": 16 * MIB, "pinned": 0})
    expect("threads", run("threads"), ["True"], {"copied": 160 * MIB})
    expect("training", run("training"), ["True"], {"pinned_peak": 0})


def test_memory(run):
    limit = 2 * GIB
    done = run("memory", SIMCUDA_LIMIT=limit)
    refused = [line["op"] for line in done.lines() if line["rc"] == 2]
    words = ["OutOfMemoryError", "True"]
    expect("out_of_memory", done, words, {"device_peak": 64 * MIB}, refused != ["cuMemAlloc_v2"] * 2 and refused)
    done = run("memory", SIMCUDA_LIMIT=limit, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    refused = [line["op"] for line in done.lines() if line["rc"] == 2]
    # All of what fits is created, refused, released, and all of it again, before the error is raised.
    full = limit // (20 * MIB) * 20 * MIB
    expect("expandable", done, words, {"device_peak": full, "device": 80 * MIB}, refused != ["cuMemCreate"] * 2 and refused)
    done = run("memory", SIMCUDA_LIMIT=limit, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    expect("async_backend", done, words, {"device_peak": 64 * MIB}, not done.ops("cuMemAllocAsync"))


def test_loads(run):
    from simledger import OLD_SAFETENSORS, PAGE, weights

    path = weights("load.safetensors", 8, 128)
    done = run("load", WEIGHTS=path, SIMCUDA_GB10=1, PYTHONPATH=OLD_SAFETENSORS)
    sources = {line["source"] for line in done.ops("cuMemcpyHtoDAsync_v2")}
    wrong = sources != {"file_private_writable"} or not 128 * MIB <= done.last()["broken"] <= 128 * MIB + 8 * 2 * PAGE
    expect("safetensors_0.7", done, ["0.7.0", "8", "True"], {"pinned_peak": 0}, wrong and (sources, done.last()))
    done = run("load", WEIGHTS=path, SIMCUDA_GB10=1)
    sources = {line["source"] for line in done.ops("cuMemcpyHtoDAsync_v2")}
    wanted = {"pinned_peak": 16 * MIB, "broken": 0}
    expect("safetensors_0.8", done, ["0.8.0", "8", "True"], wanted, sources != {"pinned"} and sources)


def main():
    from simledger import PYTHON, finish, run

    if not os.path.exists(PYTHON):
        print("skip torch_on_simcuda - there is no .venv; scripts/python-env makes it")
        return
    start = lambda case, **settings: run(PYTHON, os.path.abspath(__file__), case, **{"SIMCUDA_GB10": 1, **settings})
    test_programs(start)
    test_memory(start)
    test_loads(start)
    finish()


if len(sys.argv) > 1:
    program(sys.argv[1])
else:
    main()
