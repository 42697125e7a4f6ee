"""Constants of equal content become one: the steps of a written-out loop then share what is packed of their weights.

XNNPACK packs weights together with the bias, so steps with the same weights share what it packs only when their biases
are the same tensor too.
"""

from __future__ import annotations

from pocketgraph.litert.program import Program, Quantization, Value

SMALL = 64 << 10  # bytes; larger constants are shared by whoever makes them, and too many to look at here


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
