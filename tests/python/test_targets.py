"""GPUs that nobody here has measured: planned by what their drivers say, or refused by name."""

import json
import os
import subprocess
import sys
import warnings
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from test_device_headers import needs_nvrtc

import torch_stitch
from torch_stitch import _core, backend

pytestmark = needs_nvrtc

DERIVED = ("l4", "a10", "rtx4090", "rtx5090", "h20", "b300")
A10G = "sm_86-80-1710000-6251000-384-6291456-101376-102400-65536-1536-16"


def adamw(p, g, m, v):
    m = m.lerp(g, 0.1)
    v = v * 0.999 + g * g * 0.001
    return p * 0.9999 - 1e-3 * m / (v.sqrt() + 1e-8), m, v


def losses(logits, target):
    return F.cross_entropy(logits.float(), target)


WIDE = torch.empty(2048, 4096, dtype=torch.bfloat16)
CASES = {
    "softmax": (lambda x: x.softmax(-1), (WIDE,), 1),
    "layer_norm": (lambda x: F.layer_norm(x, (4096,)), (WIDE,), 1),
    "adamw": (adamw, (torch.empty(1 << 22),) * 4, 1),
    "cross_entropy": (losses, (WIDE, torch.zeros(2048, dtype=torch.int64)), 2),
}


@pytest.mark.parametrize("target", DERIVED)
def test_gpus_are_planned_for_by_name(target):
    spilled, us = {}, {}
    for name, (fn, inputs, most) in CASES.items():
        report = torch_stitch.explain(fn, *inputs, target=target)
        plan = report.plan
        assert plan["target"] == target and not plan["library_calls"], name
        assert 1 <= len(plan["kernels"]) <= most, name
        assert all(kernel["registers"] > 0 for kernel in plan["kernels"]), name
        spilled[name] = sum(kernel["spill_bytes"] for kernel in plan["kernels"])
        us[name] = sum(kernel["predicted_us"] for kernel in plan["kernels"])
        assert plan["device"] in str(report) and "; assumed: latencies" in plan["device"]
    assert not any(spilled.values()), spilled
    measured = torch_stitch.explain(*CASES["softmax"][:1], WIDE, target="h200").plan
    assert measured["device"] == ""
    if target != "b300":  # the only one with faster memory
        assert us["softmax"] > measured["kernels"][0]["predicted_us"]


def test_any_gpu_is_planned_for_as_its_driver_describes_it():
    plan = torch_stitch.explain(lambda x: x.softmax(-1), WIDE, target=A10G).plan
    assert plan["target"] == A10G
    assert plan["device"].startswith("sm_86, 80 multiprocessors at 1710 MHz, memory of 600 GB/s;")
    unsaid = A10G.replace("-6251000-", "-0-")
    plan = torch_stitch.explain(lambda x: x.softmax(-1), WIDE, target=unsaid).plan
    assert plan["device"].endswith("of the a100, and what its driver does not say of the a10")


@pytest.mark.parametrize("target", ["sm_86-80", "sm_75" + A10G[5:], A10G + "-1"])
def test_a_description_that_is_none_names_the_known_targets(target):
    with pytest.raises(Exception, match="StitchError: unknown target.*known targets are a100, a10"):
        torch_stitch.explain(torch.exp, torch.randn(4), target=target)


def test_nvrtc_says_where_it_is_too_old():
    newer = A10G.replace("sm_86", "sm_990")
    with pytest.raises(Exception, match="NVRTC .* cannot compile for sm_990: (?s:.*)pip install"):
        torch_stitch.explain(torch.exp, torch.randn(4), target=newer)


@pytest.mark.parametrize("target", ["l4", "rtx5090", A10G])
def test_kernels_for_them_are_right(target):
    def fn(x, w):
        return F.layer_norm(x, (96,), w).softmax(-1), (x * w).sum(0)

    inputs = torch.randn(70, 96), torch.randn(96)
    options = {"target": target, "simulate": True, "strict": True}
    compiled = torch.compile(fn, backend="stitch", fullgraph=True, options=options)
    torch.testing.assert_close(compiled(*inputs), fn(*inputs))


PROGRAM = """
import sys, torch, torch_stitch
options = {"target": sys.argv[1], "simulate": "fast", "strict": True}
fn = torch.compile(lambda x: x.softmax(-1), backend="stitch", options=options)
fn(torch.ones(40, 64))
counters = torch_stitch.counters()
print(counters["plans_made"], counters["plans_found"])
"""


def test_plans_that_are_kept_belong_to_one_gpu(tmp_path):
    environment = os.environ | {"TORCH_STITCH_CACHE": str(tmp_path)}
    other = A10G.replace("-6291456-", "-4194304-")
    for target, expected in ((A10G, "1 0"), (A10G, "0 1"), (other, "1 0")):
        command = [sys.executable, "-c", PROGRAM, target]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.stdout.split() == expected.split(), done.stderr


REFUSED = {"Tesla T4": (None, 7, 5), "AMD Instinct MI300X": ("6.4", 9, 4)}


@pytest.mark.parametrize("name", REFUSED)
def test_what_kernels_are_not_for_is_named_counted_and_an_error_under_strict(name, monkeypatch):
    hip, major, minor = REFUSED[name]
    words = f"found tensors on cuda:0, {name} of compute capability {major}.{minor}; kernels are"
    found = SimpleNamespace(name=name, major=major, minor=minor)
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: found)
    monkeypatch.setattr(backend, "devices_of", lambda *_: {torch.device("cuda:0")})
    torch._dynamo.reset()
    torch_stitch.reset_counters()

    def fn(x):
        return x.exp() + 1

    x = torch.randn(4)
    compiled = torch.compile(fn, backend="stitch")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            torch.testing.assert_close(compiled(x), fn(x))
    (said,) = [str(w.message) for w in caught if "torch_stitch" in str(w.message)]
    assert f"{words} for CPUs, and one NVIDIA GPU of compute capability 8.0 and up" in said
    assert torch_stitch.counters()["fallback_ops"] == 2
    torch._dynamo.reset()
    with pytest.raises(Exception, match=name):
        torch.compile(fn, backend="stitch", options={"strict": True})(x)


def test_a_gpu_of_the_machine_is_asked_for_by_its_driver(monkeypatch):
    found = SimpleNamespace(name="NVIDIA A10G", major=8, minor=6)
    asked = []
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: found)
    monkeypatch.setattr(_core, "find_gpu_target", lambda gpu, _: asked.append(gpu) or A10G)
    assert backend.find_target({torch.device("cuda:1")}) == A10G and asked == [1]
    monkeypatch.undo()
    if not torch.cuda.is_available():  # a driver that is missing is no fault of the user's
        with pytest.raises(_core.UnsupportedError, match="no CUDA device"):
            _core.find_gpu_target(0, {})


def test_the_settings_list_the_rows():
    rows = {row["name"]: row for row in _core.settings()}
    assert set(DERIVED) < set(rows["target"]["allowed"])
    assert json.dumps(rows["target"]["default"]) == '"auto"'
