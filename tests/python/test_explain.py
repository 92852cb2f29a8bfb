"""explain(): plans for devices that are not there, of functions that do not run."""

import json
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import torch_stitch
from torch_stitch.__main__ import main

KERNEL_KEYS = {
    "name",
    "ops",
    "scheme",
    "persistent",
    "tiles",
    "bytes_read",
    "bytes_written",
    "bytes_planned",
    "grid",
    "block",
    "shared_bytes",
    "registers",
    "spill_bytes",
    "predicted_us",
}
PLAN_KEYS = {
    "kernels",
    "library_calls",
    "launches",
    "bytes_touched",
    "bytes_planned",
    "bytes_unfused",
    "bytes_compulsory",
    "graph_breaks",
    "cuts",
}


def plan_of(*args, **options):
    return json.loads(torch_stitch.explain(*args, **options).to_json())


def test_a_plan_says_all():
    plan = plan_of(lambda x, w: (x @ w).softmax(-1), torch.randn(64, 64), torch.randn(64, 64))
    assert PLAN_KEYS <= set(plan)
    (kernel,) = plan["kernels"]
    assert KERNEL_KEYS <= set(kernel)
    assert {"aten.exp.default", "aten.sum.dim_IntList"} <= {op["op"] for op in kernel["ops"]}
    assert all(op["location"].startswith("test_explain.py:") for op in kernel["ops"])
    (call,) = plan["library_calls"]
    assert call["name"] == "aten.mm.default"
    assert call["bytes_read"] == 2 * 64 * 64 * 4 and call["bytes_written"] == 64 * 64 * 4
    assert plan["launches"] == 2 and plan["graph_breaks"] == 0


def test_a_transposed_read_names_its_tile():
    x = torch.randn(512, 256)
    report = torch_stitch.explain(lambda x: x.t().contiguous(), x, target="h200")
    (kernel,) = json.loads(report.to_json())["kernels"]
    (tile,) = kernel["tiles"].values()
    assert 4 * 64 * tile["rows"] <= tile["bytes"] <= kernel["shared_bytes"]
    assert f"through tiles on chip: {tile['rows']} rows, {tile['bytes']} bytes" in str(report)


def test_a_write_at_indices_counts_what_it_touches():
    def fn(cache, place, row):
        cache.index_copy_(1, place, row)
        return cache.sum(-1)

    cache, rows = torch.randn(3, 400, 5), torch.randn(3, 2, 5)
    (call,) = plan_of(fn, cache, torch.tensor([2, 5]), rows)["library_calls"]
    assert call["name"] == "aten.index_copy_.default"
    assert call["bytes_written"] == 4 * rows.numel()
    assert call["bytes_read"] == 4 * rows.numel() + 16
    plan = plan_of(fn, cache, torch.tensor([2]), rows[:, :1])
    assert plan["library_calls"] == []
    written, read = plan["kernels"]
    assert written["bytes_written"] == written["bytes_read"] - 8 == 4 * 3 * 5
    assert read["bytes_read"] == 4 * cache.numel()


def test_bytes_are_counted_once_per_launch():
    plan = plan_of(lambda x: x.softmax(-1), torch.randn(128, 256))
    (kernel,) = plan["kernels"]
    assert kernel["bytes_read"] == kernel["bytes_written"] == 128 * 256 * 4
    assert plan["bytes_touched"] == plan["bytes_compulsory"] == 2 * 128 * 256 * 4
    assert plan["bytes_unfused"] > plan["bytes_touched"]


@pytest.mark.parametrize("target", ["cpu", "a100", "h100", "h200", "b200"])
def test_targets_need_not_be_there(target):
    plan = plan_of(lambda x: F.layer_norm(x, (64,)), torch.randn(32, 64), target=target)
    assert plan["target"] == target
    (kernel,) = plan["kernels"]
    assert kernel["grid"] >= 1
    if target != "cpu":
        assert kernel["registers"] > 0 and kernel["spill_bytes"] == 0


@pytest.mark.parametrize("training", [False, True])
def test_tensors_without_values_are_planned_as_those_of_this_cpu(training):
    model, x = nn.Sequential(nn.LayerNorm(32), nn.GELU()), torch.randn(64, 32)
    expected = torch_stitch.explain(model, x, training=training)
    model, x = model.to("meta"), x.to("meta")
    assert torch_stitch.explain(model, x, training=training).to_json() == expected.to_json()


