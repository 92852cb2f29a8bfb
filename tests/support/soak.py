"""Long runs: many shapes through one dynamic graph, the same call repeated, forks under load.

`python -m tests.support.soak [shapes] [runs]` prints JSON.
"""

import gc
import json
import os
import random
import subprocess
import sys

import torch

MOST_GROWTH_MIB = 64  # R28
WARM_UP = 0.1  # of the calls


def norm(x):
    return torch.nn.functional.layer_norm(x, x.shape[-1:]).sum(0) + x.amax(0)


def resident_mib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def resources():
    gc.collect()
    files, threads = (len(os.listdir(f"/proc/self/{name}")) for name in ("fd", "task"))
    return resident_mib(), files, threads


def call_with_shapes(count):
    """What remains after `count` distinct shapes, beside what the first tenth has left."""
    torch._dynamo.reset()
    compiled = torch.compile(norm, backend="stitch", dynamic=True)
    drawn = random.Random(0).sample(range(4, 4 + 100 * count), count)
    before, wrong = None, 0
    for i, number in enumerate(drawn):
        x = torch.randn(2 + number % 100, 2 + number // 100 % 400)
        wrong += not torch.allclose(compiled(x), norm(x), rtol=1e-4, atol=1e-4)
        if i == int(count * WARM_UP):
            before = resources()
    left = [b - a for a, b in zip(before, resources())]
    return {
        "shapes": count,
        "wrong": wrong,
        "growth_mib": round(left[0], 1),
        "files": left[1],
        "threads": left[2],
    }


def programs():
    """Sums in each direction, products, scatters, random numbers."""
    x, index = torch.randn(317, 129), torch.randint(0, 11, (317,))
    return [
        (lambda x: (x.sum(), x.sum(0), x.softmax(-1), x.std(1)), (x,)),
        (lambda x: torch.nn.functional.gelu(x @ x.t()).mean(-1), (x,)),
        (lambda x, i: torch.zeros(11, 129).index_add(0, i, x), (x, index)),
        (lambda x: torch.nn.functional.dropout(x, 0.3).sum(1), (x,)),
    ]


def count_unequal_runs(runs):
    """R12: of repeated calls, those whose bits differ from the first one's."""
    unequal = 0
    for fn, inputs in programs():
        torch._dynamo.reset()
        compiled, first = torch.compile(fn, backend="stitch"), None
        for _ in range(runs):
            torch.manual_seed(0)
            got = torch.utils._pytree.tree_leaves(compiled(*inputs))
            first = first or got
            unequal += not all(a.equal(b) for a, b in zip(first, got))
    return unequal


# R26: prints how many children of a process whose threads run graphs did not end well.
FORKS = """
import os, signal, threading, time, torch, torch_stitch
torch.set_num_threads(1)  # OpenMP's threads do not outlive a fork
fn = lambda x: torch.softmax(x * 2, -1)  # no product: locks of the library are its own
x = torch.randn(64, 48)
# Dynamo checks its guards under a lock of its own, which a child finds held with any backend.
compiled = lambda x: graph(x)[0]
graph = torch_stitch.backend.stitch(torch.fx.symbolic_trace(lambda x: (fn(x),)), [x])
expected, is_over = compiled(x), False

def call():
    while not is_over:
        compiled(x)
        time.sleep(1e-4)  # or the thread that forks waits for the interpreter's lock

threads = [threading.Thread(target=call) for _ in range(2)]
for thread in threads:
    thread.start()
stuck = 0
for _ in range(10):
    child = os.fork()
    if not child:
        signal.alarm(20)
        os._exit(not all(compiled(x).equal(expected) for _ in range(3)))
    stuck += os.waitpid(child, 0)[1] != 0
child = os.fork()
if not child:  # one that compiles for itself
    signal.alarm(200)
    y = torch.randn(7, 5)
    got = torch.compile(lambda y: y.sum(0).exp(), backend="stitch")(y)
    os._exit(not torch.allclose(got, y.sum(0).exp()))
stuck += os.waitpid(child, 0)[1] != 0
is_over = True
for thread in threads:
    thread.join()
print(stuck)
"""


def count_stuck_children():
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True)
    return int(done.stdout)


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    shapes, runs = given + [20_000, 100][len(given) :]
    found = {"unequal_runs": count_unequal_runs(runs), "stuck_children": count_stuck_children()}
    print(json.dumps(call_with_shapes(shapes) | found))
