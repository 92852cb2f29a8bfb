"""Messages a user can get: what was found, what is allowed, what to do."""

import subprocess
import sys
import textwrap

import pytest
import torch

import torch_stitch
from torch_stitch.__main__ import main


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch_stitch.reset_counters()


def run_with(options=None, mode=None):
    fn = torch.compile(lambda x: x + 1, backend="stitch", options=options, mode=mode)
    return fn(torch.randn(4))


@pytest.mark.parametrize(
    "options, nearest", [({"strct": True}, "strict"), ({"polcy": "auto"}, "policy")]
)
def test_an_unknown_option_names_the_nearest(options, nearest):
    with pytest.raises(Exception, match=nearest):
        run_with(options)


def test_a_wrong_value_names_what_is_allowed():
    with pytest.raises(Exception, match="auto"):
        run_with({"policy": "atuo"})
    with pytest.raises(Exception, match="strict"):
        run_with({"strict": "maybe"})


def test_options_are_a_dict():
    with pytest.raises(Exception, match="found options .'strict'.; they are a dict"):
        run_with(["strict"])


def test_a_stage_that_is_not_dumped_names_those_that_are():
    with pytest.raises(Exception, match="did you mean 'plan'. It can be all, rewrite, plan"):
        run_with({"dump": "emit,plans"})


def test_an_unknown_mode():
    with pytest.raises(Exception, match="found mode .fastest.; there are default, reduce-overhead"):
        run_with(mode="fastest")


def test_the_default_mode_is_a_mode():
    assert run_with(mode="default").shape == (4,)


def test_a_target_that_is_not_there_cannot_run():
    with pytest.raises(Exception, match="found the target h200 and tensors on other devices"):
        run_with({"target": "h200"})


def test_an_unknown_target_of_explain():
    with pytest.raises(Exception, match="h200"):
        torch_stitch.explain(lambda x: x + 1, torch.randn(4), target="h2O")


