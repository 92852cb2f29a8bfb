"""Scans written as trees, each level of which reads the one below through strided slices and parts,
and as chains of states."""

import pytest
import torch
from support.compare import check, compile_strictly, expect_as_exact
from torch._higher_order_ops.associative_scan import associative_scan

import torch_stitch


def accumulate(x):
    return associative_scan(torch.add, x, 1, combine_mode="generic")


def recur(decay, x):
    def combine(a, b):
        return a[0] * b[0], a[1] * b[0] + b[1]

    return associative_scan(combine, (decay, x), 1, combine_mode="generic")


@pytest.mark.parametrize("length", [2, 16, 37])
def test_scans_of_trees_are_as_exact_as_eager(fresh, length):
    x, decay = torch.randn(3, length, 40), torch.rand(3, length, 40)
    for fn, inputs in ((accumulate, (x,)), (recur, (decay, x))):
        exact = fn(*(each.double() for each in inputs))
        expect_as_exact(compile_strictly(fn)(*inputs), fn(*inputs), exact, 4 * length)
    assert torch_stitch.counters()["library_calls"] == 0


@pytest.mark.parametrize("target", ["cpu", "h200"])
def test_a_scan_is_predicted_to_take_no_longer_than_one_kernel_per_op(target):
    inputs = torch.rand(64, 16, 1024), torch.randn(64, 16, 1024)

    def predict(policy):
        report = torch_stitch.explain(recur, *inputs, target=target, policy=policy)
        return sum(kernel["predicted_us"] for kernel in report.plan["kernels"])

    assert predict("auto") <= predict("none")


def test_a_long_scan_is_joined_between_the_values_that_it_stores():
    """Neither a kernel for each op, nor each level from the one below the last."""
    x = torch.randn(256, 1024)
    plans = {
        policy: torch_stitch.explain(accumulate, x, policy=policy).plan["kernels"]
        for policy in ("auto", "search", "none")
    }
    time = {policy: sum(k["predicted_us"] for k in plan) for policy, plan in plans.items()}
    assert time["auto"] < 0.9 * time["none"] and time["auto"] < 0.9 * time["search"], time
    assert len(plans["auto"]) < 0.6 * len(plans["none"])


def test_states_made_one_from_another_are_made_once(fresh):
    def recur(x):
        states = [x[:, :1]]
        for i in range(1, x.shape[1]):
            states.append(torch.maximum(states[-1], x[:, i : i + 1].tanh()))
        return torch.cat(states, 1) * 2

    check(recur, torch.randn(6, 16, 50), rtol=1e-6, atol=1e-6)
    assert torch_stitch.counters()["kernels"] == 1
