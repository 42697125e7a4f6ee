"""What a weighted operator multiplies its weights with, as rows of a matrix."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Operation
from pocketgraph.quantization.core import operator_rules


def row_count(operation: Operation) -> int:
    """How many rows one sample has."""
    result = operation.outputs[0]
    return result.size // result.shape[-1]


def sampled_rows(operation: Operation, most: int, rng: np.random.Generator) -> Array:
    """Which rows of a sample to look at: all, or ``most`` of them by chance, in order."""
    count = row_count(operation)
    return np.arange(count) if count <= most else np.sort(rng.choice(count, most, replace=False))


def rows_read(operation: Operation) -> Hashable:
    """What tells which rows of which operand a layer reads: layers of which it is equal read the same."""
    options = sorted((name, value) for name, value in operation.options.items() if name != "activation")
    return operator_rules.data(operation), operation.code, operator_rules.weights(operation).shape[1:], repr(options)


def im2col(operation: Operation, values: Array, at: Array) -> Array:
    """Some rows of the operand.

    Returns:
        float32 [rows, products of one output] for CONV_2D and FULLY_CONNECTED, in the order of the weights' elements;
        [rows, height * width, output channels] for DEPTHWISE_CONV_2D.
    """
    kernel = operator_rules.weights(operation)
    if operation.code == "FULLY_CONNECTED":
        return values.reshape(-1, kernel.shape[1])[at].astype(np.float32, copy=False)
    height, width = kernel.shape[1:3]
    options, padded = operation.options, _padded(operation, values, height, width)
    _, rows, columns, _ = operation.outputs[0].shape
    batch, row, column = np.unravel_index(at, (len(values), rows, columns))
    taken = np.empty((len(at), height * width, values.shape[3]), np.float32)
    for place, (down, right) in enumerate(np.ndindex(height, width)):
        at_row = row * options["stride_h"] + down * options["dilation_h"]
        taken[:, place] = padded[batch, at_row, column * options["stride_w"] + right * options["dilation_w"]]
    if operation.code == "DEPTHWISE_CONV_2D":
        return np.repeat(taken, options["multiplier"], axis=2) if options["multiplier"] > 1 else taken
    return taken.reshape(len(at), -1)


def products(operation: Operation, rows: Array, values: Array) -> Array:
    """What a layer with these weights makes of rows of its operand, without bias, float [rows, output channels]."""
    if operation.code == "DEPTHWISE_CONV_2D":
        result: Array = np.einsum("rij,ij->rj", rows, values.reshape(-1, values.shape[3]).astype(rows.dtype))
        return result
    product: Array = rows @ values.reshape(len(values), -1).T.astype(rows.dtype)
    return product


def is_grouped(operation: Operation) -> bool:
    """Whether a CONV_2D's filters see only a part of the channels each."""
    return (
        operation.code == "CONV_2D"
        and operator_rules.weights(operation).shape[3] != operator_rules.data(operation).shape[3]
    )


def _padded(operation: Operation, values: Array, height: int, width: int) -> Array:
    """The operand with zeros around it where the windows reach beyond it."""
    options = operation.options
    if options["padding"] != "SAME":
        return values
    borders = [(0, 0)]
    for size, reach, stride in (
        (values.shape[1], (height - 1) * options["dilation_h"] + 1, options["stride_h"]),
        (values.shape[2], (width - 1) * options["dilation_w"] + 1, options["stride_w"]),
    ):
        total = max((-(-size // stride) - 1) * stride + reach - size, 0)
        borders.append((total // 2, total - total // 2))
    return np.pad(values, [*borders, (0, 0)]) if np.any(borders) else values
