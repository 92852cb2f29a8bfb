"""Seventy public architectures: `python -m benchmarks.public_models [--what TASK] [NAME ...]`.

Each runs in a process of its own, with limits on time and memory, one mode after the other:
inference, a training step, and a training step with gradient checkpointing.  `judge` compares with
eager by rule R10 and counts what was stitched; `time` measures eager, Inductor and stitch in turn.
Answers lie under build/models, and --record adds those to benchmarks/results/, at the end or when
the run is cut: a run goes on where the last one that was recorded stood, --again begins anew.
"""

import argparse
import functools
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

import torch

from benchmarks import judge_models, machine, measure
from benchmarks.child import fresh_caches
from benchmarks.public_model_figures import line_of, record, recorded
from benchmarks.public_model_table import ARCHITECTURES
from benchmarks.run import RESULTS
from torch_stitch.measure.backends import compile_with, start_backend, time_first_call
from torch_stitch.measure.memory import peak_bytes
from torch_stitch.measure.steps import parameters_of, run_step, tensors_of
from torch_stitch.measure.timing import time_interleaved

STATE = machine.ROOT / "build" / "models"
MODES = ("inference", "training", "checkpointing")
RIVALS = {
    "eager": None,
    "inductor": {"backend": "inductor"},
    "stitch": {"backend": "stitch"},
    "kernel_per_op": {"backend": "stitch", "options": {"policy": "none"}},
}
ROUNDS = 15
LIMIT_S = 1200
MEMORY_BYTES = 10 << 30
MARK = "answer: "


class Plain(torch.nn.Module):
    """The architecture as a function of tensors that answers with tensors.

    In training each float is weighted along its elements: the mean of squares of what a norm
    leaves would be a constant, and every gradient of it noise.
    """

    def __init__(self, module, names):
        super().__init__()
        self.module, self.names = module, names

    def forward(self, *values):
        results = self.module(**dict(zip(self.names, values)))
        results = tensors_of(results)
        return [weigh(x) for x in results] if self.training else results


def weigh(x):
    if not x.is_floating_point() or x.dim() == 0:
        return x
    places = torch.arange(x.numel(), device=x.device).reshape(x.shape)
    return x * (places % 7 + 1)


def build(name, mode):
    """The module in this mode and its inputs; nothing where the mode does not exist."""
    module, inputs = ARCHITECTURES[name].build()
    module.train(mode != "inference")
    if hasattr(module, "config") and hasattr(module.config, "use_cache"):
        module.config.use_cache = False
    if mode == "checkpointing" and not checkpoint(module):
        return None
    return Plain(module, list(inputs)).train(module.training), tuple(inputs.values())


def checkpoint(module):
    """Whether the library offers gradient checkpointing, which is on then."""
    if getattr(module, "supports_gradient_checkpointing", False):
        module.gradient_checkpointing_enable({"use_reentrant": False})
        return True
    try:
        module.set_grad_checkpointing(True)
    except (AttributeError, AssertionError):
        return False
    return True


def without_checkpoints(name, module, mode):
    """The same weights, and nothing computed twice."""
    if mode != "checkpointing":
        return module
    plain, _ = build(name, "training")
    plain.load_state_dict(module.state_dict())
    return plain


def judge(name, mode, backend="stitch"):
    built = build(name, mode)
    if built is None:
        return {"skipped": "the library offers none"}
    module, inputs = built
    plain = without_checkpoints(name, module, mode)
    return judge_models.judge(judge_models.Model(module, plain, inputs, mode), backend)


# Speed and memory.


def time_rivals(name, mode):
    """Milliseconds of a call, seconds of the first one, bytes above what lives between calls."""
    built = build(name, mode)
    if built is None:
        return {"skipped": "the library offers none"}
    module, inputs = built
    for how in filter(None, RIVALS.values()):
        start_backend(how)
    torch._dynamo.reset()
    calls, first, failed = {}, {}, {}
    for rival, how in RIVALS.items():
        call = compile_with(module, how)
        call = functools.partial(run_step, module, call, inputs, mode != "inference")
        cpu = cpu_seconds()
        try:
            seconds = time_first_call(call)
        except Exception as error:
            failed[rival] = f"{type(error).__name__}: {str(error)[:300]}"
            continue
        first[rival] = {"seconds": seconds, "cpu_s": cpu_seconds() - cpu}
        calls[rival] = call
        call()
    parameters = parameters_of(module, inputs)
    peak = {rival: peak_bytes(call, parameters) for rival, call in calls.items()}
    times = time_interleaved(calls, (), ROUNDS)
    return {
        **measure.summary(times),
        "first_call": first,
        "peak_bytes": peak,
        "failed_rivals": failed,
    }


def cpu_seconds():
    return sum(os.times()[:4])


# Children.


def run_child(what, name, mode):
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    torch.set_num_threads(1)
    torch._dynamo.config.cache_size_limit = 64
    print(MARK + json.dumps(TASKS[what](name, mode)), flush=True)


TASKS = {"judge": judge, "time": time_rivals}


def answer_of(what, name, mode, again):
    """What a process of its own answers, or how it ended."""
    kept = STATE / f"{what}-{name}-{mode}.json"
    if kept.exists() and not again:
        return json.loads(kept.read_text())
    command = [sys.executable, "-m", "benchmarks.public_models", "--child", mode, "--what", what]
    environment = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    with tempfile.TemporaryDirectory(prefix="stitch-models-") as caches:
        if what == "time":
            environment |= fresh_caches(caches) | {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
        answer = run_process([*command, name], environment)
    STATE.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(answer, indent=1) + "\n")
    return answer


def run_process(command, environment):
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT_S, cwd=machine.ROOT,
            env={**os.environ, **environment},
        )  # fmt: skip
        lines = [x for x in done.stdout.splitlines() if x.startswith(MARK)]
        if lines:
            answer = json.loads(lines[-1].removeprefix(MARK))
        else:
            answer = {"failed": f"exit {done.returncode}", "stderr": done.stderr[-3000:]}
    except subprocess.TimeoutExpired:
        answer = {"failed": f"over {LIMIT_S} s"}
    answer["process_s"] = time.perf_counter() - start
    return answer


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--what", choices=TASKS, default="judge")
    parser.add_argument("--mode", choices=MODES)
    parser.add_argument("--again", action="store_true", help="measure what was measured too")
    parser.add_argument("--record", action="store_true", help="write benchmarks/results")
    parser.add_argument("--child", choices=MODES, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args(arguments)
    if given.child:
        run_child(given.what, given.names[0], given.child)
        return 0
    if given.record:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    known = {} if given.again else recorded(RESULTS)[0]
    try:
        for name in given.names or ARCHITECTURES:
            for mode in [given.mode] if given.mode else MODES:
                if (given.what, name, mode) in known:
                    continue
                answer = answer_of(given.what, name, mode, given.again)
                print(f"{name:30} {mode:14} {line_of(answer)}", flush=True)
    finally:
        if given.record:
            record(STATE, ARCHITECTURES, MODES, RESULTS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
