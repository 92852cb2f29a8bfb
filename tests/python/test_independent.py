"""Independent work in few launches: optimiser steps of many tensors, two directions of one step."""

import json

import pytest
import torch
from torch import nn

import torch_stitch
from benchmarks.accuracy import tensors_after
from benchmarks.subgraphs import LAYER_SHAPES, adamw_of_layers
from tests.support.compare import compile_strictly, expect_as_exact
from torch_stitch.measure.reference import widen

pytestmark = pytest.mark.usefixtures("fresh")


def plan_of(fn, *inputs):
    return json.loads(torch_stitch.explain(fn, *inputs, target="h200").to_json())


def adamw(parameters, gradients, means, squares, rate=1e-3):
    """One step of each tensor by itself, as `foreach` optimisers take it."""
    torch._foreach_mul_(parameters, 1 - rate * 0.01)
    torch._foreach_lerp_(means, gradients, 0.1)
    torch._foreach_mul_(squares, 0.999)
    torch._foreach_addcmul_(squares, gradients, gradients, 0.001)
    scale = torch._foreach_sqrt(squares)
    torch._foreach_add_(scale, 1e-8)
    torch._foreach_addcdiv_(parameters, means, scale, -rate)


def make_state(count):
    """Parameters, gradients, means and squares of `count` tensors of many sizes."""
    shapes = [(i % 7 + 1, i % 11 + 1) if i % 3 else (i % 13 + 1,) for i in range(count)]
    return [[torch.rand(shape) for shape in shapes] for _ in range(4)]


def copies_of(state):
    return [[x.clone() for x in tensors] for tensors in state]


def check_step(count):
    state = make_state(count)
    got, eager = copies_of(state), copies_of(state)
    compile_strictly(adamw)(*got)
    adamw(*eager)
    expect_as_exact(got, eager, tensors_after(*widen(adamw, copies_of(state))), 1)
    assert torch_stitch.counters()["library_calls"] == 0


def test_an_optimiser_step_of_more_tensors_than_a_launch_takes():
    check_step(150)


@pytest.mark.simulated
def test_an_optimiser_step_of_twenty_tensors_is_one_launch_on_a_gpu():
    check_step(20)
    assert torch_stitch.counters()["kernels"] == 1


def test_an_optimiser_step_of_several_hundred_tensors_is_few_launches_on_a_gpu():
    assert len(plan_of(adamw, *make_state(125))["kernels"]) <= 125 // 25


@pytest.mark.simulated
def test_equal_tensors_of_an_optimiser_step_are_found_in_a_table():
    step, state = adamw_of_layers(torch.float32, 20, (64, 32), (7, 9), (33,))
    state[0][6] = torch.rand(65, 32)[1:]  # of the first shape, and aligned to 16 bytes
    state[1][3] = torch.rand(64 * 32 + 1)[1:].view(64, 32)  # and to 4
    got, eager = copies_of(state), copies_of(state)
    got[1][3] = state[1][3]
    compile_strictly(step)(*got)
    step(*eager)
    expect_as_exact(got, eager, tensors_after(*widen(step, copies_of(state))), 1)
    assert torch_stitch.counters()["kernels"] == 1


def test_an_optimiser_step_of_400_tensors_is_one_kernel_on_a_gpu():
    with torch.device("meta"):
        step, state = adamw_of_layers(torch.float32, 400, *LAYER_SHAPES)
    assert len(plan_of(step, *state)["kernels"]) == 1


def test_the_clock_times_a_kernel_that_finds_its_tensors_in_a_table():
    with torch.device("meta"):
        step, state = adamw_of_layers(torch.float32, 20, (1024, 1024))
    report = torch_stitch.explain(step, *state, target="h200", clock=True)
    (kernel,) = report.plan["kernels"]
    assert 0.8 < kernel["clock_us"] / kernel["predicted_us"] < 1.2
    assert not any("outside" in sentence for sentence in kernel["assumptions"])


class BothDirections(nn.Module):
    """One step of each direction; neither reads the other."""

    def __init__(self, cell):
        super().__init__()
        self.forwards, self.backwards = cell(24, 32), cell(24, 32)

    def forward(self, first, last, *states):
        half = len(states) // 2
        pick = (lambda s: s[0]) if half == 1 else tuple
        return self.forwards(first, pick(states[:half])), self.backwards(last, pick(states[half:]))


@pytest.mark.parametrize("cell, states", [(nn.GRUCell, 2), (nn.LSTMCell, 4)])
def test_the_two_directions_of_a_recurrent_step_are_one_launch_on_a_gpu(cell, states):
    model = BothDirections(cell)
    inputs = [torch.randn(8, 24) for _ in range(2)] + [torch.randn(8, 32) for _ in range(states)]
    with torch.no_grad():
        assert len(plan_of(model, *inputs)["kernels"]) == 1
        got, eager = compile_strictly(model)(*inputs), model(*inputs)
        wide, given = widen(model, inputs)
        exact = wide(*given)
    expect_as_exact(got, eager, exact, 24 + 32)
