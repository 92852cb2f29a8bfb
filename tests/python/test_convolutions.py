"""Convolutions, whichever layout they run in: eager's strides, as exact as eager by rule R10."""

import copy
import functools
import math

import pytest
import torch
from torch import nn

import torch_stitch
from benchmarks.accuracy import in_fp64
from tests.support.compare import compile_strictly, expect_as_exact
from torch_stitch.measure.memory import peak_bytes
from torch_stitch.measure.steps import run_step

F = torch.nn.functional
pytestmark = pytest.mark.usefixtures("fresh")
LAST = torch.channels_last
PLACES = (9, 6, 5)


class Surrounded(nn.Module):
    """A layer between elementwise ops, its result read twice, and one by its channels after it."""

    def __init__(self, layer, width):
        super().__init__()
        dimensions = layer.weight.dim() - 2
        self.layer, self.scale = layer, nn.Parameter(torch.rand(width, *[1] * dimensions) + 0.5)
        self.mix = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dimensions - 1](width, width, 1)

    def forward(self, x):
        y = self.layer((x * 2).relu()) * self.scale
        return y + self.mix(y.sigmoid()).tanh()


def check(model, *inputs, terms=4096, **how):
    model, how = model.eval(), {"options": how.pop("options", {}), **how}
    with torch.no_grad():
        got = compile_strictly(copy.deepcopy(model), **how)(*inputs)
        expect_as_exact(got, model(*inputs), in_fp64(model, inputs), terms)


LAYERS = {
    "stem": lambda: nn.Conv2d(3, 24, 3, stride=2, padding=1, bias=False),
    "dense": lambda: nn.Conv2d(32, 24, 3, padding=1),
    "many channels": lambda: nn.Conv2d(80, 24, 3, padding=1),
    "depthwise": lambda: nn.Conv2d(24, 24, 5, padding=2, groups=24),
    "multiplied": lambda: nn.Conv2d(12, 24, 3, groups=12),
    "grouped": lambda: nn.Conv2d(24, 24, 3, stride=2, padding=1, groups=3, bias=False),
    "dilated": lambda: nn.Conv2d(16, 24, 3, padding=2, dilation=2),
    "by one place": lambda: nn.Conv2d(40, 24, 1),
    "by one place, in steps": lambda: nn.Conv2d(40, 24, 1, stride=2, bias=False),
    "by one place, padded": lambda: nn.Conv2d(40, 24, 1, stride=(2, 3), padding=1),
    "by one place, in groups": lambda: nn.Conv2d(40, 24, 1, groups=4),
    "of one channel": lambda: nn.Conv2d(1, 24, 3, padding=1),
    "to the sides": lambda: nn.Conv2d(16, 24, (1, 5), padding=(0, 2), stride=(2, 1)),
    "transposed": lambda: nn.ConvTranspose2d(16, 24, 3, padding=1),
    "transposed, by one place": lambda: nn.ConvTranspose2d(24, 24, 1),
    "of a line": lambda: nn.Conv1d(20, 24, 3, padding=1),
    "of a line, by one place": lambda: nn.Conv1d(20, 24, 1, stride=2),
    "of a volume": lambda: nn.Conv3d(8, 24, 3, padding=1),
    "of a volume, by one place": lambda: nn.Conv3d(8, 24, 1),
}


# Of one channel, tracing gives other strides than eager does, with every backend but eager's own.
IMAGE_LAYERS = [
    name for name in LAYERS if LAYERS[name]().weight.dim() == 4 and name != "of one channel"
]


def image_for(layer, batch=2):
    channels = layer.in_channels
    return torch.randn(batch, channels, *PLACES[: layer.weight.dim() - 2])


# Many channels that are forced to lie last are summed outside R10: "auto" leaves them as they lie.
LAYERS_AND_LAYOUTS = [
    (name, layout)
    for name in LAYERS
    for layout in ("auto", "channels_last", "eager")
    if (name, layout) != ("many channels", "channels_last")
]


@pytest.mark.parametrize(("name", "layout"), LAYERS_AND_LAYOUTS)
def test_every_kind_of_layer(name, layout):
    layer = LAYERS[name]()
    check(Surrounded(layer, 24), image_for(layer), options={"convolution_layout": layout})


