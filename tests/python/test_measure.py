"""benchmark(): what it measures, when it calls a difference one, what it says of wrong input."""

import functools
import importlib.util
import io
import random
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch
from torch import nn

import torch_stitch
from benchmarks.measure import KEEP_FREED_MEMORY
from torch_stitch import explain
from torch_stitch.measure.comparison import Comparison, Measured
from torch_stitch.measure.memory import peak_bytes
from torch_stitch.measure.noise import LEAST_ROUNDS, compare_times, interval_of_median
from torch_stitch.measure.progress import Progress
from torch_stitch.measure.reference import largest_errors
from torch_stitch.measure.steps import run_step
from torch_stitch.measure.timing import order_of_round

ROUNDS = 80  # what ten seconds give three backends


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Threads of one op would wait for each other wherever others use the machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def noisy_rounds(seed, slower):
    """Times of two functions on a machine that drifts, is disturbed, and wakes up now and then."""
    draw, times = random.Random(seed), {"first": [], "second": []}
    for i in range(ROUNDS):
        shared = 1 + 0.3 * i / ROUNDS + (draw.random() if draw.random() < 0.3 else 0)
        for name, factor in (("first", 1.0), ("second", slower)):
            alone = draw.lognormvariate(0, 0.06) * (3 if draw.random() < 0.05 else 1)
            times[name].append(factor * shared * alone)
    return times


def test_equal_functions_are_called_different_at_most_once_in_fifty():
    found = [compare_times(noisy_rounds(i, 1.0), "first", "second") for i in range(50)]
    assert sum(verdict.is_different for verdict in found) <= 1


def test_what_is_ten_percent_slower_is_called_slower_at_least_45_times_in_fifty():
    found = [compare_times(noisy_rounds(i, 1.1), "first", "second") for i in range(50)]
    assert sum(verdict.is_different and verdict.slow == "second" for verdict in found) >= 45


def test_the_interval_is_that_of_the_sign_test():
    assert interval_of_median(range(LEAST_ROUNDS)) == (0, LEAST_ROUNDS - 1)
    assert interval_of_median(range(LEAST_ROUNDS - 1)) == (0.0, float("inf"))
    # Of 20 values the 4th and 17th: binomial tails of 0.0013 each, and 0.0059 one further in.
    assert interval_of_median(range(20)) == (3, 16)


def test_a_verdict_names_the_faster_first_and_says_when_rounds_cannot_tell():
    times = {"a": [2.0] * 9, "b": [1.0] * 9}
    assert str(compare_times(times, "a", "b")) == "b is 2.00 (2.00 to 2.00) times as fast as a"
    few = {name: values[:4] for name, values in times.items()}
    assert "inside the noise" in str(compare_times(few, "a", "b"))


def test_every_backend_follows_every_other_as_often():
    names, follows = list("abc"), []
    for i in range(6):
        order = order_of_round(names, i)
        follows += zip(order, order[1:])
    assert len(set(follows)) == 6 and len({follows.count(pair) for pair in follows}) == 1


def test_errors_are_the_largest_of_all_tensors():
    exact = [torch.full((4,), 2.0), torch.zeros(3), torch.empty(0), None, None]
    result = [torch.tensor([2.0, 2.0, 2.0, 3.0]), None, torch.empty(0), torch.full((2,), 0.6), None]
    assert largest_errors(result, exact) == (pytest.approx(0.6), 1.0)
    assert largest_errors([torch.full((4,), torch.nan)], exact[:1]) == (torch.inf, torch.inf)


def softmax(x):
    return (x * 0.5).softmax(-1)


@pytest.fixture(scope="module")
def inference():
    x = torch.randn(256, 1024)
    return x, torch_stitch.benchmark(softmax, x, seconds=0)


def test_a_comparison_has_times_first_calls_counts_and_errors(inference):
    x, found = inference
    eager, inductor, stitch = found.measured
    assert [row.name for row in found.measured] == ["eager", "inductor", "stitch"]
    assert all(len(row.round_ms) == LEAST_ROUNDS for row in found.measured) and not found.failed
    assert eager.cold_s is None and eager.warm_s is None
    assert 0 < inductor.warm_s < inductor.cold_s and 0 < stitch.warm_s < stitch.cold_s
    plan = explain(softmax, x).plan
    assert (stitch.launches, stitch.moved_bytes) == (plan["launches"], plan["bytes_touched"])
    assert (eager.launches, eager.moved_bytes) == (2, 4 * x.nbytes) and inductor.launches == 1
    assert all(0 < row.rmse <= row.worst < 1e-5 for row in found.measured)
    assert all(row.peak_bytes >= 0 for row in found.measured)


