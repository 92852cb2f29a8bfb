"""Bad inputs B01 to B16: numbers that compilers have got wrong, on a CPU and on a GPU's kernels.

The numbers are those of the public reports that each test stands for; results are eager's, bit for
bit unless a test says otherwise.
"""

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import (
    check,
    compile_strictly,
    expect_as_exact,
    expect_equal,
    expect_stitched,
)

pytestmark = pytest.mark.usefixtures("fresh")

INF, NAN = float("inf"), float("nan")
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
SIGNED = [torch.int8, torch.int16, torch.int32, torch.int64]


@pytest.fixture(autouse=True, params=["cpu", "ptxsim"])
def place(request, monkeypatch):
    """Where the kernels of a test run."""
    if request.param == "ptxsim":
        monkeypatch.setenv("TORCH_STITCH_SIMULATE", "true")
    return request.param


def check_as_exact(fn, *inputs, terms=1):
    """Stitched, and as near to an fp64 run as eager is by rule R10."""
    exact = fn(*(x.double() for x in inputs))
    expect_as_exact(compile_strictly(fn)(*inputs), fn(*inputs), exact, terms)
    expect_stitched()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.uint8])
def test_b01_the_first_of_equal_extremes_is_named(dtype):
    x = torch.randint(0, 3, (5, 67)).to(dtype)

    def fn(x):
        return x.argmax(1), x.argmin(1), x.argmax(0), x.argmax(), x.max(1), x.min(0)

    check(fn, x)


@pytest.mark.parametrize("at", [0, 33, 66])
def test_b02_a_nan_anywhere_in_a_row(at):
    x = torch.randn(4, 67)
    x[1:3, at] = NAN

    def fn(x):
        extremes = x.amax(1), x.amin(1), x.argmax(1), x.argmin(1), x.max(1), x.amax(0), x.argmin()
        return *extremes, x.clamp(-1, 1), x.clamp(min=0.5), x.relu(), x.isnan().any(1)

    check(fn, x)
    check(lambda x: x.sort(1), x, copies=1)


