"""Every op's signature: inputs, outputs, attributes and their defaults, from TensorFlow 1.15 and 2.21 together.

The table is ``opdefs.jsonl.gz``, made by ``tools/build_opdefs.py``, of two gzip members: the ops that LiteRT's programs
are made of, which are unpacked first, and all others. Each holds one JSON list a line, sorted by op,
``[name, inputs, outputs, attributes, more]``. An argument is ``[name, type, number_attr, is_ref]``, its type a type's
name, ``$T`` for the attribute that holds it, or ``*T`` for the attribute that holds a list of types. An attribute is
``[name, kind, {default, allowed, newer, minimum, since}]``. What is empty at the end is left out. Lines are decoded
when their op is asked for.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from pocketgraph.errors import GraphError, did_you_mean
from pocketgraph.graph.attr import AttrValue, Func
from pocketgraph.graph.dtype import DType
from pocketgraph.graph.model_file_graph import ONNX_PREFIX, PREFIX, TYPES
from pocketgraph.graph.node import Node
from pocketgraph.graph.record import Record
from pocketgraph.graph.shape import Shape
from pocketgraph.graph.tensor import Tensor
from pocketgraph.package_data import content_beside

BOTH, OLD, NEW = "", "1.15", "2.x"
GZIP = 31  # zlib's name for its format; gzip itself takes longer to import than the table to read


class Arg(Record):
    """One input or output, which may stand for several tensors.

    Attributes:
        name: its name in the op's signature.
        dtype: the element type where the signature fixes it.
        type_attr: else the attribute that holds the type.
        number_attr: the attribute that says how many tensors of that type there are; "" means one.
        type_list_attr: the attribute that lists a type for each tensor.
        is_ref: whether it is a reference to a variable.
    """

    name: str
    dtype: DType | None = None
    type_attr: str = ""
    number_attr: str = ""
    type_list_attr: str = ""
    is_ref: bool = False


class AttrDef(Record):
    """One attribute.

    Attributes:
        name: its name.
        kind: what it holds: ``int``, ``float``, ``bool``, ``string``, ``type``, ``shape``, ``tensor``, ``func`` or
            ``list(…)`` of one of them.
        default: the value where a node leaves it out; None when a node must have it.
        allowed: the types or strings it may hold; empty when any.
        newer: those of them that TensorFlow 1.15 refuses, although it knows the attribute.
        minimum: the smallest number, or the shortest list; None when any.
        since: the first version that knows it: "1.15" for that one or earlier, or "2.x".
    """

    name: str
    kind: str
    default: AttrValue | None = None
    allowed: tuple[DType | bytes, ...] = ()
    minimum: int | None = None
    since: str = OLD
    newer: tuple[DType | bytes, ...] = ()


class OpDef(Record):
    """One op, by the newest definition that there is.

    Attributes:
        name: the op type.
        inputs, outputs: the arguments in order.
        attrs: the attributes by name, in the definition's order.
        stateful: whether it may give different results for the same inputs, or has effects.
        only: "1.15" or "2.x" when only that version knows the op.
    """

    name: str
    inputs: tuple[Arg, ...]
    outputs: tuple[Arg, ...]
    attrs: Mapping[str, AttrDef]
    stateful: bool = False
    only: str = BOTH

    @property
    def written_defaults(self) -> dict[str, AttrValue]:
        """The defaults that may be written into a graph, by attribute.

        Those that TensorFlow 1.15 does not know, of an op that it knows, are not among them: it refuses to load a graph
        that has them.
        """
        return {
            name: attr.default
            for name, attr in self.attrs.items()
            if attr.default is not None and (attr.since == OLD or self.only == NEW)
        }


@cache
def find(op: str) -> OpDef | None:
    """The op's signature, or None when neither version has such an op and no user gave one."""
    line = _line(op)
    return _decode(json.loads(line)) if line else _GIVEN.get(op)


_GIVEN: dict[str, OpDef] = {}
"""The signatures of ops that users have defined."""


def give(op: str, definition: OpDef | None) -> None:
    """Defines an op that TensorFlow does not have; None takes the definition away."""
    if definition is None:
        _GIVEN.pop(op, None)
    else:
        _GIVEN[op] = definition
    find.cache_clear()