@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("name", ["dense", "depthwise", "by one place", "by one place, in steps"])
def test_batches_of_nothing_and_of_one(name, batch):
    layer = LAYERS[name]()
    check(Surrounded(layer, 24), image_for(layer, batch))


@pytest.mark.parametrize("name", LAYERS)
def test_sizes_known_at_run_time(name):
    layer = LAYERS[name]()
    model = Surrounded(layer, 24).eval()
    compiled = compile_strictly(model, dynamic=True)
    for batch in (2, 3):
        x = image_for(layer, batch)
        x = x if layer.weight.dim() < 4 else torch.cat([x, x], 2)[:, :, batch:]
        with torch.no_grad():
            expect_as_exact(compiled(x), model(x), in_fp64(model, [x]), 4096)


@pytest.mark.parametrize("weights_too", [False, True])
@pytest.mark.parametrize("name", IMAGE_LAYERS)
def test_images_that_lie_so_already(name, weights_too):
    layer = LAYERS[name]()
    model = Surrounded(layer, 24)
    model = model.to(memory_format=LAST) if weights_too else model
    check(model, image_for(layer).to(memory_format=LAST))


class Block(nn.Module):
    """As in networks for small devices: widen, filter, squeeze, narrow, add."""

    def __init__(self, width=16, wide=40):
        super().__init__()
        self.widen, self.norm = nn.Conv2d(width, wide, 1, bias=False), nn.BatchNorm2d(wide)
        self.filter = nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False)
        self.norm2, self.narrow = nn.BatchNorm2d(wide), nn.Conv2d(wide, width, 1)
        self.squeeze, self.excite = nn.Conv2d(wide, 8, 1), nn.Conv2d(8, wide, 1)

    def forward(self, x):
        y = self.norm2(self.filter(F.silu(self.norm(self.widen(x)))))
        return x + self.narrow(y * self.excite(self.squeeze(y.mean((2, 3), True)).relu()).sigmoid())


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.pool = nn.Conv2d(3, 16, 3, 2, 1), nn.MaxPool2d(3, 2, 1)
        self.blocks = nn.Sequential(Block(), Block())
        self.more, self.head = nn.Conv2d(16, 16, 3, padding=1), nn.Linear(32, 10)

    def forward(self, x):
        y = self.blocks(self.pool(self.stem(x).relu()))
        y = torch.cat([y, F.avg_pool2d(self.more(F.pad(y, (1, 1, 1, 1)))[..., 1:-1, 1:-1], 1)], 1)
        return self.head(y.mean((2, 3)))


def test_a_network_is_products_and_convolutions_with_channels_last():
    model, x = Network().eval(), torch.randn(2, 3, 32, 32)
    check(model, x)
    with torch.no_grad():
        text = str(torch_stitch.explain(model, x))
    calls = [line.split()[0] for line in text.splitlines() if line.startswith("aten.")]
    assert calls.count("aten.mm.default") == 8  # of one place each
    assert calls.count("aten.convolution.default") == 4


def step(model, x, wrap):
    """What a training step yields: result, gradients, statistics."""
    x = x.detach().clone().requires_grad_(x.requires_grad)
    y = wrap(model)(x)
    (y.square().mean() + y.amax()).backward()
    images = [x.grad] if x.requires_grad else []
    return [y.detach(), *images, *(p.grad for p in model.parameters()), *model.buffers()]


def check_step(model, x):
    """What stitch and what eager yield."""
    got = step(copy.deepcopy(model), x, compile_strictly)
    expected = step(copy.deepcopy(model), x, lambda model: model)
    exact = step(copy.deepcopy(model).double(), x.double(), lambda model: model)
    expect_as_exact(got, expected, exact, 4096)
    return got, expected


@pytest.mark.parametrize("layout", [torch.contiguous_format, LAST])
def test_training(layout):
    model, x = Network().to(memory_format=layout), torch.randn(3, 3, 32, 32)
    x = x.to(memory_format=layout)
    check_step(model, x.requires_grad_())


