"""Bad inputs B33 to B62: kernels whose blocks meet, processes, threads, caches.

What C++ tests, ptxsim's own kernels or other files of tests/python prove is named in ELSEWHERE, so
that each line of the list has a test that exists.
"""

import gc
import locale
import os
import re
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from torch._subclasses import FakeTensorMode

import torch_stitch
from tests.python.ptxsim_kernels.cases import all_cases
from tests.support.compare import call_among_threads, check, compile_strictly, expect_equal
from torch_stitch import _core, ptxsim

pytestmark = pytest.mark.usefixtures("fresh")

ROOT = Path(__file__).parents[3]
ELSEWHERE = {
    "B17": ["test_over_2_31_elements_run"],
    "B33": ["test_damage_to_a_generated_kernel_is_seen", "EmitPhases.SharedMemoryIsDeclaredOnce"],
    "B35": ["test_one_block_more_is_reported", "test_as_many_blocks_as_fit_are_right"],
    "B36": ["test_a_counter_is_used_again_whatever_its_top_bit"],
    "B43": ["VerifyBody.Barriers"],
    "B44": ["DriverTest.LaunchesWithTheStreamOfTheFrame"],
    "B45": ["DriverTest.AThreadWithoutContextGetsTheDevices"],
    "B46": ["DriverTest.NothingWaitsDuringACapture"],
    "B47": ["CacheFaultsTest.AForkedChildCompiles", "test_a_forked_child_goes_on_without_kernels"],
    "B48": ["RunCommand.WhatTakesTooLongIsKilledWithItsChildren"],
    "B51": ["Nvrtc.TheThreadsLocaleDoesNotMatterAndIsKept"],
    "B52": ["EmitKernel.TheNameTellsTheOpsAndHashesTheText"],
    "B53": ["DriverTest.AFailedLaunchNamesKernelAndSizes", "DriverTest.NobodyWaitsForAFlagAndIt"],
    "B54": ["KernelCacheTest.ProcessesThatWantTheSameKernels", "FilesTest.ConcurrentWriters"],
    "B55": ["CacheEntry.EveryChangedByteIsFound", "KernelCacheTest.ADamagedEntryIsAMiss"],
    "B56": ["KernelCacheTest.ThreadsThatWantTheSameKernelCompileOnce"],
    "B57": ["KernelCacheTest.AnUnwritableDirectory", "CacheFaultsTest.AFileThatCannotGrow"],
    "B58": ["KernelCacheTest.PlantedThingsAreNotUsed", "FilesTest.ASymbolicLinkInPlaceOfThe"],
    "B59": ["CacheEntry.EveryTruncationAndExtensionIsFound"],
    "B60": ["EmitKernel.HostileNamesAndOriginsNeverReachTheText"],
    "B61": ["CacheKey.EveryFieldChangesTheKey", "CacheEntry.AnEntryForAnotherRequest"],
    "B62": ["FilesTest.TemporaryFilesGoAfterADayAndNotBefore"],
}
# Bulk copies, clusters, mbarriers and tensor cores: no kernel of ours has them, and ptxsim refuses
# to guess.  A statement a line, or a directive that stands before the body.
FOREIGN = {
    "B26": """
        cp.async.bulk.commit_group;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2];
        cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;
        cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], 16;
        prefetch.tensormap [%rd1];
        tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2;""",
    "B39": """
        .reqnctapercluster 2, 1, 1
        .explicitcluster
        .maxclusterrank 8
        barrier.cluster.arrive;
        barrier.cluster.wait;
        mapa.shared::cluster.u32 %r1, %r2, 1;
        ld.shared::cluster.u32 %r1, [%r2];
        st.shared::cluster.u32 [%r2], %r1;
        atom.shared::cluster.add.u32 %r1, [%r2], %r3;
        getctarank.shared::cluster.u32 %r1, %r2;
        mov.u32 %r1, %cluster_ctarank;""",
    "B40": """
        mbarrier.init.shared.b64 [%r1], 1;
        mbarrier.inval.shared.b64 [%r1];
        mbarrier.arrive.shared.b64 %rd1, [%r1];
        mbarrier.arrive.expect_tx.shared::cta.b64 %rd1, [%r1], 16;
        mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1;
        mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;
        st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];
        cp.async.mbarrier.arrive.shared.b64 [%r1];""",
    "B41": """
        wgmma.fence.sync.aligned;
        wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 0;
        wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f1, %f2}, %rd1, %rd2, 1, 1, 1;
        mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%rd1, %rd2}, {%rd1}, {%rd2}, {%rd1, %rd2};
        ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];
        stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};""",
    "B42": """
        fence.proxy.async;
        fence.proxy.async.shared::cta;
        fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
        fence.mbarrier_init.release.cluster;""",
}
# What is like them among the instructions that ptxsim has: kernels of ptxsim_kernels, accused.
ALIKE = {
    "B26": [
        "async_copies/sixteen_bytes_past_the_end",
        "async_copies/sixteen_bytes_from_a_shifted_view",
    ],
    "B39": ["race_handover/fence_of_a_cluster_between_blocks"],
    "B40": ["async_copies/waited_for_without_a_barrier", "async_copies/not_committed"],
    "B41": ["async_copies/source_is_overwritten", "async_copies/ring_is_refilled_too_early"],
    "B42": ["race_shared/shuffle_is_no_fence", "race_shared/vote_is_no_fence"],
}


