"""Transformer of 2017: its training loss, and one step of greedy decoding with a cache."""

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.workloads.layers import Attention, FeedForward, causal_mask
from benchmarks.workloads.nmt import DecoderLayer


class EncoderLayer(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.own, self.feed = Attention(width, heads), FeedForward(width, hidden, torch.relu)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, x):
        x = self.norms[0](x + self.own(x, x))
        return self.norms[1](x + self.feed(x))


class Transformer(nn.Module):
    """One embedding serves both sides and the output."""

    def __init__(self, layers, width, heads, hidden, vocabulary):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(512, width)
        self.encoder = nn.ModuleList(EncoderLayer(width, heads, hidden) for _ in range(layers))
        self.decoder = nn.ModuleList(DecoderLayer(width, heads, hidden) for _ in range(layers))

    def embed(self, ids, places):
        return self.words(ids) * self.words.embedding_dim**0.5 + self.places(places)

    def forward(self, source, target):
        """The loss of each next token, labels smoothed."""
        places = torch.arange(source.shape[1], device=source.device)
        memory = self.embed(source, places)
        for layer in self.encoder:
            memory = layer(memory)
        x = self.embed(target, places)
        mask = causal_mask(x.shape[1], x.device)
        for layer in self.decoder:
            x = layer(x, memory, mask)
        logits = F.linear(x[:, :-1], self.words.weight)
        return F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), label_smoothing=0.1)


class GreedyStep(nn.Module):
    """The next token after `token`; keys and values of each layer are written at `place`."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, token, place, caches, memories):
        x = self.model.embed(token, place)
        for layer, (keys, values), (seen_keys, seen_values) in zip(
            self.model.decoder, caches, memories
        ):
            key, value = layer.own.keys_and_values(x)
            keys.index_copy_(2, place, key)
            values.index_copy_(2, place, value)
            mask = torch.arange(keys.shape[2], device=x.device) <= place
            x = layer.norms[0](x + layer.own.see(x, keys, values, mask))
            x = layer.norms[1](x + layer.other.see(x, seen_keys, seen_values))
            x = layer.norms[2](x + layer.feed(x))
        logits = F.linear(x, self.model.words.weight).log_softmax(-1)
        return logits.argmax(-1), logits


def transformer_loss(batch, length, vocabulary, **sizes):
    source, target = (torch.randint(vocabulary, (batch, length)) for _ in range(2))
    return Transformer(vocabulary=vocabulary, **sizes), (source, target)


def transformer(batch, length, vocabulary, **sizes):
    model = GreedyStep(Transformer(vocabulary=vocabulary, **sizes))
    shape = batch, sizes["heads"], length, sizes["width"] // sizes["heads"]

    def keys_and_values():
        return [[torch.randn(shape) for _ in range(2)] for _ in range(sizes["layers"])]

    token, place = torch.randint(vocabulary, (batch, 1)), torch.tensor([length // 2])
    return model, (token, place, keys_and_values(), keys_and_values())