def test_without_a_compiler_graphs_run_by_the_dispatcher():
    program = """
        import warnings
        import torch, torch_stitch
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x = torch.randn(4)
            result = torch.compile(lambda x: x.exp(), backend="stitch")(x)
        assert torch.equal(result, x.exp())
        print(*(str(w.message) for w in caught))
    """
    environment = {"TORCH_STITCH_CXX": "/nonexistent/c++", "TORCH_STITCH_CACHE": "off"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "/nonexistent/c++" in done.stdout


def test_an_index_out_of_range_is_an_error_and_the_process_lives():
    table = torch.randn(10, 4)
    fn = torch.compile(lambda i: table[i] * 2, backend="stitch")
    good, bad = torch.tensor([1, 2]), torch.tensor([1, 12])
    with torch.no_grad():
        torch.testing.assert_close(fn(good), table[good] * 2)
        with pytest.raises(IndexError):
            fn(bad)
        torch.testing.assert_close(fn(good), table[good] * 2)


DIVISIONS = {
    "floor": lambda x, y: x // y,
    "trunc": lambda x, y: x.div(y, rounding_mode="trunc"),
    "remainder": lambda x, y: x % y,
    "fmod": torch.fmod,
}


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("name", DIVISIONS)
def test_an_integer_divided_by_zero_is_eagers_error_and_the_process_lives(name, dtype):
    def fn(x, y):
        return DIVISIONS[name](x, y) + 1

    compiled = torch.compile(fn, backend="stitch", options={"strict": True})
    for count in (1, 37, 100_003):
        x = torch.arange(count).to(dtype)
        good = torch.full((count,), 3, dtype=dtype)
        bad = good.clone()
        bad[-1] = 0
        for y, raises in ((good, False), (bad, True), (good, False)):
            if not raises:
                torch.testing.assert_close(compiled(x, y), fn(x, y))
                continue
            with pytest.raises(RuntimeError, match="^ZeroDivisionError"):
                fn(x, y)
            with pytest.raises(RuntimeError, match="^ZeroDivisionError in aten.* test_errors.py:"):
                compiled(x, y)
    assert torch_stitch.counters()["kernels"] > 0


def test_what_a_user_asserts_is_checked_inside_the_kernel():
    """Twice, as `one_hot` does in newer torch: each would be a launch of its own."""

    def fn(x, classes):
        torch._assert_async((classes >= 0).all(), "Class values must be non-negative.")
        torch._assert_async((classes < 5).all(), "Class values must be smaller than num_classes.")
        return (classes[:, None] == torch.arange(5)) * x[:, None]

    compiled = torch.compile(fn, backend="stitch", options={"strict": True})
    x, good = torch.randn(37), torch.arange(37) % 5
    bad = good.clone()
    bad[7] = 5
    for classes, raises in ((good, False), (bad, True), (good, False)):
        if not raises:
            torch.testing.assert_close(compiled(x, classes), fn(x, classes))
            continue
        with pytest.raises(RuntimeError, match="^Class values must be smaller than num_classes"):
            fn(x, classes)
        with pytest.raises(RuntimeError, match="Class values must be .* in aten._assert_async.msg"):
            compiled(x, classes)
    assert torch_stitch.counters()["library_calls"] == 0


def test_a_number_that_is_zero_as_divisor():
    x = torch.arange(8)
    with pytest.raises(RuntimeError, match="^ZeroDivisionError"):
        torch.compile(lambda x: x % 0, backend="stitch", options={"strict": True})(x)


def test_what_is_not_divided_raises_nothing():
    def fn(x, y):
        padded = torch.nn.functional.pad(x // y, (2, 3), value=7)
        joined = torch.cat([x % y, torch.fmod(y, x + 1)])
        return padded, joined, (x // y[0]).sum(), x // x.shape[0], (x[:0] // y[:1]) % 5

    compiled = torch.compile(fn, backend="stitch", fullgraph=True, options={"strict": True})
    x, y = torch.arange(13), torch.arange(13) + 1
    torch.testing.assert_close(compiled(x, y), fn(x, y))
    nothing = torch.ones(0, dtype=torch.int64)
    divided = torch.compile(lambda x, y: (x // y).sum(0), backend="stitch", fullgraph=True)
    assert divided(nothing.reshape(0, 1), torch.zeros(1, dtype=torch.int64)).tolist() == [0]


def test_sizes_that_depend_on_data_are_those_of_a_call():
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        fn = torch.compile(lambda x: torch.nonzero(x) + 1, backend="stitch")
        assert fn(torch.tensor([0, 1, 1])).tolist() == [[2], [3]]
    counters = torch_stitch.counters()
    assert counters["fallback_ops"] == 0 and counters["library_calls"] == 1


def test_a_name_that_is_no_function_of_the_file():
    with pytest.raises(SystemExit, match="FILE.py:FUNCTION"):
        main(["explain", "nothing.py"])


REFUSED = {
    "frac": torch.frac,
    "softmax": lambda x: x.softmax(0) * 2,
    "log_softmax": lambda x: x.log_softmax(0),
    "lerp": lambda x: torch.lerp(x, x, x),
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, (5,)),
    "alpha": lambda x: x.add(x, alpha=0.5),
    "abs": lambda x: (x | True).abs(),
    "round": lambda x: x.round(),
    "power": lambda x: x**x,
    "relu": torch.relu,
    "argmax": lambda x: x.argmax(),
    "gelu": torch.nn.functional.gelu,
    "addcdiv": lambda x: torch.addcdiv(x, x, x),
}


def outcome_of(fn, x):
    try:
        return fn(x).tolist()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32], ids=str)
@pytest.mark.parametrize("name", REFUSED)
def test_what_eager_has_no_kernel_for_is_eagers_error(name, dtype):
    options, fn = {"strict": True}, REFUSED[name]
    for dynamic in (False, True):
        torch._dynamo.reset()
        compiled = torch.compile(fn, backend="stitch", options=options, dynamic=dynamic)
        for x in (torch.ones(5).to(dtype), torch.ones(4, 5).to(dtype)):
            expected, found = outcome_of(fn, x), outcome_of(compiled, x)
            in_tracing = isinstance(expected, tuple) and "FakeTensor" in found[1]
            assert found == expected or in_tracing, dynamic


@pytest.mark.parametrize("when", ["later", "now"])
def test_an_index_out_of_range_of_a_gpus_kernel_is_said_once(when):
    """A simulated device is through when the call returns, so that later is at its end."""
    options = {"simulate": "fast", "check_indices": when}
    take = torch.compile(lambda x, i: x[i] + 1, backend="stitch", options=options)
    x = torch.arange(5.0)
    for index, is_inside in ((3, True), (5, False), (-5, True), (-6, False)):
        index = torch.tensor([0, index])
        if is_inside:
            assert torch.equal(take(x, index), x[index] + 1)
        else:
            with pytest.raises(IndexError, match="out of range in aten.index"):
                take(x, index)
        torch_stitch.synchronize()  # has nothing more to say
