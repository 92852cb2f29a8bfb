"""The steps of benchmark(): check, compile each backend twice, judge, count, then time in turn."""

import contextlib
import functools
import os
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from torch_stitch._core import StitchError, counters
from torch_stitch.explain import StandIns
from torch_stitch.measure import backends as rivals
from torch_stitch.measure import counts
from torch_stitch.measure.comparison import Comparison, Measured
from torch_stitch.measure.memory import peak_bytes
from torch_stitch.measure.noise import LEAST_ROUNDS
from torch_stitch.measure.progress import Progress
from torch_stitch.measure.reference import Exactly, largest_errors, widen
from torch_stitch.measure.steps import (
    Outcome,
    buffers_of,
    outcome_of,
    parameters_of,
    run_step,
    tensors_of,
)
from torch_stitch.measure.timing import clock, time_interleaved

MOST_ROUNDS = 1000
MOST_SIZES = 4  # of tensors, in a title


class Subject:
    """What is measured: a copy of the function and its inputs, with its results in fp64."""

    def __init__(self, fn: Any, inputs: tuple[Any, ...], training: bool) -> None:
        self.training, self.original_inputs = training, inputs
        self.fn, self.inputs = copy_subject(fn, inputs)
        self.first_buffers = [x.clone() for x in buffers_of(self.fn)]
        self.notes: list[str] = []

    def step(self, call: Any, *inputs: Any) -> Any:
        return run_step(self.fn, call, inputs or self.inputs, self.training)

    def begin_again(self) -> tuple[Any, ...]:
        """The inputs as they were given; so are the buffers of the module."""
        for x, y in zip(buffers_of(self.fn), self.first_buffers, strict=True):
            x.detach().copy_(y)
        return StandIns(with_values=True).replace(None, self.original_inputs)[1]

    def errors(self, call: Any, exact: Outcome) -> dict[str, float]:
        found = outcome_of(self.fn, call, self.begin_again(), self.training)
        return dict(zip(("rmse", "worst"), largest_errors(found, exact)))

    def find_exact(self) -> Outcome | None:
        """The outcome in fp64; None, and a note, where there is none to compare with."""
        before = generator_states()
        self.step(self.fn)
        if not all(map(torch.equal, before, generator_states())):
            self.notes.append("no errors: it draws random numbers, each backend its own")
            return None
        try:
            fn, inputs = widen(self.fn, self.begin_again())
            with Exactly():
                return outcome_of(fn, fn, inputs, self.training)
        except Exception as error:
            self.notes.append(f"no errors: it does not run in fp64: {first_line(error)}")
            return None


def first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"


def generator_states() -> list[torch.Tensor]:
    return [torch.get_rng_state(), *torch.cuda.get_rng_state_all()]


