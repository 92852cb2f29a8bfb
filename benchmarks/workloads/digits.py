"""Small classics: logistic regression, recurrent nets over the rows of an image, word2vec."""

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.workloads.layers import Bidirectional, LstmCell, unroll


class Logistic(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.linear = nn.Linear(features, classes)

    def forward(self, x, labels):
        return F.cross_entropy(self.linear(x), labels)


class Rows(nn.Module):
    """The last state of an LSTM over the rows, in one direction or both."""

    def __init__(self, width, hidden, classes, is_bidirectional):
        super().__init__()
        self.is_bidirectional = is_bidirectional
        make = Bidirectional if is_bidirectional else (lambda cell, *sizes: cell(*sizes))
        self.cells = make(LstmCell, width, hidden)
        self.head = nn.Linear((1 + is_bidirectional) * hidden, classes)

    def forward(self, x, labels):
        if self.is_bidirectional:
            last = self.cells(x)[:, -1]
        else:
            last = unroll(self.cells, x.unbind(1))[-1]
        return F.cross_entropy(self.head(last), labels)


class SkipGram(nn.Module):
    """Noise words are scored beside the true one."""

    def __init__(self, vocabulary, width):
        super().__init__()
        self.inner, self.outer = (nn.Embedding(vocabulary, width) for _ in range(2))
        self.bias = nn.Embedding(vocabulary, 1)

    def forward(self, centre, context, noise):
        x = self.inner(centre)
        liked = (x * self.outer(context)).sum(-1) + self.bias(context)[:, 0]
        others = x @ self.outer(noise).t() + self.bias(noise)[:, 0]
        return -(F.logsigmoid(liked) + F.logsigmoid(-others).sum(-1)).mean()


def lr(batch, features, classes):
    inputs = torch.randn(batch, features), torch.randint(classes, (batch,))
    return Logistic(features, classes), inputs


def rnn(batch, steps, width, hidden, classes, is_bidirectional=False):
    inputs = torch.randn(batch, steps, width), torch.randint(classes, (batch,))
    return Rows(width, hidden, classes, is_bidirectional), inputs


def birnn(batch, steps, width, hidden, classes):
    return rnn(batch, steps, width, hidden, classes, is_bidirectional=True)


def word2vec(batch, vocabulary, width, negatives):
    ids = (torch.randint(vocabulary, (count,)) for count in (batch, batch, negatives))
    return SkipGram(vocabulary, width), tuple(ids)