@pytest.mark.parametrize("backend", ["eager", "stitch"])
def test_the_peak_is_what_lives_at_once_above_what_lives_between_calls(backend):
    x = torch.randn(1 << 18)
    call = torch.compile(lambda x: x.cumsum(0).cumsum(0).cumsum(0).sum(), backend=backend)
    call(x)
    assert peak_bytes(lambda: call(x)) == pytest.approx(2 * x.nbytes, rel=0.01)


def test_steps_of_training_let_go_of_what_they_saved():
    def grow(x, weights):
        for weight in weights:
            x = (x @ weight).exp() * 0.5
        return x.sum()

    weights = [torch.randn(128, 128, requires_grad=True) for _ in range(12)]
    x = torch.rand(2048, 128) * 1e-2

    def peak_of(backend):
        call = torch.compile(grow, backend=backend)
        torch.autograd.grad(call(x, weights), weights)
        return peak_bytes(lambda: torch.autograd.grad(call(x, weights), weights))

    assert peak_of("stitch") < peak_of("eager")


def test_what_products_read_is_made_again_in_backward():
    """An activation of what a product yields is not saved beside it, and gradients are eager's."""
    layers = [torch.nn.Linear(64, 64) for _ in range(4)]
    module = torch.nn.Sequential(*(part for layer in layers for part in (layer, torch.nn.GELU())))
    x, sizes, found = torch.randn(512, 64), {}, {}
    for backend in ("eager", "stitch"):
        kept = sizes[backend] = []
        call = torch.compile(module, backend=backend)
        keep = lambda t, kept=kept: kept.append(t) or t  # noqa: E731
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
            loss = call(x).square().sum()
        found[backend] = torch.autograd.grad(loss, list(module.parameters()))
        sizes[backend] = len({t.data_ptr() for t in kept if t.shape == x.shape} - {x.data_ptr()})
    assert sizes == {"eager": 8, "stitch": 5}  # with the result, which square() saves
    torch.testing.assert_close(found["stitch"], found["eager"], rtol=1e-4, atol=1e-4)


def test_a_peak_of_training_is_above_memory_without_gradients():
    layer, x = torch.nn.Linear(512, 512), torch.randn(4, 512)
    gradients = sum(p.nbytes for p in layer.parameters())
    for backend in ("eager", "stitch", "eager"):  # each finds what the one before has left
        call = torch.compile(layer, backend=backend)
        step = functools.partial(run_step, layer, call, (x,), True)
        step()
        assert peak_bytes(step, layer.parameters()) == pytest.approx(gradients, rel=0.05)


def test_a_comparison_reads_well(inference):
    text = str(inference[1])
    assert text.startswith("softmax(float32[256, 1024]), forward, on ")
    assert all(head in text for head in ("median ms", "cold s", "peak MB", "launches", "rmse"))
    assert text.endswith("8 rounds") and "CPU time of the one thread" in text
    assert len({len(line) for line in text.splitlines()[1:5]}) == 1
    page = inference[1]._repr_html_()
    assert page.count("<tr>") == 4 and "<td>stitch</td>" in page and "<script" not in page


def test_text_of_others_is_escaped():
    found = Comparison("<b>", (Measured("a<b", (1.0, 2.0)),), {"c": "x > y"}, ())
    assert "a&lt;b" in found._repr_html_() and "x &gt; y" in found._repr_html_()


def test_a_frame_has_a_row_per_backend_and_units_in_names(inference, monkeypatch):
    made = {}

    def from_dict(rows, orient):
        made.update(rows)
        return types.SimpleNamespace(rename_axis=lambda name: (orient, name))

    frame = types.SimpleNamespace(from_dict=from_dict)
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=frame))
    assert inference[1].to_frame() == ("index", "backend")
    assert made["stitch"]["launches"] == inference[1]["stitch"].launches
    assert {"median_ms", "cold_s", "peak_bytes"} <= made["eager"].keys()


