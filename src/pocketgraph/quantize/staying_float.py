"""Which operations go on computing in float for other reasons than the noise of their codes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pocketgraph.errors import UsageError, did_you_mean
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantize.harm import scores, work
from pocketgraph.quantize.operators import KINDS, Kind

LAST = ("SOFTMAX", "LOG_SOFTMAX", "LOGISTIC")
FEW_ROWS = 16  # of a normalization, which are never dear
WIDE_ROW = 8  # numbers; of so many, a normalization in float takes less time than one of codes
ROW = 500  # eight-bit multiplications that a row of a normalization in float takes as long as, about
DEAR = 0.1  # of the program's time
MOST_SCORES = 1 << 16  # of a last layer that gives its results in float
LITTLE = 0.02  # share of the program's multiplications that preparing the data may take


def last_normalizations(program: Program) -> list[Operation]:
    """The normalizations at the outputs: in float they lose nothing, and mostly cost next to nothing.

    Where they would be much of a program's time, as that of each place of a picture in a small network, they are not
    among these: LiteRT looks the exponentials of codes up, which is faster for a few classes.
    """
    producers = program.producers()
    total = sum(work(operation) for operation in program.operations)
    found = []
    for output in program.outputs:
        before = producers.get(output)
        while before is not None and before.code == "RESHAPE" and before.inputs[0] is not None:
            before = producers.get(before.inputs[0])
        if before is not None and before.code in LAST:
            rows = 1 if before.code == "LOGISTIC" else before.outputs[0].size // max(before.outputs[0].shape[-1], 1)
            is_wide = before.code != "LOGISTIC" and before.outputs[0].shape[-1] >= WIDE_ROW
            if is_wide or rows <= FEW_ROWS or ROW * rows <= DEAR * total:
                found.append(before)
    return found


def preparation(program: Program) -> list[Operation]:
    """What is computed from the inputs before the first layer with weights.

    There, numbers of any unit come in side by side, which one scale cannot hold, and there is next to nothing to gain.
    Empty where it is work, or where data are only moved about.
    """
    behind: set[Value] = set()
    found = []
    for operation in program.operations:
        if KINDS.get(operation.code) is Kind.WEIGHTED or any(value in behind for value in operation.inputs):
            behind.update(operation.outputs)
        else:
            found.append(operation)
    computes = any(KINDS.get(operation.code) is not Kind.SAME for operation in found)
    total = sum(work(operation) for operation in program.operations)
    return found if computes and sum(work(operation) for operation in found) <= LITTLE * total else []


def float_ends(
    program: Program, coded: Sequence[Operation], harm: Mapping[Value, float], keep: Collection[Operation]
) -> list[Operation]:
    """Last layers that compute with eight-bit weights and a quantized operand, but give their results in float.

    The scores of samples not seen reach farther than those seen, and codes would cut off just what decides. Where there
    is one row of scores it costs nothing; where there are many, it is done when their codes would make more noise than
    everything else together.
    """
    ends = set(scores(program))
    layers = [operation for operation in coded if KINDS[operation.code] is Kind.WEIGHTED]
    total = sum(harm.values())
    found = []
    for operation in layers:
        value = operation.outputs[0]
        if operation.code not in ("CONV_2D", "FULLY_CONNECTED") or value not in ends or operation in keep:
            continue
        is_loud = harm.get(value, 0.0) > total / 2 and value.size <= MOST_SCORES
        is_one_row = value.size == value.shape[-1] and len(layers) > 1
        if is_loud or is_one_row:
            found.append(operation)
    return found


def named(program: Program, names: Sequence[str]) -> list[Operation]:
    """The operations that make the tensors or compute the nodes of these names.

    Raises:
        UsageError: there is no such tensor or node.
    """
    by_name: dict[str, Operation] = {}
    for operation in program.operations:
        for name in (*operation.nodes, *(value.name for value in operation.outputs)):
            by_name[name] = operation
    for name in names:
        if name not in by_name:
            raise UsageError(f"--keep: the model has no layer '{name}'", hint=did_you_mean(name, by_name))
    return [by_name[name] for name in names]
