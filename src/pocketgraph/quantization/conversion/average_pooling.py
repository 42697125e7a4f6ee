"""Averages over windows of int8 codes, in the form that LiteRT computes fastest.

XNNPACK has no average over windows of codes, and LiteRT's own kernel takes over ten times as long as

    x8 ─DEQUANTIZE─ AVERAGE_POOL_2D ─QUANTIZE─ y8

all three of which XNNPACK has. The average of everything is a MEAN, which XNNPACK does have on codes.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Value

HEIGHT_AND_WIDTH = (1, 2)


def average_pool_of_codes(
    operation: Operation, source: Value, result: Value, *, only_codes: bool
) -> list[Operation] | None:
    """Operations that do for codes what an AVERAGE_POOL_2D does; None when that operator is the one to take.

    Args:
        operation: the AVERAGE_POOL_2D on floats.
        source: its operand in codes, [batch, height, width, channels].
        result: its result in the same codes.
        only_codes: nothing may be computed in float, for devices that have none.
    """
    if _takes_all(operation, source, result):
        axes = Value(f"{result.name}/axes", INT32, (2,), Constant.of(np.array(HEIGHT_AND_WIDTH, np.int32)))
        return [Operation("MEAN", [source, axes], [result], {"keep_dims": True}, operation.nodes)]
    if only_codes:
        return None
    before = Value(f"{source.name}/numbers", FLOAT, source.shape)
    after = Value(f"{result.name}/numbers", FLOAT, result.shape)
    return [
        Operation("DEQUANTIZE", [source], [before]),
        Operation("AVERAGE_POOL_2D", [before], [after], dict(operation.options), operation.nodes),
        Operation("QUANTIZE", [after], [result]),
    ]


def _takes_all(operation: Operation, source: Value, result: Value) -> bool:
    """Whether one window holds every place, so that each channel has one average."""
    options = operation.options
    covers = options["filter_h"] >= source.shape[1] and options["filter_w"] >= source.shape[2]
    return covers and result.shape[1:3] == (1, 1) and not options["activation"]
