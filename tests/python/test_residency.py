"""Kernels with a grid barrier: right with exactly the blocks that a device holds, and not one more.

ptxsim plays a device of two multiprocessors, where few blocks fill it.
"""

import re
import sys
from pathlib import Path

import pytest
import torch
from test_device_headers import needs_nvrtc

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from show import capture_graphs  # noqa: E402

from torch_stitch import ptxsim  # noqa: E402
from torch_stitch.fx_ops import DTYPES  # noqa: E402

pytestmark = [needs_nvrtc, pytest.mark.usefixtures("fresh")]
DEVICE = "two_sm"
TYPES = {short: dtype for dtype, short in DTYPES.items()} | {"u32": torch.int32}
PHASES = re.compile(r"first_phase < (\d+) && \d+ < end_phase")


def scaled_by_largest(x):
    return x / x.abs().amax()


def softmax_of_columns(x):
    return x.softmax(0)


def entropy_of_rows(x):
    return -(x.softmax(-1) * x.log_softmax(-1)).sum(-1)


CASES = {
    "scaled_by_largest": (scaled_by_largest, (613, 1024)),
    "softmax_of_columns": (softmax_of_columns, (2053, 48)),
    "entropy_of_rows": (entropy_of_rows, (2, 70001)),
}


@pytest.fixture(params=CASES)
def stitched(request):
    """(kernel with a barrier, its input, what is right)."""
    fn, shape = CASES[request.param]
    x = torch.randn(shape)
    graphs = capture_graphs(fn, (x,), target="h200")
    (kernel,) = [kernel for graph in graphs for kernel in graph.compile()["kernels"]]
    assert PHASES.search(kernel["text"]), kernel["text"]
    return kernel, x, fn(x)


def launch(kernel, x, grid, cooperative=True):
    """The findings, and the memory that the kernel wrote."""
    signature = re.search(r"STITCH_KERNEL\(.*?\)\((.*)\) \{", kernel["text"])[1]
    last_phase = 1 + max(map(int, PHASES.findall(kernel["text"])), default=0)
    values = {"first_phase": 0, "end_phase": last_phase}
    args, inputs = [], []
    for declared in signature.split(", "):
        dtype, name = re.match(r"(?:const )?(\w+).* (\w+)$", declared).groups()
        if name in values:
            args.append(values[name])
        elif declared.startswith("const"):
            inputs.append(len(args))
            args.append(x)
        else:
            count = 1 if name in ("barrier", "error") else x.numel()
            args.append(torch.zeros(count, dtype=TYPES[dtype]))
    place = kernel["name"], grid, kernel["block"]
    where = {"target": DEVICE, "cooperative": cooperative}
    done = ptxsim.run(kernel["text"], *place, args, inputs=inputs, **where)
    return done.findings, [arg for arg in args if isinstance(arg, torch.Tensor)]


def count_resident(kernel, x):
    """Blocks that the device holds, as it says when there are more."""
    (finding,), _ = launch(kernel, x, 1 << 16)
    assert finding.kind == "residency", finding
    return int(re.search(r"(\d+) fit", finding.message)[1])


def test_as_many_blocks_as_fit_are_right(stitched):
    kernel, x, expected = stitched
    findings, written = launch(kernel, x, count_resident(kernel, x))
    assert not findings
    of_type = [buffer for buffer in written if buffer.dtype == expected.dtype]
    results = [buffer.flatten()[: expected.numel()].view_as(expected) for buffer in of_type]
    assert any(torch.allclose(result, expected, rtol=1e-5, atol=1e-6) for result in results)


def test_one_block_more_is_reported(stitched):
    kernel, x, _ = stitched
    findings, _ = launch(kernel, x, count_resident(kernel, x) + 1)
    assert [finding.kind for finding in findings] == ["residency"]


def largest_before_the_loop(x, y):
    return y / x.abs().amax()


def moments_before_the_loop(x, y):
    rows = x.sum(-1)
    return y * rows.amax() + rows.square().mean()


@pytest.mark.parametrize("shape", [(300, 1024), (613, 1024), (70, 4099)])
@pytest.mark.parametrize("special", [None, torch.inf, torch.nan])
@pytest.mark.parametrize("fn", [largest_before_the_loop, moments_before_the_loop])
def test_what_all_blocks_share_is_combined_once(fn, shape, special):
    x = torch.randn(shape)
    if special is not None:
        x[shape[0] // 2, 7] = special
    (graph,) = capture_graphs(fn, (x, x.clone()), target="h200")
    (kernel,) = graph.compile()["kernels"]
    stage = kernel["text"][kernel["text"].index("void stage_1(") :]
    assert stage.index("all_reduce<") < stage.index("for (; turns.are_left()")
    for grid in (1, 2, 3):
        findings, written = launch(kernel, x, grid)
        assert not findings
        results = [buffer.view(shape) for buffer in written if buffer.numel() == x.numel()]
        right = [
            torch.allclose(result, fn(x, x), rtol=1e-5, atol=1e-6, equal_nan=True)
            for result in results
        ]
        assert any(right), grid


def test_blocks_that_do_not_wait_need_not_be_resident():
    def total(x):
        return x.logsumexp(-1).sum()

    x = torch.randn(131, 131)
    (graph,) = capture_graphs(total, (x,), target="h200")
    (kernel,) = graph.compile()["kernels"]
    assert "is_last_block(barrier)" in kernel["text"] and "grid_barrier(" not in kernel["text"]
    for grid in (1, 2, 131):
        findings, written = launch(kernel, x, grid, cooperative=False)
        assert not findings
        assert any(torch.isclose(buffer.flatten()[0], total(x)) for buffer in written), grid
