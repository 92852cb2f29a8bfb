"""What an FX graph becomes in the core: types, sizes, layouts, calls, origins."""

import functools
import operator
import re
import sys

import pytest
import torch
import torch.nn.functional as F
from functorch.compile import make_boxed_func
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from tests.support.compare import steps
from torch_stitch import _core, backend
from torch_stitch.decompositions import decompositions
from torch_stitch.fx_import import import_graph
from torch_stitch.fx_ops import DTYPES

FEW_OPS = (torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2)


def import_function(fn, *inputs, dynamic=False, target="cpu", stitch=True):
    """The imported form of the only graph of fn(*inputs), traced for inference."""
    found = []

    def compiler(kind, gm, example_inputs):
        found.append(import_graph(gm, target, () if stitch else gm.graph.nodes))
        return make_boxed_func(gm.forward)

    def trace(gm, example_inputs):
        return backend.trace(gm, example_inputs, target, compiler)

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(fn, backend=trace, dynamic=dynamic)(*inputs)
    (imported,) = found
    return imported


def text_of(fn, *inputs, **options):
    return str(import_function(fn, *inputs, **options).graph)


def types_of(text, op):
    """Types of the nodes of one op: ["f32[4,5]", ...]."""
    return re.findall(rf"= {op}[({{].*? : (\S+)", text)


def library_names(text):
    return re.findall(r'library.*?name="([^"]+)"', text)


def test_pointwise_ops_need_no_call():
    text = text_of(lambda x, y: torch.tanh(x * y + 1) / y, torch.randn(4, 5), torch.randn(5))
    assert library_names(text) == []
    for op in ("mul", "add", "tanh", "div"):
        assert types_of(text, op) == ["f32[4,5]"]


def test_every_op_knows_its_line():
    line = "test_import.py:"
    text = text_of(lambda x: torch.exp(x), torch.randn(3))
    assert re.search(rf"exp\(%0\).*# aten\.exp\.default {line}\d+", text)


@pytest.mark.parametrize(
    "left, right, compute, result",
    [
        (torch.int32, torch.float32, "f32", "f32"),
        (torch.bfloat16, torch.float32, "f32", "f32"),
        (torch.float16, torch.bfloat16, "f32", "f32"),
        (torch.int8, torch.int64, "i64", "i64"),
        (torch.bool, torch.int16, "i16", "i16"),
        (torch.bfloat16, torch.bfloat16, "bf16", "bf16"),
    ],
)
def test_operands_are_promoted_as_in_eager(left, right, compute, result):
    text = text_of(torch.add, torch.ones(3).to(left), torch.ones(3).to(right))
    assert types_of(text, "add") == [f"{result}[3]"]
    for dtype in types_of(text, "cast"):
        assert dtype == f"{compute}[3]"


def test_sizes_are_positive_and_numbers_of_the_user_are_any():
    x = torch.randn(6, 8)
    (symbols,) = re.findall("symbols .*", text_of(lambda x: x.exp(), x, dynamic=True))
    assert symbols.count("input(") == 2 and "unbounded" not in symbols
    (symbols,) = re.findall("symbols .*", text_of(lambda x, n: x * n, x[0], 7, dynamic=True))
    found = re.findall(r"hint (\d+)( unbounded)?", symbols)
    assert sorted(found) == [("7", " unbounded"), ("8", "")]


def test_bool_arithmetic_is_logic():
    a = torch.tensor([True, False])
    assert types_of(text_of(lambda a, b: a + b, a, a), "logical_or") == ["bool[2]"]
    assert types_of(text_of(lambda a, b: a * b, a, a), "logical_and") == ["bool[2]"]
    assert types_of(text_of(lambda a: ~a, a), "logical_not") == ["bool[2]"]


