"""Codes for values that an activation keeps between known bounds, where finding ranges while running costs too much.

Around a depthwise convolution there is too little to multiply for the search for the range of each value to pay. But
between two RELU6 no search is needed: everything lies from 0 to 6, whose codes are as fine as those that the original
kernels give to a result before it is clipped, unless that is less than 6 wide.

    x ─CONV_2D+RELU6─ y ─DEPTHWISE_CONV_2D+RELU6─ z
becomes
    x ─CONV_2D+RELU6─QUANTIZE─ y8 ─DEPTHWISE_CONV_2D+RELU6─ z8 ─DEQUANTIZE─
"""

from __future__ import annotations

from pocketgraph.graph.dtype import FLOAT, INT8
from pocketgraph.litert.operator_traits import CONVOLUTIONS
from pocketgraph.litert.program import Operation, Program, Quantization, Value

CLIP, BOUND = "RELU6", 6.0
FROM_ZERO = Quantization((BOUND / 255,), (-128,))


def add_bounded_grids(program: Program) -> bool:
    """Puts QUANTIZE and DEQUANTIZE behind clipped layers next to depthwise ones; returns whether there are any.

    A layer only gains when both what goes in and what comes out are codes. Of the other operators none is touched.
    """
    makers = program.producers()
    readers = program.consumers()
    bounded = {value for value, maker in makers.items() if maker.code in CONVOLUTIONS and _is_clipped(maker)}
    mixing = {o for o in program.operations if o.code == "CONV_2D" and o.may_code and _is_between(o, bounded)}
    depthwise = set()
    for operation in program.operations:
        if operation.code == "DEPTHWISE_CONV_2D" and _is_between(operation, bounded):
            source, weights = operation.operands[:2]
            beside = [makers[source], *readers.get(operation.outputs[0], ())]
            if weights.constant is not None and mixing.intersection(beside):
                depthwise.add(operation)
    coded = depthwise | {o for o in mixing if _touches(o, depthwise)}
    on_grid = {value for o in coded for value in (o.inputs[0], o.outputs[0]) if value is not None}
    for operation in depthwise:
        operation.may_code = True
    done = []
    for operation in program.operations:
        done.append(operation)
        value = operation.outputs[0]
        if value in on_grid:
            free = Value(f"{value.name}/free", FLOAT, value.shape)
            codes = Value(f"{value.name}/codes", INT8, value.shape, None, FROM_ZERO)
            operation.outputs = [free]
            done += [Operation("QUANTIZE", [free], [codes]), Operation("DEQUANTIZE", [codes], [value])]
    program.operations = done
    return bool(on_grid)


def _is_clipped(operation: Operation) -> bool:
    return operation.options["activation"] == CLIP and operation.outputs[0].dtype is FLOAT


def _is_between(operation: Operation, bounded: set[Value]) -> bool:
    return operation.inputs[0] in bounded and operation.outputs[0] in bounded


def _touches(operation: Operation, others: set[Operation]) -> bool:
    """Whether one of the others makes what the operation reads or reads what it makes."""
    return any(operation.inputs[0] is o.outputs[0] or operation.outputs[0] is o.inputs[0] for o in others)
