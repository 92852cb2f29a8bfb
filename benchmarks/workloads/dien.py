"""Deep interest evolution network: will a user who clicked on these items click on this one?"""

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.workloads.layers import GruCell, unroll


class Dice(nn.Module):
    """A PReLU whose step is soft, and where the inputs' mean is."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm1d(width, affine=False)
        self.slope = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        share = self.norm(x).sigmoid()
        return share * x + (1 - share) * self.slope * x


class Dien(nn.Module):
    def __init__(self, items, kinds, embedding, hidden):
        super().__init__()
        width = 2 * embedding
        self.items, self.kinds = nn.Embedding(items, embedding), nn.Embedding(kinds, embedding)
        self.interest, self.evolution = GruCell(width, hidden), GruCell(hidden, hidden)
        self.query = nn.Linear(width, hidden)
        self.attention = nn.Sequential(
            nn.Linear(4 * hidden, 80), nn.Sigmoid(), nn.Linear(80, 40), nn.Sigmoid(),
            nn.Linear(40, 1),
        )  # fmt: skip
        self.head = nn.Sequential(
            nn.Linear(2 * width + hidden, 200), Dice(200), nn.Linear(200, 80), nn.PReLU(80),
            nn.Linear(80, 2),
        )  # fmt: skip

    def embed(self, items, kinds):
        return torch.cat((self.items(items), self.kinds(kinds)), -1)

    def attend(self, query, states, mask):
        """The weight of each step [batch, steps]."""
        query = query[:, None].expand_as(states)
        features = torch.cat((query, states, query - states, query * states), -1)
        scores = self.attention(features)[..., 0]
        return scores.masked_fill(~mask, -1e9).softmax(-1)

    def forward(self, items, kinds, item, kind, mask):
        """The log probabilities of the two answers, and the auxiliary loss of the first GRU."""
        history, target = self.embed(items, kinds), self.embed(item, kind)
        steps = history.unbind(1)
        states = torch.stack(unroll(self.interest, steps), 1)
        weights = self.attend(self.query(target), states, mask)
        h = self.evolution.start(target)
        for x, weight in zip(states.unbind(1), weights.unbind(1)):
            _, h = self.evolution(x, h, weight[:, None])
        total = (history * mask[..., None]).sum(1)
        answer = self.head(torch.cat((target, total, h), -1)).log_softmax(-1)
        return answer, self.auxiliary_loss(states, history, mask)

    def auxiliary_loss(self, states, history, mask):
        """A state should resemble the next item more than another user's."""
        width = min(states.shape[-1], history.shape[-1])
        states, following = states[:, :-1, :width], history[:, 1:, :width]
        liked = (states * following).sum(-1)
        other = (states * following.roll(1, 0)).sum(-1)
        losses = -(F.logsigmoid(liked) + F.logsigmoid(-other))
        return (losses * mask[:, 1:]).sum() / mask.sum()


def dien(batch, history, items, kinds, embedding, hidden):
    lengths = torch.randint(1, history + 1, (batch, 1))
    mask = torch.arange(history) < lengths
    ids = (torch.randint(n, (batch, history)) for n in (items, kinds))
    target = (torch.randint(n, (batch,)) for n in (items, kinds))
    return Dien(items, kinds, embedding, hidden), (*ids, *target, mask)