def names_of_tests():
    names = set()
    for path in (*ROOT.glob("tests/python/**/*.py"), *ROOT.glob("tests/cpp/**/*.cpp")):
        text = path.read_text()
        names |= set(re.findall(r"^def (test_\w+)", text, re.M))
        names |= {f"{a}.{b}" for a, b in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)", text, re.M)}
    return names


def test_each_line_of_the_list_has_a_test():
    names = names_of_tests()
    here = {name.split("_")[1].upper() for name in names if re.match(r"test_b\d\d_", name)}
    here |= FOREIGN.keys()
    for line, wanted in ELSEWHERE.items():
        for test in wanted:
            assert any(name.startswith(test) for name in names), (line, test)
    assert here | ELSEWHERE.keys() >= {f"B{i:02}" for i in range(1, 63)}


# Kernels whose warps and blocks meet.


@pytest.mark.simulated
def test_b34_what_warps_store_others_read_in_the_same_kernel(monkeypatch):
    monkeypatch.setenv("TORCH_STITCH_SIMULATE", "true")

    def fn(x):
        rows = x.softmax(1)
        return rows, rows.t() * rows.sum(0)[:, None], rows.amax(0)

    x = torch.randn(48, 65)
    torch.testing.assert_close(compile_strictly(fn)(x), fn(x))


@pytest.mark.simulated
@pytest.mark.parametrize("shape", [(3, 5000), (5000, 3), (64, 33)])
def test_b37_several_reductions_of_the_grid_have_scratch_of_their_own(monkeypatch, shape):
    monkeypatch.setenv("TORCH_STITCH_SIMULATE", "true")
    x = torch.randint(-8, 8, shape).float()
    check(lambda x: (x.sum(), x.amax(), (x * x).sum(0), x.sum(1) - x.amin(1), x.argmax()), x)


@pytest.mark.simulated
def test_b38_blocks_with_and_without_work_meet_as_often(monkeypatch):
    monkeypatch.setenv("TORCH_STITCH_SIMULATE", "true")

    def fn(x, y):
        centred = x - x.mean()
        return centred / centred.square().mean().sqrt(), y.sum(1), y.amax()

    x, y = torch.randn(4099), torch.randint(-4, 4, (3, 7)).float()
    compiled = compile_strictly(fn)
    for _ in range(3):  # what a barrier counts is as it was
        torch.testing.assert_close(compiled(x, y), fn(x, y))


PTX = """
    .version 9.0
    .target sm_90a
    .address_size 64
    .visible .entry k() {directive} {{
      .reg .pred %p<2>;
      .reg .f32 %f<5>;
      .reg .b32 %r<4>;
      .reg .b64 %rd<4>;
      {statement}
      ret;
    }}"""


def statements(line):
    return [text.strip() for text in FOREIGN[line].strip().splitlines()]


@pytest.mark.parametrize("line", FOREIGN)
def test_instructions_that_are_not_modelled_are_named_not_skipped(line):
    for text in statements(line):
        words = text.strip(";").split()
        named = words[-1] if words[0].startswith("mov") else words[0]
        parts = {"directive": "", "statement": text}
        if text.startswith("."):
            parts = {"directive": text, "statement": ""}
        with pytest.raises(_core.StitchError, match=re.escape(named)):
            ptxsim.run(PTX.format(**parts), "k", 2, 32, [])


def test_no_kernel_of_ours_has_what_is_not_modelled():
    texts = [*ROOT.glob("csrc/device/**/*.cuh"), *ROOT.glob("tests/golden/text/*")]
    foreign = r"async\.bulk|tensormap|cluster|mbarrier|\bw?g?mma\.|[ls][dt]matrix|fence\.proxy"
    assert len(texts) > 40
    assert [path.name for path in texts if re.search(foreign, path.read_text())] == []


