"""Numbers: which are rounded, and when; what integers have no value for."""

import pytest
import torch

from tests.support.compare import check

pytestmark = pytest.mark.usefixtures("fresh")

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


@pytest.mark.parametrize("whole", [*INTEGERS, torch.bool], ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_cast_to_integers_and_back_loses_what_it_does_in_eager(dtype, whole):
    """The sign of -0.3 too, which a trunc would keep."""
    low = 0.0 if whole is torch.uint8 else -100.0
    x = torch.cat((torch.linspace(low, 100, 397), torch.tensor([-0.0, 0.3, -0.3])[low == 0 :][:2]))

    def fn(x):
        return x.to(whole).to(dtype), x.to(whole)[3:].long().to(dtype), 1 / x.to(whole).to(dtype)

    check(fn, x.to(dtype))


def test_wide_integers_and_back():
    steps = torch.tensor([1.0, -1.0, 1.5, -1.99, 0.3, -0.3, 1 + 2.0**-20])
    x = (steps[:, None] * 2.0 ** torch.arange(31)).flatten()
    check(lambda x: (x.int().float(), x.double().int().double(), x.long().float()), x)
    x = (steps[:, None].double() * 2.0 ** torch.arange(62)).flatten()
    check(lambda x: (x.long().double(), x.float().long().float()), x)


NUMBERS = {
    "remainder": lambda x: x % 3.14,
    "remainder of": lambda x: 3.14 % x,
    "fmod": lambda x: x.fmod(3.14),
    "floor": lambda x: x // 3.14,
    "product": lambda x: x * 3.14,
    "quotient": lambda x: x / 3.14,
    "bounds": lambda x: x.clamp(-3.14, 3.14),
    "where": lambda x: torch.where(x > 3.14, x, 3.14),
    "filled": lambda x: x * torch.full_like(x, 3.14),
    "compared": lambda x: x == 3.14,
    "sum": lambda x: x + 3.14,
    "sum of": lambda x: 3.14 + x,
    "difference": lambda x: x - 3.14,
    "difference from": lambda x: 3.14 - x,
    "quotient of": lambda x: 3.14 / x,
    "quotient of, integer": lambda x: 3 / x,
    "floor of": lambda x: 3.14 // x,
    "cut off": lambda x: torch.div(x, 3.14, rounding_mode="trunc"),
    "product of": lambda x: 3.14 * x,
    "sum, tensor": lambda x: x + torch.tensor(3.14),
    "difference from, tensor": lambda x: torch.tensor(3.14) - x,
    "product, tensor": lambda x: x * torch.tensor(3.14),
    "product, fp64": lambda x: x * torch.tensor(3.14, dtype=torch.float64),
    "product, integer": lambda x: x * torch.tensor(257),
    "product of, tensor": lambda x: torch.tensor(3.14) * x,
    "quotient, tensor": lambda x: x / torch.tensor(3.14),
    "quotient of, tensor": lambda x: torch.tensor(3.14) / x,
    "floor, tensor": lambda x: x // torch.tensor(3.14),
    "remainder, tensor": lambda x: x % torch.tensor(3.14),
    "product, made": lambda x: x * x[0].float().exp(),
    "quotient, made": lambda x: x / x[0].float().exp(),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_rounded_to_16_bits_where_eager_does(name, dtype):
    x = torch.linspace(0.25, 50, 1500).to(dtype)
    x[::7] = 3.14
    check(NUMBERS[name], x)


@pytest.mark.parametrize("number", [7, 257, 3.14], ids=str)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("op", [torch.div, torch.mul])
def test_what_a_tensor_of_one_number_scales_is_rounded_with_the_result(op, dtype, number):
    """As those of other ops, not inside of a kernel: else one term of a difference is rounded."""
    x = torch.linspace(-5, 5, 397).to(dtype)

    def fn(x, by):
        return op(x, by), op(x, by).float() - op(x.float(), by.float())

    given = x, torch.tensor(number)
    scaled, left = torch.compile(fn, backend="stitch")(*given)
    eager, lost = fn(*given)
    assert torch.equal(scaled, eager) and lost.count_nonzero() > 0
    assert left.count_nonzero() == 0


def test_the_gradient_of_a_number_over_itself_is_none():
    """`torch.masked.normalize` divides by a count, an integer, and by the norm of its operand."""
    x = torch.tensor([2.703, -1.0, 0.3]).bfloat16().requires_grad_()

    def fn(x):
        return sum(torch.masked.normalize(one, float("inf"), 0) for one in x.unbind())

    (grad,) = torch.autograd.grad(torch.compile(fn, backend="stitch")(x), x)
    assert torch.equal(grad, torch.autograd.grad(fn(x), x)[0])


@pytest.mark.parametrize("value", [0.5, -1.75, 2, 2.5])
def test_integers_take_the_integral_part_of_a_factor(value):
    i, x = torch.arange(-4, 5), torch.randn(9)

    def fn(i, x):
        return i.addcmul(i, i + 1, value=value), i.addcmul(i, x, value=value), x.addcmul(i, i)

    check(fn, i, x, rtol=1e-6, atol=1e-6)


def raises_as_eager(fn, *inputs):
    with pytest.raises(RuntimeError) as expected:
        fn(*inputs)
    with pytest.raises(RuntimeError) as found:
        torch.compile(fn, backend="stitch")(*inputs)
    return str(expected.value)[:40] in str(found.value)


@pytest.mark.parametrize("exponent", [-1, -2, -3])
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_have_no_negative_powers(dtype, exponent):
    assert raises_as_eager(lambda x: x**exponent + 1, torch.tensor([1, 2, 3], dtype=dtype))


def test_integers_are_not_divided_by_addcdiv():
    assert raises_as_eager(lambda x, y: y.addcdiv(x, x) + 1, torch.arange(1, 4), torch.ones(3))


@pytest.mark.parametrize("op", [torch.add, torch.sub])
def test_integers_have_no_fractional_multiples(op):
    """Static graphs are rejected by tracing, in words of its own."""
    compiled = torch.compile(lambda i: op(i, i, alpha=0.5) * 2, backend="stitch", dynamic=True)
    with pytest.raises(RuntimeError, match="For integral input tensors, argument alpha must not"):
        compiled(torch.arange(5))
