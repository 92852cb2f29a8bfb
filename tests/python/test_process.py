"""What compilations share in a process: dumps, the pool, counters, caches of kernels."""

import os
import subprocess
import sys

import pytest
import torch
from test_device_headers import needs_nvrtc

import torch_stitch
from torch_stitch import _core
from torch_stitch.explain import trace_graphs
from torch_stitch.fx_import import import_graph


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch_stitch.reset_counters()


def run(fn, **options):
    compiled = torch.compile(fn, backend="stitch", options={"strict": True, **options})
    return compiled(torch.randn(300))


def test_each_graph_has_dumps_of_its_own(tmp_path):
    for fn in (torch.exp, torch.tanh):
        run(fn, dump="plan,emit", dump_dir=str(tmp_path))
    for stage, parts in {"2.plan": ("exp", "tanh"), "3.emit": ("exp", "tanh")}.items():
        texts = [path.read_text() for path in tmp_path.glob(f"graph*.{stage}.txt")]
        assert len(texts) == 2, stage
        assert all(any(part in text for text in texts) for part in parts)


@needs_nvrtc
def test_what_is_shown_of_a_kernel_that_spilled_is_what_it_became(tmp_path):
    def fn(x):
        wide = x.float()
        y = (wide - wide.mean()) / wide.std()
        return y * wide.abs().amax()

    options = {"cache": "off", "dump": "emit", "dump_dir": str(tmp_path)}

    def compile_and_show(gm, target):
        imported = import_graph(gm, target)
        torch_stitch.reset_counters()
        compiled = _core.compile(imported.graph, imported.calls, options, target, False)
        compiler_runs = torch_stitch.counters()["cache_misses"]
        assert compiler_runs > len(compiled.report()["kernels"]), "none spilled: take another"
        plan = _core.show_stage(imported.graph, {"cache": "off"}, target, "plan")
        assert "the clock calls it fastest" in plan
        return _core.show_stage(imported.graph, {"cache": "off"}, target, "emit")

    rows = torch.empty(1000, 12000, dtype=torch.bfloat16)
    ((_, shown),) = trace_graphs(compile_and_show, fn, (rows,), "h200")
    (emitted,) = tmp_path.glob("graph*.emit.txt")
    assert shown == emitted.read_text()


def test_explain_changes_no_limit_and_no_counter():
    run(torch.exp, pool_bytes=12345)
    before = _core.pool_statistics()["limit_bytes"], torch_stitch.counters()
    torch_stitch.explain(torch.cos, torch.randn(300))
    torch_stitch.explain(torch.cos, torch.randn(300), target="h200")
    after = torch_stitch.counters()
    compiler_runs = {name for name in after if name.startswith(("cache_", "compile_"))}
    assert _core.pool_statistics()["limit_bytes"] == before[0] == 12345
    assert all(after[name] == before[1][name] for name in after.keys() - compiler_runs)


def test_a_graph_without_the_option_leaves_the_pools_limit():
    run(torch.exp, pool_bytes=4321)
    run(torch.sin)
    assert _core.pool_statistics()["limit_bytes"] == 4321
    run(torch.tan, pool_bytes=2 << 30)
    assert _core.pool_statistics()["limit_bytes"] == 2 << 30


def test_the_first_graph_takes_the_environments_limit():
    code = (
        "import torch; from torch_stitch import _core\n"
        "torch.compile(torch.exp, backend='stitch')(torch.ones(9))\n"
        "assert _core.pool_statistics()['limit_bytes'] == 777\n"
    )
    environment = os.environ | {"TORCH_STITCH_POOL_BYTES": "777"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_the_cache_of_a_directory_is_cleared_by_its_options(tmp_path):
    options = {"cache": str(tmp_path / "kernels")}
    run(torch.exp, **options)
    entries = list((tmp_path / "kernels").rglob("*"))
    assert any(path.is_file() and path.stat().st_size > 1000 for path in entries)
    torch_stitch.clear_cache(options)
    entries = list((tmp_path / "kernels").rglob("*"))
    assert not any(path.is_file() and path.stat().st_size > 1000 for path in entries)
    torch._dynamo.reset()
    before = torch_stitch.counters()["cache_misses"]
    run(torch.exp, **options)
    assert torch_stitch.counters()["cache_misses"] == before + 1
