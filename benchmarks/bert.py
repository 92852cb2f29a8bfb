"""BERT-base with its attention written out: matrix products, and between them what is stitched."""

import math

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, HIDDEN = 768, 12, 3072
POSITIONS = 512


class BertLayer(nn.Module):
    def __init__(self, width=WIDTH, heads=HEADS, hidden=HIDDEN):
        super().__init__()
        self.count = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.attention_norm, self.output_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(0.1)

    def heads(self, x):
        return x.view(*x.shape[:2], self.count, -1).transpose(1, 2)

    def forward(self, x, bias):
        query, key, value = (self.heads(f(x)) for f in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]) + bias
        seen = self.dropout(scores.softmax(-1)) @ value
        seen = seen.transpose(1, 2).reshape(x.shape)
        x = self.attention_norm(x + self.dropout(self.out(seen)))
        return self.output_norm(x + self.dropout(self.down(F.gelu(self.up(x)))))


class Bert(nn.Module):
    def __init__(self, layers=12, vocabulary=30522, width=WIDTH, heads=HEADS, hidden=HIDDEN):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(POSITIONS, width)
        self.kinds = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(BertLayer(width, heads, hidden) for _ in range(layers))
        self.pool = nn.Linear(width, width)

    def forward(self, ids, kinds, mask):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.words(ids) + self.kinds(kinds) + self.places(places))
        bias = (1 - mask[:, None, None, :].to(x.dtype)) * -10000
        for layer in self.layers:
            x = layer(x, bias)
        return x, torch.tanh(self.pool(x[:, 0]))


def draw_for_layer(batch, length):
    return torch.randn(batch, length, WIDTH), torch.zeros(batch, 1, 1, length)


def bert_layer(batch, length=128):
    """One layer and its inputs, for inference."""
    return BertLayer().eval(), draw_for_layer(batch, length)


def bert_base(batch=1, length=128, **sizes):
    """sizes: of Bert, else BERT-base's; the last quarter of each row is padding."""
    model = Bert(**sizes).eval()
    ids = torch.randint(model.words.num_embeddings, (batch, length))
    mask = (torch.arange(length) < length - length // 4).long().expand(batch, length)
    return model, (ids, torch.zeros_like(ids), mask.contiguous())
