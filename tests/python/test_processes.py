"""Forks, ranks and many shapes: what a process does around compiled graphs (R12, R26 to R28)."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.support import soak

ROOT = Path(__file__).parents[2]
RANKS = 2
STEPS = 4

def run(text, *arguments):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", text, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def expect_success(*processes):
    for process in processes:
        _, errors = process.communicate(timeout=400)
        assert process.returncode == 0, errors


def train_rank(rank, port, backend=None):
    """Parameters after a few steps under DistributedDataParallel."""
    torch.manual_seed(0)
    layers = torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 3)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
    call = torch.compile(model, backend=backend) if backend else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        x = torch.randn(6, 8, generator=torch.Generator().manual_seed(10 * step + rank))
        optimizer.zero_grad()
        call(x).square().mean().backward()
        optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


def main_of_rank(rank, port):
    rendezvous = f"tcp://127.0.0.1:{port}"
    torch.distributed.init_process_group("gloo", rendezvous, rank=rank, world_size=RANKS)
    eager, ours = train_rank(rank, port), train_rank(rank, port, "stitch")
    for a, b in zip(eager, ours):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
        everywhere = [torch.empty_like(b) for _ in range(RANKS)]
        torch.distributed.all_gather(everywhere, b)
        assert all(b.equal(other) for other in everywhere)
    torch.distributed.destroy_process_group()
    os._exit(0)  # torch's threads abort about one end in twenty, where all is eager's too


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")
def test_two_ranks_on_gloo_train_as_eager_does():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    text = "import sys; from tests.python import test_processes as t; t.main_of_rank({}, {})"
    expect_success(*(run(text.format(rank, port)) for rank in range(RANKS)))


def test_many_shapes_leave_no_memory_files_or_threads(fresh):
    found = soak.call_with_shapes(600)
    assert found["wrong"] == 0 and found["files"] <= 0 and found["threads"] <= 0, found
    assert found["growth_mib"] <= soak.MOST_GROWTH_MIB, found


def test_a_call_gives_the_same_bits_each_time(fresh):
    assert soak.count_unequal_runs(20) == 0
