"""Text in images: convolutions, two bidirectional LSTM layers, a CTC head."""

import torch
from torch import nn

from benchmarks.workloads.layers import Bidirectional, LstmCell

# (width over the base of 64, batch norm, window of the pooling that follows)
CONVS = (
    (1, False, (2, 2)),
    (2, False, (2, 2)),
    (4, False, None),
    (4, False, (2, 1)),
    (8, True, None),
    (8, True, (2, 1)),
)


class Crnn(nn.Module):
    def __init__(self, base, hidden, classes):
        super().__init__()
        layers, width = [], 1
        for scale, is_normed, pool in CONVS:
            conv = nn.Conv2d(width, scale * base, 3, padding=1, bias=not is_normed)
            layers.append(conv)
            width = scale * base
            layers += [nn.BatchNorm2d(width)] if is_normed else []
            layers.append(nn.ReLU())
            layers += [nn.MaxPool2d(pool)] if pool else []
        layers += [nn.Conv2d(width, width, (2, 1)), nn.ReLU()]
        self.convs = nn.Sequential(*layers)
        self.first = Bidirectional(LstmCell, width, hidden)
        self.between = nn.Linear(2 * hidden, hidden)
        self.second = Bidirectional(LstmCell, hidden, hidden)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, image):
        """[batch, 1, 32, width] -> log probabilities [batch, width / 4, classes]."""
        x = self.convs(image).squeeze(2).transpose(1, 2)
        x = self.second(self.between(self.first(x)))
        return self.head(x).log_softmax(-1)


def crnn(batch, width, base, hidden, classes):
    return Crnn(base, hidden, classes), (torch.randn(batch, 1, 32, width),)
