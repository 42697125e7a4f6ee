"""FunctionDef: what a stored function takes and gives, and a copy of it with other types.

Source: tensorflow/core/framework/{function,op_def}.proto. The body's nodes are in Function.nodes; the rest of the
definition stays as it was encoded, and is edited here field by field.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager

from pocketgraph.errors import FormatError
from pocketgraph.graph import AttrValue, DType, Function, Node
from pocketgraph.graph.function_body import FunctionBody, flat_body
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import LEN, VARINT, Buffer, damage_told

SIGNATURE, RET, ATTR, CONTROL_RET, ARG_ATTR, RESOURCE_ARG = 1, 4, 5, 6, 7, 8  # fields of FunctionDef
NAME, INPUT_ARG, OUTPUT_ARG = 1, 2, 3  # fields of OpDef, its signature
ARG_NAME, ARG_TYPE, ARG_TYPE_ATTR, ARG_HANDLES, ARG_FULL_TYPE = 1, 3, 4, 7, 17  # fields of OpDef.ArgDef


def arguments(function: Function) -> list[str]:
    """The names of a function's arguments, in order. Raises FormatError when the definition is damaged."""
    with _reading(function):
        return _argument_names(function.encoded, INPUT_ARG)


def results(function: Function) -> list[str]:
    """Which tensor of the body each result is, in order, such as ``MatMul:product:0`` or an argument's name.

    Raises:
        FormatError: the definition is damaged, or does not say it for some result.
    """
    data = function.encoded
    with _reading(function):
        entries = wire.spans(data, 0, len(data), RET)
        given = dict(_pair(data, start, stop) for start, stop in entries)
        names = _argument_names(data, OUTPUT_ARG)
    missing = [name for name in names if name not in given]
    if missing:
        raise FormatError(f"the result '{missing[0]}' has no value", where=f"function '{function.name}'")
    return [given[name] for name in names]


def result_names(function: Function) -> list[str]:
    """The names of a function's results, in order: a body says ``call:NAME:0`` of a node that calls the function.

    Raises:
        FormatError: the definition is damaged.
    """
    with _reading(function):
        return _argument_names(function.encoded, OUTPUT_ARG)


def body(
    function: Function, attrs: Mapping[str, AttrValue] | None = None, library: Mapping[str, Function] | None = None
) -> FunctionBody:
    """The function's body, ready to be copied in the place of a call.

    Args:
        attrs: the attributes that the call gives for the function's own.
        library: the functions that the body may call by name, a function's name in the place of an op.

    Raises:
        FormatError: the definition is damaged.
        GraphError: the body does not fit together.
    """
    data = function.encoded
    with _reading(function):
        entries = wire.spans(data, 0, len(data), CONTROL_RET)
        effects = [_pair(data, start, stop)[1].partition(":")[0] for start, stop in entries]
        types = _types(function, attrs or {}, OUTPUT_ARG)
    called = (
        {node.op: result_names(library[node.op]) for node in function.nodes if node.op in library} if library else {}
    )
    return flat_body(function, arguments(function), results(function), types, effects, attrs, called)


def argument_types(function: Function) -> list[DType]:
    """The element types of a function's arguments, in order; FormatError where the definition does not say them."""
    with _reading(function):
        return _types(function, {}, INPUT_ARG)


def result_types(function: Function) -> list[DType]:
    """The element types of a function's results, in order; FormatError where the definition does not say them."""
    with _reading(function):
        return _types(function, {}, OUTPUT_ARG)


def _types(function: Function, attrs: Mapping[str, AttrValue], kind_of_argument: int) -> list[DType]:
    types: list[DType] = []
    data = function.encoded
    for _, number, kind, start, stop in wire.fields(data, 0, len(data)):
        if (number, kind) != (SIGNATURE, LEN):
            continue
        for _, inner, inner_kind, a, b in wire.fields(data, start, stop):
            if (inner, inner_kind) != (kind_of_argument, LEN):
                continue
            dtype: AttrValue | None = None
            for _, field, field_kind, value, end in wire.fields(data, a, b):
                if (field, field_kind) == (ARG_TYPE, VARINT):
                    dtype = DType.of(value)
                elif (field, field_kind) == (ARG_TYPE_ATTR, LEN):
                    dtype = attrs.get(wire.text(data, value, end))
            if not isinstance(dtype, DType):
                what = "result" if kind_of_argument == OUTPUT_ARG else "argument"
                raise FormatError(f"the type of {what} {len(types)} is not known", where=f"function '{function.name}'")
            types.append(dtype)
    return types


