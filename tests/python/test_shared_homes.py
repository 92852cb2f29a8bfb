"""Values that threads keep in shared memory: where, how often memory is read, and what comes out.

ptxsim runs every launch under all orders of its blocks and warps and with all checks: what is taken
before it was put, or by another thread without a barrier, is a finding, which raises.
"""

import json
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from test_device_headers import needs_nvrtc

import torch_stitch
from benchmarks.accuracy import in_fp64, judge
from tests.support.compare import compile_strictly
from torch_stitch import ptxsim
from torch_stitch.measure.reference import copy_tensors

pytestmark = [needs_nvrtc, pytest.mark.usefixtures("fresh")]

BF16 = torch.bfloat16
BETWEEN, ACROSS = " between loops", " across the grid barrier"
SHARED, BOTH = "shared memory", "registers and shared memory"
ROWS = 132  # as many as an H200 has multiprocessors: rows are not split over blocks


def softmax(x):
    return x.softmax(-1)


def softmax_of_columns(x):
    return x.softmax(0)


def layer_norm(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias)


def add_and_normalise(x, residual):
    total = x + residual
    return total, total * torch.rsqrt(total.square().mean(-1, keepdim=True) + 1e-6)


def absmax(x):
    return x / x.abs().amax()


def softmax_and_absmax(x, y):
    return x.softmax(-1), absmax(y)


def random(*shape, dtype=torch.float32):
    return torch.randn(shape).to(dtype)


# name: function, inputs, longest sum, homes by target
CASES = {
    "shared": (softmax, [(ROWS, 36864)], 36864, {"h200": SHARED}),
    "threads": (softmax, [(ROWS, 45056)], 45056, {"h200": BOTH, "a100": BOTH}),
    "split": (softmax, [(ROWS, 65536)], 65536, {"h200": BOTH, "b200": BOTH}),
    "ragged": (softmax, [(ROWS, 41001)], 41001, {"h200": SHARED}),
    "half": (
        layer_norm,
        [partial(random, ROWS, 57344, dtype=BF16), (57344,), (57344,)],
        49152,
        {"h200": SHARED, "a100": BOTH},
    ),
}
ACROSS_BARRIERS = {
    "absmax": (absmax, [(4096, 2048)], 1, {"h200": BOTH, "b200": BOTH}),
    "long_rows": (softmax, [(8, 1048576)], 1048576, {"h200": BOTH}),
    "columns": (softmax_of_columns, [(8192, 1024)], 8192, {"h200": BOTH}),
}


def make(sizes):
    return [size() if callable(size) else random(*size) for size in sizes]


def explain(fn, inputs, target):
    return json.loads(torch_stitch.explain(fn, *inputs, target=target).to_json())


def check(fn, inputs, terms, target="h200"):
    ours, eager, exact = (copy_tensors(inputs) for _ in range(3))
    compiled = compile_strictly(fn, options={"target": target, "simulate": True})
    verdict = judge(compiled(*ours), fn(*eager), in_fp64(fn, exact), terms)
    assert verdict["ok"], verdict


@pytest.mark.parametrize("name", [*CASES, *ACROSS_BARRIERS])
def test_each_byte_is_read_once(name):
    fn, sizes, _, homes = {**CASES, **ACROSS_BARRIERS}[name]
    where = BETWEEN if name in CASES else ACROSS
    for target, home in homes.items():
        plan = explain(fn, make(sizes), target)
        (kernel,) = plan["kernels"]
        homes_there = [k for k in kernel["persistent"].values() if k["home"].endswith(where)]
        assert [kept["home"] for kept in homes_there] == [home + where]
        (kept,) = homes_there
        assert kernel["spill_bytes"] == kernel["stack_bytes"] == 0
        assert 48 << 10 < kept["shared_bytes"] <= kernel["shared_bytes"] <= 227 << 10
        assert (kept["registers"] > 0) == (home == BOTH)
        assert plan["bytes_planned"] <= 1.01 * plan["bytes_compulsory"]


