"""Graphs of library calls built by hand: what runs them, and the tensors that come out."""

import functools
import gc
import io
import operator
import pickle
import threading

import pytest
import torch

from tests.support.no_memory import NoMemory
from torch_stitch import _core

aten = torch.ops.aten
NAMES = {torch.float32: "f32", torch.int64: "i64", torch.bool: "bool", torch.bfloat16: "bf16"}


def type_of(tensor):
    return _core.TensorType(
        NAMES.get(tensor.dtype, "opaque"), list(tensor.shape), list(tensor.stride())
    )


class Program:
    """One graph under construction."""

    def __init__(self):
        self.b, self.calls, self.count = _core.Builder(), _core.CallTable(), 0

    def input(self, tensor):
        self.count += 1
        return self.b.input(f"x{self.count}", type_of(tensor), self.count - 1)

    def call(self, function, args, inputs, results, kwargs=None, several=False):
        row = self.calls.add_call(str(function), function, args, kwargs or {})
        return self.b.library(self.calls, row, inputs, [type_of(r) for r in results], several, [])

    def compile(self, *outputs):
        for output in outputs:
            self.b.output_tensor(output)
        return _core.compile(self.b.finish(self.count), self.calls, {}, "cpu")


def graph_of_relu():
    program = Program()
    program.b.output_tensor(program.b.pointwise("relu", [program.input(torch.empty(4, 8))]))
    return program.b.finish(1)


def operands(count):
    return [_core.Operand(i) for i in range(count)]


def compile_call(function, args, tensors, results, kwargs=None):
    program = Program()
    inputs = [program.input(t) for t in tensors]
    nodes = program.call(function, args, inputs, results, kwargs, several=len(results) > 1)
    return program.compile(*nodes)


def test_argument_list_is_cleared_and_outputs_are_plain_tensors():
    x, w = torch.randn(4, 5), torch.randn(5, 3, requires_grad=True)
    compiled = compile_call(aten.mm.default, operands(2), [x, w], [torch.mm(x, w)])
    assert compiled._boxed_call
    args = [x, w]
    (y,) = compiled(args)
    assert args == []
    assert torch.equal(y, torch.mm(x, w)) and not y.requires_grad and y.grad_fn is None
    assert y._version == 0 and y.is_contiguous()


@pytest.mark.parametrize(
    "function, arguments, tensors",
    [
        (aten.add.Scalar, lambda x: (x, 2.5), 1),
        (aten.cumsum.default, lambda x: (x, 1), 1),
        (aten.sum.dim_IntList, lambda x: (x, [0, 1], True), 1),
        (
            aten.convolution.default,
            lambda x, w: (x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
            2,
        ),
        (aten.cat.default, lambda x, w: ([x, x], 1), 2),
        (aten.index.Tensor, lambda x: (x, [None, torch.tensor([1, 0])]), 1),
        (aten.full.default, lambda: ([2, 3], 7.0), 0),
        (aten._softmax.default, lambda x: (x, -1, False), 1),
    ],
    ids=lambda value: str(value) if isinstance(value, torch._ops.OpOverload) else "",
)
def test_arguments_of_operators(function, arguments, tensors):
    given = [torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)][:tensors]
    expected = function(*arguments(*given))
    compiled = compile_call(function, arguments(*operands(tensors)), given, [expected])
    assert torch.equal(compiled(list(given))[0], expected)


def test_keyword_constants_are_converted():
    x = torch.randn(3, 4)
    kwargs = {
        "dtype": torch.int64,
        "device": torch.device("cpu"),
        "memory_format": torch.contiguous_format,
    }
    expected = aten._to_copy.default(x, dtype=torch.int64)
    compiled = compile_call(aten._to_copy.default, operands(1), [x], [expected], kwargs)
    assert torch.equal(compiled([x])[0], expected)
    generator = torch.Generator().manual_seed(3)
    compiled = compile_call(
        aten.rand.generator, [[4]], [], [torch.rand(4)], {"generator": generator}
    )
    first = compiled([])[0]
    assert torch.equal(first, torch.rand(4, generator=torch.Generator().manual_seed(3)))
    assert not torch.equal(first, compiled([])[0])


