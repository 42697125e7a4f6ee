"""Gradients of ops that join tensors or take them apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.graph.dtype import INT32

Many = Sequence[str | None]


gradient("ConcatV2")(lambda op: [*_parts(op, op.inputs[:-1], len(op.inputs) - 1), None])
gradient("Concat")(lambda op: [None, *_parts(op, op.inputs[1:], 0)])


def _parts(op: NodeGradient, values: Sequence[str], axis_input: int) -> list[str]:
    """The gradient of a concatenation, cut into what belongs to each of the values."""
    axis = int(op.needs_value(axis_input, "its axis"))
    shapes = [op.static(ref) for ref in values]
    sizes = [shape[axis] if shape.rank else None for shape in shapes]
    if None not in sizes:
        parts = op.add("SplitV", op.grad, op.const(sizes), op.const(axis), num_split=len(values))
        return [parts if port == 0 else f"{parts}:{port}" for port in range(len(values))]
    held = [op.shape(ref) for ref in values]
    offsets = op.add("ConcatOffset", op.const(axis if axis >= 0 else axis % op.rank(op.output())), held)
    return [
        op.add("Slice", op.grad, offsets if port == 0 else f"{offsets}:{port}", shape)
        for port, shape in enumerate(held)
    ]


@gradient("Pack")
def pack(op: NodeGradient) -> Many:
    parts = op.add("Unpack", op.grad, num=len(op.inputs), axis=op.attr("axis"))
    return [parts if port == 0 else f"{parts}:{port}" for port in range(len(op.inputs))]


gradient("Unpack")(lambda op: op.add("Pack", _all(op), axis=op.attr("axis")))
gradient("Split")(lambda op: (None, op.add("ConcatV2", _all(op), op.inputs[0])))
gradient("SplitV")(lambda op: op.add("ConcatV2", _all(op), op.inputs[2]))


def _all(op: NodeGradient) -> list[str]:
    return [op.grad_of(port) for port in range(len(op.grads))]


@gradient("Tile")
def tile(op: NodeGradient) -> str:
    """Cut into its repetitions, which are summed."""
    rank = op.rank(op.inputs[0])
    if rank == 0:
        return op.grad
    shape = op.shape_of_input(0)
    pairs = op.add("Pack", [op.cast(op.inputs[1], INT32), shape], axis=1)
    apart = op.add("Reshape", op.grad, op.add("Reshape", pairs, op.const([-1])))
    total = op.add("Sum", apart, op.const(np.arange(0, 2 * rank, 2)))
    return total if op.static(op.inputs[0]).rank is None else op.add("Reshape", total, shape)


@gradient("BroadcastTo")
def broadcast(op: NodeGradient) -> str:
    own = op.shape_of_input(0)
    axes = op.add("BroadcastGradientArgs", own, op.shape(op.output()))
    return op.add("Reshape", op.add("Sum", op.grad, axes), own)


@gradient("Fill")
def fill(op: NodeGradient) -> Many:
    rank = op.add("Rank", op.grad)
    return None, op.add("Sum", op.grad, op.add("Range", op.const(0), rank, op.const(1)))