@pytest.mark.parametrize(
    ("method", "module"), [("to_frame", "pandas"), ("plot", "matplotlib.pyplot")]
)
def test_without_an_extra_a_sentence_says_what_to_install(inference, monkeypatch, method, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"not here: pip install torch_stitch\[notebooks"):
        getattr(inference[1], method)()


def test_a_plot_has_a_bar_per_backend_and_two_per_first_call(inference):
    if importlib.util.find_spec("matplotlib") is None:
        with pytest.raises(ImportError, match="plot.* needs matplotlib"):
            inference[1].plot()
        return
    times, firsts = inference[1].plot().axes
    assert (len(times.patches), len(firsts.patches)) == (3, 4)
    assert [label.get_text() for label in times.get_yticklabels()] == [
        "eager",
        "inductor",
        "stitch",
    ]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(16, 16), nn.BatchNorm1d(16)

    def forward(self, x):
        return {"loss": self.norm(self.linear(x)).relu().square().mean()}


OURS = ("eager", "stitch")


def test_training_is_measured_and_the_model_stays_as_it_is():
    model, x = Block(), torch.randn(32, 16)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    generator = torch.get_rng_state()
    found = torch_stitch.benchmark(model, x, backends=OURS, training=True, seconds=0)
    assert all(value.equal(state[name]) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert torch.get_rng_state().equal(generator)
    assert found["eager"].launches > found["stitch"].launches > 0
    assert 0 < found["stitch"].rmse < 1e-5 and "forward and backward" in found.title


def test_a_backend_that_fails_is_left_out_and_says_why():
    def fail(gm, inputs):
        raise ValueError("no kernels\ntoday")

    backends = {"eager": None, "broken": {"backend": fail}}
    found = torch_stitch.benchmark(softmax, torch.randn(64, 64), backends=backends, seconds=0)
    assert [row.name for row in found.measured] == ["eager"]
    assert "broken is left out: BackendCompilerFailed" in str(found)


def test_random_functions_have_no_errors_but_a_note():
    found = torch_stitch.benchmark(
        lambda x: nn.functional.dropout(x), torch.ones(64), backends="eager", seconds=0
    )
    assert found["eager"].rmse is None and "draws random numbers" in str(found)


class Uncopied(nn.Linear):
    def __deepcopy__(self, memo):
        raise TypeError("holds a socket")


def raises(x):
    raise KeyError("weights")


BAD = {
    "raises": (raises, torch.ones(2), {}, r"raises in eager \(KeyError: 'weights'\)"),
    "no tensor": (lambda x: 3, torch.ones(2), {}, "returns no tensor but int"),
    "absent device": (softmax, torch.ones(2, device="meta"), {}, "found a tensor on meta"),
    "no copy": (Uncopied(2, 2), torch.ones(2), {}, r"not copy \(TypeError: holds a socket\)"),
    "unknown": (softmax, torch.ones(2), {"backends": ["inducter"]}, "did you mean inductor"),
    "no gradient": (softmax, torch.ones(2), {"training": True}, "requires a gradient"),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_input_is_one_sentence(case):
    fn, x, options, words = BAD[case]
    with pytest.raises(ValueError, match=words) as caught:
        torch_stitch.benchmark(fn, x, **options)
    assert "\n" not in str(caught.value)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_is_shown_on_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    torch_stitch.benchmark(softmax, torch.ones(4, 4), backends="eager", seconds=0)
    assert "rounds, each backend in turn" in sys.stderr.getvalue()


def test_a_bar_is_shown_neither_in_a_file_nor_where_the_setting_is_off(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not Progress(1).is_shown
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert Progress(1).is_shown
    monkeypatch.setenv("TORCH_STITCH_PROGRESS", "false")
    assert not Progress(1).is_shown


def test_the_page_about_measuring_runs_and_has_the_settings_of_malloc(capsys):
    page = (Path(__file__).parents[2] / "docs" / "measuring.md").read_text()
    blocks = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    exec(blocks.replace("seconds=1", "seconds=0"), {})
    assert "a kernel per op" in capsys.readouterr().out
    keep = " ".join(f"{name}={value}" for name, value in KEEP_FREED_MEMORY.items())
    assert f"\n{keep} python" in page


def test_importing_the_package_loads_nothing_that_measures():
    code = "import sys, torch_stitch; print(*(n for n in sys.modules if 'stitch.measure.' in n))"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert done.stdout.split() == []
