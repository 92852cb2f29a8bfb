"""Attention decoder of neural machine translation, all positions at once."""

import torch
from torch import nn

from benchmarks.workloads.layers import Attention, FeedForward, causal_mask


class DecoderLayer(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.own, self.other = Attention(width, heads), Attention(width, heads)
        self.feed = FeedForward(width, hidden, torch.relu)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))

    def forward(self, x, memory, mask):
        x = self.norms[0](x + self.own(x, x, mask))
        x = self.norms[1](x + self.other(x, memory))
        return self.norms[2](x + self.feed(x))


class Decoder(nn.Module):
    def __init__(self, layers, width, heads, hidden):
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(width, heads, hidden) for _ in range(layers))

    def forward(self, x, memory):
        mask = causal_mask(x.shape[1], x.device)
        for layer in self.layers:
            x = layer(x, memory, mask)
        return x


def nmt(batch, length, width, heads, hidden, layers):
    x, memory = (torch.randn(batch, length, width) for _ in range(2))
    return Decoder(layers, width, heads, hidden), (x, memory)
