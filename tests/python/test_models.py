"""Real layers, inference and training: as near to fp64 as eager is, on stitched kernels."""

import copy
import functools
import math
import threading

import pytest
import torch
import torch.nn.functional as F
from test_device_headers import needs_nvrtc
from torch import nn
from torch.utils.checkpoint import checkpoint

import torch_stitch
from tests.support.compare import call_among_threads, compile_strictly, expect_as_exact
from torch_stitch.measure.memory import peak_bytes
from torch_stitch.measure.steps import run_step

pytestmark = pytest.mark.usefixtures("fresh")

WIDTH, HEADS, ROWS, TOKENS = 64, 4, 3, 37


def attend(q, k, v, mask):
    """Attention written out: two matrix products and what is between them."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return (scores + mask).softmax(-1) @ v


def split_heads(x):
    return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)


def join_heads(x):
    return x.transpose(1, 2).flatten(2)


def causal_mask(x):
    """-inf above the diagonal."""
    n = x.shape[1]
    return x.new_full((n, n), float("-inf")).triu(1)


class BertLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x):
        mask = x.new_zeros(x.shape[1])
        q, k, v = (split_heads(f(x)) for f in (self.query, self.key, self.value))
        x = self.norm1(x + self.out(join_heads(attend(q, k, v, mask))))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class GptBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x):
        q, k, v = (split_heads(part) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.out(join_heads(attend(q, k, v, causal_mask(x))))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class RmsNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


def rotate(x):
    """Rotary positions, computed where they are used."""
    half = x.shape[-1] // 2
    like = {"dtype": x.dtype, "device": x.device}
    frequency = 10000.0 ** (-torch.arange(half, **like) / half)
    angle = torch.arange(x.shape[-2], **like)[:, None] * frequency
    first, second = x.chunk(2, -1)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class LlamaBlock(nn.Module):
    def __init__(self):
        super().__init__()
        names = ("query", "key", "value", "out")
        for name in names:
            setattr(self, name, nn.Linear(WIDTH, WIDTH, bias=False))
        self.gate, self.up = (nn.Linear(WIDTH, 2 * WIDTH, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.norm1, self.norm2 = RmsNorm(), RmsNorm()

    def forward(self, x):
        y = self.norm1(x)
        q, k, v = (split_heads(f(y)) for f in (self.query, self.key, self.value))
        x = x + self.out(join_heads(attend(rotate(q), rotate(k), v, causal_mask(x))))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class LstmCells(nn.Module):
    def __init__(self, steps=3):
        super().__init__()
        self.cell, self.steps = nn.Linear(2 * WIDTH, 4 * WIDTH), steps

    def forward(self, x):
        h = c = torch.zeros_like(x[:, 0])
        for step in range(self.steps):
            i, f, g, o = self.cell(torch.cat([x[:, step], h], -1)).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return h


class ConvBatchNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.again, self.norm2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)

    def forward(self, x):
        x = self.norm(self.conv(x)).relu()
        return (x + self.norm2(self.again(x))).relu()


class UnetBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, 16), nn.GroupNorm(4, 32)
        self.conv1, self.conv2 = nn.Conv2d(16, 32, 3, padding=1), nn.Conv2d(32, 32, 3, padding=1)
        self.skip, self.time = nn.Conv2d(16, 32, 1), nn.Linear(16, 32)

    def forward(self, x):
        when = self.time(F.silu(x.mean((2, 3))))
        y = self.conv1(F.silu(self.norm1(x))) + when[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


TEXT, IMAGE, MAPS = (ROWS, TOKENS, WIDTH), (ROWS, 3, 13, 17), (ROWS, 16, 13, 17)
MODELS = {
    "bert": (BertLayer, TEXT),
    "gpt2": (GptBlock, TEXT),
    "llama": (LlamaBlock, TEXT),
    "lstm": (LstmCells, TEXT),
    "conv_batchnorm": (ConvBatchNorm, IMAGE),
    "unet": (UnetBlock, MAPS),
}
DTYPES = [torch.float32, torch.bfloat16]
TERMS = 4096  # the longest sum of roundings that meets in one element


def make(name, dtype=torch.float32):
    build, shape = MODELS[name]
    return build().to(dtype), torch.randn(shape).to(dtype)


def infer(model, x, wrap):
    with torch.no_grad():
        return wrap(model.eval())(x)


def train(model, x, wrap):
    """The result, the gradients of input and parameters, and the buffers after one step."""
    x = x.clone().requires_grad_()
    y = wrap(model.train())(x)
    (y.square().mean() + y.amax()).backward()
    return [y.detach(), x.grad, *(p.grad for p in model.parameters()), *model.buffers()]


def check(run, model, x):
    got = run(copy.deepcopy(model), x, compile_strictly)
    expected = run(copy.deepcopy(model), x, lambda model: model)
    exact = run(copy.deepcopy(model).double(), x.double(), lambda model: model)
    expect_as_exact(got, expected, exact, TERMS)
    counters = torch_stitch.counters()
    assert counters["kernels"] > 0 and counters["fallback_ops"] == 0, counters


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_inference_is_as_exact_as_eager(name, dtype):
    check(infer, *make(name, dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_a_training_step_is_as_exact_as_eager(name, dtype):
    check(train, *make(name, dtype))


@pytest.mark.parametrize("name", ["unet", "conv_batchnorm"])
def test_channels_last_models_keep_their_layout(name):
    model, x = make(name)
    last = torch.channels_last
    check(infer, model.to(memory_format=last), x.to(memory_format=last))


def differentiate(call, x):
    """The result and the gradient of x."""
    y = call(x)
    return y.detach(), *torch.autograd.grad(y.square().mean() + y.amax(), x)


@pytest.mark.parametrize("is_training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("name", MODELS)
def test_a_dynamic_batch_is_compiled_once(name, is_training):
    model, _ = make(name)
    mine, theirs = (copy.deepcopy(model).train(is_training) for _ in range(2))
    compiled = compile_strictly(mine)
    kernels = []
    for rows in (3, 5, 2):
        x = torch.randn(rows, *MODELS[name][1][1:], requires_grad=is_training)
        torch._dynamo.mark_dynamic(x, 0)
        run = differentiate if is_training else lambda call, x: call(x)
        with torch.set_grad_enabled(is_training):
            torch.testing.assert_close(run(compiled, x), run(theirs, x), rtol=1e-4, atol=1e-4)
        kernels.append(torch_stitch.counters()["kernels"])
    assert kernels[0] > 0 and len(set(kernels)) == 1, kernels
    assert torch_stitch.counters()["fallback_ops"] == 0


class WideBlock(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(WIDTH), dropout
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, mask):
        y = self.down(F.gelu(self.up(self.norm(x)))) * mask
        return x + F.dropout(y, self.dropout)


class EightBlocks(nn.Module):
    """All read one value of the first one's level, made anew in backward too."""

    def __init__(self, dropout, are_checkpointed):
        super().__init__()
        self.blocks = nn.ModuleList(WideBlock(dropout) for _ in range(8))
        self.are_checkpointed = are_checkpointed

    def forward(self, x, mask):
        mask = mask.sigmoid()
        for block in self.blocks:
            if self.are_checkpointed:
                x = checkpoint(block, x, mask, use_reentrant=False)
            else:
                x = block(x, mask)
        return x


