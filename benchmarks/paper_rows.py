"""Memory kernels of the FusionStitching and AStitch papers' models by policy, beside theirs.

Attention stays written out (attention="stitch"): products are calls, what is between them kernels.
"""

import dataclasses
import re
import statistics
import tempfile
from pathlib import Path

import torch

from benchmarks.rows import PLANNED_FOR, Row
from benchmarks.workloads import WORKLOADS

BASELINE = "loops"
POLICIES = (BASELINE, "fusionstitching2020", "astitch", "auto")
LIMITS = {"fusionstitching2020": 0.50, "astitch": 0.45}
MOVES = {"input", "full", "iota", "reshape", "permute", "expand", "slice", "flip", "layout", "cat"}
FAR = 1.3  # times the paper's ratio: docs/papers.md says why
SGD, ADAM = "sgd", "adam"


@dataclasses.dataclass(frozen=True)
class PaperModel:
    """`fs18`: the 2018 paper's ratio (Fig 7); FS20 Table 2, AStitch Table 3: (XLA's, theirs)."""

    workload: str
    mode: str
    batch: int | None = None  # the paper's, where it prints another than the workload's
    step: str = ""
    fs18: float | None = None
    fusionstitching2020: tuple | None = None
    astitch: tuple | None = None

    def paper_ratio(self, policy):
        counts = getattr(self, policy, None)
        return counts and counts[1] / counts[0]


# Neither paper prints an optimiser.  Table 3 of AStitch has no mode: its models all infer.
MODELS = {
    "lr": PaperModel("lr", "train", step=SGD, fs18=0.43),
    "word2vec": PaperModel("word2vec", "train", step=SGD, fs18=0.82),
    "rnn": PaperModel("rnn", "train", step=SGD, fs18=0.38),
    "birnn": PaperModel("birnn", "train", step=SGD, fs18=0.40),
    "speech": PaperModel("speech", "train", step=SGD, fs18=0.25),
    "nmt": PaperModel("nmt", "infer", fs18=0.50),
    "bert train": PaperModel("bert", "train", 32, ADAM, fusionstitching2020=(200, 98)),
    "bert": PaperModel(
        "bert", "infer", 32, fusionstitching2020=(277, 77), astitch=(64, 26)
    ),
    "dien train": PaperModel("dien", "train", step=ADAM, fusionstitching2020=(6842, 2109)),
    "dien": PaperModel(
        "dien", "infer", fusionstitching2020=(2585, 815), astitch=(2579, 811)
    ),
    "transformer train": PaperModel(
        "transformer_loss", "train", step=ADAM, fusionstitching2020=(903, 423)
    ),
    "transformer": PaperModel("transformer", "infer", astitch=(10132, 2578)),
    "asr batch 8": PaperModel("asr", "infer", 8, fusionstitching2020=(386, 187)),
    "asr": PaperModel("asr", "infer", astitch=(496, 218)),
    "crnn batch 8": PaperModel("crnn", "infer", 8, fusionstitching2020=(993, 311)),
    "crnn": PaperModel("crnn", "infer", astitch=(986, 297)),
}  # fmt: skip


def sgd(parameters, gradients):
    for x, gradient in zip(parameters, gradients):
        x.add_(gradient, alpha=-0.01)


def adam(parameters, gradients, means, squares, step):
    for x, gradient, mean, square in zip(parameters, gradients, means, squares):
        mean.lerp_(gradient, 0.1)
        square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        scale = (square / (1 - 0.999**step)).sqrt() + 1e-8
        x.sub_(mean / (1 - 0.9**step) / scale * 1e-3)


def graphs_of(model, scale):
    """All graphs of a call; of training the backward pass's and the optimiser's too."""
    from tools.show import capture_graphs

    workload = WORKLOADS[model.workload]
    sizes = dict(getattr(workload, scale))
    if model.batch and scale == "planning":
        sizes["batch"] = model.batch
    trains = model.mode == "train"
    with torch.device("meta"):
        module, inputs = workload.build(**sizes)
    graphs = capture_graphs(module.train(trains), inputs, PLANNED_FOR, trains)
    if trains:
        with torch.device("meta"):
            weights = [torch.empty_like(x).detach() for x in module.parameters()]
            states = [[torch.empty_like(x) for x in weights] for _ in range(3)]
            step = torch.ones(())
        update, inputs = (adam, [*states, step]) if model.step == ADAM else (sgd, states[:1])
        graphs += capture_graphs(update, (weights, *inputs), PLANNED_FOR)
    return graphs


