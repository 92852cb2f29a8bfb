"""The cache of plans: what was planned before is not planned again, here or in another process."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

import torch_stitch
from tests.support.compare import expect_equal
from torch_stitch import _core


def norm(x, weight):
    return F.layer_norm(x, (64,), weight), x.float().softmax(-1).sum(0)


def chain(x, weight):
    x[1].mul_(2)
    y = (x @ x.t()).relu()
    return y, y[1:, ::2], x.shape[0], torch.sort(y, descending=True).values * weight.sum()


def by_index(x, weight):
    places = torch.tensor([3, 0, 7])
    x.index_add_(0, places, x[places] * 0.5)
    return x.index_select(0, places), torch.where(x > 0, x, weight).amax(1)


FUNCTIONS = {fn.__name__: fn for fn in (norm, chain, by_index)}


def inputs_for(rows):
    torch.manual_seed(0)
    return torch.randn(rows, 64), torch.randn(64)


def run(fn, cache, rows=(8,), **how):
    """Results of a new compilation, and how many plans it made and found."""
    torch._dynamo.reset()
    torch_stitch.reset_counters()
    dynamic = how.pop("dynamic", False)
    options = {"cache": str(cache), "strict": True, **how}
    compiled = torch.compile(fn, backend="stitch", dynamic=dynamic, options=options)
    results = [compiled(*inputs_for(n)) for n in rows]
    counters = torch_stitch.counters()
    return results, counters["plans_made"], counters["plans_found"]


def plans_of(cache):
    files = cache.glob("*.kernel")
    return [path for path in files if b"plan" in path.read_bytes()[:100]]


@pytest.mark.parametrize("simulate", ["false", "fast"])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_plan_that_is_found_gives_the_same_bits(name, dynamic, simulate, tmp_path):
    if simulate != "false" and not _core.nvrtc_available()[0]:
        pytest.skip("no NVRTC")
    how = {"dynamic": dynamic, "simulate": simulate, "rows": (8, 12) if dynamic else (8,)}
    first, made, found = run(FUNCTIONS[name], tmp_path / "a", **how)
    assert made > 0 and found == 0
    shutil.copytree(tmp_path / "a", tmp_path / "b")  # as another process finds them: on disk
    again, made_again, found = run(FUNCTIONS[name], tmp_path / "b", **how)
    assert (made_again, found) == (0, made)
    expect_equal(again, first, rtol=0, atol=0)


def test_a_training_step_is_found(tmp_path):
    def train(cache):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.LayerNorm(64))
        results, made, found = run(lambda x, w: (model(x) * w).square().mean().backward(), cache)
        return [p.grad for p in model.parameters()], made, found

    first, made, _ = train(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    again, made_again, found = train(tmp_path / "b")
    assert made == found == 2 and made_again == 0
    expect_equal(again, first, rtol=0, atol=0)


def test_equal_graphs_of_one_process_are_planned_once(tmp_path):
    _, made, found = run(norm, tmp_path)
    assert (made, found) == (1, 0)
    assert run(norm, tmp_path)[1:] == (0, 1)


@pytest.mark.parametrize(
    "change", [{"rows": (9,)}, {"policy": "none"}, {"emulate_eager_casts": True}, "threads"]
)
def test_what_plans_depend_on_is_planned_apart(change, tmp_path):
    run(norm, tmp_path)
    threads = torch.get_num_threads()
    try:
        if change == "threads":
            torch.set_num_threads(threads + 1)
        _, made, found = run(norm, tmp_path, **({} if change == "threads" else change))
    finally:
        torch.set_num_threads(threads)
    assert (made, found) == (1, 0)


def test_what_plans_do_not_depend_on_is_none_of_the_key(tmp_path):
    run(norm, tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    how = {"pool_bytes": 1 << 20, "progress": False, "cache_size_bytes": 1 << 25}
    assert run(norm, tmp_path / "b", **how)[1:] == (0, 1)


def test_a_damaged_plan_is_made_anew(tmp_path):
    first, *_ = run(norm, tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (plan,) = plans_of(tmp_path / "b")
    text = bytearray(plan.read_bytes())
    text[len(text) // 2] ^= 1
    plan.write_bytes(text)
    again, made, found = run(norm, tmp_path / "b")
    assert (made, found) == (1, 0)
    expect_equal(again, first, rtol=0, atol=0)


def test_kernels_that_are_gone_are_compiled_again(tmp_path):
    first, *_ = run(norm, tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    for path in set((tmp_path / "b").glob("*.kernel")) - set(plans_of(tmp_path / "b")):
        path.unlink()
    again, made, found = run(norm, tmp_path / "b")
    assert (made, found) == (0, 1) and torch_stitch.counters()["cache_misses"] == 1
    expect_equal(again, first, rtol=0, atol=0)


def test_the_report_of_a_plan_that_is_found_is_the_first_ones(tmp_path):
    b = _core.Builder()
    x = b.input("x", _core.TensorType("f32", [64, 64], [64, 1]), 0)
    b.output_tensor(b.pointwise("relu", [b.pointwise("exp", [x])]))
    graph = b.finish(1)

    def report(cache):
        found = _core.compile(graph, _core.CallTable(), {"cache": str(cache)}, "cpu").report()
        assert found["kernels"] and all("STITCH_KERNEL(" in k["text"] for k in found["kernels"])
        return {name: value for name, value in found.items() if name != "stages"}

    first = report(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    torch_stitch.reset_counters()
    assert report(tmp_path / "b") == first
    assert torch_stitch.counters()["plans_found"] == 1


def test_an_error_of_a_kernel_still_names_the_users_op_and_line(tmp_path):
    def fn(x, places):
        return x.exp()[places]

    def message():
        torch._dynamo.reset()
        compiled = torch.compile(fn, backend="stitch", options={"cache": str(tmp_path)})
        with pytest.raises(IndexError) as error:
            compiled(torch.ones(4), torch.tensor([9]))
        return str(error.value)

    first = message()
    assert "test_kept_plans.py" in first and message() == first


CHILD = """
import json, sys, warnings
warnings.simplefilter("error", RuntimeWarning)
import torch, torch_stitch
from tests.python import test_kept_plans as tests
for name in tests.FUNCTIONS:
    for dynamic in (False, True):
        torch._dynamo.reset()
        fn = torch.compile(tests.FUNCTIONS[name], backend="stitch", dynamic=dynamic)
        fn(*tests.inputs_for(8))
print(json.dumps(torch_stitch.counters()))
"""


def test_a_second_process_plans_and_compiles_nothing(tmp_path):
    """Nor does it find other bytes where it makes all again, to compare (cache_verify)."""
    environment = {"TORCH_STITCH_CACHE": str(tmp_path), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}

    def count(**more):
        child = subprocess.run(
            [sys.executable, "-c", CHILD],
            check=True,
            env=os.environ | environment | more,
            stdout=subprocess.PIPE,
            text=True,
        )
        return json.loads(child.stdout.splitlines()[-1])

    first = count()
    second = count()
    assert first["plans_made"] == second["plans_found"] >= 6
    assert second["plans_made"] == second["cache_misses"] == second["compile_seconds"] == 0
    assert second["kernels"] == first["kernels"] > 0
    verified = count(TORCH_STITCH_CACHE_VERIFY="all")
    assert verified["plans_found"] == second["plans_found"] and verified["compile_seconds"] > 0
