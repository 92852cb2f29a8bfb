"""How ptxsim is used: run(), the option simulate, the command line; a sample of models on it."""

import json
import warnings

import pytest
import torch
from test_models import check, compile_strictly, infer, make, train

import torch_stitch
from torch_stitch import ptxsim
from torch_stitch.__main__ import main

StitchError = torch_stitch._core.StitchError
needs_nvrtc = pytest.mark.skipif(
    not torch_stitch._core.nvrtc_available()[0], reason="NVRTC is not installed"
)
pytestmark = needs_nvrtc

SCALE = """
__global__ void scale(float* y, const float* x, int n, float factor, double shift,
                      unsigned char small, long long large) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * factor + float(shift) + small + large;
}
struct Pair { int first, second; };
extern "C" __global__ void pick(Pair pair, int* out) { if (!threadIdx.x) *out = pair.second; }
"""
LATE = """
extern "C" __global__ void late(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) y[i] = x[i];
}
"""
OURS = """
namespace stitch {
STITCH_KERNEL(shifted, 64, 1)(f32* __restrict__ y, const f32* __restrict__ x, i64 n) {
  const i64 i = block_index() * 64 + tid();
  if (i < n) y[i] = x[i] + 1.0f;
}
}  // namespace stitch
"""


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch_stitch.reset_counters()


def scale(*args, grid=2, block=64, **options):
    """scale() of 100 elements with some arguments replaced."""
    y, x = torch.zeros(100), torch.arange(100.0)
    args = [*args, *[y, x, 100, 2.0, 0.5, 3, -4][len(args) :]]
    result = ptxsim.run(SCALE, "scale", grid, block, args, **options)
    return result, args[0]


def test_numbers_take_the_types_of_the_parameters():
    result, y = scale(inputs=[1], outputs=[0])
    assert result.findings == []
    assert y.equal(torch.arange(100.0) * 2 + 0.5 + 3 - 4)
    assert result.lane_instructions > 100 * 5 and result.seconds > 0
    assert {width: count for width, count in result.moved_bytes.items() if count} == {4: 800}


def test_structs_are_bytes_and_none_is_a_null_pointer():
    out = torch.zeros(1, dtype=torch.int32)
    assert not ptxsim.run(SCALE, "pick", 1, 32, [bytes([1, 0, 0, 0, 7, 0, 0, 0]), out]).findings
    assert out.item() == 7
    found = ptxsim.run(SCALE, "pick", 1, 32, [bytes(8), None]).findings
    assert [f.kind for f in found] == ["out_of_bounds"]


def test_ptx_text_and_our_own_dialect_are_sources_too():
    ptx = torch_stitch._core.compile_ptx("late", LATE, "h200")
    y, x = torch.zeros(60), torch.randn(60)
    assert not ptxsim.run("// a comment\n" + ptx, "late", 1, 60, [y, x, 59]).findings
    assert y.equal(x)
    assert not ptxsim.run(OURS, "shifted", (1, 1, 1), [64], [y, x, 60], outputs=[0]).findings
    assert y.equal(x + 1)


def test_a_finding_says_what_and_where():
    y, x = torch.zeros(2, 130)[0], torch.randn(130)
    result = ptxsim.run(LATE, "late", 3, 64, [y, x, 130], inputs=[1], outputs=[0], orders=2)
    finding = result.findings[0]
    assert finding.kind == "out_of_bounds" and finding.line == 4
    assert finding.block == (2, 0, 0) and finding.thread == (2, 0, 0)
    assert "arg 1" in finding.message and "late" in finding.message
    fast = ptxsim.run(LATE, "late", 2, 64, [y, x, 100], checks=False)
    assert fast.findings == [] and y[:100].equal(x[:100])


def on_meta():
    return torch.zeros(100, device="meta")