def test_integer_division_is_done_in_floats():
    text = text_of(lambda a, b: a / b, torch.arange(3), torch.arange(3) + 1)
    assert types_of(text, "div") == ["f32[3]"]
    text = text_of(lambda a: a // 2, torch.arange(3))
    assert types_of(text, "div_floor") == ["i64[3]"]


def test_casts_that_decompositions_make_keep_digits_and_those_of_the_user_round():
    def casts(fn):
        text = text_of(fn, torch.randn(4, 8).bfloat16())
        lines = (line for line in text.splitlines() if "cast(" in line and ": bf16" in line)
        return ["{integer=1}" in line for line in lines]

    assert casts(lambda x: x.softmax(-1) * 2) == [True]
    assert casts(lambda x: x.float().exp().bfloat16() * 2) == [False]


def test_statistics_of_narrow_floats_are_taken_in_f32():
    text = text_of(lambda x: (x.mean(-1), x.var(0)), torch.randn(4, 8).bfloat16())
    assert types_of(text, "sum") == ["f32[4]"]
    assert types_of(text, "sum_sq_dev") == ["f32[8]"]


@pytest.mark.parametrize("target", ["cpu", "h200"])
@pytest.mark.parametrize("parameters", [None, torch.bfloat16, torch.float32], ids=str)
def test_what_a_group_norm_saves_is_what_eagers_backward_takes(parameters, target):
    """In 16 bits on GPUs as well, where eager's gradient takes nothing else."""
    x = torch.randn(2, 4, 3).bfloat16()
    w = None if parameters is None else torch.ones(4, dtype=parameters)
    op, rest = torch.ops.aten.native_group_norm.default, (w, w, 2, 4, 3, 2, 1e-5)
    results = decompositions(target)[op](x, *rest)
    assert [y.dtype for y in results] == [y.dtype for y in op(x, *rest)]


@pytest.mark.parametrize(
    "build",
    [
        lambda x: torch.nn.functional.softmax(x, -1),
        lambda x: torch.nn.functional.log_softmax(x, 0),
        lambda x: torch.nn.functional.layer_norm(x, (8,)),
        lambda x: torch.nn.functional.group_norm(x, 2),
        lambda x: torch.nn.functional.batch_norm(x, None, None, training=True),
        lambda x: torch.nn.functional.rms_norm(x, (8,)),
        lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
        lambda x: torch.nn.functional.silu(x),
        lambda x: torch.nn.functional.cross_entropy(x, torch.zeros(4, dtype=torch.int64)),
        lambda x: torch.nn.functional.mse_loss(x, x + 1),
        lambda x: torch._foreach_addcmul([x, x], [x, x], [x, x], value=2),
        lambda x: torch._foreach_norm([x, x]),
        lambda x: (x[:, 2:5], x[1], x.flip(0), x.chunk(2, -1), x.unbind(0), x.t().reshape(-1)),
        lambda x: (torch.cat([x, x]), torch.stack([x, x]), torch.nn.functional.pad(x, (1, 2))),
        lambda x: (x[torch.tensor([0, 2])], x.gather(1, torch.zeros(4, 3, dtype=torch.int64))),
        lambda x: (x.tril(), x.masked_fill(x > 0, 1.0), x.clamp(0, 1), torch.where(x > 0, x, 0)),
        lambda x: (x.sum(), x.amax(0), x.prod(1), x.any(), x.argmax(-1), x.std(1), x.max(dim=1)),
        lambda x: (torch.zeros_like(x), torch.arange(8), x.new_ones(3), torch.full((2,), 7)),
    ],
)
def test_memory_bound_ops_need_no_call(build):
    assert library_names(text_of(build, torch.randn(4, 8))) == []


def test_everything_else_is_a_call():
    text = text_of(lambda x: (x @ x).cumsum(0).sort().values, torch.randn(20, 20))
    assert library_names(text) == ["aten.mm.default", "aten.cumsum.default", "aten.sort.default"]


def test_boolean_masks_choose_one_value_and_several_are_a_call():
    def fn(x, mask, values):
        return torch.ops.aten.index_put(x, [mask], values)

    mask = torch.tensor([True, False, True, False])
    assert library_names(text_of(fn, torch.randn(4), mask, torch.zeros(()))) == []
    text = text_of(fn, torch.randn(4), mask, torch.zeros(2))
    assert library_names(text) == ["aten.index_put.default"]


def test_complex_values_pass_between_calls():
    text = text_of(lambda x: torch.view_as_complex(x).abs() + 1, torch.randn(4, 2))
    assert "opaque[4]" in text
    assert types_of(text, "add") == ["f32[4]"]


def test_without_stitching_all_is_calls():
    text = text_of(lambda x: (x + 1).t() @ x, torch.randn(4, 2), stitch=False)
    assert library_names(text) == ["aten.add.Tensor", "aten.permute.default", "aten.mm.default"]


def test_sizes_stay_symbols():
    def fn(x):
        return x.mean(0), x[1:], x.view(x.shape[0], 2, -1), x.shape[0] // 2

    text = text_of(fn, torch.randn(6, 8), dynamic=True)
    assert "f32[s0,s2*2]" in text  # a guard of the view says that the second is even
    assert "f32[s0-1,s2*2]" in text
    assert re.search(r"int s\d", text)
    assert "full{dims=[s0]}" in text  # the count of the mean is known when it runs


def test_formulas_of_sizes_are_computed_as_python_does():
    text = text_of(lambda x: x * (x.shape[0] / (x.shape[0] - 1)), torch.randn(6, 8), dynamic=True)
    assert types_of(text, "div") == ["f64[]"]
    assert library_names(text) == []


@torch.library.custom_op("stitch_test::look", mutates_args=())
def look(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


look.register_fake(torch.empty_like)


@torch.library.custom_op("stitch_test::polish", mutates_args=("x",))
def polish(x: torch.Tensor) -> None:
    x.fill_(1)


def assert_and_add(x):
    torch._assert_async(x.sum() > 0, "none is there")
    return x + 1


def polish_copy(x):
    copied = x.clone()
    polish(copied)
    return copied


def write_in_place(x, i):
    x.index_add_(0, i, torch.ones(2, 4))


@pytest.mark.parametrize(
    "fn, effects",
    [
        (lambda x, i: x @ x.cos(), {}),
        (lambda x, i: F.scaled_dot_product_attention(x[None], x[None], x[None]), {}),
        (lambda x, i: torch._standard_gamma(x), {"aten._standard_gamma.default": 1}),
        (lambda x, i: torch.multinomial(x, 2), {"aten.multinomial.default": 1}),
        (lambda x, i: assert_and_add(x), {"aten._assert_async.msg": 1}),
        (lambda x, i: look(x), {"stitch_test.look.default": 1}),
        (lambda x, i: polish_copy(x), {"auto_functionalized_v2": 2}),
        (write_in_place, {"aten.index_add_.default": 2}),
    ],
)
def test_effects_of_calls_are_what_their_schemas_say(fn, effects):
    """1: it runs in order with others such; 2: it may write its operands, too."""
    text = text_of(fn, torch.rand(4, 4) + 1, torch.tensor([1, 3]), stitch=False)
    found = dict(re.findall(r'library.*?name="([^"]+)", ints=\[(\d)\]', text))
    assert {name: int(effect) for name, effect in found.items()} == effects


def test_a_put_whose_call_writes_where_it_lies_says_so():
    def fn(x, source, i):
        x.index_add_(0, i, source)

    inputs = torch.randn(9, 4), torch.randn(2, 4), torch.tensor([1, 3])
    assert "ints=[0,0,1,-1,2]" in text_of(fn, *inputs)
    text = text_of(lambda x, source, i: torch.index_add(x, 0, i, source), *inputs)
    assert "ints=[0,0,1,-1]" in text


def test_outputs_have_the_strides_of_eager():
    text = text_of(lambda x: x.t() + 1, torch.randn(4, 5))
    assert "f32[5,4](1,5)" in text


def test_a_clone_is_no_alias_of_its_argument():
    text = text_of(lambda x: x.clone(), torch.randn(4))
    assert re.search(r"= layout\(%0\)", text)


def test_equal_outputs_are_different_tensors():
    text = text_of(lambda x: (x + 1, x + 1), torch.randn(4))
    outputs = re.search(r"outputs \((.*)\)", text).group(1).split(", ")
    assert len(set(outputs)) == 2


def test_a_trailing_copy_is_a_store():
    def fn(x, y):
        x.add_(y)
        return x * 2

    assert re.search(r"mutate %0 <- %\d", text_of(fn, torch.randn(4), torch.randn(4)))


def test_tensors_in_the_graph():
    def fn(x):
        return x * torch.tensor(3.0) + torch.tensor([1.0, 2.0])

    imported = import_function(fn, torch.randn(2))
    assert [c.tolist() for c in imported.calls.extras] == [[1.0, 2.0]]
    assert "full{number=3}" in str(imported.graph)
    assert "arguments 2 tensors [0,1]" in str(imported.graph)


def test_statistics_follow_the_target():
    def fn(x):
        return torch.ops.aten.native_layer_norm(x, [8], None, None, 1e-5)

    x = torch.randn(4, 8).bfloat16()
    outputs = {}
    for target in ("cpu", "h200"):
        text = text_of(fn, x, target=target)
        last = re.findall(r"%\d+", re.search(r"outputs .*", text).group(0))[1:]
        outputs[target] = [re.search(rf"^{value} = .*? : (\w+)\[", text, re.M) for value in last]
    assert [m.group(1) for m in outputs["cpu"]] == ["bf16", "bf16"]
    assert [m.group(1) for m in outputs["h200"]] == ["f32", "f32"]


def count_calls(work):
    """Of Python functions."""
    counts = {"call": 0}

    def see(frame, event, argument):
        counts[event] = counts.get(event, 0) + 1

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counts["call"]


def updates(count):
    """AdamW of so many tensors, written out."""
    graph, aten = torch.fx.Graph(), torch.ops.aten
    with FakeTensorMode():
        value = torch.empty(64, 64)

    def call(op, *args):
        node = graph.call_function(op, args)
        node.meta["val"] = value
        return node

    outputs = []
    for i in range(count):
        held = []
        for name in "pgmv":
            held.append(graph.placeholder(f"{name}{i}"))
            held[-1].meta["val"] = value
        p, g, m, v = held
        m = call(aten.add.Tensor, call(aten.mul.Tensor, m, 0.9), call(aten.mul.Tensor, g, 0.1))
        v = call(aten.add.Tensor, call(aten.mul.Tensor, v, 0.999), call(aten.mul.Tensor, g, g))
        step = call(aten.div.Tensor, m, call(aten.add.Tensor, call(aten.sqrt.default, v), 1e-8))
        outputs.append(call(aten.sub.Tensor, p, call(aten.mul.Tensor, step, 1e-3)))
    graph.output(tuple(outputs))
    return torch.fx.GraphModule({}, graph)


def test_four_times_the_graph_is_four_times_the_work_of_importing_it():
    graphs = updates(50), updates(200)
    few, many = (count_calls(functools.partial(import_graph, gm, "cpu")) for gm in graphs)
    assert 50 * 11 < few and many < 4.1 * few, (few, many)


def trace_op(fn, *inputs, dynamic=False):
    """As graphs are traced, without all that stands around them."""
    mode, table = "symbolic" if dynamic else "fake", decompositions("cpu")
    return make_fx(lambda *x: [fn(*x)], table, tracing_mode=mode)(*inputs)


def rows_of_ops(arity):
    rows = [row for row in _core.ops() if row["family"] == "pointwise" and row["arity"] == arity]
    names = [name for row in rows for name in row["aten"].split()]
    return {name: operator.attrgetter(name)(torch.ops.aten) for name in names}


OF_ONE = rows_of_ops(1) | {name: getattr(F, name) for name in "gelu mish silu elu".split()}
OF_ONE |= {
    "logsigmoid": F.logsigmoid,
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(0),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "argmax": lambda x: x.argmax(0),
    "amax": lambda x: x.amax(0),
    "clamp": lambda x: x.clamp(0, 1),
    "cube": lambda x: x**3,
    "inverse square": lambda x: x**-2,
    "square": torch.square,
}
OF_TWO = rows_of_ops(2) | {
    **{name: getattr(torch, name) for name in "add floor_divide heaviside xlogy".split()},
    **{name: getattr(torch, name) for name in "logaddexp logaddexp2".split()},
    **{name: getattr(F, name) for name in "mse_loss huber_loss".split()},
    "xlog1py": torch.special.xlog1py,
    "plus a half": lambda x, y: x.add(y, alpha=0.5),
    "minus twice": lambda x, y: x.sub(y, alpha=2),
    "from twice": lambda x, y: torch.rsub(x, y, alpha=2),
    "truncated": lambda x, y: x.div(y, rounding_mode="trunc"),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "lerp of three": lambda x, y: torch.lerp(x, y, x),
    "addcmul": lambda x, y: torch.addcmul(x, y, x),
    "addcdiv": lambda x, y: torch.addcdiv(x, y, x),
    "where": lambda x, y: torch.where(x > 0.5, x, y),
}


@pytest.mark.parametrize("dtype", [t for t in DTYPES if t not in FEW_OPS], ids=str)
def test_what_eager_does_not_take_is_left_to_it(dtype):
    found, wanted = [], []
    for count, ops in enumerate((OF_ONE, OF_TWO), start=1):
        for name, fn in ops.items():
            inputs = [torch.ones(2, 5).to(dtype)] * count
            try:
                fn(*inputs)
            except (NotImplementedError, RuntimeError):
                wanted.append(name)
            try:
                calls = library_names(str(import_graph(trace_op(fn, *inputs), "cpu").graph))
            except Exception:  # before anything runs
                calls = [name]
            found += [name] * bool(calls)
    assert found == wanted


def test_numbers_that_a_graph_holds_on_the_cpu_are_numbers_to_a_gpu(monkeypatch):
    """Not those that it returns, which are eager's tensors on the CPU."""
    monkeypatch.setattr(_core, "eager_refuses", lambda *_: False)  # none is here to be asked

    def fn(x, mask):
        return (x * torch.tensor(0.1)).index_put((mask,), torch.tensor(3.0, dtype=x.dtype))

    with FakeTensorMode():
        x, mask = (torch.empty(4, 3, dtype=t, device="cuda") for t in (torch.bfloat16, torch.bool))
        text = text_of(fn, x, mask, target="h200")
        returned = text_of(lambda x: (x + 1, torch.tensor(4.0)), x, target="h200")
    assert library_names(text) == []
    assert str(torch.tensor(0.1).item()) in text  # as eager has it, not in 16 bits
    assert library_names(returned) == ["aten.lift_fresh_copy.default"]


T = torch.rand(3, 2).t()
LAYOUTS = {
    "apart": (T[:, None, :, None], T[None, :, None, :]),
    "first permuted": (torch.rand(4, 3, 2).permute(2, 0, 1), torch.rand(2, 4, 3)),
    "last permuted": (torch.rand(2, 4, 3), torch.rand(4, 3, 2).permute(2, 0, 1)),
    "both permuted": (torch.rand(4, 3, 2).permute(2, 0, 1), torch.rand(4, 3, 2).permute(2, 0, 1)),
    "row": (torch.rand(3), T),
    "repeated": (torch.rand(1, 3).expand(2, 3), T),
    "turned and repeated": (T.unsqueeze(1).expand(2, 4, 3), T[:, None, :]),
    "number first": (torch.rand(()), T),
    "number last": (T, torch.rand(())),
    "channels": (torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.rand(3, 1, 1)),
    "parts": (torch.rand(4, 6)[:, ::2], torch.rand(3, 4).t()),
    "parts of turned": (torch.rand(6, 4).t()[:, ::2], torch.rand(4, 3)),
    "of size one": (torch.rand(4, 1, 3).permute(2, 1, 0), torch.rand(1, 5, 1)),
}
LOSSES = "binary_cross_entropy huber_loss mse_loss smooth_l1_loss soft_margin_loss".split()
TRACED = OF_TWO | {"ldexp": torch.ldexp, "igamma": torch.igamma, "zeta": torch.special.zeta}
TRACED |= {name: functools.partial(getattr(F, name), reduction="none") for name in LOSSES}
TRACED |= {name: lambda x, _, fn=fn: fn(x) for name, fn in OF_ONE.items()}
TRACED |= {"turned": lambda x, _: x.transpose(3, 2), "softmax": lambda x, _: x.softmax(3)}


def with_gradients(fn, x, y):
    x, y = (z.detach().requires_grad_() for z in (x, y))
    result = fn(x, y)
    return [result, *torch.autograd.grad(result, [x, y], result.detach(), allow_unused=True)]


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("trains,dynamic", [(False, False), (False, True), (True, False)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_are_traced_with_the_strides_of_eager(layout, trains, dynamic):
    differ, count = {}, 0
    for name, fn in TRACED.items():
        run = functools.partial(with_gradients, fn) if trains else lambda *x, fn=fn: [fn(*x)]
        inputs = [x.long() if "bitwise" in name else x for x in LAYOUTS[layout]]
        try:
            expected = run(*inputs)
        except (RuntimeError, ValueError, IndexError):  # of sizes, or without a gradient
            continue
        count += 1
        mode = "symbolic" if dynamic else "fake"
        traced = make_fx(run, decompositions("cpu"), tracing_mode=mode)(*inputs)
        for found, eager in zip(traced.graph.output_node().args[0], expected):
            if found and [*map(int, steps(found.meta["val"]))] != steps(eager):
                differ[name] = found.meta["val"].stride(), eager.stride()
    assert count > 30 and not differ