@pytest.mark.parametrize("layout", [torch.contiguous_format, LAST])
@pytest.mark.parametrize("size", [(2, 2), (1, 9), (4, 4), (5, 4)])
@pytest.mark.parametrize("bias", [False, True])
def test_images_gradients_of_few_places_are_products(size, bias, layout):
    """With the rows of all images, where eager multiplies one at a time; results, of fewer."""
    model = nn.Sequential(nn.Tanh(), nn.Conv2d(40, 96, 1, bias=bias))
    model, x = model.to(memory_format=layout), torch.randn(3, 40, *size).to(memory_format=layout)
    check_step(model, x.requires_grad_())
    is_product = math.prod(size) <= 16 and layout != LAST
    assert torch_stitch.counters()["library_calls"] == (3 if is_product else 2)


@pytest.mark.parametrize("width, size", [(3, 2), (5, 8), (7, 4)])
def test_gradients_of_filters_of_one_channel_take_little_memory(width, size):
    """Channels lie last: with AVX-512 oneDNN would take 1 KB beside each weight."""
    layer = nn.Conv2d(256, 256, width, padding=width // 2, groups=256)
    x = torch.randn(2, 256, size, size).to(memory_format=LAST)
    model = nn.Sequential(nn.Tanh(), layer)
    peaks = {}
    for name, compiled in (("stitch", compile_strictly(model)), ("eager", model)):
        take = functools.partial(run_step, model, compiled, (x,), True)
        take()
        peaks[name] = peak_bytes(take, model.parameters())
    assert peaks["stitch"] <= peaks["eager"], peaks
    assert peaks["stitch"] < 256 * layer.weight.numel(), peaks
    check_step(model, x.requires_grad_())


WINDOWS = {
    "padded": {"padding": 2},
    "in steps": {"padding": 2, "stride": (2, 3)},
    "dilated": {"padding": (4, 1), "dilation": (2, 1)},
    "to the sides": {"kernel_size": (1, 5), "bias": False},
    "larger than the image": {"kernel_size": 11, "padding": 5},
}


@pytest.mark.parametrize("layout", [torch.contiguous_format, LAST])
@pytest.mark.parametrize("name", WINDOWS)
def test_gradients_of_filters_of_one_channel_are_sums_over_windows(name, layout):
    layer = nn.Conv2d(24, 24, **{"kernel_size": 5, "groups": 24} | WINDOWS[name])
    x = torch.randn(2, 24, 9, 8).to(memory_format=layout)
    got, expected = check_step(layer, x)
    assert torch_stitch.counters()["library_calls"] == 1  # the convolution
    assert [g.stride() for g in got] == [g.stride() for g in expected]


RESULTS = {
    "a result": lambda x, y, z: z,
    "a result that is read again": lambda x, y, z: (y, z),
    "a view of it": lambda x, y, z: (y.flatten(2), z[:, 1:, ::2]),
    "it and a view of it": lambda x, y, z: (y, y.permute(0, 2, 3, 1), y[0]),
    "what is computed from it": lambda x, y, z: ((y + 1).transpose(1, 3), (z * 2).flatten(1)),
    "what a call makes of it": lambda x, y, z: (torch.linalg.vector_norm(z, 3, 1), z.cumsum(2)),
    "the image": lambda x, y, z: (x, z),
}


@pytest.mark.parametrize("layout", [torch.contiguous_format, LAST])
@pytest.mark.parametrize("name", RESULTS)
def test_results_have_eagers_strides(name, layout):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 24, 3)

        def forward(self, x):
            y = self.first(x)
            return RESULTS[name](x, y, self.second(y.relu()))

    check(Model(), torch.randn(2, 3, 12, 10).to(memory_format=layout))


def test_stored_into_an_argument():
    first, second = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3, groups=8)

    def run(x, kept, wrap):
        def fn(x, kept):
            y = first(x)
            kept.copy_(y.relu())
            return second(y).relu()

        with torch.no_grad():
            return wrap(fn)(x, kept), kept

    x, kept = torch.randn(2, 3, 9, 9), torch.zeros(2, 8, 7, 7)
    got, expected = (run(x, kept.clone(), wrap) for wrap in (compile_strictly, lambda fn: fn))
    torch.testing.assert_close(got, expected)
    assert [t.stride() for t in got] == [t.stride() for t in expected]
