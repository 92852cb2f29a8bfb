"""Sizes and numbers of tensors at which something else runs out than memory."""

import json
import os

import pytest
import torch
import torch.nn.functional as F

import torch_stitch
from tests.support.compare import compile_strictly, expect_as_exact, expect_equal

pytestmark = pytest.mark.usefixtures("fresh")


def compare(fn, inputs, **how):
    compiled = compile_strictly(fn, **how)
    for got, eager in zip(compiled(*inputs), fn(*inputs), strict=True):
        torch.testing.assert_close(got, eager, rtol=1e-5, atol=1e-5)
    assert torch_stitch.counters()["fallback_ops"] == 0


def plan_of(fn, *inputs):
    return json.loads(torch_stitch.explain(fn, *inputs, target="h200").to_json())


def make_tensors(count):
    return [torch.randn(3, 5) for _ in range(count)]


def test_400_outputs():
    compare(lambda x: tuple(x * i + 1 for i in range(400)), [torch.randn(7, 13)])


def test_300_inputs_of_one_value():
    compare(lambda *xs: (sum(xs),), make_tensors(300))


def test_more_tensors_than_a_kernel_holds():
    inputs = make_tensors(500)
    compare(lambda *xs: tuple(x.neg() for x in xs), inputs)
    assert torch_stitch.counters()["kernels"] == 2  # 600 statements each, two a tensor


def test_50_inputs_of_sizes_known_when_called():
    inputs = [torch.randn(i + 2, 5) for i in range(50)]
    compare(lambda *xs: tuple(x.neg() for x in xs), inputs, dynamic=True)


@pytest.mark.parametrize("target", ["cpu", pytest.param("h200", marks=pytest.mark.simulated)])
def test_tensors_without_dimensions(target):
    def fn(x, y):
        sums = x.sum(), x.mean(), x.prod(), x.amax(), x.std(correction=0), x.norm()
        axes = x.softmax(0), x.logsumexp(0), x.sum(-1, keepdim=True), x.flatten() * 2
        return *sums, *axes, x.argmax(), x.add(y), torch.stack([x, y]).exp(), y.expand(3) + 1

    compare(fn, [torch.tensor(1.5), torch.tensor(-2.0)], options={"target": target})


@pytest.mark.parametrize("target", ["cpu", pytest.param("h200", marks=pytest.mark.simulated)])
def test_nothing_is_kept_on_chip_of_tensors_without_elements(target):
    def fn(x, y):
        y = F.silu(y)
        z = y + y - x
        largest = y.std(0, keepdim=True, correction=0).tanh().amax(0, keepdim=True)
        return y, z, (largest * largest + z * z + 0.25).sqrt(), x.softmax(0)

    compare(fn, [torch.randn(0), torch.randn(0)], options={"target": target})


def test_graphs_without_anything_to_stitch():
    compare(lambda a, b: (a @ b, a), [torch.randn(5, 7), torch.randn(7, 3)])
    assert torch_stitch.counters()["kernels"] == 0


@pytest.mark.parametrize("rows", [1, 2])
def test_rows_of_over_a_million(rows):
    x = torch.randn(rows, (1 << 20) + 7)
    fn = compile_strictly(lambda x: F.softmax(x, -1))
    expect_as_exact(fn(x), F.softmax(x, -1), F.softmax(x.double(), -1), x.shape[1])
    plan = plan_of(lambda x: F.softmax(x, -1), x)
    (kernel,) = plan["kernels"]
    assert "global" in kernel["scheme"].values()


MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
MANY = (1 << 16) + 1, 1 << 15  # over 2^31


def test_over_2_31_elements_are_planned_with_wide_indices(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_STITCH_DUMP", "all")
    monkeypatch.setenv("TORCH_STITCH_DUMP_DIR", str(tmp_path))
    plan = plan_of(torch.neg, torch.empty(MANY, dtype=torch.int8))  # never touched
    assert plan["bytes_planned"] == 2 * MANY[0] * MANY[1]
    (text,) = [text for path in tmp_path.iterdir() if "STITCH_KERNEL" in (text := path.read_text())]
    assert "const i64 block" in text and "const i32 block" not in text


@pytest.mark.skipif(MEMORY < 12 << 30, reason="needs a machine of 12 GB")
def test_over_2_31_elements_run():
    x = torch.ones(MANY, dtype=torch.int8)
    x[-1] = 5
    got = compile_strictly(torch.neg)(x)
    for row in (0, MANY[0] // 2, -1):
        expect_equal(got[row], -x[row])
