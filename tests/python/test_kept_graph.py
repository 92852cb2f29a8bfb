"""Torch's cache of AOT graphs: what was traced and imported once is neither a second time."""

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch._functorch import config
from torch._inductor.utils import fresh_cache

from tests.support.compare import expect_equal
from torch_stitch import backend, kept_graph


@pytest.fixture(autouse=True)
def cache_of_its_own(monkeypatch):
    monkeypatch.setattr(kept_graph, "FEWEST_OPS", 0)
    with fresh_cache(), config.patch(enable_autograd_cache=True):
        forget()
        yield


def forget():
    torch._dynamo.reset()
    counters.clear()


def count(what):
    return counters["aot_autograd"][f"autograd_cache_{what}"]


def refuse(*_):
    raise AssertionError("a graph was imported that the cache holds")


def check_found(monkeypatch, run, compiled=1):
    """run(compile) compiles again as in a new process; it finds every graph, and the same bits."""

    def compile(fn, **how):
        return torch.compile(fn, backend="stitch", options={"strict": True}, **how)

    first = run(compile)
    assert count("saved") == compiled
    forget()
    with monkeypatch.context() as patch:
        patch.setattr(backend, "import_graph", refuse)
        again = run(compile)
    assert count("hit") == compiled
    expect_equal(again, first, rtol=0, atol=0)


def layers():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16), nn.Dropout(0.1), nn.Linear(16, 4))


def test_inference_is_found(monkeypatch):
    def run(compile):
        with torch.no_grad():
            return compile(layers().eval())(torch.ones(8, 16))

    check_found(monkeypatch, run)


def test_a_training_step_is_found_with_its_backward_pass(monkeypatch):
    def run(compile):
        model, x = layers(), torch.ones(8, 16)
        result = compile(model)(x)
        result.square().sum().backward()
        return [result.detach(), *(p.grad for p in model.parameters())]

    check_found(monkeypatch, run)


def test_a_graph_may_be_retained_where_it_is_found(monkeypatch):
    def run(compile):
        model, x = layers(), torch.ones(8, 16)
        result = compile(model)(x).square().sum()
        result.backward(retain_graph=True)
        result.backward()
        return [p.grad for p in model.parameters()]

    check_found(monkeypatch, run)


def test_sizes_that_change_are_found_and_guarded(monkeypatch):
    def run(compile):
        fn = compile(lambda x: (x.softmax(-1) * x.shape[0]).flip(0), dynamic=True)
        return [fn(torch.arange(24.0).view(n, -1)) for n in (2, 4, 8)]

    check_found(monkeypatch, run)


def test_calls_numbers_and_views_are_found(monkeypatch):
    table = torch.arange(6.0)

    def fn(x, y):
        x.add_(1)
        values, places = torch.sort(x, dim=1, descending=True)
        bent = torch.linalg.vector_norm(x) * torch.tensor(0.5)
        whole = torch.cummax(y, 0).values
        return values, places, bent, whole, whole[1:, ::2], y.view(-1)[3:], table + x.sum()

    def run(compile):
        return compile(fn)(torch.ones(3, 4), torch.arange(12.0).view(3, 4))

    check_found(monkeypatch, run)


def test_sizes_that_depend_on_data_are_found(monkeypatch):
    def fn(x):
        kept = x.nonzero()
        return kept * 2, x[x > 1].exp()

    def run(compile):
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            return compile(fn)(torch.arange(4.0))

    check_found(monkeypatch, run)


def test_random_numbers_are_drawn_anew_where_a_graph_is_found(monkeypatch):
    def run(compile):
        torch.manual_seed(3)
        fn = compile(lambda x: nn.functional.dropout(x, 0.5) + torch.rand_like(x))
        one, two = fn(torch.ones(64)), fn(torch.ones(64))
        assert not one.equal(two)
        return one, two

    check_found(monkeypatch, run)


def prints(x):
    torch.ops.aten._print("one")
    return x * 2


def holds_a_tensor(x):
    return x + torch.tensor([0.5, 2.0, 3.0])


@pytest.mark.parametrize("fn", [prints, holds_a_tensor])
def test_what_has_no_text_is_traced_again(fn):
    for _ in range(2):
        forget()
        torch.compile(fn, backend="stitch", options={"strict": True})(torch.ones(3))
        assert count("hit") == count("saved") == 0


def test_options_and_builds_have_graphs_of_their_own(monkeypatch):
    x = torch.ones(4, 4)
    for options in ({}, {"policy": "none"}, {"policy": "none", "fallback_random": True}):
        forget()
        torch.compile(lambda x: x.softmax(-1) + 1, backend="stitch", options=options)(x)
        assert count("hit") == 0 and count("miss") == 1
    forget()
    monkeypatch.setattr(kept_graph, "package_files", lambda: "another build")
    torch.compile(lambda x: x.softmax(-1) + 1, backend="stitch")(x)
    assert count("hit") == 0


def test_a_graph_that_is_left_whole_is_traced_again(monkeypatch):
    def run():
        forget()
        with pytest.warns(UserWarning, match="without stitching"):
            return torch.compile(lambda x: x.exp() + 1, backend="stitch")(torch.ones(3))

    monkeypatch.setattr(backend, "import_graph", refuse)
    monkeypatch.setattr("torch_stitch.backend.SAID", {})
    run()
    assert count("saved") == 0 and count("bypass") == 1
    monkeypatch.setattr("torch_stitch.backend.SAID", {})
    run()
    assert count("hit") == 0


def test_nothing_is_kept_where_the_cache_is_off():
    torch.compile(lambda x: x.exp() + 1, backend="stitch", options={"cache": "off"})(torch.ones(3))
    assert count("miss") == count("hit") == 0


def test_small_graphs_do_not_import_inductor_for_a_key(monkeypatch):
    monkeypatch.undo()
    torch.compile(lambda x: x.exp() + 1, backend="stitch")(torch.ones(3))
    assert count("miss") == count("hit") == 0


def test_artifacts_that_torch_saves_hold_our_graphs(monkeypatch):
    def run():
        forget()
        return torch.compile(lambda x: x.softmax(-1), backend="stitch")(torch.ones(2, 3))

    expected = run()
    saved, _ = torch.compiler.save_cache_artifacts()
    with fresh_cache():
        torch.compiler.load_cache_artifacts(saved)
        with monkeypatch.context() as patch:
            patch.setattr(backend, "import_graph", refuse)
            assert run().equal(expected)
        assert count("hit") == 1
