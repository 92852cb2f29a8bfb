"""What all tests share: the gpu marker, golden files, and a seed that a failure names.

--simulate: what the tests of ops, values and models compile are a GPU's kernels, run by ptxsim;
--simulate=noise: so that approximate instructions err.
--gpu: tensors that tests make are on the GPU, as far as tests do not say where.
"""

import os
import random
import warnings
from pathlib import Path

import pytest
import torch
import torch._dynamo.guards

import torch_stitch

NAMES = "ops values indices models pieces workloads scatter".split()
SIMULATED = tuple(f"test_{name}" for name in NAMES)
GOLDEN = Path(__file__).parent / "golden"
SEED = int(os.environ.get("STITCH_TEST_SEED", "0"))
# In CI nothing else may be left out: what is missing there is a fault of the set-up.
IN_CI = os.environ.get("STITCH_CI", "0") not in ("", "0")
RIGHTLY_SKIPPED = ("no NVIDIA GPU", "needs a machine of", "no nvdisasm", "no folder of cubins")

# torch times the guards of every graph that it compiles, with caches that it flushes first, which
# takes 35 ms.  The time goes into torch's log only.
torch._dynamo.guards.profile_guard_manager = lambda *_: 0.0


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew")
    parser.addoption(
        "--simulate",
        nargs="?",
        const="true",
        choices=["true", "fast", "noise"],
        help="run a GPU's kernels, by ptxsim; before a path: --simulate=true",
    )
    parser.addoption("--gpu", action="store_true", help="make tensors on the GPU")


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs an NVIDIA GPU; skipped without one")
    config.addinivalue_line("markers", "simulated: what it compiles runs on ptxsim, always")
    if config.getoption("--gpu"):
        torch.set_default_device("cuda")
        # Where there is a default device torch 2.11 does not trace the Python around this.
        torch.Tensor.unflatten = torch._C.TensorBase.unflatten


def pytest_collection_modifyitems(config, items):
    simulated = pytest.mark.skip(reason="on a GPU nothing is simulated")
    for item in items if config.getoption("--gpu") else ():
        if item.get_closest_marker("simulated"):
            item.add_marker(simulated)
    if torch.cuda.is_available():
        return
    without_gpu = pytest.mark.skip(reason="no NVIDIA GPU")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(without_gpu)


def fail_if_skipped_in_ci(report):
    if not (IN_CI and report.skipped) or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2].removeprefix("Skipped: ")
    if not reason.startswith(RIGHTLY_SKIPPED):
        report.outcome, report.longrepr = "failed", f"left out, which CI forbids: {reason}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    fail_if_skipped_in_ci((yield).get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report():
    fail_if_skipped_in_ci((yield).get_result())


def pytest_report_header():
    return f"torch {torch.__version__}, STITCH_TEST_SEED={SEED}"


@pytest.fixture(autouse=True)
def seed():
    """Every test draws the same numbers, whatever ran before it."""
    random.seed(SEED)
    torch.manual_seed(SEED)
    return SEED


@pytest.fixture(autouse=True)
def compile_nested_frames():
    """Torch 2.11 has one switch for all threads that skips the frames which a full graph calls.

    Where two threads run full graphs at once it may stay on: nothing after a break is compiled.
    """
    yield
    frames = torch._C._dynamo.eval_frame
    if hasattr(frames, "set_eval_frame_override"):
        frames.set_eval_frame_override(frames._EvalFrameOverride.NONE)


@pytest.fixture
def fresh():
    """Nothing compiled or counted before; warnings are not what the test is about."""
    torch._dynamo.reset()
    torch_stitch.reset_counters()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(autouse=True)
def simulate(request, monkeypatch):
    how = request.config.getoption("--simulate")
    if how and request.module.__name__ in SIMULATED:
        monkeypatch.setenv("TORCH_STITCH_SIMULATE", how)
    elif request.node.get_closest_marker("simulated"):
        monkeypatch.setenv("TORCH_STITCH_SIMULATE", "true")


@pytest.fixture
def golden(request):
    """golden("plan/softmax.txt", text) compares with that file of tests/golden."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing: read the text, then run with --update-golden"
        assert text == path.read_text(), f"differs from {path}: --update-golden accepts the change"

    return compare
