"""Children of a process that runs graphs: how many do not end well, by kind (R26).

`python -m tests.support.children KIND COUNT` prints that number.  One that hangs is ended by an
alarm, and counts.
"""

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager

import torch

import torch_stitch

SECONDS = 300  # what hangs does so for ever; beside others a child that compiles takes a minute


def softmax(x):
    return torch.softmax(x * 2, -1)  # no product: locks of the library are its own


def compile_below_dynamo():
    """Dynamo checks guards under a lock that a child finds held, with any backend."""
    x = torch.randn(64, 48)
    graph = torch_stitch.backend.stitch(torch.fx.symbolic_trace(lambda x: (softmax(x),)), [x])
    return lambda x: graph(x)[0], x


def fork(work):
    """A child that ends with 0 if work() is true."""
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(SECONDS)
            code = not work()
        finally:
            os._exit(code)
    return child


def failed(child, allowed=(0,)):
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in allowed:
        print(f"a child ended with {code}", file=sys.stderr, flush=True)
    return code not in allowed


@contextmanager
def threads_that_call(compiled, x, count=2):
    is_over = threading.Event()

    def call():
        while not is_over.is_set():
            compiled(x)
            time.sleep(1e-4)  # or the thread that forks waits for the interpreter's lock

    threads = [threading.Thread(target=call) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def compile_new(number):
    """Whether a function that no other child compiles is right."""
    x = torch.randn(7, 5 + number)
    got = torch.compile(lambda x: x.sum(0).exp() * (number + 0.5), backend="stitch")(x)
    return torch.allclose(got, x.sum(0).exp() * (number + 0.5))


def forked_beside_threads(count):
    compiled, x = compile_below_dynamo()
    expected = compiled(x)
    with threads_that_call(compiled, x):
        return sum(
            failed(fork(lambda: all(compiled(x).equal(expected) for _ in range(3))))
            for _ in range(count)
        )


def forked_to_compile(count):
    compiled, x = compile_below_dynamo()
    with threads_that_call(compiled, x):
        return sum(failed(fork(lambda n=n: compile_new(n))) for n in range(count))


class Softmaxes(torch.utils.data.Dataset):
    """What the workers of a DataLoader make by a compiled function."""

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.compile(softmax, backend="stitch")(torch.arange(6.0) * i)


def workers_of_loaders(count):
    """By fork, before and after this process has compiled, and by spawn."""
    expected, wrong = torch.stack([softmax(torch.arange(6.0) * i) for i in range(8)]), 0
    for n in range(0, count, 2):
        how = {"multiprocessing_context": ("fork", "spawn")[n // 2 % 2], "timeout": 4 * SECONDS}
        loader = torch.utils.data.DataLoader(Softmaxes(), 4, num_workers=2, **how)
        try:
            wrong += 2 * (not torch.allclose(torch.cat(list(loader)), expected))
        except RuntimeError:
            wrong += 2
        Softmaxes()[1]
    return wrong


def signalled_while_compiling(count):
    """SIGTERM ends a child, SIGINT is Python's: either is over at once."""
    stuck = 0
    for n in range(count):
        wanted = (signal.SIGTERM, signal.SIGINT)[n % 2]
        child = fork(lambda n=n: compile_new(n))
        time.sleep(0.05 + 0.1 * (n // 2))
        os.kill(child, wanted)
        stuck += failed(child, (0, 1, -wanted))
    return stuck


def ending_while_compiling(count):
    """An interpreter that ends while a thread of its own compiles."""
    stuck = 0
    for n in range(count):
        child = os.fork()
        if not child:
            signal.alarm(SECONDS)
            options = {"async_compile": True, "cache": "off"}
            torch.compile(torch.cos, backend="stitch", options=options)(torch.ones(3))
            time.sleep(0.02 * n)
            sys.exit(0)
        stuck += failed(child)
    return stuck


KINDS = {
    kind.__name__: kind
    for kind in (
        forked_beside_threads,
        forked_to_compile,
        workers_of_loaders,
        signalled_while_compiling,
        ending_while_compiling,
    )
}


def main(kind, count):
    torch.set_num_threads(1)  # OpenMP's threads do not outlive a fork
    print(KINDS[kind](int(count)))


if __name__ == "__main__":
    main(*sys.argv[1:])
