"""Whole steps of models on the stand-in driver: the host waits for nothing and copies nothing.

The driver counts what the runtime asks of it.  Library calls would wait too where they bring a
value to the host; those that a step makes are read from torch's profiler.
"""

import pytest
import torch
import torch.nn.functional as F
from test_device_headers import needs_nvrtc
from torch import nn
from torch.profiler import ProfilerActivity, profile

import torch_stitch
from benchmarks.bert import Bert
from tests.support.compare import compile_strictly
from torch_stitch import _core

pytestmark = [needs_nvrtc, pytest.mark.usefixtures("fresh")]
WORDS, WIDTH, HEADS, PLACES = 50, 32, 2, 16
# Ops by which a value of a GPU reaches the host, or tensors are copied.
WAITING = {f"aten::{name}" for name in "item _local_scalar_dense nonzero is_nonzero equal".split()}
COPYING = {f"aten::{name}" for name in "copy_ _to_copy to clone".split()}


class Decoder(nn.Module):
    """One token through a block of GPT-2; keys and values of those before it are kept in place."""

    def __init__(self, batch):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(PLACES, WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        kept = torch.zeros(2, batch, HEADS, PLACES, WIDTH // HEADS)
        self.register_buffer("kept", kept)

    def forward(self, token, place):
        x = self.words(token) + self.places(place)
        parts = self.qkv(self.norms[0](x)).view(-1, 3, HEADS, 1, WIDTH // HEADS).unbind(1)
        self.kept.index_copy_(3, place, torch.stack(parts[1:]))
        keys, values = self.kept
        scores = parts[0] @ keys.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
        is_later = torch.arange(PLACES, device=x.device) > place
        seen = scores.masked_fill(is_later, -torch.inf).softmax(-1) @ values
        x = x + self.out(seen.flatten(1))
        x = x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))
        return (self.norms[2](x) @ self.words.weight.t()).argmax(-1)


def train_bert(options):
    """A step of BERT that classifies each token."""
    model = Bert(1, WORDS, WIDTH, HEADS, 2 * WIDTH)
    ids, labels = torch.randint(WORDS, (2, 2, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def loss_of(ids, kinds, mask, labels):
        x, pooled = model(ids, kinds, mask)
        losses = F.cross_entropy((x @ model.words.weight.t()).flatten(0, 1), labels.flatten())
        return losses + pooled.square().mean()

    compiled = compile_strictly(loss_of, options=options)
    update = torch.compile(optimizer.step, backend="stitch", options=options)

    def step():
        compiled(ids, torch.zeros_like(ids), torch.ones_like(ids), labels).backward()
        update()
        optimizer.zero_grad()

    return step


def decode_with_gpt2(options):
    """A step that chooses the next token."""
    compiled = compile_strictly(Decoder(2).eval(), options=options)
    token, place = torch.tensor([3, 7]), torch.zeros(1, dtype=torch.long)

    def step():
        nonlocal token
        with torch.no_grad():
            token = compiled(token, place)
        place.add_(1)

    return step


STEPS = {"train BERT": train_bert, "decode with GPT-2": decode_with_gpt2}


def make_step(name, **options):
    """The step, after two that compile and lay out what stays: a barrier's counter is one fill."""
    step = STEPS[name](options | {"target": "h200", "simulate": True})
    for _ in range(2):
        step()
    return step


def counted(step):
    before = _core.simulated_host_calls()
    step()
    return {name: count - before[name] for name, count in _core.simulated_host_calls().items()}


def called_ops(profiled):
    """But for what ops call in turn, which is the CPU's way of them."""
    events = [(e.name, e.cpu_parent.name if e.cpu_parent else "") for e in profiled.events()]
    return {name for name, parent in events if not parent.startswith(("aten::", "torch_stitch::"))}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_neither_waits_nor_copies(name):
    step = make_step(name)
    counters = torch_stitch.counters()
    assert counters["kernels"] > 0 and counters["fallback_ops"] == 0, counters
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        assert counted(step) == {"waits": 0, "copies": 0}
    called = called_ops(profiled)
    assert {"aten::addmm", "aten::mm"} & called
    assert not called & (WAITING | COPYING)


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_is_to_look_at_once_waits(name):
    found = counted(make_step(name, check_indices="now"))
    assert found["waits"] > 0 and found["copies"] == 0
