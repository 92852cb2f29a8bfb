"""async_compile: a graph runs op by op until its kernels are there; nothing else is to be seen."""

import copy
import subprocess
import sys
import threading
import time
import warnings

import pytest
import torch
from torch import nn

import torch_stitch


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch_stitch.reset_counters()


@pytest.fixture
def slow(tmp_path):
    """slow(): options whose C++ compiler waits until `go()`; `go(False)`: it then fails."""
    script, gate = tmp_path / "compiler", tmp_path / "gate"
    script.write_text(
        f"""#!/bin/sh
        case "$*" in *.cpp*)
          while [ ! -e {gate} ]; do sleep 0.02; done
          for word; do
            case $(cat {gate}):$word in fail:*.cpp)
              grep -q 'STITCH_KERNEL(stitch' "$word" && echo refused && exit 1
            esac
          done
        esac
        exec g++ "$@"
        """
    )
    script.chmod(0o755)

    def go(works=True):
        whole = tmp_path / "whole"  # the compiler must not meet a gate that is still empty
        whole.write_text("go" if works else "fail")
        whole.rename(gate)

    yield {"async_compile": True, "cxx": str(script), "cache": str(tmp_path / "cache")}, go
    if not gate.exists():
        go()
    # What they count would be taken for the next test's.
    wait_for(lambda: torch_stitch._core.Meanwhile.running() == 0)


def compile_with(options, fn, **how):
    return torch.compile(fn, backend="stitch", fullgraph=True, options=options, **how)


def wait_for(condition, limit_s=60):
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "the kernels never came"
        time.sleep(0.01)


def kernels():
    return torch_stitch.counters()["kernels"]


def compare(got, expected):
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


def softmax(x):
    return torch.softmax(x * 2, -1)


def test_results_come_before_the_kernels_and_are_the_same_after(slow):
    options, go = slow
    x = torch.randn(64, 33)
    compiled = compile_with(options, softmax)
    for _ in range(3):
        compare(compiled(x), softmax(x))
    assert kernels() == 0
    go()
    wait_for(kernels)
    for _ in range(3):
        compare(compiled(x), softmax(x))
    assert torch_stitch.counters()["fallback_ops"] == 0


def test_training_steps_across_the_swap(slow):
    options, go = slow
    model = nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16), nn.GELU(), nn.BatchNorm1d(16))
    model, x = model.double(), torch.randn(8, 16, dtype=torch.float64)
    twin = copy.deepcopy(model)
    compiled = compile_with(options, twin)
    optimizers = [torch.optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in (model, twin)]
    for step in range(8):
        if step == 3:  # forward by the dispatcher, backward by whichever is ready
            go()
        if step == 5:
            wait_for(lambda: kernels() >= 2)
        for run, optimizer in zip((model, compiled), optimizers, strict=True):
            optimizer.zero_grad()
            run(x).square().sum().backward()
            optimizer.step()
        compare(list(twin.state_dict().values()), list(model.state_dict().values()))


def test_a_backward_pass_by_kernels_of_a_forward_pass_without(slow):
    options, go = slow
    x = torch.randn(32, 64, requires_grad=True)
    compiled = compile_with(options, lambda x: torch.dropout(x.sin(), 0.5, True).exp())
    y = compiled(x)
    go()
    compiled(x).sum().backward()
    wait_for(lambda: kernels() >= 2)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    kept = y.detach() != 1  # exp(0): dropped
    assert 0.3 < kept.float().mean() < 0.7
    compare(gradient, torch.where(kept, 2 * x.cos() * y, 0).detach())


def test_random_numbers_are_the_same_before_and_after(slow):
    options, go = slow
    compiled = compile_with(options, lambda x: torch.rand_like(x) + torch.dropout(x, 0.3, True))
    x, drawn = torch.randn(100, 7), []
    for ready in (False, True):
        torch.manual_seed(3)
        drawn += [[compiled(x), compiled(x)]]
        assert bool(kernels()) == ready
        go()
        wait_for(kernels)
    compare(*drawn)
    assert not torch.equal(*drawn[0])


def test_arguments_are_changed_once_per_call(slow):
    options, go = slow

    def fn(x, total):
        total += x.sum(0)
        x.mul_(2)
        return total * 1, x.view(-1)

    compiled = compile_with(options, fn)
    mine, theirs = ([torch.ones(4, 3), torch.zeros(3)] for _ in range(2))
    for step in range(4):
        if step == 2:
            go()
            wait_for(kernels)
        got, expected = compiled(*mine), fn(*theirs)
        compare(got, expected)
        compare(mine, theirs)
        assert got[1].data_ptr() == mine[0].data_ptr()


