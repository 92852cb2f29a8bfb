"""An AdamW step over the parameters of GPT-2, which are stepped in place."""

import torch
from torch import nn

from benchmarks.subgraphs import adamw_foreach


def gpt2_shapes(layers, width, vocabulary, positions):
    shapes = [(vocabulary, width), (positions, width)]
    for _ in range(layers):
        shapes += [(width,), (width,), (3 * width, width), (3 * width,), (width, width), (width,)]
        shapes += [(width,), (width,), (4 * width, width), (4 * width,), (width, 4 * width)]
        shapes += [(width,)]
    return [*shapes, (width,), (width,)]


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.step, _ = adamw_foreach(torch.float32, 0, 1, 1)

    def forward(self, params, grads, means, squares, step):
        return self.step(params, grads, means, squares, step)


def adamw_step(layers, width, vocabulary, positions):
    shapes = gpt2_shapes(layers, width, vocabulary, positions)
    params, grads, means = ([torch.randn(shape) for shape in shapes] for _ in range(3))
    return Step(), (params, grads, means, [torch.rand(shape) for shape in shapes], torch.ones(()))