def test_nothing_runs_and_nothing_changes():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.calls = nn.BatchNorm1d(8), 0

        def forward(self, x, cache):
            self.calls += 1
            cache.add_(1)
            torch._dynamo.graph_break()
            cache.mul_(2)
            return self.norm(x) + cache

    model = Model()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    x, cache = torch.randn(4, 8), torch.zeros(4, 8)
    plan = plan_of(model, x, cache)
    assert plan["graph_breaks"] >= 1
    assert model.calls == 0 and cache.eq(0).all()
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key])


def test_python_sees_integers():
    def fn(x, n):
        torch._dynamo.graph_break()
        return x * 2 if n.item() == 3 else x.exp().sum()

    plan = plan_of(fn, torch.randn(4), torch.tensor(3))
    assert {op["op"] for k in plan["kernels"] for op in k["ops"]} == {"aten.mul.Tensor"}


READS = {
    "item": lambda m: int(m.item()),
    "index": lambda m: range(10_000)[int(m)],
    "tolist": lambda m: int(m.reshape(1).tolist()[0]),
    "numpy": lambda m: int(m.numpy()),
    "bool": lambda m: 37 if m > 36.5 and m < 37.5 else 1 << 50,
    "nonzero": lambda m: int((torch.arange(100) < m).nonzero().shape[0]),
    "repeats": lambda m: torch.ones(1).repeat_interleave(m.long().reshape(1)).shape[0],
}


@pytest.mark.parametrize("read", READS)
def test_what_python_reads_between_graphs_is_computed(read):
    scale = torch.tensor(0.5)

    def fn(x):
        most = (x.exp().log() * scale).amax()
        n = READS[read](most)
        return x.sum() + torch.arange(n).exp()

    plan = plan_of(fn, torch.full((8,), 74.0))
    assert plan["kernels"][-1]["bytes_written"] == 37 * 4
    assert scale == 0.5


def test_what_runs_between_graphs_writes_into_copies():
    norm, total = nn.BatchNorm1d(8), torch.zeros(4)

    def fn(x):
        total.add_(1)
        if norm(x).sum() > 1e9:
            return x
        total.mul_(x[:, 0])
        return (total * 2).sum().item() + x

    before = {name: value.clone() for name, value in norm.state_dict().items()}
    x = torch.ones(4, 8)
    assert plan_of(fn, x)["graph_breaks"] >= 1
    assert total.eq(0).all() and x.eq(1).all()
    assert all(torch.equal(value, before[name]) for name, value in norm.state_dict().items())


def test_tensors_without_memory_may_lie_about():
    """Sparse ones, and what a transform of torch.func wraps, are no globals of the function."""
    held = [torch.eye(3).to_sparse()]
    torch.func.grad(lambda x: held.append(x) or x.sum())(torch.ones(3))
    torch.vmap(lambda x: held.append(x) or x * 2)(torch.ones(3, 3))

    def fn(x):
        return x * 2 if x.sum() > 0 else x

    assert plan_of(fn, torch.ones(8))["graph_breaks"] >= 1 and len(held) == 3


def a_graph_break(held):
    torch._dynamo.graph_break()
    held.append(2)