def texts_of(graph, policy):
    """The graph that is planned, and its plan; no kernel is compiled."""
    with tempfile.TemporaryDirectory() as directory:
        graph.show("times", policy=policy, attention="stitch", dump="rewrite,plan",
                   dump_dir=directory)  # fmt: skip
        found = [next(Path(directory).glob(f"*.{stage}.txt")) for stage in ("rewrite", "plan")]
        return [path.read_text() for path in found]


def nodes_of(text):
    """node -> (op, operands)"""
    found = re.findall(r"^%(\d+) = (\w+)(?:\(([^)]*)\))?", text, re.M)
    return {int(at): (op, numbers(given)) for at, op, given in found}


def is_copy(nodes, roots, loads):
    """Nothing is computed between what a kernel loads and its roots."""
    waiting, seen = list(roots), set(loads)
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        op, operands = nodes[at]
        if op not in MOVES:
            return False
        waiting += operands
    return True


def numbers(text):
    return [int(x) for x in re.findall(r"%(\d+)", text)]


def describe(graph, policy):
    """What the plan of one graph amounts to: copies are apart."""
    rewritten, plan = texts_of(graph, policy)
    nodes = nodes_of(rewritten)
    steps = re.search(r"^steps:.*$", plan, re.M)[0]
    found = {"kernels": 0, "copies": len(re.findall(r"^mutation .* by copy$", plan, re.M))}
    found |= {"calls": len(numbers(steps)), "us": 0.0}
    head = plan[: plan.index("steps:")]
    for us, body in re.findall(r"^kernel \d+: ([\d.]+) us(.*?)(?=^kernel |\Z)", head, re.M | re.S):
        loads, roots = (
            numbers(" ".join(re.findall(rf"^ *{what}:(.*)$", body, re.M)))
            for what in ("loads", "roots")
        )
        found["copies" if is_copy(nodes, roots, loads) else "kernels"] += 1
        found["us"] += float(us)
    return found


def plan_model(name, scale="planning"):
    """policy -> what its plans amount to, all graphs together."""
    graphs = graphs_of(MODELS[name], scale)
    totals = {}
    for policy in POLICIES:
        parts = [describe(graph, policy) for graph in graphs]
        totals[policy] = {key: round(sum(part[key] for part in parts), 1) for key in parts[0]}
    return totals


def ratio(plans, policy):
    return plans[policy]["kernels"] / plans[BASELINE]["kernels"]


def figures(details):
    """Means over the rows that the paper's own table has, and models far above it."""
    for policy, limit in LIMITS.items():
        rows = {
            name: {"ratio": round(ratio(plans, policy), 3),
                   "paper": round(MODELS[name].paper_ratio(policy), 3)}
            for name, plans in details.items()
            if MODELS[name].paper_ratio(policy)
        }  # fmt: skip
        if not rows:
            continue
        mean = statistics.mean(row["ratio"] for row in rows.values())
        name = f"papers' models, memory kernels under {policy} over {BASELINE}, arithmetic mean"
        yield Row(name, round(mean, 3), limit, detail=rows)
        far = {name: row for name, row in rows.items() if row["ratio"] > FAR * row["paper"]}
        yield Row(f"papers' models above {FAR} of their paper's ratio, {policy}", len(far),
                  detail=far)  # fmt: skip


def paper_models(request, names=tuple(MODELS), scale="planning"):
    details, failed = {}, {}
    for name in names:
        try:
            details[name] = plan_model(name, scale)
        except Exception as error:
            failed[name] = str(error)[-500:]
    yield Row("papers' models planned", len(details), len(names), at_least=True,
              detail={"plans": details, "failed": failed})  # fmt: skip
    yield from figures(details)


GROUPS = {"paper_models": paper_models}
