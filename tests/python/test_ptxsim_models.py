"""What is compiled for a GPU runs on ptxsim as on the CPU: the same bits, or as near to exact.

Every launch runs under all orders of its warps and blocks; a finding is an error of the call.
"""

import copy
import json

import pytest
import torch
from test_device_headers import needs_nvrtc
from torch.utils._pytree import tree_leaves

import torch_stitch
from benchmarks.accuracy import WORST_RATIO, judge_tensor, tensors_after
from benchmarks.bert import bert_layer
from benchmarks.cases import CASES
from benchmarks.workloads import WORKLOADS
from tests.support.compare import FEW_SIMULATED, compile_strictly, expect_equal
from tests.support.programs import APPROXIMATE, ROUNDED, SAME_BITS, make, sizes_of
from torch_stitch.measure.reference import copy_tensors, widen

pytestmark = [needs_nvrtc, pytest.mark.usefixtures("fresh")]
TARGETS = ("a100", "b200")  # beside the h200
MODELS = ("bert", "dien", "crnn")  # `make simulate` runs all workloads, and trains them


def run(fn, inputs, **options):
    """The results and the inputs after the call."""
    torch._dynamo.reset()
    fn, inputs = copy.deepcopy(fn), copy_tensors(inputs)
    with torch.no_grad():
        return compile_strictly(fn, options=options)(*inputs), inputs


def simulate(fn, inputs, target="h200", how=True):
    torch_stitch.reset_counters()
    found = run(fn, inputs, target=target, simulate=how)
    counters = torch_stitch.counters()
    assert counters["kernels"] > 0 and counters["fallback_ops"] == 0, counters
    return found


def check_bits(name, target="h200"):
    fn, inputs = make(name)
    expect_equal(simulate(fn, inputs, target), run(fn, inputs))


def check_rounded(fn, inputs, terms, target="h200", how=True):
    got = tree_leaves(simulate(fn, inputs, target, how))
    with torch.no_grad():
        expected = tensors_after(fn, copy_tensors(inputs))
        exact = tensors_after(*widen(fn, copy_tensors(inputs)))
    got = [x for x in got if isinstance(x, torch.Tensor)]
    for i, row in enumerate(zip(got, expected, exact, strict=True)):
        verdict = judge_tensor(*row, terms)
        is_few = row[0].numel() < FEW_SIMULATED and verdict.get("worst_ratio", 9) <= WORST_RATIO
        assert verdict["ok"] or is_few, (i, verdict)


@pytest.mark.parametrize("name", SAME_BITS)
def test_bits_of_the_cpu_target(name):
    check_bits(name)


@pytest.mark.parametrize("name", ROUNDED)
def test_subgraphs_are_as_exact_as_eager(name):
    build, terms = ROUNDED[name]
    check_rounded(*build(), terms)


@pytest.mark.parametrize("name", [*APPROXIMATE, "softmax", "cross_entropy", "groupnorm_silu"])
def test_results_hold_though_approximate_instructions_err(name):
    build, terms = ROUNDED[name]
    check_rounded(*build(), terms, how="noise")


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].is_random])
def test_random_subgraphs_have_no_defects(name):
    simulate(*CASES[name].build(CASES[name].dtype, **sizes_of(name)[0]))


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    check_rounded(*WORKLOADS[name].make("small"), WORKLOADS[name].terms)


@pytest.mark.parametrize("target", TARGETS)
def test_other_targets(target):
    check_bits("arithmetic-bfloat16", target)
    check_bits("exact_sums-float32", target)
    build, terms = ROUNDED["layernorm"]
    check_rounded(*build(), terms, target)


@pytest.mark.parametrize("target", ["h200", *TARGETS])
def test_layer_of_bert_base(target):
    check_rounded(*bert_layer(batch=2, length=13), 3072, target)


@pytest.mark.parametrize("name", ["arithmetic", "moved", "extremes", "exact_sums", "one_element"])
def test_programs_are_large_enough_to_race(name):
    fn, inputs = make(f"{name}-float32")
    plan = json.loads(torch_stitch.explain(fn, *inputs, target="h200").to_json())
    assert any(kernel["grid"] >= 2 and kernel["block"] >= 64 for kernel in plan["kernels"])
