"""explain(clock=True): how long our own kernels take on a GPU that is not here."""

import pytest
import torch
import torch.nn.functional as F
from test_device_headers import needs_nvrtc

import torch_stitch
from benchmarks.clock_errors import ask_clock, list_kernels

pytestmark = [needs_nvrtc, pytest.mark.usefixtures("fresh")]


def softmax():
    return lambda x: x.softmax(-1), (torch.randn(1024, 1024),)


def column_sums():
    return lambda x: F.gelu(x).sum(0), (torch.randn(4096, 1024),)


def scaled_by_its_largest():
    return lambda x: x / x.amax(), (torch.empty(1 << 18),)


def scaled_by_the_largest_of_columns():
    """Of more blocks than are resident."""
    return lambda x: x / x.amax(0), (torch.empty(1 << 15, 1000),)


def others_scaled_by_the_largest_of_columns():
    x = torch.empty(1 << 15, 1 << 10)
    return lambda x, y: y / x.amax(0), (x, x.clone())


def normed_rows():
    norm = torch.nn.LayerNorm(1024)
    return lambda x: norm(F.gelu(x)), (torch.randn(4096, 1024),)


def rows_of_a_table():
    weight = torch.randn(1000, 64)
    return lambda i: F.embedding(i, weight).relu(), (torch.randint(0, 1000, (64, 128)),)


def timed(make):
    fn, inputs = make()
    return torch_stitch.explain(fn, *inputs, target="h200", clock=True).plan["kernels"]


def time_by_hand(kernel):
    """The text and the launch, as `python -m torch_stitch clock` takes them."""
    shared = kernel["shared_bytes"] if "STITCH_DYNAMIC_SHARED" in kernel["text"] else 0
    entry = {"kernel": kernel["name"], "grid": [kernel["grid"]], "shared_bytes": shared}
    args, source = kernel["args"].replace("8192*i64", "8192*i64<1000"), kernel["text"].encode()
    return ask_clock(source, entry, args, [kernel["block"]])["clock_us"]


MAKERS = softmax, column_sums, scaled_by_its_largest, normed_rows, rows_of_a_table


@pytest.mark.parametrize("make", MAKERS)
def test_a_kernel_takes_what_the_command_line_says(make):
    by_name = {kernel["name"]: kernel for kernel in timed(make)}
    listed = list_kernels(*make(), is_training=False)
    assert [kernel["name"] for kernel in listed] == list(by_name)
    for kernel in listed:
        found = by_name[kernel["name"]]
        assert found["launches"] == 1
        assert found["clock_us"] == pytest.approx(time_by_hand(kernel))
        assert found["bound"] and found["instructions_per_16_bytes"] > 0
        assert found["resident_threads"] % found["block"] == 0
        assert found["limited_by"] in ("registers", "threads", "shared memory", "the grid")


def test_blocks_that_meet_are_launched_together_where_all_are_resident_or_take_turns():
    (resident,), (more,) = timed(scaled_by_its_largest), timed(scaled_by_the_largest_of_columns)
    assert resident["launches"] == more["launches"] == 1
    # It reads twice 131 MB and stores as much; the second cache holds 0.4 of what is read again.
    assert 2.5 * 131.1e6 / 4.3e6 < more["clock_us"] < 3 * 131.1e6 / 3.6e6


def test_phases_that_read_nothing_again_are_launched_one_by_one():
    others = timed(others_scaled_by_the_largest_of_columns)
    assert sum(kernel["launches"] for kernel in others) > 1
    assert 3 * 134.2e6 / 4.3e6 < sum(kernel["clock_us"] for kernel in others) < 3 * 134.2e6 / 3.6e6


def test_sizes_of_a_call_are_their_hints():
    def make():
        fn, (x,) = softmax()
        torch._dynamo.mark_dynamic(x, 0)
        torch._dynamo.mark_dynamic(x, 1)
        return fn, (x,)

    (static,), (dynamic,) = timed(softmax), timed(make)
    assert dynamic["name"] != static["name"]
    assert static["clock_us"] < dynamic["clock_us"] < 5 * static["clock_us"]


def chosen():
    """Indices that are computed, not read."""
    return lambda x, y: x[(y * 100).long()] + 1, (torch.randn(100, 64), torch.rand(4096))


def test_what_was_assumed_is_said():
    fn, inputs = chosen()
    report = torch_stitch.explain(fn, *inputs, target="h200", clock=True)
    (kernel,) = report.plan["kernels"]
    assert any("depend on data" in sentence for sentence in kernel["assumptions"])
    assert all(f"assumed: {sentence}" in str(report) for sentence in kernel["assumptions"])
    assert f"{kernel['clock_us']:.2f} us by the clock, bound by {kernel['bound']}" in str(report)


def places_of_the_largest():
    """Of blocks of 1,024 threads one is resident beside another's loads, of 256 more are."""
    return lambda x: x.argmax(-1), (torch.randn(1024, 30000),)


@pytest.mark.parametrize("make", [*MAKERS, places_of_the_largest])
def test_of_a_few_schedules_the_clock_chooses_the_fastest(make):
    fn, inputs = make()
    chosen = torch_stitch.explain(fn, *inputs, target="h200", clock="choose").plan["kernels"]
    for before, after in zip(timed(make), chosen, strict=True):
        assert after["clock_us"] <= before["clock_us"]
        assert after["ops"][0]["op"] == before["ops"][0]["op"]
    if make is places_of_the_largest:
        assert after["clock_us"] < before["clock_us"] and after["name"] != before["name"]


def test_what_the_clock_chose_is_what_runs(tmp_path):
    fn, (x,) = places_of_the_largest()
    names = [
        torch_stitch.explain(fn, x, target="h200", clock=clock).plan["kernels"][0]["name"]
        for clock in (True, "choose")
    ]
    options = {"simulate": "fast", "clock": "choose", "dump": "emit", "dump_dir": str(tmp_path)}
    assert torch.equal(torch.compile(fn, backend="stitch", options=options)(x), fn(x))
    (text,) = [path.read_text() for path in tmp_path.iterdir()]
    assert [name in text for name in names] == [False, True]


def test_nothing_is_timed_unless_asked():
    fn, inputs = softmax()
    report = torch_stitch.explain(fn, *inputs, target="h200")
    assert "clock_us" not in report.plan["kernels"][0] and "clock" not in str(report)


def test_a_cpu_has_no_clock():
    fn, inputs = softmax()
    with pytest.raises(Exception, match="the clock reads the code of GPUs, and cpu is none"):
        torch_stitch.explain(fn, *inputs, clock=True)