def test_relatives_of_what_is_not_modelled_are_accused():
    accused = {name for name, case in all_cases().items() if case.required}
    assert ALIKE.keys() == FOREIGN.keys()
    assert accused.issuperset(name for names in ALIKE.values() for name in names)


# Processes and threads.


def test_b44_results_do_not_depend_on_the_thread_that_calls():
    compiled, x = compile_strictly(lambda x: x.softmax(-1)), torch.randn(64, 33)
    expected, found = compiled(x), []
    workers = [threading.Thread(target=lambda: found.append(compiled(x))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 4 and all(y.equal(expected) for y in found)


def test_b48_what_a_graph_is_made_of_bounds_the_time_that_it_compiles():
    def fn(x):
        for i in range(400):
            x = x * 0.5 + i
        return x

    check(fn, torch.randn(7), rtol=1e-6, atol=0)


def test_b49_compiling_again_and_again_leaves_nothing_behind():
    def resident_kb():
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def compile_one(size):
        torch._dynamo.reset()
        compile_strictly(lambda x: (x * 2).softmax(-1))(torch.randn(4, size))

    for size in range(5, 15):
        compile_one(size % 5 + 5)
    before, files = resident_kb(), len(os.listdir("/proc/self/fd"))
    for size in range(25):
        compile_one(size % 5 + 5)
    assert resident_kb() - before < 32 * 1024
    assert len(os.listdir("/proc/self/fd")) <= files


def test_b50_threads_that_compile_at_once():
    failures = []
    # Torch 2.11 for CUDA, without a GPU, loses with a thread what was set up as the first to trace
    # in it, and then crashes with any backend: so the first is this thread, which stays.
    with FakeTensorMode():
        pass

    def work(i):
        try:
            x = torch.randn(8, 10 + i % 3)
            fn = torch.compile(lambda x: (x + 1).softmax(-1), backend="stitch", dynamic=False)
            torch.testing.assert_close(call_among_threads(fn, x), (x + 1).softmax(-1))
        except Exception as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not failures and not any(worker.is_alive() for worker in workers)


def test_b51_numbers_are_written_alike_in_every_locale():
    kept = locale.setlocale(locale.LC_ALL)
    comma = None
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"):
        try:
            comma = locale.setlocale(locale.LC_ALL, name)
            break
        except locale.Error:
            continue
    try:
        x = torch.randn(5, 33)
        got = compile_strictly(lambda x: x * 2.22e-16 + 0.125)(x)
    finally:
        locale.setlocale(locale.LC_ALL, kept)
    expect_equal(got, x * 2.22e-16 + 0.125)
    assert comma is None or locale.setlocale(locale.LC_ALL) == kept


@pytest.mark.parametrize("home", ["", "/nonexistent/home"])
def test_b57_a_process_without_a_home_runs(tmp_path, home):
    code = (
        "import torch, torch_stitch\n"
        "x = torch.randn(3, 5)\n"
        "fn = torch.compile(lambda x: x.softmax(-1), backend='stitch', options={'strict': True})\n"
        "torch.testing.assert_close(fn(x), x.softmax(-1))\n"
    )
    kept = {k: v for k, v in os.environ.items() if not re.match(r"(XDG|TORCH_STITCH)_", k)}
    environment = kept | {"HOME": home, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_b60_names_of_the_users_do_not_reach_kernels():
    scope = {}
    hostile = 'x_\\\\" \n#include "/etc/passwd"'
    source = f"def fn(x):\n    '''{hostile}'''\n    return (x * 3).sum(-1)  # */ \\\n"
    exec(compile(source, 'evil";system("true");//.py', "exec"), scope)
    check(scope["fn"], torch.randint(-9, 9, (4, 8)).float())


def test_b62_a_cache_of_another_version_is_a_miss(tmp_path):
    directory = str(tmp_path / "cache")
    x = torch.randn(4, 9)

    def run():
        torch._dynamo.reset()
        torch_stitch.clear_cache()
        return compile_strictly(lambda x: x.exp().sum(-1), options={"cache": directory})(x)

    expected = run()
    entries = [p for p in Path(directory).rglob("*") if p.is_file()]
    assert entries
    for entry in entries:
        data = bytearray(entry.read_bytes())
        data[8] ^= 0xFF  # the format version follows the magic
        entry.write_bytes(data)
    assert run().equal(expected)
