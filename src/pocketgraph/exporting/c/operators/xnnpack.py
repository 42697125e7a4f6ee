"""The heavy operators by XNNPACK's own: made when the model is set up, and run from then on."""

from __future__ import annotations

import numpy as np

from pocketgraph.exporting.c.operators import codes
from pocketgraph.exporting.c.operators.convolution import FilterWindow, bias_of, range_of
from pocketgraph.exporting.c.operators.emitter_table import Emit, is_code
from pocketgraph.exporting.c.unit import Argument, Unit, array_of, operand
from pocketgraph.graph.dtype import FLOAT, INT8
from pocketgraph.litert.operator_traits import POOLS, WEIGHTED
from pocketgraph.litert.program import Operation, Value

KERNEL = "xnnpack.h"
DEPTHWISE_FLAG = 1  # XNN_FLAG_DEPTHWISE_CONVOLUTION: weights lie as [tap][channel]
TAPS_AT_ONCE, AVERAGED_AT_ONCE = (
    25,
    9,
)  # taps of a channel; above, XNNPACK goes over a window in parts, and wants memory


def emitter(operation: Operation) -> Emit | None:
    """What emits an operation by XNNPACK; None where a kernel of our own has to."""
    if operation.code in WEIGHTED:
        source, kernel = operation.inputs[:2]
        if source is None or kernel is None or source.constant is not None or kernel.constant is None:
            return None
        is_large = operation.code == "DEPTHWISE_CONV_2D" and kernel.shape[1] * kernel.shape[2] > TAPS_AT_ONCE
        if {source.dtype, operation.outputs[0].dtype} == {kernel.dtype} <= {FLOAT, INT8} and not is_large:
            return layer
    elif operation.code in POOLS:
        window = operation.options["filter_h"] * operation.options["filter_w"]
        most = AVERAGED_AT_ONCE if operation.code == "AVERAGE_POOL_2D" else window
        if operation.outputs[0].dtype is FLOAT and 1 < window <= most:
            return pool
    return None


def emit(unit: Unit, function: str, *arguments: Argument) -> None:
    """Makes an operator when the model is set up, and runs it in its turn."""
    number = len(unit.setups)
    unit.set_up(KERNEL, function, f"&m->operators[{number}]", *arguments)
    unit.call(KERNEL, "pg_xnn_run", f"m->operators[{number}]")


def layer(unit: Unit, operation: Operation) -> None:
    source, kernel, result = operand(operation, 0), operand(operation, 1), operation.outputs[0]
    is_deep = operation.code == "DEPTHWISE_CONV_2D"
    count = kernel.shape[3] if is_deep else kernel.shape[0]
    if operation.code == "FULLY_CONNECTED":
        rows, depth = result.size // count, kernel.shape[1]
        picture = Value(source.name, source.dtype, (1, 1, rows, depth))
        flat = Operation(operation.code, [picture], [Value(result.name, result.dtype, (1, 1, rows, count))])
        window, groups = FilterWindow(flat, picture, (1, 1)), 1
    else:
        window = FilterWindow(operation, source, (kernel.shape[1], kernel.shape[2]))
        groups = source.shape[3] if is_deep else source.shape[3] // kernel.shape[3]
    table = unit.table("pg_conv", window.fields(groups))
    flags = DEPTHWISE_FLAG if is_deep else 0
    weights = unit.constant(array_of(kernel), 64)
    if not is_code(source):
        bias = unit.constant(bias_of(operation, 2, count))
        emit(unit, "pg_xnn_conv_f32", table, range_of(unit, operation), flags, unit.at(source), weights, bias,
             unit.at(result))  # fmt: skip
        return
    own = codes.quantization(kernel)
    steps = np.broadcast_to(np.asarray(own.scales, np.float32), (count,))
    bias = unit.constant(bias_of(operation, 2, count).astype(np.int32))
    first, last = codes.ends(operation)
    fields = [codes.zero(source), codes.zero(result), first, last, codes.step(source), codes.step(result)]
    emit(unit, "pg_xnn_conv_s8", table, unit.table("pg_steps", fields), flags, unit.at(source), weights, bias,
         unit.constant(steps), unit.at(result))  # fmt: skip


def pool(unit: Unit, operation: Operation) -> None:
    source, result = operand(operation, 0), operation.outputs[0]
    window = FilterWindow(operation, source, (operation.options["filter_h"], operation.options["filter_w"]))
    name = "pg_xnn_max_pool_f32" if operation.code == "MAX_POOL_2D" else "pg_xnn_average_pool_f32"
    table = unit.table("pg_conv", window.fields())
    emit(unit, name, table, range_of(unit, operation), unit.at(source), unit.at(result))