def test_several_results_and_results_that_are_not_there():
    x, w, y = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3), torch.randn(2, 4, 8, 8)
    options = ([4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False])
    program = Program()
    nodes = [program.input(t) for t in (y, x, w)]
    parts = program.call(
        aten.split.Tensor, [_core.Operand(0), 2, 1], nodes, y.split(2, 1), several=True
    )
    grads = program.call(
        aten.convolution_backward.default, [*operands(3), *options], nodes, [x, w, w], several=True
    )
    part, none, grad = program.compile(parts[1], grads[0], grads[1])([y, x, w])
    assert torch.equal(part, y[:, 2:]) and part.is_contiguous() == y[:, 2:].is_contiguous()
    assert none is None
    assert torch.allclose(grad, aten.convolution_backward.default(y, x, w, *options)[1])


def test_symbolic_sizes_are_evaluated_for_each_call():
    program = Program()
    size = program.b.symbol(1, 4, True)
    row = program.calls.add_call(
        "aten.view.default", aten.view.default, [_core.Operand(0), [size, 2, 3]], {}
    )
    flat = _core.TensorType("f32", [size * 6], [1])
    x = program.b.input("x", flat, 0)
    viewed = _core.TensorType("f32", [size, 2, 3], [6, 3, 1])
    (y,) = program.b.library(program.calls, row, [x], [viewed], False, [])
    program.b.output_tensor(y)
    program.b.output_integer(size * 2 + 1)
    program.b.output_none()
    compiled = _core.compile(program.b.finish(2), program.calls, {}, "cpu")
    for n in (4, 7, 0):
        y, integer, none = compiled([torch.arange(6.0 * n), n])
        assert y.shape == (n, 2, 3) and integer == 2 * n + 1 and none is None
    with pytest.raises(RuntimeError, match="invalid for input of size 7"):  # the call's own
        compiled([torch.zeros(7), 3])


def test_python_callables_get_tensors_and_plain_objects():
    program = Program()
    x = torch.randn(3)

    def scale(tensors, factor, *, bias):
        assert torch.is_grad_enabled()
        return {"no tensor": 0} and [tensors[0] * factor, None, (tensors[1] + bias["b"],)]

    nodes = [program.input(x), program.input(x)]
    args = ([_core.Operand(0), _core.Operand(1)], _core.Argument(2))
    results = program.call(
        scale, args, nodes, [x, x, x], {"bias": {"b": _core.Operand(1)}}, several=True
    )
    program.count += 1
    compiled = program.compile(results[0], results[2])
    found = compiled([x, x * 2, 5.0])
    assert torch.equal(found[0], x * 5) and torch.equal(found[1], x * 4)


@pytest.mark.parametrize("dropout, draws", [(0.0, False), (0, False), (0.25, True)])
def test_calls_that_draw_random_numbers_are_known_by_torchs_tag(dropout, draws):
    program, q = Program(), torch.zeros(1, 2, 8, 8)
    values = [program.input(q) for _ in range(3)]
    attention = aten._scaled_dot_product_flash_attention.default
    program.call(attention, [*operands(3), dropout], values, [q])
    assert ("ints=[1]" in str(program.b.finish(3))) == draws


@pytest.mark.parametrize("name, draws", [("_standard_gamma", True), ("sin", False)])
def test_calls_draw_whatever_their_callable_is(name, draws):
    """Wrappers of an operator keep its name."""
    op = getattr(aten, name).default
    for function in (op, functools.partial(op)):
        program, x = Program(), torch.ones(3)
        value = program.input(x)
        row = program.calls.add_call(str(op), function, operands(1), {})
        program.b.library(program.calls, row, [value], [type_of(x)], False, [])
        assert ("ints=[1]" in str(program.b.finish(1))) == draws


def test_errors_of_operators_and_callables_reach_the_caller():
    x = torch.randn(2, 3)
    compiled = compile_call(aten.mm.default, [_core.Operand(0), _core.Operand(0)], [x], [x])
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        compiled([x])

    def fail(_):
        raise KeyError("mine")

    compiled = compile_call(fail, operands(1), [x], [x])
    with pytest.raises(KeyError, match="mine"):
        compiled([x])
    with pytest.raises(_core.StitchError, match="takes 1 arguments and was given 2"):
        compiled([x, x])
    with pytest.raises(_core.StitchError, match="is of type int"):
        compiled([3])
    with pytest.raises(TypeError, match="one list"):
        compiled((x,))
    with pytest.raises(_core.StitchError, match="without its argument 'mat2'"):
        compile_call(aten.mm.default, operands(1), [x], [x])


