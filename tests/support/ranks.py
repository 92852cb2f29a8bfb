"""Ranks on gloo: what DistributedDataParallel trains when compiled, in eager and in fp64 (R27)."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import torch

import torch_stitch

ROOT = Path(__file__).parents[2]
RANKS = 2
SECONDS_OF_A_HANG = 400


class Model(torch.nn.Module):
    """Ours: under DistributedDataParallel Dynamo skips the frames of torch's own modules."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = torch.nn.Linear(8, 16), torch.nn.LayerNorm(16)
        self.last = torch.nn.Linear(16, 3)

    def forward(self, x):
        return self.last(torch.nn.functional.gelu(self.norm(self.first(x))))


def train(rank, steps, backend=None, dtype=torch.float32):
    """Losses, and then parameters, as numbers in a row."""
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(Model().to(dtype))
    call = torch.compile(model, backend=backend) if backend else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(steps):
        x = torch.randn(6, 8, generator=torch.Generator().manual_seed(10 * step + rank))
        optimizer.zero_grad()
        loss = (call(x.to(dtype)) - x[:, :3]).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    parameters = torch.cat([p.detach().flatten() for p in model.parameters()])
    return torch.stack(losses).double(), parameters


def main_of_rank(rank, port, steps):
    """Prints what parent() sums up."""
    rendezvous = f"tcp://127.0.0.1:{port}"
    torch.distributed.init_process_group("gloo", rendezvous, rank=rank, world_size=RANKS)
    exact = torch.cat(train(rank, steps, dtype=torch.float64))
    eager, ours = (torch.cat(train(rank, steps, backend)) for backend in (None, "stitch"))
    parameters = ours[steps:]
    everywhere = [torch.empty_like(parameters) for _ in range(RANKS)]
    torch.distributed.all_gather(everywhere, parameters)
    errors = [(x - exact).abs() for x in (ours, eager)]
    rmse, worst = ([float(f(e)) for e in errors] for f in (torch.linalg.norm, torch.max))
    found = {
        "rmse_over_eager": rmse[0] / rmse[1],
        "worst_over_eager": worst[0] / worst[1],
        "largest_difference": float((ours - eager).abs().max()),
        "kernels": torch_stitch.counters()["kernels"],
        "ranks_that_differ": sum(not parameters.equal(other) for other in everywhere),
    }
    print(json.dumps(found), flush=True)
    torch.distributed.destroy_process_group()
    os._exit(0)  # torch's threads abort about one end in twenty, where all is eager's too


def train_ranks(steps):
    """Of each figure the worst rank's; a rank that fails or hangs is an error."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    text = "from tests.support import ranks; ranks.main_of_rank({}, {}, {})"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    how = {"env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [
        subprocess.Popen([sys.executable, "-c", text.format(rank, port, steps)], **how)
        for rank in range(RANKS)
    ]
    answers = []
    try:
        for process in processes:
            output, errors = process.communicate(timeout=SECONDS_OF_A_HANG + steps)
            assert process.returncode == 0, errors
            answers.append(json.loads(output.splitlines()[-1]))
    finally:
        for process in processes:
            process.kill()
    found = {name: max(answer[name] for answer in answers) for name in answers[0]}
    return found | {"steps": steps, "kernels": min(answer["kernels"] for answer in answers)}
