"""Lowers Einsum: of two operands, as attention layers have it, to a product of matrices between changes of axes; of one
operand to a sum and a change of axes.

bqhd,bkhd->bhqk      becomes      [b, h, q, d] @ [b, h, d, k]

An axis that one operand alone has, and not the result, is summed over first.
"""

from __future__ import annotations

import math

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import lowers
from pocketgraph.litert.lowerings.math.reductions import reduced
from pocketgraph.litert.program import Value

MOST_BATCH_AXES = 3
"""LiteRT multiplies batches of matrices of up to five axes. Axes that are not joined need no reshape, which leaves
XNNPACK where two sizes are open."""


@lowers("Einsum", "XlaEinsum")
def einsum(emit: Emit, node: Node) -> None:
    equation = node.attr("equation", b"").decode().replace(" ", "")
    count = len(node.data_inputs)
    if count not in (1, 2) or equation.count("->") != 1:
        raise emit.unsupported(f"Einsum '{equation}' of {count} operands")
    operands = [emit.require(value, "float") for value in emit.inputs(0, count)]
    labels, wanted = _spelled_out(emit, equation, [len(operand.shape) for operand in operands])
    for place, operand in enumerate(operands):
        labels[place], operands[place] = _diagonal(emit, labels[place], operand)
    if count == 1:
        _of_one(emit, equation, operands[0], labels[0], wanted)
        return
    (first, second), (left, right) = labels, operands
    if left.constant is not None:
        first, second, left, right = second, first, right, left
    if len(set(wanted)) != len(wanted) or set(wanted) - {*first, *second}:
        raise emit.unsupported(f"Einsum '{equation}' repeats an axis of its result")
    first, left = _summed(emit, first, left, {*second, *wanted})
    second, right = _summed(emit, second, right, {*first, *wanted})
    both = [label for label in first if label in second and label in wanted]
    summed = [label for label in first if label in second and label not in wanted]
    rows, columns = (
        [label for label in term if label not in other] for term, other in ((first, second), (second, first))
    )
    sizes = {**dict(zip(second, right.shape, strict=True)), **dict(zip(first, left.shape, strict=True))}
    if any(sizes[label] != size for label, size in zip(second, right.shape, strict=True)):
        raise emit.unsupported(f"Einsum '{equation}' broadcasts an axis")

    def size(labels: list[str]) -> int:
        return math.prod(sizes[label] for label in labels)

    if right.constant is not None and not both:
        data = _arranged(emit, left, first, rows + summed, (size(rows), size(summed)))
        weights = _arranged(emit, right, second, columns + summed, (size(columns), size(summed)))
        shape: tuple[int, ...] = (size(rows), size(columns))
        made = emit.add("FULLY_CONNECTED", [data, weights, None], shape, activation="", keep_num_dims=False)
    else:
        kept = [sizes[label] for label in both] if 0 < len(both) <= MOST_BATCH_AXES else [size(both)]
        data = _arranged(emit, left, first, both + rows + summed, (*kept, size(rows), size(summed)))
        other = _arranged(emit, right, second, both + summed + columns, (*kept, size(summed), size(columns)))
        shape = (*kept, size(rows), size(columns))
        made = emit.add("BATCH_MATMUL", [data, other], shape, adj_x=False, adj_y=False)
    order = both + rows + columns
    made = emit.reshape(made, tuple(sizes[label] for label in order))
    emit.result(emit.reshape(_permuted(emit, made, order, list(wanted)), emit.output()[1]))


def _spelled_out(emit: Emit, equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """The labels of each operand's axes and of the result's, a digit for each axis that an ellipsis stands for."""
    terms, wanted = equation.split("->")
    labels = []
    most = 0  # axes that an ellipsis stands for; the last ones are those that operands have in common
    for term, rank in zip(terms.split(","), ranks, strict=True):
        covered = rank - len(term.replace("...", "")) if "..." in term else 0
        if not 0 <= covered < 10:
            raise emit.unsupported(f"Einsum '{equation}' does not fit operands of ranks {ranks}")
        labels.append(term.replace("...", "9876543210"[10 - covered :]))
        if len(labels[-1]) != rank:
            raise emit.unsupported(f"Einsum '{equation}' does not fit operands of ranks {ranks}")
        most = max(most, covered)
    return labels, wanted.replace("...", "9876543210"[10 - most :])


def _of_one(emit: Emit, equation: str, value: Value, labels: str, wanted: str) -> None:
    if len(set(wanted)) != len(wanted) or not set(wanted) <= set(labels):
        raise emit.unsupported(f"Einsum '{equation}' repeats an axis of its result")
    left, value = _summed(emit, labels, value, set(wanted))
    emit.result(emit.reshape(_permuted(emit, value, list(left), list(wanted)), emit.output()[1]))


def _diagonal(emit: Emit, labels: str, value: Value) -> tuple[str, Value]:
    """An operand and its labels with what lies at equal places of the axes that have one label."""
    for label in sorted(set(labels)):
        while labels.count(label) > 1:
            rest = labels.replace(label, "", 2)
            first = labels.index(label)
            second = labels.index(label, first + 1)
            others = [axis for axis in range(len(labels)) if axis not in (first, second)]
            value = emit.transpose(value, (*others, first, second))
            *outer, size, same = value.shape
            if size != same:
                raise emit.unsupported(f"axes of {size} and {same} elements have the label '{label}'")
            value = emit.reshape(value, (*outer, size * size))
            places = emit.const(np.arange(size) * (size + 1), np.int32)
            value = emit.add("GATHER", [value, places], (*outer, size), axis=len(outer), batch_dims=0)
            labels = rest + label
    return labels, value


def _summed(emit: Emit, labels: str, value: Value, others: set[str]) -> tuple[str, Value]:
    """An operand and its labels without the axes that nothing else has, over which it is summed."""
    own = [axis for axis, label in enumerate(labels) if label not in others]
    if not own:
        return labels, value
    return "".join(label for label in labels if label in others), reduced(emit, "SUM", value, own, keep=False)


def _arranged(emit: Emit, value: Value, labels: str, order: list[str], shape: tuple[int, ...]) -> Value:
    """The operand with its axes in this order, some of them joined."""
    return emit.reshape(_permuted(emit, value, list(labels), order), shape)


def _permuted(emit: Emit, value: Value, labels: list[str], order: list[str]) -> Value:
    if labels == order:
        return value
    return emit.transpose(value, tuple(labels.index(label) for label in order))