def test_an_output_may_be_an_argument_and_may_come_twice():
    program = Program()
    x = torch.randn(3)
    node = program.input(x)
    (y,) = program.call(aten.neg.default, operands(1), [node], [x])
    a, b, c, d = program.compile(node, y, y, node)([x])
    assert a is x and d is x and torch.equal(b, -x) and b is c


def test_mutations_swap_and_replace_contents():
    program = Program()
    x, y = torch.randn(3), torch.randn(3)
    nodes = [program.input(x), program.input(y)]
    program.b.mutate(nodes[0], nodes[1])
    program.b.mutate(nodes[1], nodes[0])
    old_x, old_y = x.clone(), y.clone()
    (returned,) = program.compile(nodes[0])([x, y])
    assert torch.equal(x, old_y) and torch.equal(y, old_x)
    assert torch.equal(returned, old_x), "what is returned are the contents before the call"


def test_arguments_with_other_strides_are_brought_into_shape():
    x = torch.randn(4, 6)
    compiled = compile_call(aten.clone.default, operands(1), [x], [x])
    found = compiled([torch.randn(6, 4).copy_(x.t()).t()])[0]
    assert torch.equal(found, x) and found.stride() == (6, 1)


def test_a_mutated_argument_with_other_strides_is_the_one_that_changes():
    program = Program()
    x, y = torch.randn(4, 6), torch.randn(4, 6)
    nodes = [program.input(x), program.input(y)]
    program.b.mutate(*nodes)
    other = torch.zeros(6, 4).t()
    program.compile()([other, y])
    assert torch.equal(other, y) and other.stride() == (1, 4)


def test_results_get_the_promised_strides():
    x = torch.randn(2, 3)
    promised = torch.empty(3, 2)
    (found,) = compile_call(aten.t.default, operands(1), [x], [promised])([x])
    assert torch.equal(found, x.t()) and found.is_contiguous()


def make_pooled(*shape):
    x = torch.randn(shape[0], 64)
    w = torch.randn(64, shape[1])
    compiled = compile_call(aten.mm.default, operands(2), [x, w], [torch.empty(*shape)])
    return compiled, x, w


def test_tensors_from_the_pool_resize_save_and_share():
    compiled, x, w = make_pooled(300, 400)
    (y,) = compiled([x, w])
    expected = torch.mm(x, w)
    file = io.BytesIO()
    torch.save(y, file)
    assert file.tell() < 300 * 400 * 4 + 5000
    file.seek(0)
    assert torch.equal(torch.load(file), expected)
    assert y.untyped_storage().nbytes() == 300 * 400 * 4
    y.resize_(600, 400)
    assert torch.equal(y[:300], expected)
    y.untyped_storage().resize_(0)
    (y,) = compiled([x, w])
    y.share_memory_()
    assert y.is_shared() and torch.equal(y, expected)
    (y,) = compiled([x, w])
    assert torch.equal(torch.from_numpy(y.numpy()), expected)


def test_the_pool_reuses_memory_and_releases_it():
    _core.release_memory()  # another test's block would do as well
    compiled, x, w = make_pooled(1024, 1024)
    (y,) = compiled([x, w])
    address = y.data_ptr()
    del y
    gc.collect()
    (y,) = compiled([x, w])
    assert y.data_ptr() == address
    del y
    assert _core.pool_statistics()["cached_bytes"] >= 4 << 20
    _core.release_memory()
    assert _core.pool_statistics()["cached_bytes"] == 0


def test_threads_share_a_graph():
    compiled, x, w = make_pooled(128, 128)
    expected, failures = torch.mm(x, w), []

    def work():
        for _ in range(200):
            if not torch.equal(compiled([x, w])[0], expected):
                failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_inference_mode_and_autocast_do_not_leak_into_calls():
    compiled, x, w = make_pooled(8, 8)
    with torch.inference_mode():
        (y,) = compiled([x, w])
        assert y.is_inference()
    assert not compiled([x, w])[0].is_inference()