def given() -> frozenset[str]:
    """The ops that users have defined."""
    return frozenset(_GIVEN)


def definition(op: str) -> OpDef:
    """The op's signature.

    Raises:
        GraphError: there is no such op.
    """
    found = find(op)
    if found is None:
        raise GraphError(f"there is no op called '{op}'", hint=did_you_mean(op, names()))
    return found


def is_stateful(op: str) -> bool:
    """Whether an op may give different results for the same inputs, or has effects; one that nobody knows may."""
    found = find(op)
    return found is None or found.stateful


_UPDATES = ("Assign", "Scatter", "Apply", "ResourceApply", "ResourceScatter", "SparseApply", "ResourceSparseApply",
            "CountUpTo", "ResourceCountUpTo", "StridedSliceAssign", "ResourceStridedSliceAssign")  # fmt: skip
"""Not a trait: how the names of ops begin that assign to variables."""


def updates_variable(op: str) -> bool:
    """Whether an op changes the variable that is its first input."""
    definition = find(op) if op.startswith(_UPDATES) else None
    if definition is None or not definition.inputs:
        return False
    first = definition.inputs[0]
    return first.is_ref or (first.dtype is not None and first.dtype.name == "resource")


def wrong_count(node: Node, count: int) -> str:
    """Says that a node does not take so many data inputs; "" where it does, or does not say how many its lists have."""
    definition = find(node.op)
    if definition is None:
        return ""
    wanted, said = 0, []
    for arg in definition.inputs:
        attr = arg.number_attr or arg.type_list_attr
        value = node.attrs.get(attr, ()) if attr else 1
        size = len(value) if isinstance(value, tuple) and value else value
        if not isinstance(size, int):
            return ""
        wanted += size
        said.append(f"{arg.name}: {attr}={size}" if attr else arg.name)
    if count == wanted:
        return ""
    inputs = f"{wanted} input{'' if wanted == 1 else 's'}"
    return f"the {node.op} takes {inputs} ({', '.join(said) or 'none'}), not {count}"


def names() -> tuple[str, ...]:
    """All ops, sorted; behind them those that users have defined."""
    lines = (*_common()[0].splitlines(), *_others().splitlines())
    return (*sorted(line[2 : line.index('"', 2)] for line in lines if line), *_GIVEN)


def attr_or_default(node: Node, name: str) -> AttrValue:
    """A node's attribute, or the op's default where the node leaves it out.

    Raises:
        GraphError: the node lacks it and the op has no default, or is unknown.
    """
    value = node.attrs.get(name)
    if value is None:
        found = find(node.op)
        described = found.attrs.get(name) if found else None
        value = described.default if described else None
        if value is None:
            raise GraphError(f"the {node.op} has no attribute '{name}'", where=f"node '{node.name}'")
    return value


def output_dtypes(node: Node) -> tuple[DType, ...]:
    """The type of each output of a node, in order.

    Raises:
        GraphError: the op is unknown, or the node lacks an attribute that tells.
    """
    listed = node.attrs.get(TYPES) if node.op.startswith((PREFIX, ONNX_PREFIX)) else None
    if isinstance(listed, tuple):
        return listed
    args = definition(node.op).outputs
    if len(args) == 1:
        return arg_dtypes(node, args[0])
    return tuple([dtype for arg in args for dtype in arg_dtypes(node, arg)])


def known_output_dtypes(node: Node) -> tuple[DType, ...] | None:
    """The type of each output, or None when the op is unknown or its attributes do not tell."""
    if TYPES not in node.attrs and find(node.op) is None:
        return None  # an error would look for ops with similar names, which takes 20 ms
    try:
        return output_dtypes(node)
    except GraphError:
        return None


def input_dtypes(node: Node) -> tuple[DType, ...]:
    """The type that each data input of a node should have, in order; errors as for ``output_dtypes``."""
    return tuple(dtype for arg in definition(node.op).inputs for dtype in arg_dtypes(node, arg))