def test_dynamic_sizes_and_graph_breaks(slow):
    options, go = slow

    def fn(x):
        y = torch.softmax(x, 0)
        torch._dynamo.graph_break()
        return y.sum(-1) * x.shape[0]

    compiled = torch.compile(fn, backend="stitch", options=options, dynamic=True)
    for step, rows in enumerate((5, 8, 13, 5)):
        if step == 2:
            go()
            wait_for(lambda: kernels() >= 2)
        x = torch.randn(rows, 7)
        compare(compiled(x), fn(x))


def test_two_threads(slow):
    options, go = slow
    x = torch.randn(40, 50)
    expected, compiled, failures = softmax(x), compile_with(options, softmax), []
    compiled(x)

    def work():
        for _ in range(300):
            if not torch.allclose(compiled(x), expected, atol=1e-5):
                failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    go()
    for thread in threads:
        thread.join()
    wait_for(kernels)
    assert not failures


def test_a_failure_warns_and_the_graph_goes_on(slow):
    options, go = slow
    x = torch.randn(8, 9)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = compile_with(options, softmax)
        compiled(x)
        go(False)
        wait_for(lambda: torch_stitch.counters()["fallback_ops"])
        wait_for(lambda: any("run as library calls" in str(w.message) for w in caught))
        compare(compiled(x), softmax(x))
    assert kernels() == 0


def test_a_failure_under_strict_is_an_error_of_the_next_call(slow):
    options, go = slow
    compiled = compile_with(options | {"strict": True}, softmax)
    x = torch.randn(8, 9)
    compare(compiled(x), softmax(x))
    go(False)
    with pytest.raises(torch_stitch._core.KernelError, match="does not compile"):
        wait_for(lambda: compiled(x) is None)
    with pytest.raises(torch_stitch._core.KernelError, match="does not compile"):
        compiled(x)


def test_what_cannot_be_imported_warns_at_once(slow, monkeypatch):
    def refuse(*_):
        raise torch_stitch._core.UnsupportedError("not this one")

    monkeypatch.setattr("torch_stitch.backend.import_graph", refuse)
    x = torch.randn(8, 9)
    with pytest.warns(UserWarning, match="not this one"):
        compare(compile_with(slow[0], softmax)(x), softmax(x))


EXITS = """
import sys, torch
import torch_stitch
x = torch.randn(8, 9)
compiled = torch.compile(lambda x: torch.softmax(x, -1), backend="stitch", options={options})
torch.testing.assert_close(compiled(x), torch.softmax(x, -1))
print("answered", flush=True)
{ending}
"""


@pytest.mark.parametrize("ending", ["", "sys.exit(7)", "raise KeyError", "import os\nos._exit(0)"])
def test_the_process_may_end_while_kernels_compile(slow, ending):
    text = EXITS.format(options=slow[0], ending=ending)
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert done.stdout == "answered\n", done.stderr
    assert done.returncode == {"sys.exit(7)": 7, "raise KeyError": 1}.get(ending, 0), done.stderr
    assert ("KeyError" in done.stderr) == ("KeyError" in ending) and "stitch" not in done.stderr
    assert time.monotonic() - start < 60  # the compiler would wait for ever


def test_a_forked_child_goes_on_without_kernels(slow):
    fork = """
import os, time
time.sleep(1)  # the thread is at the compiler, and holds locks
torch.set_num_threads(1)  # OpenMP's threads do not outlive a fork; the graph is compiled again
expected, pid = torch.softmax(x, -1).tolist(), os.fork()
assert all(abs(a - b) < 1e-6 for a, b in zip(sum(compiled(x).tolist(), []), sum(expected, [])))
if pid:
    assert os.waitpid(pid, 0)[1] == 0
"""
    text = EXITS.format(options=slow[0], ending=fork)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_it_is_off_unless_asked_for():
    x = torch.randn(4, 5)
    compiled = compile_with({}, softmax)
    compare(compiled(x), softmax(x))
    assert kernels() == 1


def test_kernels_of_a_gpu_come_later_too():
    options = {"async_compile": True, "simulate": True}
    if not torch_stitch._core.nvrtc_available()[0]:
        pytest.skip("NVRTC was not found")
    x = torch.randn(6, 40)
    compiled = compile_with(options, softmax)
    compare(compiled(x), softmax(x))
    wait_for(kernels)
    compare(compiled(x), softmax(x))
