"""Copies of values that LiteRT's own kernels, those beside XNNPACK, would overwrite before they are read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pocketgraph.litert.operator_traits import ARITHMETIC, IN_PLACE
from pocketgraph.litert.program import Operation, Program, Value

SCALAR = 4  # bytes: what is no larger is never shared


def with_own_memory(program: Program) -> Program:
    """The program, in which what works in place works on a copy where others read the operand's memory later.

    LiteRT 2.3 counts the readers of an operand and of the value whose memory that has, but not those between them: in
    ``a = t + 2; b = reshape(a); c = b * 2; y = a - c``, where nothing else reads t, all of a, b and c get t's memory.
    """
    uses = program.uses()
    uses.update(program.inputs)
    last = {value: at for at, each in enumerate(program.operations) for value in each.inputs if value is not None}
    home: dict[Value, Value] = {}
    sharing: dict[Value, list[Value]] = {}
    operations: list[Operation] = []
    for at, operation in enumerate(program.operations):
        result, source = operation.outputs[0], _shared(operation, program.inputs, uses)
        if source is not None and result not in program.outputs:
            root = home.get(source, source)
            if operation.code == "RESHAPE" or uses[root] == 1:
                if operation.code != "RESHAPE" and any(last.get(each, at) > at for each in sharing.get(root, ())):
                    root = Value("", source.dtype, source.shape, None, source.quantization)
                    operations.append(Operation("MAXIMUM", [source, source], [root], nodes=operation.nodes))
                    operands = [root if each is source else each for each in operation.inputs]
                    operation = operation.replace(inputs=operands)
                home[result] = root
                sharing.setdefault(root, [root]).append(result)
        operations.append(operation)
    grown = len(operations) > len(program.operations)
    return Program(program.inputs, program.outputs, operations) if grown else program


def _shared(operation: Operation, given: Sequence[Value], uses: Mapping[Value, int]) -> Value | None:
    """The operand whose memory LiteRT would give to the first result, as far as the operand alone tells."""
    if operation.code != "RESHAPE" and operation.code not in IN_PLACE:
        return None
    result = operation.outputs[0]
    for value in operation.operands[: 2 if operation.code in ARITHMETIC else 1]:
        if value.constant is not None or value in given:
            continue
        size = value.size * value.dtype.size
        alone = uses[value] == 1 and size == result.size * result.dtype.size and size > SCALAR
        if alone or operation.code == "RESHAPE":
            return value
    return None