def arg_dtypes(node: Node, arg: Arg) -> tuple[DType, ...]:
    """The types of the tensors that one argument of a node stands for; errors as for ``output_dtypes``."""
    if arg.type_list_attr:
        listed = attr_or_default(node, arg.type_list_attr)
        if not isinstance(listed, tuple) or not all(isinstance(dtype, DType) for dtype in listed):
            raise _wrong_kind(node, arg.type_list_attr, "a list of types")
        types: tuple[DType, ...] = listed
    else:
        dtype = arg.dtype or attr_or_default(node, arg.type_attr)
        if not isinstance(dtype, DType):
            raise _wrong_kind(node, arg.type_attr, "a type")
        types = (dtype,)
        if arg.number_attr:
            number = attr_or_default(node, arg.number_attr)
            if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= MOST:
                raise _wrong_kind(node, arg.number_attr, f"a number from 0 to {MOST:,}")
            types *= number
    return tuple(dtype.ref for dtype in types) if arg.is_ref else types


MOST = 1 << 20  # tensors that one argument may stand for; a file may claim any number


def _wrong_kind(node: Node, attr: str, wanted: str) -> GraphError:
    return GraphError(f"the attribute '{attr}' of the {node.op} is not {wanted}", where=f"node '{node.name}'")


@cache
def _common() -> tuple[str, bytes]:
    """The first lines of the table, and those that are still packed."""
    data = content_beside(__file__, "opdefs.jsonl.gz")
    member = zlib.decompressobj(wbits=GZIP)
    return member.decompress(data).decode("ascii"), member.unused_data


@cache
def _others() -> str:
    return zlib.decompress(_common()[1], wbits=GZIP).decode("ascii")


def _line(op: str) -> str:
    """The op's line, empty when there is none."""
    if not op or '"' in op or "\n" in op:
        return ""
    return _line_in(_common()[0], op) or _line_in(_others(), op)


def _line_in(table: str, op: str) -> str:
    low, high = 0, len(table)
    while low < high:  # lines are sorted, and looking at all takes a tenth of a millisecond
        start = table.rfind("\n", 0, (low + high) // 2) + 1
        stop = table.find("\n", start)
        stop = stop if stop >= 0 else len(table)
        name = table[start + 2 : table.find('"', start + 2)]
        if name == op:
            return table[start:stop]
        if name < op:
            low = stop + 1
        else:
            high = start
    return ""


def _decode(entry: list[Any]) -> OpDef:
    name, inputs, outputs, attrs, more = entry if len(entry) == 5 else [*entry, {}]
    only = more.get("only", BOTH)
    described = [_attr(attr, NEW if only == NEW else OLD) for attr in attrs]
    return OpDef(
        name,
        tuple(_arg(*arg) for arg in inputs),
        tuple(_arg(*arg) for arg in outputs),
        MappingProxyType({attr.name: attr for attr in described}),
        stateful=bool(more.get("stateful")),
        only=only,
    )


def _arg(name: str, kind: str, number_attr: str = "", is_ref: int = 0) -> Arg:
    if kind.startswith("*"):
        return Arg(name, type_list_attr=kind[1:], is_ref=bool(is_ref))
    if kind.startswith("$"):
        return Arg(name, type_attr=kind[1:], number_attr=number_attr, is_ref=bool(is_ref))
    return Arg(name, DType.named(kind), number_attr=number_attr, is_ref=bool(is_ref))


def _attr(entry: list[Any], since: str) -> AttrDef:
    name, kind, more = entry if len(entry) == 3 else [*entry, {}]
    member = kind.removeprefix("list(").removesuffix(")")
    return AttrDef(
        name,
        kind,
        _value(kind, more["default"]) if "default" in more else None,
        tuple(_value(member, value) for value in more.get("allowed", ())),
        more.get("minimum"),
        more.get("since", since),
        tuple(_value(member, value) for value in more.get("newer", ())),
    )


def _value(kind: str, value: Any) -> Any:
    """A value of this kind from its JSON."""
    if kind.startswith("list("):
        return tuple(_value(kind[5:-1], member) for member in value)
    if kind == "string":
        return value.encode("latin-1")
    if kind == "type":
        return DType.named(value)
    if kind == "shape":
        return Shape(value)
    if kind == "tensor":
        dtype, shape, values = value
        return Tensor.from_numpy(np.array(values).reshape(shape), DType.named(dtype))
    if kind == "float":
        return float(value)
    return Func(value) if kind == "func" else value
