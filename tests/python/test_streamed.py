"""Results too large for the last cache go past it: whole lines streamed, ends of rows stored."""

import pytest
import torch
from torch.nn import functional as F

from tests.support.compare import compile_strictly

pytestmark = pytest.mark.usefixtures("fresh")

ROWS, COLUMNS = 4099, 3001  # of fp32 49 MB; rows begin anywhere in a line


def two_results(x):
    return F.layer_norm(x, x.shape[-1:]), x.sum(-1), x * 2


FUNCTIONS = {
    "pointwise": lambda x: F.gelu(x),
    "softmax": lambda x: x.softmax(-1),
    "two results": two_results,
    "16 bits": lambda x: (x * 0.5).bfloat16(),
    "halves": lambda x: torch.cat([x[:, :1000] * 2, -x[:, 1000:]], -1),
    "columns": lambda x: x - x.mean(0),
    "transposed": lambda x: x.t() + 1,
    "truth": lambda x: x > 0,
}


def check(compiled, fn, x):
    for got, expected in zip(*(r if isinstance(r, tuple) else (r,) for r in (compiled(x), fn(x)))):
        assert got.stride() == expected.stride()
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_large_results_are_eagers(name):
    fn = FUNCTIONS[name]
    x = torch.randn(ROWS, COLUMNS + 1)
    compiled = compile_strictly(fn)
    check(compiled, fn, x[:, 1:])
    torch._dynamo.reset()
    check(compile_strictly(fn), fn, x[:, 1:].contiguous())


def test_sizes_known_at_run_time_may_be_small_again():
    compiled = compile_strictly(two_results, dynamic=True)
    for rows, columns in (ROWS, COLUMNS), (3, 5), (17, 255), (2, 256), (5, 257), (33, 1030):
        check(compiled, two_results, torch.randn(rows, columns))


def test_what_is_read_and_written_in_one_call_is_whole():
    def step(x, y):
        x.mul_(2).add_(y)
        return x + 1, y.exp()

    x, y = torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)
    expected_x = x.clone()
    expected = step(expected_x, y)
    got = compile_strictly(step)(x, y)
    torch.testing.assert_close((x, *got), (expected_x, *expected), rtol=1e-5, atol=1e-5)
