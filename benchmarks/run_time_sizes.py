"""What sizes that are known only when run cost the plans for a GPU: bytes, and kernels built.

Bytes: of the micro suite at `timing`'s sizes and of a BERT layer, `bytes_planned` of the plans with
all sizes dynamic, as benchmarks.clock_sizes marks them, over that with all sizes static; with what
plans assume of such sizes (csrc/ir/assume_sizes.h), and with assume_sizes=False.

Kernels: a function is compiled once with dynamic=True and called with 64 batch sizes, or with 64
lengths, one after the other, on the H200 that ptxsim simulates.  Each program that the calls have
built leaves a dump of its kernels' text.  That is counted, not planned: Dynamo makes a graph of its
own of a batch of one, and a graph has up to four programs (csrc/bindings/compiled_graph.h).
Kernels of one name, but for its hash, are variants of one: those that one program has side by
side divide them.
"""

import re
from collections import Counter
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F

import torch_stitch
from benchmarks import bert, measure
from benchmarks.cases import CASES
from benchmarks.child import temporary_directory
from benchmarks.clock_rows import failures, good, time_all
from benchmarks.clock_sizes import mark_dynamic
from benchmarks.rows import PLANNED_FOR, Row, kernels_of, skip_without_nvrtc
from torch_stitch.measure.backends import own_copy

BYTES_LIMIT, VARIANTS_LIMIT = 1.05, 4
BERT_BATCHES = (1, 8)
# way -> options of plans whose sizes are all dynamic
WAYS = {"all sizes dynamic": {}, "all dynamic, nothing assumed": {"assume_sizes": False}}

BATCH, LENGTH = 2, 16  # the one that stays as it is
BATCHES = range(1, 65)
LENGTHS = sorted(16 * k - less for k in range(1, 33) for less in (0, 5))


def plan(fn, inputs, **options):
    torch._dynamo.reset()
    options |= {"target": PLANNED_FOR, "strict": True}  # a kernel that fails moves no bytes
    found = torch_stitch.explain(own_copy(fn), *inputs, **options).plan
    return {
        "bytes": found["bytes_planned"],
        "kernels": kernels_of(found),
        "predicted_us": round(sum(kernel["predicted_us"] for kernel in found["kernels"]), 2),
        "assumed_sizes": found["assumed_sizes"],
    }


def compare_plans(make):
    """Plans of static sizes, and by each way of dynamic ones with its bytes over theirs."""
    plans = {"static": plan(*make())}
    for way, options in WAYS.items():
        fn, inputs = make()
        mark_dynamic(inputs)
        plans[way] = plan(fn, inputs, **options)
        plans[way]["over_static"] = round(plans[way]["bytes"] / plans["static"]["bytes"], 3)
    return plans


def byte_rows(what, makers):
    """makers: name -> what answers with a function and its inputs."""
    found = time_all({name: partial(compare_plans, make) for name, make in makers.items()})
    yield failures(what, found, "not planned with static and with dynamic sizes")
    for way, options in WAYS.items():
        ratios = {name: plans[way]["over_static"] for name, plans in good(found).items()}
        if not ratios:
            continue
        limit, detail = (None, None) if options else (BYTES_LIMIT, found)
        name = f"{what}, {way}, planned bytes over static"
        mean = round(measure.geometric_mean(list(ratios.values())), 3)
        yield Row(f"{name}, geometric mean of {len(ratios)}", mean, limit, detail=detail)
        worst = max(ratios, key=ratios.get)
        above = {name: ratio for name, ratio in ratios.items() if ratio > BYTES_LIMIT}
        yield Row(f"{name}, worst ({worst})", ratios[worst], limit)
        yield Row(f"{name}, above {BYTES_LIMIT}", len(above), detail=above)


def softmax():
    return lambda x: x.softmax(-1), lambda batch, length: (torch.randn(batch, 4, length, length),)


def layernorm():
    return torch.nn.LayerNorm(768), lambda batch, length: (torch.randn(batch, length, 768),)


def cross_entropy(classes=1000):
    def draw(batch, length):
        logits = torch.randn(batch, length, classes)
        return logits, torch.randint(classes, (batch, length))

    return lambda x, at: F.cross_entropy(x.view(-1, classes), at.view(-1)), draw


def bias_gelu(width=768):
    def draw(batch, length):
        return torch.randn(batch, length, width), torch.randn(width)

    return lambda x, bias: F.gelu(x + bias), draw


def bert_layer():
    return bert.BertLayer().eval(), bert.draw_for_layer


# Each answers with a function, and with what draws its inputs of a batch size and a length.
FUNCTIONS = (softmax, layernorm, cross_entropy, bias_gelu, bert_layer)
# what varies -> (its values, batch and length of each)
VARIED = {
    "batch sizes": (BATCHES, lambda size: (size, LENGTH)),
    "lengths": (LENGTHS, lambda size: (BATCH, size)),
}


def count_variants(programs):
    """The most variants of one kernel; programs: the names of each one's kernels."""
    bodies = [Counter(name.rpartition("_")[0] for name in set(names)) for names in programs]
    together = Counter(name.rpartition("_")[0] for name in set().union(*programs))
    of_each = {body: max(counts[body] for counts in bodies) for body in together}
    return max((-(-count // of_each[body]) for body, count in together.items()), default=0)


def call_in_turn(make, sizes, shape_of):
    """The sizes at which programs were built, and names of the kernels of each."""
    torch._dynamo.reset()
    fn, draw = make()
    built_at, texts = [], {}
    with temporary_directory() as folder, torch.no_grad():
        options = {"strict": True, "target": PLANNED_FOR, "simulate": "fast", "progress": False}
        options |= {"dump": "emit", "dump_dir": folder}
        compiled = torch.compile(fn, backend="stitch", dynamic=True, options=options)
        for size in sizes:
            compiled(*draw(*shape_of(size)))
            new = {path: path.read_text() for path in Path(folder).iterdir() if path not in texts}
            built_at += [size] * len(new)
            texts |= new
    names = re.compile(r"\bstitch_\w+_[0-9a-f]{10}\b")
    programs = [sorted(set(names.findall(text))) for text in texts.values()]
    return {"built_at": built_at, "variants": count_variants(programs), "programs": programs}


def variant_rows(functions=FUNCTIONS, varied=VARIED):
    for what, (sizes, shape_of) in varied.items():
        found = time_all(
            {make.__name__: partial(call_in_turn, make, sizes, shape_of) for make in functions}
        )
        yield failures(f"{len(sizes)} {what}", found, "functions that were not called")
        for name, counts in good(found).items():
            row = f"{name}, variants of a kernel, {len(sizes)} {what}"
            yield Row(row, counts["variants"], VARIANTS_LIMIT, detail=counts)


def run_time_sizes(request):
    """Planned bytes over those of static sizes, and variants of kernels that calls have built."""
    suite = {name: CASES[name].timed for name in request.cases}
    yield from byte_rows("micro suite", suite)
    layers = {f"batch {batch}": partial(bert.bert_layer, batch) for batch in BERT_BATCHES}
    yield from byte_rows("BERT layer", layers)
    if reason := skip_without_nvrtc("variants built of a kernel"):
        yield reason
        return
    yield from variant_rows()


GROUPS = {"run_time_sizes": run_time_sizes}
