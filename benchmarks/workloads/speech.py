"""Speech: convolutions, bidirectional GRU layers with layer norms, a loss per frame."""

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.workloads.layers import Bidirectional, GruCell


class Speech(nn.Module):
    def __init__(self, mels, hidden, layers, classes):
        super().__init__()
        self.conv = nn.Conv1d(mels, hidden, 5, stride=2, padding=2)
        widths = [hidden] + [2 * hidden] * (layers - 1)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in widths)
        self.layers = nn.ModuleList(Bidirectional(GruCell, width, hidden) for width in widths)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, mels, labels):
        """mels [batch, mels, frames], labels [batch, frames / 2] -> the loss."""
        x = F.relu(self.conv(mels)).transpose(1, 2)
        for norm, layer in zip(self.norms, self.layers):
            x = layer(norm(x))
        return F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())


def speech(batch, mels, frames, hidden, layers, classes):
    labels = torch.randint(classes, (batch, (frames + 1) // 2))
    return Speech(mels, hidden, layers, classes), (torch.randn(batch, mels, frames), labels)
