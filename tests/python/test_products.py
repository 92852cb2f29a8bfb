"""Products of matrices, whichever library computes them: as exact as eager, by rule R10."""

import json

import pytest
import torch
import torch.nn.functional as F

import torch_stitch
from benchmarks.accuracy import in_fp64
from tests.support.compare import compile_strictly, expect_as_exact

pytestmark = pytest.mark.usefixtures("fresh")

INF, NAN = float("inf"), float("nan")


def check(fn, *inputs, terms):
    with torch.no_grad():
        got = compile_strictly(fn)(*inputs)
        expect_as_exact(got, fn(*inputs), in_fp64(fn, inputs), terms)


@pytest.mark.parametrize("rows", [1, 8, 37, 260])
@pytest.mark.parametrize("terms", [1, 129, 384, 512, 1024, 1025, 1600, 3072])
def test_linear_layers(rows, terms):
    """Weights are transposed, as modules hold them."""
    columns = max(65, 2**22 // (rows * terms))
    x, weight, bias = torch.randn(rows, terms), torch.randn(columns, terms), torch.randn(columns)
    check(F.linear, x, weight, bias, terms=terms)


LAYOUTS = {
    "rows": lambda m, n: torch.randn(m, n),
    "columns": lambda m, n: torch.randn(n, m).t(),
    "rows of more": lambda m, n: torch.randn(m + 3, n + 5)[1:-2, 2:-3],
    "columns of more": lambda m, n: torch.randn(n + 5, m + 3)[2:-3, 1:-2].t(),
    "steps": lambda m, n: torch.randn(m, 2 * n)[:, ::2],
    "one row": lambda m, n: torch.randn(1, n).expand(m, n),
}


@pytest.mark.parametrize("terms", [300, 1100])
@pytest.mark.parametrize("second", LAYOUTS)
@pytest.mark.parametrize("first", LAYOUTS)
def test_operands_of_any_layout(first, second, terms):
    a, b = LAYOUTS[first](70, terms), LAYOUTS[second](terms, 130)
    check(torch.mm, a, b, terms=terms)


@pytest.mark.parametrize("terms", [300, 1100])
@pytest.mark.parametrize("operand", ["rows", "columns", "heads", "shared"])
def test_batches(operand, terms):
    b = {
        "rows": lambda: torch.randn(3, terms, 90),
        "columns": lambda: torch.randn(3, 90, terms).mT,
        "heads": lambda: torch.randn(90, 3, terms).permute(1, 2, 0),
        "shared": lambda: torch.randn(1, terms, 90).expand(3, -1, -1),
    }[operand]()
    a, added = torch.randn(3, 40, terms), torch.randn(3, 1, 90)
    check(torch.bmm, a, b, terms=terms)
    check(torch.baddbmm, added, a, b, terms=terms)


@pytest.mark.parametrize("terms", [600, 1500])
def test_addends_and_scales(terms):
    a, b = torch.randn(80, terms), torch.randn(200, terms).t()
    for added in (torch.randn(200), torch.randn(80, 1), torch.randn(80, 200), torch.randn(())):
        check(torch.addmm, added, a, b, terms=terms)
        check(lambda c, a, b: torch.addmm(c, a, b, alpha=0.5), added, a, b, terms=terms)
        check(lambda c, a, b: torch.addmm(c, a, b, beta=0), added, a, b, terms=terms)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types(dtype):
    a, b = torch.randn(80, 600, dtype=dtype), torch.randn(600, 100, dtype=dtype)
    check(torch.mm, a, b, terms=600)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("shape", [(80, 600), (3, 40, 600)])
def test_sums_of_products(shape, dtype):
    """Each is added in the call that makes the next one, where the first one lies."""
    x, y, z = (torch.randn(*shape, dtype=dtype) for _ in range(3))
    weights = [torch.randn(600, 90, dtype=dtype) for _ in range(3)]

    def fn(x, y, z, a, b, c):
        return x @ a + (y @ b + z @ c), z @ a

    check(fn, x, y, z, *weights, terms=3 * 600)
    for rounds in (False, True):
        report = torch_stitch.explain(fn, x, y, z, *weights, emulate_eager_casts=rounds)
        plan = json.loads(report.to_json())
        stays = rounds and dtype == torch.bfloat16
        names = [call["name"] for call in plan["library_calls"]]
        assert len(plan["kernels"]) == stays
        assert names.count("aten.addmm.default") == (0 if stays else 2)


def test_sums_of_batched_products_whose_sizes_change():
    a, b = torch.randn(3, 600, 90), torch.randn(3, 700, 90)
    product = compile_strictly(lambda x, y, a, b: x @ a + y @ b, dynamic=True)
    for rows in (40, 41, 7):
        x, y = torch.randn(3, rows, 600), torch.randn(3, rows, 700)
        kept = product(x, y, a, b)
        again = product(x, y, a, b)
        assert kept.equal(again) and kept.data_ptr() != again.data_ptr()
        torch.testing.assert_close(kept, x @ a + y @ b, rtol=1e-4, atol=1e-3)


def test_values_that_are_not_finite():
    a, b = torch.randn(64, 1300), torch.randn(128, 1300)
    a[3, 5], a[7, 1290], b[9, 700] = NAN, INF, -INF
    check(F.linear, a, b, torch.randn(128), terms=1300)


def test_gradients():
    x, weight = torch.randn(96, 400, requires_grad=True), torch.randn(300, 400, requires_grad=True)

    def grads(x, weight):
        return torch.autograd.grad(F.linear(x, weight).square().sum(), (x, weight))

    def compiled(x, weight):
        y = compile_strictly(F.linear)(x, weight)
        return torch.autograd.grad(y.square().sum(), (x, weight))

    exact = grads(x.double(), weight.double())
    expect_as_exact(compiled(x, weight), grads(x, weight), exact, 400 + 300)


@pytest.mark.parametrize("rows, columns", [(0, 64), (64, 0), (64, 64)])
def test_products_without_terms(rows, columns):
    a, b = torch.randn(rows, 0), torch.randn(0, columns)
    for added in (torch.randn(columns), torch.randn(rows, 1)):
        assert compile_strictly(torch.addmm)(added, a, b).equal(torch.addmm(added, a, b))


def test_sizes_that_always_change():
    """Beyond as many shapes as kernels are kept for, each is still right."""
    b = torch.randn(9, 11)
    product = compile_strictly(torch.mm, dynamic=True)
    for rows in range(8, 700):
        a = torch.randn(rows, 9)
        torch.testing.assert_close(product(a, b), a @ b)


def test_without_onednn():
    """The user may switch it off."""
    a, b = torch.randn(64, 512), torch.randn(512, 128)
    with torch.backends.mkldnn.flags(enabled=False):
        assert compile_strictly(torch.mm)(a, b).equal(torch.mm(a, b))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("fn", [
    lambda a, b: a[0] @ b[0],
    lambda a, b: torch.bmm(a, b) * 2,
    lambda a, b: torch.addmm(a[0], a[1], b[0], beta=2, alpha=0.5),
    lambda a, b: torch.baddbmm(a, a, b),
    lambda a, b: torch.einsum("bij,bkj->bik", a, b.conj()),
    lambda a, b: (a[0] @ b[0, 0], (a.mH @ b).real + 1),
], ids=["mm", "bmm", "addmm", "baddbmm", "einsum", "adjoint"])  # fmt: skip
def test_complex_products_are_calls(fn, dtype):
    a, b = torch.randn(2, 3, 5, 5, dtype=dtype)
    with torch.no_grad():
        got, expected = torch.compile(fn, backend="stitch")(a, b), fn(a, b)
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("fn", [
    lambda z: z[:, None, :, None] * z[None, :, None, :],
    lambda z: torch.kron(z, z),
    lambda z: (z[None] * z[:, None]).reshape(-1),
    lambda z: z.unsqueeze(1).expand(-1, 4, -1).exp().flatten(1) * 2,
    lambda z: torch.outer(z[0], z[1]).t().reshape(-1),
    lambda z: (z.diagonal() * z[0, :2]).conj().t(),
], ids=["broadcast", "kron", "flat", "expanded", "outer", "diagonal"])  # fmt: skip
def test_views_of_complex_values_have_eagers_strides(fn, dtype, dynamic):
    """What is made of them is laid out by them, and read as that again."""
    for z in torch.randn(3, 2, dtype=dtype).t(), torch.randn(2, 3, dtype=dtype):
        got, expected = compile_strictly(fn, dynamic=dynamic)(z), fn(z)
        torch.testing.assert_close(got, expected)
        assert got.stride() == expected.stride()


def test_results_that_a_call_leaves_undefined_are_none():
    """And results of one call, which share no memory, are not copied."""
    x, weight, bias = torch.randn(2, 5, 8), torch.randn(24, 8), torch.randn(24)

    def attend(x, **how):
        proj = weight[:8].contiguous(), bias[:8].contiguous()
        return torch._native_multi_head_attention(x, x, x, 8, 2, weight, bias, *proj, **how)

    for how in ({"need_weights": False}, {"need_weights": True}):
        got = torch.compile(attend, backend="stitch")(x, **how)
        torch.testing.assert_close(got, attend(x, **how))

    torch_stitch.reset_counters()
    got = torch.compile(lambda x: x.sort(1), backend="stitch")(x)
    assert got[0].equal(x.sort(1)[0]) and torch_stitch.counters()["kernels"] == 0