KEEPS = {
    "float": lambda held, x: held.append(float(x.sum())),
    "item": lambda held, x: held.append(x.sum().item()),
    "value": lambda held, x: held.append(x * 2),
    "argument": lambda held, x: held.append(x),
    "number": lambda held, x: held.append(1),
    "break": lambda held, x: (held.append(x.sum().item()), a_graph_break(held)),
    "size": lambda held, x: held.append(torch.ones(int(x.sum()))),
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("kept", KEEPS)
def test_what_python_keeps_is_nothing_or_computed(kept, training):
    """A function of one graph does nothing to Python's objects; several do it with real values."""
    held, noted, layer = [], [], nn.Linear(8, 8)
    layer.register_forward_hook(lambda layer, given, result: noted.append(result))

    def fn(x):
        KEEPS[kept](held, x)
        x.register_hook(noted.append) if training else None
        return layer(x * torch.rand(8))

    x = torch.full((8,), 5.0, requires_grad=training)
    drawn = torch.get_rng_state()
    plan = plan_of(fn, x, training=training)
    assert torch.equal(torch.get_rng_state(), drawn)
    assert (plan["backward"] if training else plan)["launches"]
    expected = {"break": [40.0, 2], "size": [torch.ones(40)]}.get(kept, [])
    torch.testing.assert_close([torch.as_tensor(v).detach() for v in held], [
        torch.as_tensor(v) for v in expected
    ])
    assert all(isinstance(v, torch.Tensor) and v.isfinite().all() for v in noted)
    assert bool(noted) == bool(expected) and layer.weight.grad is None and x.grad is None


def test_locations_are_the_users_or_torchs():
    for fn in (torch.exp, torch.nn.GELU(), lambda x: x.cos()):
        (kernel,) = plan_of(fn, torch.randn(64))["kernels"]
        assert not any("explain.py" == op["location"].split(":")[0] for op in kernel["ops"])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_plan_for_a_gpu_names_its_attention(dtype, masked):
    q, k, v = (torch.randn(2, 4, 64, 32, dtype=dtype, requires_grad=True) for _ in range(3))
    mask = torch.randn(64, 64, dtype=dtype) if masked else None

    def fn(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    kernel = "flash" if dtype == torch.bfloat16 and not masked else "efficient"
    name = f"aten._scaled_dot_product_{kernel}_attention"
    plan = plan_of(fn, q, k, v, training=True, target="h200")
    for part, suffix in (("forward", ""), ("backward", "_backward")):
        names = [call["name"] for call in plan[part]["library_calls"]]
        assert f"{name}{suffix}.default" in names
    on_host = plan_of(fn, q, k, v, target="cpu")["library_calls"]
    assert any("for_cpu" in call["name"] for call in on_host)


def test_training_has_two_parts():
    layer, x = nn.Linear(8, 8), torch.randn(4, 8, requires_grad=True)
    plan = plan_of(lambda x: F.gelu(layer(x)), x, training=True)
    assert set(plan) == {"forward", "backward"}
    assert all(PLAN_KEYS <= set(part) for part in plan.values())
    assert plan["backward"]["kernels"]
    assert x.grad is None and layer.weight.grad is None


def test_several_calls_do_not_see_each_other():
    def fn(x):
        return x.exp().sum(-1)

    compiled = torch.compile(fn, backend="eager")
    compiled(torch.randn(3, 4))
    plans = [plan_of(fn, torch.randn(rows, 256)) for rows in range(4, 16)]
    assert [plan["bytes_touched"] for plan in plans] == [n * 257 * 4 for n in range(4, 16)]
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(torch.randn(3, 4))


def test_a_compiled_function_is_explained_as_it_is():
    fn = torch.compile(lambda x: x.exp() + 1, backend="stitch")
    assert plan_of(fn, torch.randn(64))["launches"] == 1
    model = torch.compile(nn.Linear(4, 4), backend="stitch")
    assert [c["name"] for c in plan_of(model, torch.randn(2, 4))["library_calls"]] == [
        "aten.addmm.default"
    ]


def test_the_table():
    report = torch_stitch.explain(lambda x: x.softmax(-1) @ x, torch.randn(64, 64), target="h200")
    table = str(report)
    assert "h200" in table and "aten.mm.default" in table and "aten.exp.default" in table
    assert report.plan["kernels"][0]["name"][:20] in table


def test_the_same_plan_each_time():
    x = torch.randn(64, 64)
    first, second = (plan_of(lambda x: x.softmax(-1), x, target="h200") for _ in range(2))
    for plan in (first, second):
        for kernel in plan["kernels"]:
            kernel["ops"] = [op["op"] for op in kernel["ops"]]
    assert first == second


def test_the_command_line(tmp_path, monkeypatch, capsys):
    source = (
        "import torch\ndef case():\n    return lambda x: x.softmax(-1), (torch.randn(8, 64),)\n"
    )
    (tmp_path / "case.py").write_text(source)
    words = ["explain", "case.py:case", "--target", "h200"]
    command = [sys.executable, "-m", "torch_stitch", *words]
    table = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "h200" in table.stdout
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["launches"] == 1
    with pytest.raises(SystemExit, match="case.py has no other; it has case"):
        main(["explain", "case.py:other"])


@pytest.mark.parametrize("name, meant", [("trainng", "training"), ("taget", "target")])
def test_a_mistyped_keyword_gets_a_suggestion(name, meant):
    with pytest.raises(torch_stitch._core.StitchError, match=f"{name}.*did you mean '{meant}'"):
        torch_stitch.explain(torch.sin, torch.randn(4), **{name: "h200"})
