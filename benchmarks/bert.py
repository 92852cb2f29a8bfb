"""BERT-base with its attention written out: matrix products, and between them what is stitched."""

import math

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, HIDDEN = 768, 12, 3072


class BertLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
        self.attention_norm, self.output_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.dropout = nn.Dropout(0.1)

    def heads(self, x):
        return x.view(*x.shape[:2], HEADS, -1).transpose(1, 2)

    def forward(self, x, bias):
        query, key, value = (self.heads(f(x)) for f in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / math.sqrt(WIDTH // HEADS) + bias
        seen = self.dropout(scores.softmax(-1)) @ value
        seen = seen.transpose(1, 2).reshape(x.shape)
        x = self.attention_norm(x + self.dropout(self.out(seen)))
        return self.output_norm(x + self.dropout(self.down(F.gelu(self.up(x)))))


class Bert(nn.Module):
    def __init__(self, layers=12, vocabulary=30522, positions=512):
        super().__init__()
        self.words = nn.Embedding(vocabulary, WIDTH)
        self.places = nn.Embedding(positions, WIDTH)
        self.kinds = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(BertLayer() for _ in range(layers))
        self.pool = nn.Linear(WIDTH, WIDTH)

    def forward(self, ids, kinds, mask):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.words(ids) + self.kinds(kinds) + self.places(places))
        bias = (1 - mask[:, None, None, :].to(x.dtype)) * -10000
        for layer in self.layers:
            x = layer(x, bias)
        return x, torch.tanh(self.pool(x[:, 0]))


def bert_layer(batch, length=128):
    """One layer and its inputs, for inference."""
    return BertLayer().eval(), (torch.randn(batch, length, WIDTH), torch.zeros(batch, 1, 1, length))


def bert_base(batch=1, length=128):
    ids = torch.randint(30522, (batch, length))
    return Bert().eval(), (ids, torch.zeros_like(ids), torch.ones_like(ids))
