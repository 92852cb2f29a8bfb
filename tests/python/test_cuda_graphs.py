"""Modes of torch.compile, and which graphs of a GPU are recorded; without a GPU.

Whether a graph can be recorded is decided on graphs of fake CUDA tensors.  What is recorded, and
with what, is seen by a stand-in for torch's trees, which calls what it was given.
"""

import pickle

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import torch_stitch
from torch_stitch import backend, cuda_graphs, kept_graph

CUDA = torch.device("cuda", 0)


def trace_on(devices, fn, **how):
    """The graph of fn over a [4, 8] tensor for each device."""
    with FakeTensorMode(allow_non_fake_inputs=True, **how):
        return make_fx(fn)(*(torch.empty(4, 8, device=device) for device in devices))


def test_a_graph_of_one_gpu_can_be_recorded():
    assert not cuda_graphs.find_reason(trace_on(["cuda", "cuda"], lambda x, y: x.softmax(1) + y))


def test_a_graph_with_tensors_of_two_devices_is_not_recorded():
    graph = trace_on(["cuda", "cpu"], lambda x, y: (x * 2, y + 1))
    assert cuda_graphs.find_reason(graph) == "tensors on cpu and cuda:0"


def test_a_graph_whose_sizes_depend_on_data_is_not_recorded():
    graph = trace_on(["cuda"], lambda x: x + 1)
    last = graph.graph.output_node()
    with graph.graph.inserting_before(last):
        item = torch.ops.aten._local_scalar_dense.default
        node = graph.graph.call_function(item, (last.all_input_nodes[0],))
    node.meta["val"] = torch.fx.experimental.symbolic_shapes.ShapeEnv().create_unbacked_symint()
    assert "aten._local_scalar_dense" in cuda_graphs.find_reason(graph)


def test_a_graph_with_a_number_that_changes_is_not_recorded():
    graph = trace_on(["cuda"], lambda x: x + 1)
    with graph.graph.inserting_before(next(iter(graph.graph.nodes))):
        graph.graph.placeholder("rate").meta["val"] = 0.5
    assert "the number rate" in cuda_graphs.find_reason(graph)


class Trees:
    """Stands in for torch's: what it was given, in order, and what was called."""

    def __init__(self):
        self.recorded, self.calls = [], []

    def cudagraphify(self, model, **how):
        number = len(self.recorded)
        self.recorded.append(how)

        def replay(args):
            self.calls.append(number)
            return model(args)

        return replay


@pytest.fixture
def trees(monkeypatch):
    """Where tensors count as a GPU's."""
    trees = Trees()
    monkeypatch.setattr("torch._inductor.compile_fx.cudagraphify", trees.cudagraphify)
    monkeypatch.setattr(cuda_graphs, "devices_of", lambda gm: {CUDA})
    torch.compiler.reset()
    return trees


@pytest.mark.parametrize("mode", backend.MODES)
def test_each_mode_computes_what_eager_does(mode):
    fn = torch.compile(lambda x: x.softmax(1) * 2, backend="stitch", mode=mode)
    x = torch.randn(4, 100)
    torch.testing.assert_close(fn(x), x.softmax(1) * 2)


@pytest.mark.parametrize("mode", backend.MODES)
def test_modes_with_cuda_graphs_record_and_the_others_do_not(trees, mode):
    fn = torch.compile(lambda x: x.softmax(1) * 2, backend="stitch", mode=mode)
    x = torch.randn(4, 100)
    for _ in range(3):
        torch.testing.assert_close(fn(x), x.softmax(1) * 2)
    is_recorded = mode in ("reduce-overhead", "max-autotune")
    assert trees.calls == ([0] * 3 if is_recorded else [])
    assert backend.MODES[mode].get("cuda_graphs", False) == is_recorded


@pytest.mark.parametrize("captured", [False, True])
def test_recorded_graphs_draw_their_seeds_in_each_replay(trees, captured):
    options = {"cuda_graphs": captured, "simulate": "fast", "strict": True}
    torch_stitch.reset_counters()
    y = torch.compile(F.dropout, backend="stitch", options=options)(torch.ones(1000))
    assert 300 < (y == 0).sum() < 700 and len(trees.calls) == captured
    assert torch_stitch.counters()["library_calls"] == captured


def test_graphs_on_cpus_are_never_recorded(monkeypatch):
    monkeypatch.setattr("torch._inductor.compile_fx.cudagraphify", None)
    fn = torch.compile(lambda x: x.exp() + 1, backend="stitch", mode="reduce-overhead")
    x = torch.randn(100)
    torch.testing.assert_close(fn(x), x.exp() + 1)


def test_a_training_step_is_recorded_with_its_parameters_in_place(trees):
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.LayerNorm(16))
    compiled = torch.compile(model, backend="stitch", mode="reduce-overhead")
    x = torch.randn(4, 16)
    compiled(x).square().sum().backward()
    found = [p.grad for p in model.parameters()]
    model.zero_grad()
    model(x).square().sum().backward()
    torch.testing.assert_close(found, [p.grad for p in model.parameters()])
    forward, behind = trees.recorded
    assert not forward["is_backward"] and behind["is_backward"]
    assert not forward["is_inference"] and not behind["is_inference"]
    names = [placeholder.name for placeholder in forward["placeholders"]]
    assert len(forward["static_input_idxs"]) == 4 and len(names) == 5  # all but x
    assert len(behind["static_input_idxs"]) == len(behind["placeholders"]) - 1  # all but a tangent
    assert forward["device_index"] == behind["device_index"] == 0


