"""Average pooling: windows of few places as shifted parts of the image, others as one call."""

import pytest
import torch
from support.compare import check, compile_strictly, expect_as_exact, expect_equal

import torch_stitch

F = torch.nn.functional
WINDOWS = (
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": (2, 3), "stride": (1, 2)},
    {"kernel_size": 3, "stride": 1, "padding": (1, 0), "divisor_override": 5},
)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_windows_of_few_places_are_stitched(fresh, window, dtype):
    x = torch.randn(2, 3, 13, 17).to(dtype)
    for image in (x, x[0]):
        result = compile_strictly(lambda x: F.avg_pool2d(x, **window))(image)
        expected, exact = F.avg_pool2d(image, **window), F.avg_pool2d(image.double(), **window)
        assert result.stride() == expected.stride()
        expect_as_exact(result, expected, exact, 16)
    assert torch_stitch.counters()["library_calls"] == 0


def test_what_reads_the_pooled_image_is_of_the_same_kernel(fresh):
    check(lambda x: F.avg_pool2d(x.relu(), 2) * 2, torch.randn(2, 4, 8, 8))
    assert torch_stitch.counters()["kernels"] == 1


@pytest.mark.parametrize(
    "window",
    [{"ceil_mode": True}, {"padding": 1, "count_include_pad": False}, {"kernel_size": 5}],
    ids=str,
)
def test_other_windows_are_one_call(fresh, window):
    window = {"kernel_size": 3, "stride": 2} | window
    check(lambda x: F.avg_pool2d(x, **window) + 1, torch.randn(2, 3, 14, 14), copies=1)
    assert torch_stitch.counters()["library_calls"] == 1


def test_images_whose_channels_come_last_are_one_call(fresh):
    x = torch.randn(2, 8, 14, 14).to(memory_format=torch.channels_last)
    check(lambda x: F.avg_pool2d(x, 2) + 1, x, copies=1)
    assert torch_stitch.counters()["library_calls"] == 1


def test_pooling_trains(fresh):
    def fn(x):
        return F.avg_pool2d(x * 2, 3, 2, 1).square()

    x = torch.randn(2, 3, 9, 9, requires_grad=True)
    gradients = [torch.autograd.grad(f(x).sum(), x)[0] for f in (compile_strictly(fn), fn)]
    torch.testing.assert_close(*gradients)
    assert gradients[0].any() and torch_stitch.counters()["fallback_ops"] == 0


ADAPTIVE = {
    "average": lambda x: F.adaptive_avg_pool2d(x, (3, 5)),
    "average of all": lambda x: F.adaptive_avg_pool2d(x, 1),
    "average along lines": lambda x: F.adaptive_avg_pool1d(x[0], 4),
    "most": lambda x: F.adaptive_max_pool2d(x, (3, 5)),
    "most and where": lambda x: F.adaptive_max_pool2d(x, 4, return_indices=True),
    "windows and where": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
    "overlapping volumes": lambda x: F.max_pool3d(x, 2, 1, return_indices=True),
}


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("name", ADAPTIVE)
def test_adaptive_windows_and_places_are_one_call_at_most(fresh, name, is_dynamic):
    def fn(x):
        found = ADAPTIVE[name](x * 2)
        values, *places = found if isinstance(found, tuple) else (found,)
        return values + 1, *(place % 7 for place in places)

    compiled = compile_strictly(fn, dynamic=is_dynamic)
    for height in (12, 9):
        x = torch.randn(2, 3, height, 10, requires_grad=True)
        got, expected = compiled(x), fn(x)
        expect_equal(got, expected, rtol=1e-5, atol=1e-6)
        mine, eager = (torch.autograd.grad(y[0].square().sum(), x)[0] for y in (got, expected))
        torch.testing.assert_close(mine, eager)
    counters = torch_stitch.counters()
    assert counters["library_calls"] <= 4 and counters["fallback_ops"] == 0, counters


def test_sizes_known_at_run_time_are_pooled(fresh):
    call = compile_strictly(lambda x: F.avg_pool2d(x, 2), dynamic=True)
    for height, width in ((8, 8), (9, 12), (31, 7)):
        x = torch.randn(2, 3, height, width)
        torch.testing.assert_close(call(x), F.avg_pool2d(x, 2))


@pytest.mark.parametrize("bad", [{"kernel_size": 9}, {"kernel_size": 2, "stride": 0}], ids=str)
def test_bad_windows_are_eagers_errors(fresh, bad):
    x = torch.randn(1, 1, 4, 4)
    with pytest.raises(RuntimeError) as eager:
        F.avg_pool2d(x, **bad)
    with pytest.raises(Exception, match=str(eager.value).split(":")[0][:20]):
        compile_strictly(lambda x: F.avg_pool2d(x, **bad))(x)


@pytest.mark.simulated
@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize(
    "padding", [(-1, -2, 1, 1), (-1, 1, -2, 1), (2, -5), (-3, -2, 0, -1), (0, -4, 3, 0, -2, 0)]
)
def test_pads_that_cut_off(fresh, padding, is_dynamic):
    """The gradient of a pad is a pad, whose sizes are negative."""

    def fn(x):
        y = F.pad(x * 2, padding, value=1.5)
        return y + 1, y.mean(-1), F.pad(y.sigmoid(), [-size for size in padding])

    compiled = compile_strictly(fn)
    for shape in ((3, 7, 9), (5, 8, 64)):
        given = torch.randn(shape, requires_grad=True)
        x = given.detach().clone().requires_grad_()
        if is_dynamic:  # sizes of x, not those of the padding
            torch._dynamo.maybe_mark_dynamic(x, [0, 1, 2])
        results, expected = compiled(x), fn(given)
        torch.testing.assert_close(results, expected)
        sum(r.cos().sum() for r in results).backward()
        sum(r.cos().sum() for r in expected).backward()
        torch.testing.assert_close(x.grad, given.grad)
    assert torch_stitch.counters()["library_calls"] == 0
