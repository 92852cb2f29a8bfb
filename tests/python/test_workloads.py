"""Whole models at small sizes: inference and a training step as exact as eager, by rule R10."""

import functools

import pytest
import torch
from torch.utils._pytree import tree_leaves

import torch_stitch
from benchmarks.accuracy import tensors_after
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.training import training_steps
from tests.support.compare import compile_strictly, expect_as_exact
from torch_stitch.measure.reference import copy_tensors, widen

pytestmark = pytest.mark.usefixtures("fresh")
NAMES = [name for name in WORKLOADS if "_batch" not in name]  # else the same at another batch
DRAWS = 16  # of weights
TRAINED = [name for name in NAMES if WORKLOADS[name].trains]


def expect_kernels():
    counters = torch_stitch.counters()
    assert counters["kernels"] > 0 and counters["fallback_ops"] == 0, counters


@pytest.mark.parametrize("name", NAMES)
def test_inference_is_as_exact_as_eager(name):
    module, inputs = WORKLOADS[name].make("small")
    with torch.no_grad():
        got = tensors_after(compile_strictly(module), copy_tensors(inputs))
        expected = tensors_after(module, copy_tensors(inputs))
        exact = tensors_after(*widen(module, copy_tensors(inputs)))
    expect_as_exact(got, expected, exact, WORKLOADS[name].terms)
    expect_kernels()


@pytest.mark.parametrize("name", TRAINED)
def test_training_steps_are_as_exact_as_eager(name):
    module, inputs = WORKLOADS[name].make("small")
    wrap = functools.partial(compile_strictly, options={"fallback_random": True})  # eager's numbers
    got = training_steps(module, inputs, wrap, DRAWS)
    expected = training_steps(module, inputs, draws=DRAWS)
    exact = training_steps(*widen(module, inputs), draws=DRAWS)
    expect_as_exact(got, expected, exact, WORKLOADS[name].terms)
    expect_kernels()


@pytest.mark.parametrize("name", WORKLOADS)
def test_scales_are_those_of_the_name(name):
    workload = WORKLOADS[name]
    assert workload.small.keys() >= workload.planning.keys()
    assert workload.cpu is None or workload.cpu.keys() == workload.planning.keys()
    assert not workload.make("small")[0].training


def test_modules_answer_with_tensors_alone():
    for workload in WORKLOADS.values():
        module, inputs = workload.make("small")
        with torch.no_grad():
            results = tree_leaves(module(*inputs))
        assert all(x is None or isinstance(x, torch.Tensor) for x in results)
