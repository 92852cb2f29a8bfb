"""Figures of the clock's decoder (docs/clock.md): every kernel of the micro suite and of the
yardstick, ours and Inductor's, beside the vendor's disassembler.
"""

import functools
import gzip
from pathlib import Path

import torch

from benchmarks import gpu_cubins
from benchmarks.cases import CASES
from benchmarks.child import temporary_directory
from benchmarks.clock_sizes import one_less, with_dynamic_sizes
from benchmarks.nvdisasm import find_nvdisasm
from benchmarks.rows import PLANNED_FOR, Row, skip_without_nvrtc
from benchmarks.sass_checks import check_cubin
from tools.show import capture_graphs
from torch_stitch import _core
from torch_stitch.measure.backends import own_copy

NOT_MEASURED = "not measured: nvdisasm was not found, pip install triton brings it"
SHOWN = 8  # faults of a kernel


def of_fewer(case):
    return case.build(case.timing_dtype, **one_less(case)[0])


# What of the micro suite is compiled: (name, how a case is made, target).
SUITE = (
    ("timing sizes", lambda case: case.timed(), PLANNED_FOR),
    ("each extent less one", of_fewer, PLANNED_FOR),
    ("all sizes dynamic", with_dynamic_sizes, PLANNED_FOR),
    ("timing sizes, a100", lambda case: case.timed(), "a100"),
    ("timing sizes, b200", lambda case: case.timed(), "b200"),
)
# Kernels of which there are at least so many, each counted once.
LEAST = {"micro suite": 150, "yardstick": 140}


@functools.cache
def compile_text(text, target):
    return _core.compile_cubin(text, target)


def compile_case(make, target, is_training=False):
    """The cubin of each kernel of what `make` makes."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    fn, inputs = make()
    graphs = capture_graphs(own_copy(fn), inputs, target, is_training)
    kernels = [kernel for graph in graphs for kernel in graph.compile()["kernels"]]
    return [compile_text(kernel["text"], target) for kernel in kernels]


def with_given_sizes(case):
    """A case of the yardstick, which says what of it is known only when run."""
    fn, inputs = case.make()
    for i, dim in case.dynamic:
        torch._dynamo.mark_dynamic(inputs[i], dim)
    return fn, inputs


class Checked:
    """What was found of kernels, those that are equal checked once."""

    def __init__(self, nvdisasm):
        self.nvdisasm, self.seen, self.failed, self.sets = nvdisasm, {}, {}, {}

    def add(self, group, name, make):
        """The cubins that `make` answers with; `group` is what the detail counts together."""
        counts = self.sets.setdefault(group, {"kernels": 0, "of these new": 0, "instructions": 0})
        try:
            for cubin in make():
                is_new = cubin not in self.seen
                if is_new:
                    self.seen[cubin] = {(group, name, k): v for k, v in self.check(cubin).items()}
                kernels = self.seen[cubin].values()
                counts["kernels"] += len(kernels)
                counts["of these new"] += len(kernels) * is_new
                counts["instructions"] += sum(k["instructions"] for k in kernels) * is_new
        except Exception as error:
            self.failed[f"{group}, {name}"] = " ".join(str(error).split())[:300]

    def check(self, cubin):
        with temporary_directory() as directory:
            return check_cubin(cubin, Path(directory) / "kernel.cubin", self.nvdisasm)

    def kernels(self):
        return {", ".join(key): found for of in self.seen.values() for key, found in of.items()}

    def faults(self, what):
        """How many, and the first of each kernel."""
        found = {name: kernel[what] for name, kernel in self.kernels().items() if kernel[what]}
        shown = {name: dict(list(places.items())[:SHOWN]) for name, places in found.items()}
        return sum(map(len, found.values())), shown


def rows_of(what, checked, least):
    what = f"SASS of the {what}"
    kernels = checked.kernels().values()
    instructions = sum(kernel["instructions"] for kernel in kernels)
    results = sum(kernel["results"] for kernel in kernels)
    yield Row(f"{what}, graphs without cubins", len(checked.failed), 0, detail=checked.failed)
    yield Row(
        f"{what}, different kernels that were checked", len(kernels), least, at_least=True,
        detail=checked.sets,
    )  # fmt: skip
    if checked.nvdisasm:
        count, shown = checked.faults("unequal")
        name = f"{what}, of {instructions} instructions those that nvdisasm reads otherwise"
        yield Row(name, count, 0, detail=shown)
    else:
        yield Row(f"{what}, instructions that nvdisasm reads otherwise", NOT_MEASURED)
    count, shown = checked.faults("unwaited")
    name = f"{what}, of {results} results of variable latency those read too early"
    yield Row(name, count, 0, detail=shown)


def check_suite(request, nvdisasm):
    checked = Checked(nvdisasm)
    for name in request.cases:
        for group, make, target in SUITE:
            made = functools.partial(make, CASES[name])
            checked.add(group, name, functools.partial(compile_case, made, target))
    return checked


def check_yardstick(folder, nvdisasm):
    checked = Checked(nvdisasm)
    for path in sorted((folder / "cubins").glob("*.cubin.gz")):
        name = path.name.removesuffix(".cubin.gz")
        checked.add("Inductor's", name, lambda path=path: [gzip.decompress(path.read_bytes())])
    for name, case in gpu_cubins.load_yardstick(folder).items():
        make = functools.partial(with_given_sizes, case)
        is_training = case.mode == "training"
        compiled = functools.partial(compile_case, make, PLANNED_FOR, is_training)
        checked.add("ours", name, compiled)
    return checked


def clock_decoder(request):
    """Instructions decoded otherwise than by nvdisasm, and results that nothing waits for."""
    if reason := skip_without_nvrtc("SASS of the micro suite and the yardstick"):
        yield reason
        return
    nvdisasm, is_whole = find_nvdisasm(), len(request.cases) == len(CASES)
    suite = check_suite(request, nvdisasm)
    yield from rows_of("micro suite", suite, LEAST["micro suite"] if is_whole else 1)
    if not request.yardstick:
        yield Row("SASS of the yardstick", "skipped: no --yardstick folder")
        return
    checked = check_yardstick(Path(request.yardstick) / "triton_h200", nvdisasm)
    yield from rows_of("yardstick", checked, LEAST["yardstick"])


GROUPS = {"clock_decoder": clock_decoder}
