"""What fails inside the compiler runs by library calls: ops of failing kernels, else the graph."""

import contextlib
import os
import re
import stat
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import torch_stitch
from torch_stitch import _core, fx_ops


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch_stitch.reset_counters()


@pytest.fixture
def refuse(monkeypatch, tmp_path):
    """refuse(op): from here on the C++ compiler does not take kernels with `op` in their name."""

    def install(op):
        script = tmp_path / "compiler"
        script.write_text(
            f"""#!/bin/sh
            for word; do
              case $word in *.cpp)
                grep -q 'STITCH_KERNEL(stitch_[a-z0-9_]*{op}' "$word" && echo refused && exit 1
              esac
            done
            exec {os.environ.get("CXX", "g++")} "$@"
            """
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        options = {"cxx": str(script), "cache": str(tmp_path / "cache")}
        return options

    return install


def compile_with(options, fn):
    return torch.compile(fn, backend="stitch", fullgraph=True, options=options)


def two_regions(x, w):
    y = (x.lgamma() * 2).sum(-1)
    return y, ((w @ y[:, None]).erf() + 1).sum(-1)  # the product waits for the first region


def check(fn, *inputs, options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = compile_with(options, fn)
        for _ in range(2):
            torch.testing.assert_close(compiled(*inputs), fn(*inputs))
    return [str(w.message) for w in caught if "torch_stitch" in str(w.message)]


def test_only_the_region_of_a_failing_kernel_falls_back(refuse):
    inputs = torch.rand(8, 8) + 1, torch.rand(8, 8)
    (warning,) = check(two_regions, *inputs, options=refuse("lgamma"))
    assert "aten.lgamma.default test_fallback.py:" in warning and "aten.erf" not in warning
    source = re.search(r"its source is in (.*?),", warning).group(1)
    with open(source) as text:
        assert "lgamma" in text.read()
    counters = torch_stitch.counters()
    assert counters["fallback_ops"] == 3  # lgamma, mul, sum
    assert counters["library_calls"] == 4 and counters["kernels"] == 1, counters


def test_every_kernel_may_fail(refuse):
    inputs = torch.rand(8, 8) + 1, torch.rand(8, 8)
    (warning,) = check(two_regions, *inputs, options=refuse(""))
    assert "aten.lgamma.default" in warning and "aten.erf.default" in warning
    counters = torch_stitch.counters()
    assert counters["fallback_ops"] == 6 and counters["kernels"] == 0, counters


def test_strict_makes_a_failing_kernel_an_error(refuse):
    options = {"strict": True} | refuse("lgamma")
    with pytest.raises(Exception, match="lgamma.* does not compile; its source is in"):
        compile_with(options, torch.lgamma)(torch.rand(4))
    assert torch_stitch.counters()["fallback_ops"] == 0


def test_mutations_views_and_outputs_of_a_failing_kernel(refuse):
    def fn(x):
        x.mul_(2).erf_()
        y = x.transpose(0, 1)[1:].exp()
        return y, y.flatten(), x.sum(0)

    x = torch.rand(5, 4)
    with pytest.warns(UserWarning, match="run as library calls"):
        mine, theirs = x.clone(), x.clone()
        torch.testing.assert_close(compile_with(refuse("erf"), fn)(mine), fn(theirs))
        torch.testing.assert_close(mine, theirs)


def test_training_goes_on_without_a_failing_kernel(refuse):
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Tanh())
    x = torch.randn(4, 8)
    compiled, gradients = compile_with(refuse("sum_div_sub_mul"), model), []
    for wrapped in (compiled, model):
        model.zero_grad()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrapped(x).square().sum().backward()
        gradients.append([p.grad.clone() for p in model.parameters()])
    torch.testing.assert_close(*gradients)
    counters = torch_stitch.counters()
    assert counters["fallback_ops"] > 0 and counters["kernels"] > 0, counters


def test_a_compiler_that_takes_nothing_is_told_once(tmp_path):
    script = tmp_path / "compiler"
    script.write_text('#!/bin/sh\ncase "$*" in *kernels.so*) exit 1; esac\nexec g++ "$@"\n')
    script.chmod(0o700)
    options = {"cxx": str(script), "cache": str(tmp_path / "cache")}
    (warning,) = check(torch.exp, torch.rand(4), options=options)
    assert "runs without stitching" in warning
    assert torch_stitch.counters()["fallback_ops"] == 1


def break_compiler(monkeypatch):
    def fail(*args, **options):
        raise _core.UnsupportedError("no plan for aten.exp.default")

    monkeypatch.setattr(_core, "compile", fail)


def test_a_failure_inside_falls_back_with_one_warning(monkeypatch):
    break_compiler(monkeypatch)
    compiled = torch.compile(lambda x: x.exp() + 1, backend="stitch")
    x = torch.randn(4)
    with pytest.warns(UserWarning, match="aten.exp.default") as caught:
        for _ in range(2):
            torch.testing.assert_close(compiled(x), x.exp() + 1)
    assert len(caught) == 1
    assert torch_stitch.counters()["fallback_ops"] == 2


def test_strict_makes_a_failure_an_error(monkeypatch):
    break_compiler(monkeypatch)
    with pytest.raises(Exception, match="no plan for aten.exp.default"):
        compile_with({"strict": True}, lambda x: x.exp())(torch.randn(4))


def test_masks_of_library_calls_are_those_of_kernels(refuse):
    def draw(options, x):
        torch.manual_seed(3)
        torch._dynamo.reset()
        y = compile_with(options, lambda x: F.dropout(x, 0.5))(x)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        return y, gradient

    x = torch.rand(70, 33, requires_grad=True)
    expected = draw({}, x)
    with pytest.warns(UserWarning, match="torch_stitch.random.default"):
        found = draw(refuse("coarse_least"), x)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def beside(x, y):
    return (x * 2).softmax(-1), y.exp()


def test_devices_without_kernels_are_said_counted_and_strict():
    inputs = torch.ones(3, 4, device="meta"), torch.ones(3)
    compiled = torch.compile(beside, backend="stitch")
    said = r"aten\.mul\.Tensor test_fallback.*found tensors on cpu, meta"
    with pytest.warns(UserWarning, match=said) as caught:
        for _ in range(2):
            assert compiled(*inputs)[0].shape == (3, 4)
    assert len(caught) == 1
    # Nothing is taken apart for kernels that do not exist.
    assert torch_stitch.counters()["fallback_ops"] == 3
    assert torch_stitch.counters()["library_calls"] == 0
    torch._dynamo.reset()
    with pytest.raises(Exception, match="found tensors on cpu, meta"):
        compile_with({"strict": True}, beside)(*inputs)


@pytest.mark.parametrize("dynamic", [False, True])
def test_tensors_without_values_give_what_eager_gives_and_nothing_is_missed(dynamic):
    def fn(x, w):
        y = F.layer_norm(x.mT, (5,)) @ w
        x.add_(1)
        return y.sum(1), y.mT[..., 1:], x.view(-1), x

    def run(call):
        x = torch.ones(2, 5, 6, device="meta", dtype=torch.bfloat16)
        w = torch.ones(5, 3, device="meta", dtype=torch.bfloat16, requires_grad=True)
        results = call(x, w)
        results[0].sum().backward()
        tensors = *results, x, w.grad
        return [(t.device, t.dtype, t.shape, t.stride(), t.requires_grad) for t in tensors]

    options = {"strict": True, "async_compile": True}
    how = {"backend": "stitch", "options": options, "dynamic": dynamic}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert run(torch.compile(fn, fullgraph=True, **how)) == run(fn)
    assert torch_stitch.counters()["fallback_ops"] == torch_stitch.counters()["kernels"] == 0


@pytest.mark.parametrize("fault", [ValueError, _core.StitchError, _core.InternalError])
def test_faults_of_import_rules_are_said(monkeypatch, fault):
    def fail(*_, **__):
        raise fault("a fault of ours")

    monkeypatch.setitem(fx_ops.RULES, "aten.exp.default", fail)
    x = torch.ones(3)
    with pytest.warns(UserWarning, match="InternalError: aten.exp.default test_fallback.*a fault"):
        assert torch.compile(lambda x: x.exp(), backend="stitch")(x).equal(x.exp())
    torch._dynamo.reset()
    with pytest.raises(Exception, match="a fault of ours"):
        compile_with({"strict": True}, lambda x: x.exp())(x)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_graphs_of_quantised_tensors_run_without_stitching():
    def fn(x):
        return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)[1:].dequantize() * 2

    x, graphs = torch.randn(4, 3), []
    torch.compile(fn, backend=lambda gm, _: graphs.append(gm.code) or gm)(x)
    torch._dynamo.reset()
    said = pytest.warns(UserWarning, match="stand-ins do not say that a value is quantised")
    is_traced = any("quantize_per_tensor" in code for code in graphs)  # not by torch 2.11
    with said if is_traced else contextlib.nullcontext():
        assert torch.compile(fn, backend="stitch")(x).equal(fn(x))


def test_what_a_rule_has_no_form_for_is_a_library_call(monkeypatch):
    def refuse_op(*_, **__):
        raise _core.UnsupportedError("no form")

    monkeypatch.setitem(fx_ops.RULES, "aten.exp.default", refuse_op)
    x = torch.ones(3)
    assert compile_with({"strict": True}, lambda x: x.exp() + 1)(x).equal(x.exp() + 1)
    assert torch_stitch.counters()["library_calls"] == 1


def test_warnings_point_at_the_users_line(monkeypatch):
    break_compiler(monkeypatch)

    def fn(x):
        return x.exp()

    with pytest.warns(UserWarning) as caught:
        torch.compile(fn, backend="stitch")(torch.ones(3))
    (warning,) = caught
    assert warning.filename == __file__
    assert warning.lineno == fn.__code__.co_firstlineno + 1