@pytest.mark.parametrize(
    ("dropout", "simulate"),
    [(0.0, None), (0.1, None), pytest.param(0.0, "fast", marks=needs_nvrtc)],
)
def test_checkpointed_layers_are_made_again_one_after_another(dropout, simulate, monkeypatch):
    if simulate:
        monkeypatch.setenv("TORCH_STITCH_SIMULATE", simulate)
    peaks = []
    for are_checkpointed in (True, False):
        model = EightBlocks(dropout, are_checkpointed)
        inputs = torch.randn(512, WIDTH), torch.randn(512, 1)
        step = functools.partial(run_step, model, compile_strictly(model), inputs, True)
        step()
        peaks.append(peak_bytes(step, model.parameters()))
    assert peaks[0] < 0.6 * peaks[1], peaks


@pytest.mark.parametrize("name", ["gpt2", "unet"])
def test_two_threads_may_call_and_compile_at_once(name):
    model, x = make(name)
    model.eval()
    inputs = [x, x + 1]
    expected = [infer(model, x, lambda model: model) for x in inputs]
    compiled, failures = compile_strictly(model), []

    def work(i):
        try:
            for _ in range(10):
                with torch.no_grad():
                    result = call_among_threads(compiled, inputs[i])
                    torch.testing.assert_close(result, expected[i], rtol=1e-4, atol=1e-4)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert torch_stitch.counters()["fallback_ops"] == 0
