"""Speech recognition: an encoder like Conformer's, with a CTC head."""

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.workloads.layers import Attention, FeedForward

TOKENS = 1000


class ConvModule(nn.Module):
    def __init__(self, width, kernel):
        super().__init__()
        self.norm, self.into = nn.LayerNorm(width), nn.Linear(width, 2 * width)
        self.depthwise = nn.Conv1d(
            width, width, kernel, padding=kernel // 2, groups=width, bias=False
        )
        self.batch_norm, self.out = nn.BatchNorm1d(width), nn.Linear(width, width)

    def forward(self, x):
        x = F.glu(self.into(self.norm(x)), dim=-1).transpose(1, 2)
        x = F.silu(self.batch_norm(self.depthwise(x)))
        return self.out(x.transpose(1, 2))


class Block(nn.Module):
    def __init__(self, width, heads, kernel):
        super().__init__()
        self.first, self.last = (FeedForward(width, 4 * width, F.silu) for _ in range(2))
        self.attention, self.conv = Attention(width, heads), ConvModule(width, kernel)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))

    def forward(self, x):
        x = x + 0.5 * self.first(self.norms[0](x))
        normed = self.norms[1](x)
        x = x + self.attention(normed, normed)
        x = x + self.conv(x)
        x = x + 0.5 * self.last(self.norms[2](x))
        return self.norms[3](x)


class Encoder(nn.Module):
    def __init__(self, mels, width, heads, blocks, kernel):
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1), nn.ReLU(),
        )  # fmt: skip
        self.into = nn.Linear(width * (mels // 4), width)
        self.blocks = nn.ModuleList(Block(width, heads, kernel) for _ in range(blocks))
        self.head = nn.Linear(width, TOKENS)

    def forward(self, mels):
        """[batch, frames, mels] -> log probabilities [batch, frames / 4, TOKENS]."""
        x = self.convs(mels[:, None]).transpose(1, 2).flatten(2)
        x = self.into(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x).log_softmax(-1)


def asr(batch, frames, mels, **sizes):
    return Encoder(mels, **sizes), (torch.randn(batch, frames, mels),)
