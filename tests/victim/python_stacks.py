# SPDX-License-Identifier: Apache-2.0
"""Maps a weight file in all sorts of places, each time with another length, and prints for each what Python itself says
of the stack there: one line of JSON, {"pid", "size", "stack": [[qualified name, file, line], ...]}, innermost first.

    python_stacks.py WEIGHTS [stress]
"""
import ctypes
import itertools
import json
import mmap
import os
import sys
import threading
import traceback

MIB = 1 << 20
sizes = itertools.count(MIB + 16, 16)
weights = open(sys.argv[1], "rb")
alive = []
writing = threading.Lock()


def tell(**what):
    with writing:
        print(json.dumps(dict(what, pid=os.getpid())), flush=True)


def frames_of(frame):
    """Keeps none of them: they would keep what lives in them."""
    return [[frame.f_code.co_qualname, frame.f_code.co_filename, line] for frame, line in traceback.walk_stack(frame)]


def load():
    size = next(sizes)
    more = {"flags": mmap.MAP_PRIVATE, "prot": mmap.PROT_READ}
    alive.append(mmap.mmap(weights.fileno(), size, **more)); stack = frames_of(sys._getframe())  # of one line
    tell(size=size, stack=stack)


def nested(depth):
    if depth:
        return nested(depth - 1)
    return (lambda: load())()


class Loader:
    def __init__(self):
        self.parts = [load() for _ in range(2)]

    @property
    def tensor(self):
        return sorted(
            [1, 2],
            key=lambda part: [load(), part][1],
        )

    @classmethod
    def open(cls): return cls()

    def __enter__(self):
        load()
        return self

    def __exit__(self, *error):
        load()

    def __del__(self):
        load()


def shards():
    for _ in range(2):
        yield load()


def delegated():
    yield from shards()


async def coroutine():
    load()


def été():
    load()


def with_error():
    try:
        raise ValueError("no")
    except ValueError:
        load()
    finally:
        load()


def made_code():
    """Code that comes and goes, likely at the same addresses."""
    for i in range(20):
        exec(compile("\n" * (i % 3) + "load()\n", f"<cell {i}>", "exec"), {"load": load})
    for i in range(20):
        scope = {"load": load}
        exec(compile(f"def made_{i}():\n    load()\nmade_{i}()\n", "<made>", "exec"), scope)


def many_lines():
    load(); load()
    if True:
        load(
        )
    (load(),
     load(),

     load())


def threads(count, work, *args):
    all_of_them = [threading.Thread(target=work, args=args) for _ in range(count)]
    for thread in all_of_them:
        thread.start()
    for thread in all_of_them:
        thread.join()


def native_threads():
    """Of C: one that never sees Python, and one that calls into it."""
    program, made = ctypes.CDLL(None), ctypes.c_ulong()
    work = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: load())
    for start, arg in (program.malloc, 5 * MIB + 16), (work, 0):
        program.pthread_create(ctypes.byref(made), None, start, ctypes.c_void_p(arg))
        program.pthread_join(made, None)
    tell(size=5 * MIB + 16, stack=[])


def fork():
    sys.stdout.flush()
    child = os.fork()
    if not child:
        nested(1)
        os._exit(0)
    os.waitpid(child, 0)


def everything():
    nested(0)
    nested(3)
    with Loader.open() as loader:
        loader.tensor
    del loader
    list(delegated())
    try:
        coroutine().send(None)
    except StopIteration:
        pass
    été()
    with_error()
    made_code()
    many_lines()
    nested(100)
    threads(3, nested, 2)
    native_threads()
    fork()


def stress():
    """Threads begin and end while others load."""
    over = threading.Event()

    def idle():
        while not over.is_set():
            threads(4, int)

    others = [threading.Thread(target=idle) for _ in range(3)]
    for other in others:
        other.start()
    for _ in range(20):
        threads(8, nested, 5)
    over.set()
    for other in others:
        other.join()


with weights:
    stress() if sys.argv[2:] == ["stress"] else everything()