def test_an_argument_that_is_written_is_named(trees):
    model = torch.nn.BatchNorm1d(8)
    compiled = torch.compile(model, backend="stitch", mode="reduce-overhead")
    compiled(torch.randn(4, 8))
    (how,) = [how for how in trees.recorded if not how["is_backward"]]
    names = {how["placeholders"][i].name for i in how["mutated_input_idxs"]}
    assert len(names) == 3  # the running mean and variance, and the count of batches
    assert set(how["mutated_input_idxs"]) <= set(how["static_input_idxs"])


def test_each_size_of_a_dynamic_graph_is_an_integer_among_the_arguments(trees):
    """By which torch's trees tell recordings apart."""
    fn = torch.compile(
        lambda x: x.softmax(1), backend="stitch", dynamic=True, options={"cuda_graphs": True}
    )
    for rows in (3, 5):
        x = torch.randn(rows, 16)
        torch.testing.assert_close(fn(x), x.softmax(1))
    (how,) = trees.recorded
    assert len(how["placeholders"]) == 3  # two sizes and x


def test_a_backward_pass_is_not_recorded_behind_a_forward_pass_that_is_not(trees, monkeypatch):
    monkeypatch.setattr(cuda_graphs, "find_reason", lambda gm: "tests")
    fn = torch.compile(lambda x: x.exp().sum(), backend="stitch", mode="reduce-overhead")
    x = torch.randn(8, requires_grad=True)
    fn(x).backward()
    torch.testing.assert_close(x.grad, x.detach().exp())
    assert not trees.recorded
    assert torch._dynamo.utils.counters["inductor"]["cudagraph_skips"] == 1


def test_a_backward_pass_that_cannot_be_recorded_tells_the_trees(trees, monkeypatch):
    told = []

    class Manager:
        def set_to_running_backward(self):
            told.append("backward")

    def find_reason(gm):
        names = [node.name for node in gm.graph.find_nodes(op="placeholder")]
        return "tests" if any("tangents" in name for name in names) else ""

    monkeypatch.setattr(cuda_graphs, "find_reason", find_reason)
    monkeypatch.setattr(
        "torch._inductor.cudagraph_trees.get_manager", lambda device, **how: Manager()
    )
    fn = torch.compile(lambda x: x.exp().sum(), backend="stitch", mode="reduce-overhead")
    x = torch.randn(8, requires_grad=True)
    fn(x).backward()
    assert [how["is_backward"] for how in trees.recorded] == [False] and told == ["backward"]


def test_a_replay_looks_at_what_kernels_reported_before_and_after(trees):
    log = []

    class Compiled:
        def check_flags(self):
            log.append("flags")

        def __call__(self, args):
            log.append("run")
            return []

    assert cuda_graphs.record({}, Compiled())([]) == []
    assert log == ["flags", "run", "flags"]


def test_a_wrong_index_is_found_in_a_recorded_graph(trees):
    table, places = torch.randn(10, 64), torch.tensor([3, 10])
    options = {"cuda_graphs": True, "target": "h200", "simulate": True}
    fn = torch.compile(lambda t, i: F.embedding(i, t) * 2, backend="stitch", options=options)
    with pytest.raises(IndexError, match="index out of range in aten.embedding"):
        fn(table, places)
    assert trees.calls == [0]
    torch.testing.assert_close(fn(table, places - 1), table[places - 1] * 2)


def test_a_graph_that_runs_without_stitching_is_not_recorded(trees, monkeypatch):
    def fail(*_):
        raise ValueError("tests")

    monkeypatch.setattr(backend, "import_graph", fail)
    fn = torch.compile(lambda x: x.exp().sum(), backend="stitch", mode="reduce-overhead")
    x = torch.randn(8, requires_grad=True)
    with pytest.warns(UserWarning, match="runs without stitching"):
        fn(x).backward()
    assert not trees.recorded


def test_a_kept_graph_is_recorded_again_in_the_next_process(trees, monkeypatch, tmp_path):
    """What is pickled says how; the next process loads it instead of tracing."""
    monkeypatch.setattr(kept_graph, "FEWEST_OPS", 0)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    options = {"cuda_graphs": True, "cache": str(tmp_path)}
    x = torch.randn(8)

    def run():
        torch.compiler.reset()
        fn = torch.compile(lambda x: x.exp() + 1, backend="stitch", options=options)
        torch.testing.assert_close(fn(x), x.exp() + 1)

    run()
    counters = torch._dynamo.utils.counters["aot_autograd"]
    before = counters["autograd_cache_hit"]
    run()
    assert counters["autograd_cache_hit"] == before + 1
    first, second = trees.recorded
    assert first == second == pickle.loads(pickle.dumps(first))



@pytest.mark.parametrize("fn", [lambda x: x.softmax(1) * 2, lambda x: x / x.abs().amax()])
def test_kernels_that_begin_early_compute_the_same(fn):
    """Of one phase, and of two with a barrier between; on ptxsim the launch before has ended."""
    x = torch.randn(132, 2048)
    options = {"target": "h200", "simulate": True}
    early, usual = (
        torch.compile(fn, backend="stitch", options=options | {"dependent_launch": is_early})(x)
        for is_early in (True, False)
    )
    assert early.equal(usual)
