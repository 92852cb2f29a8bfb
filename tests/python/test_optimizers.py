"""Optimizer steps, written by hand: one kernel, every new value stored over the old one."""

import copy

import pytest
import torch

import torch_stitch
from tests.support.compare import compile_strictly, expect_as_exact


def adamw(params, grads, means, squares):
    for p, g, m, v in zip(params, grads, means, squares, strict=True):
        p.mul_(1 - 1e-4)
        m.mul_(0.9).add_(g, alpha=0.1)
        v.mul_(0.999).addcmul_(g, g, value=0.001)
        p.addcdiv_(m, v.sqrt().add_(1e-8), value=-1e-3)


def momentum(params, grads, means, squares):
    for p, g, m in zip(params, grads, means, strict=True):
        m.copy_(m * 0.9 + g)
        p.sub_(m, alpha=0.1)
        p.clamp_(-2, 2)


def adagrad(params, grads, means, squares):
    for p, g, v in zip(params, grads, squares, strict=True):
        v.addcmul_(g, g)
        p.addcdiv_(g, v.sqrt() + 1e-10, value=-0.01)


def average(params, grads, means, squares):
    rate = torch.full((), 0.25)
    for p, g, m, v in zip(params, grads, means, squares, strict=True):
        p.add_(g, alpha=rate)
        m.lerp_(p, 0.3)
        v.lerp_(m * m, 0.6)


@pytest.mark.parametrize("step", [adamw, momentum, adagrad, average])
def test_new_values_that_are_read_again_are_stored_over_the_old_ones(step):
    torch.manual_seed(0)
    shapes = [(7, 5), (33,), (1,), (2, 3, 4)]
    state = [[torch.rand(shape) + 0.1 for shape in shapes] for _ in range(4)]
    mine, theirs = copy.deepcopy(state), copy.deepcopy(state)
    exact = [[x.double() for x in row] for row in state]
    compiled = compile_strictly(step)
    torch_stitch.reset_counters()
    for _ in range(2):
        compiled(*mine)
        step(*theirs)
        step(*exact)
    expect_as_exact(mine, theirs, exact, terms=2)
    counters = torch_stitch.counters()
    assert counters["library_calls"] == 0 and counters["fallback_ops"] == 0, counters
