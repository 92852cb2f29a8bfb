"""BERT-base reads a text: eager, Inductor and stitch in turn, on this machine's device.

Prints what torch_stitch.benchmark finds, for two batches, then the plan for an H200, which need not
be there: its kernels are compiled, not run.
"""

import os
import sys

import torch

import torch_stitch
from benchmarks import machine
from benchmarks.bert import Bert
from benchmarks.child import RIVALS, fresh_caches, on_device, temporary_directory
from benchmarks.rows import PLANNED_FOR, kernels_of, plan_of

TEXT = machine.ROOT / "LICENSE"
LENGTH = 128
FIRST_BYTE_ID = 1000  # where single characters begin in BERT's vocabulary
LAYERS = 12
BATCHES = (1, 4)
TIMING_S = 15.0  # of each batch


def read_text(batch):
    """The beginning of the text as token ids: one per byte, `batch` rows of LENGTH."""
    text = TEXT.read_bytes()[: batch * LENGTH]
    ids = torch.tensor(list(text), dtype=torch.int64).reshape(batch, LENGTH) + FIRST_BYTE_ID
    return ids, torch.zeros_like(ids), torch.ones_like(ids)


def print_plan(plan, where):
    calls, kernels = len(plan["library_calls"]), kernels_of(plan)
    moved = [f"{plan[key] / 1e6:.1f} MB" for key in ("bytes_touched", "bytes_planned")]
    print(
        f"  {where}: {kernels} kernels and {plan['launches'] - kernels} library calls, "
        f"per layer {kernels / LAYERS:.1f} and {(plan['launches'] - kernels) / LAYERS:.1f}\n"
        f"    stitched kernels move {moved[1]}; one kernel per op would move "
        f"{plan['bytes_unfused'] / 1e6:.1f} MB; with {calls} calls {moved[0]} in all"
    )


def print_gpu_kernels(model, inputs):
    from tools.show import capture_graphs

    kernels = {}
    for graph in capture_graphs(model, inputs, PLANNED_FOR):
        for kernel in graph.compile()["kernels"]:
            row = kernels.setdefault(kernel["name"], [0, kernel])
            row[0] += 1
    heads = ("launches", "registers", "spill bytes", "NVRTC ms", "predicted us")
    print(f"  {'kernel':46}" + "".join(f"{head:>13}" for head in heads))
    for name, (launches, kernel) in kernels.items():
        numbers = (kernel["registers"], kernel["spill_bytes"])
        times = (f"{kernel['compile_ms']:.0f}", f"{kernel['predicted_us']:.1f}")
        columns = [launches, *numbers, *times]
        print(f"  {name[:45]:46}" + "".join(f"{column:>13}" for column in columns))


def main():
    with temporary_directory() as directory:
        os.environ.update(fresh_caches(directory))
        return show()


def show():
    torch.manual_seed(0)
    found = machine.describe()
    print(
        f"BERT-base on {found['machine']}, {found['threads']} threads, torch {found['torch']}; "
        f"text: {TEXT.name}, {LENGTH} bytes a row"
    )
    model, _ = on_device(Bert().eval(), ())
    for batch in BATCHES:
        _, inputs = on_device(model, read_text(batch))
        print(torch_stitch.benchmark(model, *inputs, backends=RIVALS, seconds=TIMING_S), flush=True)
    _, inputs = on_device(model, read_text(1))
    print("launches, batch 1")
    here = plan_of(model, inputs, target=None)
    print_plan(here, f"planned for {here['target']}")
    there = plan_of(model, inputs)
    print_plan(there, f"planned for {PLANNED_FOR}")
    print(f"kernels for {PLANNED_FOR}")
    print_gpu_kernels(model, inputs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