def copy_subject(fn: Any, inputs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Copies with the same layout, aliases among them included."""
    given = tensors_of(tree_leaves(inputs))
    if isinstance(fn, torch.nn.Module):
        given += [*fn.parameters(), *fn.buffers()]
    here = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    if absent := [str(x.device) for x in given if x.device.type not in here]:
        raise StitchError(
            f"found a tensor on {absent[0]}, which runs nothing here; "
            f"benchmark() measures on {' and '.join(here)}: move the tensor there"
        )
    try:
        return StandIns(with_values=True).replace(fn, inputs)
    except Exception as error:
        raise StitchError(
            f"found a model that copy.deepcopy does not copy ({first_line(error)}); benchmark() "
            "measures a copy so that yours stays as it is: give the model a __deepcopy__"
        ) from error


def check_runs(subject: Subject) -> None:
    """Once in eager: that it runs, answers with tensors, and has gradients if they are wanted."""
    wanted = subject.training
    try:
        with torch.set_grad_enabled(wanted):
            results = subject.fn(*subject.inputs)
    except Exception as error:
        what = f"found a function that raises in eager ({first_line(error)})"
        raise StitchError(f"{what}; benchmark() needs one that runs with these inputs") from error
    found = tensors_of(results)
    if not found:
        raise StitchError(
            f"found a function that returns no tensor but {type(results).__name__}; "
            "benchmark() compares and waits for tensors: return one"
        )
    has_leaves = parameters_of(subject.fn, subject.inputs)
    if wanted and not (has_leaves and any(x.requires_grad for x in found)):
        raise StitchError(
            "found no result that depends on what requires a gradient, which training=True needs: "
            "give the module itself instead of a function around it, or inputs with requires_grad"
        )


def measure_backend(subject: Subject, name: str, how: rivals.How, exact: Outcome | None,
                    progress: Progress) -> tuple[Any, dict[str, Any]]:
    """(what is called, its figures but for times)."""
    call, figures = subject.fn, dict[str, Any]()
    if how is None:
        counted = counts.count_eager(lambda: subject.step(call))
    else:
        progress.begin(f"{name}: first call, nothing cached")
        rivals.start_backend(how)
        fallbacks = counters()["fallback_ops"]
        with rivals.fresh_caches() as forget:
            with counts.count_inductor() as inductors:
                call = rivals.compile_with(subject.fn, how)
                figures["cold_s"] = rivals.time_first_call(lambda: subject.step(call))
            forget()
            progress.begin(f"{name}: first call, cached on disk")
            call = rivals.compile_with(subject.fn, how)
            figures["warm_s"] = rivals.time_first_call(lambda: subject.step(call))
        if fallen := counters()["fallback_ops"] - fallbacks:
            subject.notes.append(f"{name}: {fallen} ops fell back, as its warning says")
        counted = inductors[0] if how.get("backend", "inductor") == "inductor" else counts.Counts()
        if how.get("backend") == "stitch":
            options = how.get("options") or {}
            counted = counts.count_stitch(subject.fn, subject.inputs, subject.training, options)
    figures |= counted._asdict()
    if exact is not None:
        figures |= subject.errors(call, exact)
    parameters = parameters_of(subject.fn, subject.inputs)
    figures["peak_bytes"] = peak_bytes(lambda: subject.step(call), parameters)
    return call, figures


def compare_backends(fn: Any, inputs: tuple[Any, ...], backends: Any, training: bool,
                     seconds: float) -> Comparison:
    """benchmark() of torch_stitch."""
    calls, figures, failed = dict[str, Any](), dict[str, dict[str, Any]](), dict[str, str]()
    hows = rivals.name_backends(backends)
    stages = 2 + 2 * sum(how is not None for how in hows.values())
    with torch.random.fork_rng(), contextlib.closing(Progress(stages)) as progress:
        subject = Subject(fn, inputs, training)
        check_runs(subject)
        progress.begin("the exact result, in fp64")
        exact = subject.find_exact()
        for name, how in hows.items():
            try:
                calls[name], figures[name] = measure_backend(subject, name, how, exact, progress)
            except Exception as error:
                failed[name] = first_line(error)
        if not calls:
            raise StitchError(f"found no backend that runs this: {failed}")
        progress.begin("rounds, each backend in turn")
        steps = {name: functools.partial(subject.step, call) for name, call in calls.items()}
        times = time_interleaved(
            steps, subject.inputs, MOST_ROUNDS, seconds, LEAST_ROUNDS, progress.show
        )
    measured = (Measured(name, tuple(times[name]), **figures[name]) for name in calls)
    notes = (*subject.notes, *notes_on_machine())
    return Comparison(title_of(subject), tuple(measured), failed, notes)


def title_of(subject: Subject) -> str:
    name = getattr(subject.fn, "__name__", type(subject.fn).__name__)
    tensors = tensors_of(tree_leaves(subject.inputs))
    sizes = [f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}" for x in tensors]
    shown = ", ".join(sizes[:MOST_SIZES] + (["..."] if len(sizes) > MOST_SIZES else []))
    what = "forward and backward" if subject.training else "forward"
    threads = torch.get_num_threads()
    machine = f"{threads} thread{'s' * (threads > 1)} of {torch.backends.cpu.get_cpu_capability()}"
    if any(x.is_cuda for x in tensors):
        machine = torch.cuda.get_device_name()
    return f"{name}({shown}), {what}, on {machine}, torch {torch.__version__}"


def notes_on_machine() -> Iterator[str]:
    if clock() is time.thread_time:
        yield "times are CPU time of the one thread"
    busy = os.getloadavg()[0] - torch.get_num_threads()
    if busy > 0.5:
        yield f"others used this machine: about {busy:.1f} threads beside these"
