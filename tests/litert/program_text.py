"""Programs in text, for tests: an operation a line, ``y: float[1,4] = FULLY_CONNECTED(x, float[4,4], float[4])``."""

from __future__ import annotations

from collections import Counter

from pocketgraph.litert.program import Operation, Program, Value

FEW = 4  # whole numbers of a constant that are shown
LEFT_OUT = ("new_shape",)  # options that repeat an operand


def program_text(program: Program) -> list[str]:
    """The operations, in order.

    A constant is its value where that is one number or few whole ones, else its type and shape; ``#2`` tells the second
    one of a type and shape from the first.
    """
    constants: dict[Value, str] = {}
    counts: Counter[str] = Counter()

    def operand(value: Value | None) -> str:
        if value is None:
            return "none"
        if value.constant is None:
            return _name(value)
        if value not in constants:
            kind = _kind(value)
            counts[kind] += 1
            constants[value] = kind + (f"#{counts[kind]}" if counts[kind] > 1 else "")
        is_shown = value.size == 1 or (value.size <= FEW and value.dtype.is_integer)
        return str(value.constant.numpy().tolist()) if is_shown else constants[value]

    def line(operation: Operation) -> str:
        made = ", ".join(f"{_name(value)}: {_kind(value)}" for value in operation.outputs)
        given = {key: value for key, value in operation.options.items() if key not in LEFT_OUT and value not in ("", 0)}
        # a stride or dilation of 1 is what there is where nothing is said
        options = [f"{key}={value}" for key, value in given.items() if not (value == 1 and type(value) is int)]
        return f"{made} = {operation.code}({', '.join([*map(operand, operation.inputs), *options])})"

    return [line(operation) for operation in program.operations]


def _name(value: Value) -> str:
    return value.name.replace(":0", "")


def _kind(value: Value) -> str:
    return f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
