"""Graphs of any size without a library call, for the time that planning takes.

A shape is what one step adds to the values of the steps before, and what it returns.
"""

import functools
from typing import NamedTuple

from torch_stitch import _core

ROWS, COLUMNS = 512, 768
OUTPUT_EVERY = 20  # steps of `mixed`


class Value(NamedTuple):
    """A node of a graph under construction, f32."""

    graph: "LargeGraph"
    node: _core.NodeId

    def map(self, op, *others):
        return self.graph.add(op, self, *others)

    def reduce(self, op, axis=1):
        """Broadcasts along the axis that is reduced."""
        builder = self.graph.builder
        kept = builder.type(self.node).shape
        kept[axis] = _core.Dim(1)
        reduced = self.graph.note(builder.reduce(op, self.node, [axis], "f32", False))
        return self.graph.note(builder.reshape(reduced.node, kept))

    __add__ = functools.partialmethod(map, "add")
    __sub__ = functools.partialmethod(map, "sub")
    __mul__ = functools.partialmethod(map, "mul")
    __truediv__ = functools.partialmethod(map, "div")


class LargeGraph:
    """Equal values are one, as where a graph is imported."""

    def __init__(self):
        self.builder, self.nodes, self.inputs = _core.Builder(), set(), 0
        self.x, self.mask = self.input(ROWS, COLUMNS), self.input(ROWS, COLUMNS)
        self.weight, self.bias = self.input(COLUMNS), self.input(COLUMNS)

    def note(self, node):
        self.nodes.add(node)
        return Value(self, node)

    def input(self, *shape):
        strides = [*shape[1:], 1]
        type_of = _core.TensorType("f32", shape, strides)
        self.inputs += 1
        return self.note(self.builder.input(f"x{self.inputs}", type_of, self.inputs - 1))

    def add(self, op, *operands):
        """Numbers are operands too."""
        nodes = [
            x.node if isinstance(x, Value) else self.note(self.builder.full("f32", x, 0)).node
            for x in operands
        ]
        return self.note(self.builder.pointwise(op, nodes))


def chain(graph, before):
    """Reductions, each of what is made of the one before."""
    last = before[-1]
    return (last - last.reduce("sum") * 0.0013).map("exp")


def wide(graph, before):
    """Softmaxes of tensors of their own."""
    exp = graph.input(64 + (len(before) - 1) % 7, COLUMNS).map("exp")
    return exp / exp.reduce("sum")


def norm(graph, value):
    off = value - value.reduce("sum") * 0.0013
    var = (off * off).reduce("sum") * 0.0013
    return off * (var + 1e-5).map("rsqrt") * graph.weight + graph.bias


def layers(graph, before):
    """What is between the library calls of a transformer's layer, without the calls."""
    last = before[-1]
    score = last * 0.125 + graph.mask
    exp = (score - score.reduce("amax")).map("exp")
    attended = norm(graph, exp / exp.reduce("sum") + last)
    gelu = attended * 0.5 * ((attended * 0.7071).map("erf") + 1.0)
    return norm(graph, gelu + attended)


def mixed(graph, before):
    """Rows, columns and values of several steps before."""
    last, older = before[-1], before[-4] if len(before) > 4 else graph.x
    row = (last + older).reduce("amax")
    column = (older * graph.mask).reduce("sum", axis=0)
    return (last * row + column).map("tanh")


SHAPES = {shape.__name__: shape for shape in (chain, wide, layers, mixed)}


def large_graph(shape, nodes):
    """A graph of about so many values.  All of `wide` are outputs, of `mixed` some."""
    graph = LargeGraph()
    before, outputs = [graph.x], []
    while len(graph.nodes) < nodes:
        step = len(before) - 1
        before.append(SHAPES[shape](graph, before))
        if shape == "wide" or (shape == "mixed" and step % OUTPUT_EVERY == 0):
            outputs.append(before[-1])
    if before[-1] not in outputs:
        outputs.append(before[-1])
    for output in outputs:
        graph.builder.output_tensor(output.node)
    return graph.builder.finish(graph.inputs)
