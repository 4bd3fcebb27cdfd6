# SPDX-License-Identifier: Apache-2.0
"""A Python program's life around open weights: children of all sorts, closed descriptors, a new file. Prints all
that it can see of itself, and writes a file; both must be the same with the shim and without.

    python_life.py WEIGHTS FILE
"""
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

warnings.simplefilter("always")


def see(what):
    # One number belongs to the listing itself.
    print(what, "descriptors", sorted(map(int, os.listdir("/proc/self/fd"))), "threads",
          len(os.listdir("/proc/self/task")), flush=True)


def wait(what):
    try:
        print(what, "wait", os.waitstatus_to_exitcode(os.wait()[1]))
    except ChildProcessError as error:
        print(what, error)


def load(path):
    with open(path, "rb") as file:
        head = file.read(64)
        view = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
    total = sum(view[i] for i in range(0, len(view), 4096))
    view[8192:12288] = bytes(4096)
    view.close()
    return len(head), total


def main():
    weights, path = sys.argv[1:]
    see("start")
    print("load", load(weights))
    see("loaded")
    wait("before")
    pid = os.fork()
    if pid == 0:
        print("child", load(weights), flush=True)
        see("child")
        os._exit(3)
    wait("fork")
    for i in range(3):
        print(subprocess.run([sys.executable, "-c", f"import os; print(os.listdir('/proc/self/task').__len__() * {i})"],
                             capture_output=True, check=True))
    os.system("exit 4")
    print(os.spawnlp(os.P_WAIT, "true", "true"))
    wait("after")
    thread = threading.Thread(target=load, args=(weights,))
    thread.start()
    thread.join()
    signal.signal(signal.SIGALRM, lambda *_: print("alarm"))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(0.05)
    os.closerange(3, 256)
    with open(path, "w") as file:
        print("number", file.fileno())
        for i in range(1000):
            print(i, load(weights) if i % 100 == 0 else "", file=file)
    see("end")


main()