@pytest.mark.parametrize("columns", [1, 31, 67, 1030])
def test_b03_rows_of_infinities_and_of_a_nan_under_a_mask(columns):
    x = torch.randn(6, columns)
    x[0], x[1, -1], x[2, 0], x[3] = -INF, INF, -INF, NAN
    mask = torch.zeros(6, columns, dtype=torch.bool)
    mask[3], mask[4] = True, True

    def fn(x, mask):
        masked = x.masked_fill(mask, -INF)
        return x.softmax(1), x.log_softmax(1), masked.softmax(1), x.masked_fill(mask, 0.0).sum(1)

    check(fn, x, mask, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("columns", [1, 3, 33, 515])
def test_b04_identities_of_reductions_do_not_show(sign, columns):
    x = sign * (torch.rand(3, columns) + 0.5)
    whole = (x * 4).to(torch.int32)

    def fn(x, whole):
        extremes = [y.amax(1) for y in (x, whole)] + [y.amin(1) for y in (x, whole)]
        return *extremes, x.argmax(1), x.argmin(1), whole.prod(1), (x > 0).all(1), (x > 0).any(1)

    check(fn, x, whole)


@pytest.mark.parametrize("dtype", FLOATS)
def test_b05_zeros_keep_their_sign(dtype):
    zeros = torch.tensor([0.0, -0.0, -0.25, 0.25, -1e-8, NAN]).to(dtype)

    def fn(x):
        rounded = x.ceil(), x.floor(), x.trunc(), x.round()
        return *rounded, -x, x + 0.0, x - 0.0, x * -1, x.copysign(-x), x.abs(), x.relu(), x.sqrt()

    check(fn, zeros)


@pytest.mark.parametrize("dtype", FLOATS[2:])
def test_b06_on_request_every_op_rounds_and_overflows_as_in_eager(dtype):
    x, y = torch.randn(9, 33).to(dtype), torch.rand(9, 33).to(dtype) + 0.5
    big = torch.full((9, 33), 300.0).to(dtype)

    def fn(x, y, big):
        quotient = x / y
        return quotient == quotient.amax(1, keepdim=True), big * big / big, (x + y) * y - x

    check(fn, x, y, big, options={"emulate_eager_casts": True})


def test_b07_a_normalisation_by_a_reciprocal():
    def fn(x):
        return x * x.square().mean(1, keepdim=True).rsqrt(), x * (1 / x.abs().sum(1, keepdim=True))

    check_as_exact(fn, torch.randn(7, 129) * 1e3, terms=129)


@pytest.mark.parametrize("dtype", FLOATS[:3])
def test_b08_quotients_next_to_integers_are_rounded_as_in_eager(dtype):
    a = torch.tensor([1.0, 148.0, -148.0, 5.0, INF, -INF, NAN, 0.3, 7.0, -7.0]).to(dtype)
    b = torch.tensor([0.1, 37.0, 37.0, INF, 2.0, 3.0, 1.0, 0.1, 0.0, 0.0]).to(dtype)

    def fn(a, b):
        floors = a // b, a.div(b, rounding_mode="trunc"), a % b, a.fmod(b)
        return *floors, a // 0.1, 1.0 // b, a.remainder(37)

    check(fn, a, b)


@pytest.mark.parametrize("dtype", SIGNED)
def test_b09_quotients_of_integers(dtype, place):
    low = torch.iinfo(dtype).min
    a = torch.tensor([low, low, 7, -7, 7, -7, 0, low + 1], dtype=dtype)
    b = torch.tensor([-1, 1, 3, 3, -3, -3, -5, -1], dtype=dtype)

    def fn(a, b):
        return a.div(b, rounding_mode="trunc"), a.fmod(b), a.remainder(b), a // 3, a % -3

    ordinary = a[2:], b[2:]
    check(lambda a, b: (*fn(a, b), a // b), *ordinary)
    compile_strictly(fn)(a, b)  # the process lives
    if place == "ptxsim":  # CUDA's eager ops raise nothing
        return
    with pytest.raises(RuntimeError, match="ZeroDivisionError|zero"):
        compile_strictly(lambda a, b: a // b)(a, torch.zeros_like(b))


def test_b10_casts_of_what_does_not_fit_do_not_depend_on_when_they_are_made():
    x = torch.tensor([1.9, -1.9, 127.0, 255.0, 0.0, -0.0])
    targets = torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool
    check(lambda x: tuple(x.clamp(0, 127).to(dtype) for dtype in targets), x)
    wild = torch.tensor([NAN, INF, -INF, 3e38, -3e38])
    made = compile_strictly(lambda x: tuple(x.to(dtype) for dtype in targets))(wild)
    constant = compile_strictly(lambda x: x.to(torch.int32) + torch.tensor(3).to(torch.int32))(x)
    assert [y.dtype for y in made] == [*targets] and constant.dtype == torch.int32


def test_b11_narrow_integers_wrap_before_they_are_widened():
    a = torch.tensor([0, 1, 127, 128, 200, 255], dtype=torch.uint8)
    b = torch.tensor([-128, -1, 0, 1, 100, 127], dtype=torch.int8)

    def fn(a, b):
        sums = (a + a).to(torch.int32), (-a).to(torch.int64), (b * b).to(torch.int32), a - 1
        return *sums, (a + 100) > 50, a > b, b.abs().to(torch.int16), (b + b).float()

    check(fn, a, b)


def test_b12_64_bit_arithmetic_stays_wide():
    def fn(x):
        line = torch.arange(9) * 1_000_000_000
        return line, x * 3_000_000_000, x.sum() * 2**40, (line // 7) % 1_000_003, line + x

    check(fn, torch.arange(9))


@pytest.mark.parametrize("dtype", SIGNED[2:])
def test_b13_powers_of_integers_and_promotion_of_numbers(dtype):
    x = torch.tensor([-3, -1, 0, 1, 2, 7], dtype=dtype)

    def fn(x):
        return x**0, x**1, x**2, x**3, x**20, x**2.0, x.pow(x.abs()), 2 ** x.abs(), x * 0.5, x + 1

    check(fn, x, rtol=1e-6, atol=0)


def test_b13_powers_of_floats():
    a = torch.tensor([0.0, -0.0, -2.0, -2.0, 1.0, -1.0, INF, 0.5, NAN, 2.0])
    b = torch.tensor([0.0, -1.0, 3.0, 0.5, NAN, INF, 0.0, 1e10, 0.0, -1e10])
    check(lambda a, b: (a.pow(b), a**2, a**-2, 0.0**b), a, b, rtol=1e-6, atol=0)


def test_b14_denormals_large_arguments_and_fp64():
    tiny = torch.tensor([1e-40, -1e-40, 1.2e-38, 1e-45, 3e-39])
    check(lambda x: (x + x, x * 0.5, x * 2.0, x.abs(), x.sqrt() > 0, x / 2), tiny)
    far = torch.tensor([1e5, -1e6, 3.3e7, 88.0, -104.0, 709.0, 1e10])
    check_as_exact(lambda x: (x.sin(), x.cos(), x.tanh(), x.sigmoid()), far)
    near = torch.linspace(-6, 6, 101, dtype=torch.float64)
    check(lambda x: (x.erf(), x.exp()), near, rtol=1e-14, atol=1e-16)
    # 1 + erf(x) cancels on the left: what is left is a rounding of 1, times x.
    check(lambda x: F.gelu(x), near, rtol=1e-14, atol=6 * torch.finfo(torch.float64).eps)


def test_b15_long_sums(place):
    count = 1 << (24 if place == "cpu" else 16)
    ones = torch.ones(count)
    check(lambda x: (x.sum(), x.mean(), x.var() + 1), ones)
    signs = torch.where(torch.arange(count) % 2 == 0, 1.0, -1.0)
    check(lambda x: x.sum(), signs)
    spiked = torch.full((count,), 1e-3)
    spiked[count // 3] = 1e4
    check_as_exact(lambda x: (x.sum(), x.mean(), x.std()), spiked, terms=count)


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_b16_dropout_has_one_mask_for_both_directions_and_a_new_one_per_call(p):
    def fn(x):
        return F.dropout(x, p, training=True)

    x = torch.ones(64, 67, requires_grad=True)
    compiled = compile_strictly(fn)
    first, second = compiled(x), compiled(x)
    (gradient,) = torch.autograd.grad(first.sum(), x)
    assert gradient.equal(first)
    assert p not in (0.0, 1.0) or first.equal(second)
    if p == 0.3:
        assert not first.equal(second)
        lanes = (first.detach() == 0).reshape(-1, 4)[:1072]
        assert not lanes.eq(lanes[:, :1]).all(1).all()  # lanes of four have masks of their own
        assert 0.2 < (first == 0).float().mean() < 0.4


def test_numbers_that_python_holds_are_rounded_as_in_eager():
    x = torch.randn(5, 7).bfloat16()
    expected = x * 0.1, x + 1e-3, x.div(3.3), x > 0.1
    expect_equal(compile_strictly(lambda x: (x * 0.1, x + 1e-3, x.div(3.3), x > 0.1))(x), expected)