def test_opaque_values_pass_between_calls():
    program = Program()
    x = torch.randn(4, 2)
    node = program.input(x)
    (c,) = program.call(
        aten.view_as_complex.default, operands(1), [node], [torch.view_as_complex(x)]
    )
    (r,) = program.call(aten.view_as_real.default, operands(1), [c], [x])
    assert torch.equal(program.compile(r)([x])[0], x)
    sparse = torch.eye(3).to_sparse()
    program = Program()
    node = program.b.input("s", _core.TensorType("opaque", [3, 3], []), 0)
    program.count = 1
    (d,) = program.call(aten.to_dense.default, operands(1), [node], [torch.eye(3)])
    assert torch.equal(program.compile(d)([sparse])[0], torch.eye(3))


def test_options_and_ops_are_listed():
    names = [row["name"] for row in _core.settings()]
    assert "policy" in names and "pool_bytes" in names
    with pytest.raises(_core.StitchError, match="did you mean 'policy'"):
        _core.check_options({"polcy": "auto"})
    for value in (1.5, None, 10**30):
        named = f"'policy' is {value}; options are bool, int of 64 bits or str"
        with pytest.raises(_core.StitchError, match=named):
            _core.check_options({"policy": value})
    assert _core.get_option({"policy": "none"}, "policy") == "none"
    ops = {row["name"]: row for row in _core.ops()}
    assert ops["exp"]["family"] == "pointwise" and ops["exp"]["arity"] == 1
    assert "mul.Tensor" in ops["mul"]["aten"].split()


def test_sizes_are_polynomials():
    b = _core.Builder()
    s = b.symbol(0, 8, True)
    assert s * 2 + 1 == 1 + 2 * s and str(_core.Dim(7)) == "7"
    assert b.hint((s - 1) * s) == 56
    assert _core.Dim(3).value() == 3
    with pytest.raises(_core.StitchError, match="did you mean 'floordiv'"):
        b.opaque("floor_div", s, _core.Dim(2))
    assert b.hint(b.opaque("mod", s, _core.Dim(3))) == 2
    assert operator.sub(10, s) == 10 - s


def test_a_graph_that_was_only_planned_does_not_run():
    compiled = _core.compile(graph_of_relu(), _core.CallTable(), {}, "cpu", load=False)
    with pytest.raises(_core.StitchError, match="load=False"):
        compiled([torch.randn(4)])


def test_a_graph_object_that_was_never_made_does_not_run():
    with pytest.raises(_core.StitchError, match="never made"):
        _core.CompiledGraph.__new__(_core.CompiledGraph)([])


def test_whatever_object_has_no_memory_the_call_says_so_and_the_next_is_right(tmp_path):
    """Arguments, what Python functions take, numbers that become tensors, results of each kind."""
    program, x = Program(), torch.randn(3)
    node = program.input(x)
    program.count = 3  # a number, and the tensor that it becomes
    program.calls.extras.append(1)
    number = program.b.input("number", _core.TensorType("f64", [], []), 2)
    (y,) = program.call(aten.neg.default, operands(1), [node], [x])
    # No op in here: torch's own lose such errors.
    (z,) = program.call(lambda x, n: x, operands(2), [y, number], [x])
    for output in (y, node, number, z):
        program.b.output_tensor(output)
    program.calls.number_outputs.append(2)
    program.calls.views.append((3, 1, torch.float32))
    for place in (2, 1, 4):  # size, stride, bytes before it
        program.b.output_integer(_core.Dim(place))
    compiled = _core.compile(program.b.finish(3), program.calls, {}, "cpu")
    failures = spared = 0
    with NoMemory(tmp_path) as memory:
        while not spared:
            given = [x, 2.5]
            try:
                memory.fail_at(failures + 1)
                found = compiled(given)
                spared = memory.fail_at(0)
            except (MemoryError, RuntimeError):  # pybind11's are RuntimeErrors
                failures += 1
                continue
            assert spared, "an allocation failed and nobody said so"
            assert found[0].equal(-x) and found[1] is x and found[2] == 2.5
            assert found[3].equal(-x[1:])
    assert failures > 5


def test_graphs_and_sizes_are_kept_in_pickles():
    graph = graph_of_relu()
    assert str(pickle.loads(pickle.dumps(graph))) == str(graph)
    s = _core.Builder().symbol(0, 7, True)
    size = s * s * 3 - 2
    assert pickle.loads(pickle.dumps(size)) == size
    state = graph.__getstate__()
    for damaged in (state[:-8], state + bytes(8), b""):
        with pytest.raises(_core.StitchError, match="not of this build"):
            _core.Graph.__new__(_core.Graph).__setstate__(damaged)