def retyped(
    function: Function,
    name: str,
    nodes: Sequence[Node],
    *,
    argument_types: Mapping[int, DType],
    result_types: Mapping[int, DType],
    renamed: Mapping[str, str],
    further: tuple[str, DType, str] | None = None,
) -> Function:
    """The function under another name, with another body and other types.

    What it says of the shapes and handles of the retyped arguments is left out.

    Args:
        argument_types, result_types: new types by position.
        renamed: new names of tensors of the body, for the results.
        further: the name, the type and the tensor of one more result.

    Raises:
        FormatError: the definition is damaged.
    """
    data = function.encoded
    parts: list[bytes] = []
    with _reading(function):
        for at, number, kind, start, stop in wire.fields(data, 0, len(data)):
            if (number, kind) == (SIGNATURE, LEN):
                signature = _signature(data, start, stop, name, argument_types, result_types)
                if further is not None:
                    declared = wire.bytes_field(ARG_NAME, further[0]) + wire.number_field(ARG_TYPE, further[1].number)
                    signature += wire.bytes_field(OUTPUT_ARG, declared)
                parts.append(wire.bytes_field(number, signature))
            elif (number, kind) == (RET, LEN):
                key, value = _pair(data, start, stop)
                entry = wire.bytes_field(1, key) + wire.bytes_field(2, renamed.get(value, value))
                parts.append(wire.bytes_field(number, entry))
            elif not (kind == LEN and _speaks_of(data, number, start, stop, argument_types)):
                parts.append(data[at:stop])
        if further is not None:
            entry = wire.bytes_field(1, further[0]) + wire.bytes_field(2, further[2])
            parts.append(wire.bytes_field(RET, entry))
    return Function(name, tuple(nodes), b"".join(parts))


def _reading(function: Function) -> AbstractContextManager[None]:
    return damage_told("the definition is damaged", where=f"function '{function.name}'")


def _speaks_of(data: Buffer, number: int, start: int, stop: int, positions: Collection[int]) -> bool:
    """Whether a field tells the shapes or handles of the arguments at these positions."""
    if number == ATTR:
        return _pair(data, start, stop, key_only=True)[0] == "_input_shapes"
    return number in (ARG_ATTR, RESOURCE_ARG) and _index(data, start, stop) in positions


def _argument_names(data: Buffer, kind_of_argument: int) -> list[str]:
    names = []
    for _, number, kind, start, stop in wire.fields(data, 0, len(data)):
        if (number, kind) == (SIGNATURE, LEN):
            for _, inner, inner_kind, a, b in wire.fields(data, start, stop):
                if (inner, inner_kind) == (kind_of_argument, LEN):
                    names.append(_pair(data, a, b, key_only=True)[0])
    return names


def _signature(
    data: Buffer, start: int, stop: int, name: str, inputs: Mapping[int, DType], outputs: Mapping[int, DType]
) -> bytes:
    parts = [wire.bytes_field(NAME, name)]
    counts = {INPUT_ARG: 0, OUTPUT_ARG: 0}
    for at, number, kind, value, end in wire.fields(data, start, stop):
        if (number, kind) == (NAME, LEN):
            continue
        types = {INPUT_ARG: inputs, OUTPUT_ARG: outputs}.get(number)
        if types is None or kind != LEN:
            parts.append(data[at:end])
            continue
        dtype = types.get(counts[number])
        counts[number] += 1
        parts.append(data[at:end] if dtype is None else wire.bytes_field(number, _argument(data, value, end, dtype)))
    return b"".join(parts)


def _argument(data: Buffer, start: int, stop: int, dtype: DType) -> bytes:
    dropped: Collection[int] = (ARG_TYPE, ARG_HANDLES, ARG_FULL_TYPE)
    kept = b"".join(data[at:end] for at, number, _, _, end in wire.fields(data, start, stop) if number not in dropped)
    return kept + wire.number_field(ARG_TYPE, dtype.number)


def _pair(data: Buffer, start: int, stop: int, *, key_only: bool = False) -> tuple[str, str]:
    """The strings in fields 1 and 2 of a message, such as an entry of a map; only the first with ``key_only``."""
    texts = {1: "", 2: ""}
    for _, number, kind, value, end in wire.fields(data, start, stop):
        if kind == LEN and (number == 1 or (number == 2 and not key_only)):
            texts[number] = wire.text(data, value, end)
    return texts[1], texts[2]


def _index(data: Buffer, start: int, stop: int) -> int:
    """The key of an entry of a map from numbers."""
    numbers = [value for _, number, kind, value, _ in wire.fields(data, start, stop) if (number, kind) == (1, VARINT)]
    return numbers[-1] if numbers else 0
