"""Transforms of torch.func within a compiled function: as exact as eager's, of ten modules."""

import copy

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, jacfwd, jacrev, vmap

from tests.support.compare import compile_strictly, expect_as_exact

SIZE, TERMS = 4, 64


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.LayerNorm(SIZE), nn.Linear(SIZE, SIZE), nn.GELU())

    def forward(self, x):
        return x + self.inner(x)


class Attention(nn.Module):
    """Over the elements of one row."""

    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(1, 3), nn.Linear(1, 3)

    def forward(self, x):
        q, k = (layer(x[..., None]) for layer in (self.query, self.key))
        return ((q @ k.mT).softmax(-1) @ x[..., None]).squeeze(-1)


class Centered(nn.Module):
    """Writes in place."""

    def forward(self, x):
        y = x * 2
        y[..., 1:] -= x[..., :-1]
        return y.sub_(y.mean(-1, keepdim=True)).t() if y.dim() == 2 else y


class Channels(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(1, 2, 3, padding=1), nn.Tanh(), nn.Flatten(-2))

    def forward(self, x):
        return self.layers(x[..., None, :])


MODULES = {
    "linear": lambda: nn.Linear(SIZE, 3),
    "no bias": lambda: nn.Linear(SIZE, 3, bias=False),
    "mlp": lambda: nn.Sequential(nn.Linear(SIZE, 5), nn.Tanh(), nn.Linear(5, 2)),
    "layer norm": lambda: nn.LayerNorm(SIZE),
    "softmax": lambda: nn.Sequential(nn.Linear(SIZE, 5), nn.LogSoftmax(-1)),
    "silu": lambda: nn.Sequential(nn.Linear(SIZE, 3), nn.SiLU()),
    "residual": Residual,
    "attention": Attention,
    "convolution": Channels,
    "in place": Centered,
}
# Dynamo traces no layer norm in forward mode, with any backend.
REVERSE_ONLY = ("layer norm", "residual")


@pytest.mark.parametrize("name", MODULES)
def test_transforms_of_a_module_are_eagers(name):
    torch._dynamo.reset()  # one code object for all: it recompiles eight times only
    torch.manual_seed(0)
    module = MODULES[name]()
    forward = jacrev if name in REVERSE_ONLY else jacfwd

    def transforms(parameters, x, row):
        def run(parameters, row):
            return functional_call(module, parameters, (row,))

        def loss(parameters, row):
            return run(parameters, row).square().sum()

        return (
            jacrev(run, argnums=(0, 1))(parameters, row),
            forward(run, argnums=1)(parameters, row),
            forward(jacrev(loss, argnums=1), argnums=1)(parameters, row),  # the hessian
            vmap(grad(loss, argnums=(0, 1)), in_dims=(None, 0))(parameters, x),
            vmap(jacrev(run, argnums=1), in_dims=(None, 0))(parameters, x),
        )

    parameters = {k: v.detach() for k, v in module.named_parameters()}
    inputs = parameters, torch.randn(3, SIZE), torch.randn(SIZE)
    exact = {k: v.double() for k, v in parameters.items()}, *(x.double() for x in inputs[1:])
    found = compile_strictly(transforms)(*copy.deepcopy(inputs))
    expect_as_exact(found, transforms(*inputs), transforms(*exact), TERMS)


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("fn", [
    lambda r: r.sum() * 2, lambda r: r.sum() + 1, lambda r: r[0] / 2.5, lambda r: 3 - r.amax(),
    lambda r: r[1] > 2, lambda r: (r.sum() * 2).to(torch.int32),
])  # fmt: skip
def test_a_number_beside_a_value_without_dimensions_takes_its_type(fn, dtype):
    x = (torch.randn(5, 3) * 4).to(dtype)
    got, expected = compile_strictly(vmap(fn))(x), vmap(fn)(x)
    assert got.dtype == expected.dtype
    torch.testing.assert_close(got, expected)
