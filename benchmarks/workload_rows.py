"""Figures of whole models: their times as a user runs them, and R10 for inference and training."""

from benchmarks.child import call_child
from benchmarks.rows import Row, one_thread, time_rows
from benchmarks.workloads import WORKLOADS


def ask(task, names, **arguments):
    """name -> the answer of a child of its own; one that broke says why."""
    answers = {}
    for name in names:
        try:
            answers[name] = call_child(task, name=name, **arguments)
        except Exception as error:
            answers[name] = {"failed": {"stitch": str(error)[-2000:]}}
    return answers


def workload_times(request):
    """Times of inference, and that what infers is as exact as eager."""
    names = [name for name, workload in WORKLOADS.items() if workload.infers]
    arguments = {"rounds": request.rounds, "threads": request.threads}
    answers = ask("time_workload", names, **arguments)
    what = "whole models" + one_thread(request)
    yield from time_rows(answers, what, 1.1, worst_limit=0.95)


def workload_training(request):
    """Of a training step of each: results, gradients, buffers."""
    names = [name for name, workload in WORKLOADS.items() if workload.trains]
    answers = ask("judge_training", names)
    exact = sum(answer.get("ok", False) for answer in answers.values())
    name = "whole models whose training step is as exact as eager's"
    yield Row(name, exact, len(names), at_least=True, detail=answers)


GROUPS = {group.__name__: group for group in (workload_times, workload_training)}