@pytest.mark.parametrize("name", [*CASES, *ACROSS_BARRIERS])
def test_results_are_as_exact_as_eager(name):
    fn, sizes, terms, homes = {**CASES, **ACROSS_BARRIERS}[name]
    for target in homes:
        if target != "b200" and name != "columns":
            check(fn, make(sizes), terms, target)


@pytest.mark.parametrize(
    ("fn", "shape", "home"),
    [
        (absmax, (4608, 4096), BOTH + " in part" + ACROSS),
        (softmax, (ROWS, 131072), SHARED + " in part" + BETWEEN),
    ],
)
def test_what_fits_in_part_is_read_again_in_part(fn, shape, home):
    x = random(*shape)
    plan = explain(fn, [x], "h200")
    (kernel,) = plan["kernels"]
    (kept,) = kernel["persistent"].values()
    assert kept["home"] == home
    assert kernel["spill_bytes"] == kernel["stack_bytes"] == 0
    assert 0.25 * x.nbytes < kept["bytes"] < x.nbytes
    check(fn, [x], shape[1])


def test_two_values_of_different_widths():
    inputs = [random(ROWS, 45000, dtype=BF16), random(ROWS, 45000)]
    (kernel,) = explain(add_and_normalise, inputs, "h200")["kernels"]
    homes = [kept["home"] for kept in kernel["persistent"].values()]
    assert homes == [SHARED + BETWEEN, BOTH + BETWEEN]
    check(add_and_normalise, inputs, 45000)


def test_stages_beside_each_other():
    """Blocks that run one stage after the other use the same bytes for different things."""
    inputs = [random(ROWS, 45056), random(1000, 1000)]
    check(softmax_and_absmax, inputs, 45056)


def test_not_a_number_and_strides():
    x = random(45056, ROWS).t()
    x[3, 70], x[5] = float("nan"), float("-inf")
    compiled = compile_strictly(softmax, options={"target": "h200", "simulate": True})
    torch.testing.assert_close(compiled(x), softmax(x), equal_nan=True)


def test_a_tensor_that_is_overwritten():
    def fn(x):
        return x.copy_(x.softmax(-1))

    check(fn, [random(ROWS, 45056)], 45056)


SLOTS = """
namespace stitch {
STITCH_KERNEL(slots, 64, 1)(const TYPE* x, TYPE* y) {
  STITCH_DYNAMIC_SHARED(shared, 0);
  for (int a = 0; a < 3; ++a) {
    put_slot<64>(shared, a, load_vec<WIDTH>(x + (a * 64 + tid()) * WIDTH));
  }
  for (int a = 0; a < 3; ++a) {
    store_vec(y + ((2 - a) * 64 + tid()) * WIDTH, take_slot<Vec<TYPE, WIDTH>, 64>(shared, a));
  }
}
}
"""


@pytest.mark.parametrize(
    ("kind", "dtype", "width"),
    [("i8", torch.int8, 1), ("f32", torch.float32, 1), ("f32", torch.float32, 8)]
    + [("bf16", BF16, 4), ("bf16", BF16, 8), ("f64", torch.float64, 8)],
)
def test_a_thread_takes_what_it_has_put(kind, dtype, width):
    source = SLOTS.replace("TYPE", kind).replace("WIDTH", str(width))
    x = (torch.randn(3, 64, width) * 100).to(dtype)
    y = torch.zeros_like(x)
    room = {"shared_bytes": x.numel() * x.element_size()}
    result = ptxsim.run(source, "slots", 1, 64, [x, y], inputs=[0], outputs=[1], **room)
    assert not result.findings and y.equal(x.flip(0))
    less = {"shared_bytes": room["shared_bytes"] - 1}
    found = ptxsim.run(source, "slots", 1, 64, [x, y], inputs=[0], outputs=[1], **less).findings
    assert found and {finding.kind for finding in found} == {"out_of_bounds"}