WRONG = {
    "takes 7 arguments and is given 8": lambda: scale(*[torch.zeros(9)] * 7, 1),
    "did you mean 'scale'": lambda: ptxsim.run(SCALE, "scal", 1, 1, []),
    "argument 0 is a tensor on meta": lambda: scale(on_meta()),
    "argument 2 is a tensor; the kernel's parameter is .u32": lambda: scale(
        *[torch.zeros(100) for _ in range(3)]
    ),
    "argument 2 is a float": lambda: scale(torch.zeros(100), torch.zeros(100), 1.5),
    "argument 2 is a number that does not fit": lambda: scale(None, None, 1 << 32),
    "argument 1 is of type str": lambda: scale(None, "x"),
    "a struct of 8 bytes: give it as bytes": lambda: ptxsim.run(SCALE, "pick", 1, 1, [1, None]),
    r"grid\[0\] is 0": lambda: scale(grid=0),
    r"grid\[0\] is 1099511627776": lambda: scale(grid=1 << 40),
    "it is an int or a tuple of one to three": lambda: scale(block=(1, 2, 3, 4)),
    "shared_bytes is 10000000; two_sm has": lambda: scale(shared_bytes=10**7, target="two_sm"),
    "holds 2, which is the position of no tensor": lambda: scale(inputs=[2]),
    "argument 1 is named twice": lambda: scale(inputs=[1], outputs=[1]),
    "share memory": lambda: scale(*[torch.zeros(100)] * 2, outputs=[0]),
    "the target 'cpu' is no GPU": lambda: scale(target="cpu"),
    "unknown target 'h19'": lambda: scale(target="h19"),
    "orders is 0": lambda: scale(orders=0),
    "does not compile for sm_90a": lambda: ptxsim.run("__global__ void k(", "k", 1, 1, []),
    "the text has no kernel": lambda: ptxsim.run("__device__ int n;", "k", 1, 1, []),
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_use_is_told_in_words(words):
    with pytest.raises(StitchError, match=words):
        WRONG[words]()


def test_absurd_blocks_and_unknown_keywords_are_refused():
    with pytest.raises(StitchError, match="block"):
        scale(block=(1024, 1024))
    with pytest.raises(TypeError, match="no argument 'order'"):
        scale(order=3)


def test_the_command_line(tmp_path, capsys):
    path = tmp_path / "late.cu"
    path.write_text(LATE)
    command = ["ptxsim", str(path), "--kernel", "late", "--grid", "2", "1", "--block", "64"]
    command += ["--arg", "f32[100]:out", "--arg"]
    assert main([*command, "f32[100]=rand:in", "--arg", "100", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["findings"][0]["kind"] == "out_of_bounds" and found["lane_instructions"] > 0
    assert main([*command, "f32[2,50]=arange", "--arg", "99"]) == 0
    assert capsys.readouterr().out.startswith("0 findings, ")
    assert main([*command, "f32[100]=ones:in", "--arg", "50"]) == 1
    assert "unwritten: " in capsys.readouterr().out
    for wrong in ("f99[3]", "f32[3]=some", "many"):
        with pytest.raises(SystemExit, match="2"):
            main([*command, wrong])
        assert f"found the argument '{wrong}'" in capsys.readouterr().err


# torch.compile.


def simulate(fn, *inputs, **options):
    options = {"strict": True, "simulate": True} | options
    return torch.compile(fn, backend="stitch", fullgraph=True, options=options)(*inputs)


@pytest.mark.parametrize("target", ["auto", "a100", "h200"])
@pytest.mark.parametrize("mode", [True, "fast"])
def test_a_compiled_function_runs_its_gpu_kernels(mode, target):
    x, w = torch.randn(67, 100), torch.randn(100, 33)
    found = simulate(lambda x, w: (x.softmax(-1) @ w).relu(), x, w, simulate=mode, target=target)
    torch.testing.assert_close(found, (x.softmax(-1) @ w).relu())
    counters = torch_stitch.counters()
    assert counters["kernels"] >= 2 and counters["fallback_ops"] == 0
    assert counters["library_calls"] == 1


def test_arguments_are_changed_in_place_and_indices_are_checked():
    def fn(x, i):
        x.add_(1)
        return x[i] * 2

    x, i = torch.randn(70, 5), torch.tensor([3, 69, -1])
    expected = (x + 1, (x + 1)[i] * 2)
    assert simulate(fn, x, i).equal(expected[1]) and x.equal(expected[0])
    with pytest.raises(IndexError, match="aten.index"):
        simulate(fn, x, torch.tensor([3, 70, -1]))


@pytest.mark.parametrize(
    "options, words",
    [
        ({"simulate": "slow"}, "did you mean"),
        ({"simulate": True, "target": "cpu"}, "leave one of them out"),
        ({"simulate": 3}, "its type is string"),
    ],
)
def test_wrong_options_are_told_in_words(options, words):
    with pytest.raises(Exception, match=words):
        simulate(lambda x: x.exp(), torch.randn(3), **options)


def test_the_environment_simulates_and_a_plain_run_does_not(monkeypatch):
    x = torch.randn(40, 40)
    compile_strictly(lambda x: x.softmax(0))(x)
    before = torch_stitch.counters()["cache_misses"] + torch_stitch.counters()["cache_hits"]
    monkeypatch.setenv("TORCH_STITCH_SIMULATE", "fast")
    torch._dynamo.reset()
    torch.testing.assert_close(compile_strictly(lambda x: x.softmax(0))(x), x.softmax(0))
    assert torch_stitch.counters()["cache_misses"] + torch_stitch.counters()["cache_hits"] > before


def test_noise_is_seeded_and_stays_within_the_documented_bound():
    source = """
    extern "C" __global__ void power(float* y, const float* x) {
      asm("ex2.approx.f32 %0, %1;" : "=f"(y[threadIdx.x]) : "f"(x[threadIdx.x]));
    }
    """
    x = torch.linspace(-3, 3, 256)
    x[7] = 0

    def power(**options):
        y = torch.empty(256)
        found = ptxsim.run(source, "power", 1, 256, [y, x], inputs=[1], outputs=[0], **options)
        assert not found.findings
        return y

    rounded, noisy = power(), power(noise=True, seed=3)
    assert torch.equal(rounded, torch.exp2(x.double()).float())
    assert torch.equal(noisy, power(noise=True, seed=3))
    assert not torch.equal(noisy, rounded) and not torch.equal(noisy, power(noise=True, seed=4))
    assert noisy[7] == 1  # the ISA lists results of zeros
    # PTX ISA, ex2: 2^-22.5 relative, and the bits beyond which f32 rounds.
    assert ((noisy.double() / torch.exp2(x.double())).log().abs() < 2**-22.5 + 2**-24).all()


def test_noise_of_a_compiled_function_stays_near():
    x = torch.linspace(-3, 3, 1000)
    rounded, noisy = (simulate(torch.exp, x, simulate=how) for how in (True, "noise"))
    torch.testing.assert_close(noisy, x.exp(), rtol=2e-6, atol=0)
    assert not noisy.equal(rounded)


@pytest.mark.simulated
@pytest.mark.parametrize("run, name", [(infer, "bert"), (infer, "llama"), (train, "unet")])
def test_models_run_as_on_a_gpu(run, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(run, *make(name))
