"""What several workloads are made of: attention written out, feed-forward nets, recurrent cells."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def split_heads(x, heads):
    """[batch, length, width] -> [batch, heads, length, width / heads]."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x):
    return x.transpose(1, 2).flatten(2)


def attend(query, key, value, mask=None):
    """mask: True where a key may be seen."""
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1) @ value


def causal_mask(length, device):
    places = torch.arange(length, device=device)
    return places <= places[:, None]


class Attention(nn.Module):
    """Queries of x, keys and values of memory (x itself when it attends to itself)."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def keys_and_values(self, memory):
        return tuple(split_heads(f(memory), self.heads) for f in (self.key, self.value))

    def forward(self, x, memory, mask=None):
        return self.see(x, *self.keys_and_values(memory), mask)

    def see(self, x, key, value, mask=None):
        query = split_heads(self.query(x), self.heads)
        return self.out(join_heads(attend(query, key, value, mask)))


class FeedForward(nn.Module):
    def __init__(self, width, hidden, activation=F.gelu):
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.activation = activation

    def forward(self, x):
        return self.down(self.activation(self.up(x)))


class LstmCell(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.hidden = hidden
        self.of_input, self.of_state = nn.Linear(width, 4 * hidden), nn.Linear(hidden, 4 * hidden)

    def start(self, x):
        return (x.new_zeros(x.shape[0], self.hidden),) * 2

    def forward(self, x, state):
        h, c = state
        i, f, g, o = (self.of_input(x) + self.of_state(h)).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        return h, (h, c)


class GruCell(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.hidden = hidden
        self.of_input, self.of_state = nn.Linear(width, 3 * hidden), nn.Linear(hidden, 3 * hidden)

    def start(self, x):
        return x.new_zeros(x.shape[0], self.hidden)

    def forward(self, x, h, attention=None):
        """attention: of this step [batch, 1], scales how much is replaced (AUGRU)."""
        xr, xz, xn = self.of_input(x).chunk(3, -1)
        hr, hz, hn = self.of_state(h).chunk(3, -1)
        new = (xn + (xr + hr).sigmoid() * hn).tanh()
        replaced = (xz + hz).sigmoid()
        replaced = replaced if attention is None else replaced * attention
        h = (1 - replaced) * h + replaced * new
        return h, h


def unroll(cell, steps):
    """The states after each of the steps, which are tensors [batch, width]."""
    state, states = cell.start(steps[0]), []
    for x in steps:
        h, state = cell(x, state)
        states.append(h)
    return states


class Bidirectional(nn.Module):
    """[batch, steps, width] -> [batch, steps, 2 * hidden]."""

    def __init__(self, cell, width, hidden):
        super().__init__()
        self.ahead, self.back = cell(width, hidden), cell(width, hidden)

    def forward(self, x):
        steps = x.unbind(1)
        ahead, back = unroll(self.ahead, steps), unroll(self.back, steps[::-1])[::-1]
        return torch.cat((torch.stack(ahead, 1), torch.stack(back, 1)), -1)
