"""What is equal becomes one: operations, and constants.

Of constants, the steps of a written-out loop then share what is packed of their weights.

XNNPACK packs weights together with the bias, so steps with the same weights share what it packs only when their biases
are the same tensor too.
"""

from __future__ import annotations

from collections import defaultdict

from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.litert.writing.schema import OPERATORS

SMALL = 64 << 10  # bytes; larger constants are shared by whoever makes them, and too many to look at here


PURE = OPERATORS.keys() - {"CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "WHILE", "IF"}
"""Not a trait: operators of LiteRT that give the same for the same operands and options."""


def merge_equal_operations(program: Program) -> None:
    """Computes once what several operations compute of the same operands.

    Given:   a = PAD(x, [[0, 0], [1, 1]]); b = PAD(x, [[0, 0], [1, 1]])
             y = ADD(RELU(a), b)
    Result:  a = PAD(x, [[0, 0], [1, 1]])
             y = ADD(RELU(a), a)
    """
    alone: dict[tuple[object, ...], Operation | None] = {}  # with its computed operands; None: no more
    seen: dict[tuple[object, ...], list[Operation]] = defaultdict(list)
    replaced: dict[Value, Value] = {}
    kept = set(program.outputs)
    for operation in program.operations:
        operation.inputs = [None if value is None else replaced.get(value, value) for value in operation.inputs]
        if operation.code not in PURE or not kept.isdisjoint(operation.outputs):
            continue
        computed = operation.code, *[value for value in operation.inputs if value is None or value.constant is None]
        other = alone.setdefault(computed, operation)
        if other is operation:
            continue
        if other is not None:
            seen[_outline(other)].append(other)
            alone[computed] = None
        alike = seen[_outline(operation)]
        for earlier in alike:
            if all(_is_equal(*pair) for pair in zip(earlier.inputs, operation.inputs, strict=True)):
                replaced.update(zip(operation.outputs, earlier.outputs, strict=True))
                break
        else:
            alike.append(operation)
    if replaced:
        program.drop_unused()


def _outline(operation: Operation) -> tuple[object, ...]:
    """What equal operations have in common that is found without reading a constant."""
    operands = tuple(
        value if value is None or value.constant is None else (value.dtype.name, value.shape, value.quantization)
        for value in operation.inputs
    )
    results = tuple((value.dtype.name, value.shape, value.quantization) for value in operation.outputs)
    marks = operation.may_code, operation.whole, repr(sorted(operation.options.items()))
    return operation.code, operands, results, marks


def _is_equal(one: Value | None, other: Value | None) -> bool:
    """Whether two operands of the same outline are equal; large constants are where they are the same one."""
    if one is other:
        return True
    if one is None or other is None or one.constant is None or other.constant is None:
        return False
    if one.constant.nbytes > SMALL:
        return one.constant is other.constant
    return one.constant.numpy().tobytes() == other.constant.numpy().tobytes()


def share_constants(program: Program) -> None:
    """Reads one constant instead of several of the same type, shape and content."""
    first: dict[tuple[str, tuple[int, ...], Quantization | None, bytes], Value] = {}
    replaced: dict[Value, Value] = {}
    for operation in program.operations:
        for value in operation.inputs:
            if value is None or value.constant is None or value in replaced or value.constant.nbytes > SMALL:
                continue
            key = (value.dtype.name, value.shape, value.quantization, value.constant.numpy().tobytes())
            known = first.setdefault(key, value)
            if known is not value:
                replaced[value] = known
    program.substitute(replaced)


def bytes_repeated(program: Program) -> int:
    """The bytes of constants that further operations read again: weights of steps of a loop."""
    seen: set[Value] = set()
    total = 0
    for operation in program.operations:
        for value in operation.inputs[1:]:
            if value is not None and value.constant is not None and len(value.shape) > 1:
                total += value.constant.nbytes if value in seen else 0
                seen.add(value)
    return total
