"""A loop of TensorFlow 1 becomes a Loop, or an LSTM or GRU where it is one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pocketgraph.exporting.onnx.element_types import plain_type
from pocketgraph.exporting.onnx.node_conversion import NodeConversion, common_shape
from pocketgraph.exporting.onnx.program import Body, OnnxValue
from pocketgraph.exporting.onnx.recurrent_loops import recurrent
from pocketgraph.exporting.onnx.scan_outputs import scanned_arrays
from pocketgraph.exporting.onnx.unsupported import UnsupportedInOnnx
from pocketgraph.graph import DType, Shape
from pocketgraph.graph.dtype import BOOL, INT64
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.engines import frames as loops
from pocketgraph.runtime.engines.frames import Loop
from pocketgraph.runtime.engines.needed import Item


def convert_loop(conversion: NodeConversion, loop: Loop) -> None:
    """Converts a loop of TensorFlow 1: the condition once before it, and at the end of every round."""
    members = {name: conversion.items[name] for name in loop.members}
    start = next(iter(members.values()))
    try:
        _convert(conversion, loop, members)
    except UnsupportedInOnnx as refusal:
        exits = [item for item in members.values() if item.node.op in loops.EXIT]
        blamed = conversion.items.get(refusal.node, start)
        conversion.refuse(blamed, refusal.reason)
        conversion.reasons.setdefault(blamed.node.name, refusal.reason)
        for item in exits:
            if conversion.frames[item.node.name] == loop.frame.parent:
                conversion.refuse(item, refusal.reason)


def _convert(conversion: NodeConversion, loop: Loop, members: Mapping[str, Item]) -> None:
    emit, frame = conversion.emit, loop.frame
    own, inner = loops.split(list(members), frame, conversion.items, conversion.frames)
    exits = [i for i in members.values() if i.node.op in loops.EXIT and conversion.frames[i.node.name] == frame.parent]
    own = [name for name in own if members[name] not in exits]
    heads: dict[str, tuple[Endpoint, Endpoint]] = {}
    for name in own:
        item = conversion.items[name]
        if item.node.op in loops.ENTER:
            outer = str(item.data[0])
            if conversion.is_a_tensor(item.data[0]):
                with emit.at(item.node):
                    emit.bound[f"{name}:0"] = emit.value(outer)
        if loops.is_loop_head(item, conversion.items):
            first = next(e for e in item.data if conversion.items[e.node].node.op not in loops.NEXT)
            again = next(e for e in item.data if conversion.items[e.node].node.op in loops.NEXT)
            heads[name] = (first, conversion.items[again.node].data[0])
    conditions = [name for name in own if conversion.items[name].node.op == "LoopCond"]
    if len(conditions) != 1:
        raise UnsupportedInOnnx("the loop has no condition of its own", loop.members[0])
    condition = conditions[0]
    rest = [n for n in own if n not in heads and conversion.items[n].node.op not in (*loops.ENTER, *loops.NEXT)]
    gate, _ = _needed_in(conversion, rest, [conversion.items[condition].data[0]], heads)
    carried = {n: pair for n, pair in heads.items() if conversion.is_a_tensor(Endpoint(n, 0))}
    if not gate.keys() <= set(rest):
        raise UnsupportedInOnnx("the loop's condition holds another loop", condition)
    with emit.at(conversion.items[condition].node):
        ends = recurrent(conversion.prepared, members, heads, emit)
    if ends is not None:
        for item in exits:
            left = _left_variable(conversion, item, heads)
            if left in ends:
                emit.bound[f"{item.node.name}:0"] = ends[left]
        return
    scanned = scanned_arrays(conversion.prepared, carried)
    initial = {name: emit.value(str(first)) for name, (first, _) in carried.items()}
    initial.update((name, _begun(conversion, value)) for name, value in initial.items() if name not in scanned)
    with emit.rebound({f"{name}:0": value for name, value in initial.items()}):
        conversion.region(list(gate), [], frozenset())
        begins = emit.made(emit.value(str(conversion.items[condition].data[0])))
    body = Body(outer=emit.body)
    turn = OnnxValue(emit.name(f"{condition}/turn"), INT64, Shape(()), body)
    goes_on = OnnxValue(emit.name(f"{condition}/holds"), BOOL, Shape(()), body)
    body.inputs += [turn, goes_on]
    with emit.inside(body):
        for name, value in initial.items():
            if name in scanned:
                continue
            shape = _carried_shape(conversion, name, value)
            inside = OnnxValue(emit.name(f"{name}/before"), value.dtype, shape, body)
            body.inputs.append(inside)
            emit.bound[f"{name}:0"] = inside
        for name, array in scanned.items():
            emit.bound[f"{name}:0"] = initial[name]
            emit.scanned[array.write] = None
        nodes, reached = _needed_in(conversion, rest, [last for _, last in heads.values()], heads)
        nested = [unit for unit in inner if not reached.isdisjoint(unit.members)]
        with emit.rebound({}):
            conversion.region([*nodes], nested, frozenset())
            following = {n: emit.made(emit.value(str(last))) for n, (_, last) in carried.items() if n not in scanned}
            pieces = {name: emit.scanned.pop(array.write) for name, array in scanned.items()}
            for name, value in following.items():
                following[name] = _as_before(conversion, value, emit.bound[f"{name}:0"])
        with emit.rebound({f"{name}:0": value for name, value in following.items()}):
            conversion.region(list(gate), [], frozenset())
            again_holds = emit.made(emit.value(str(conversion.items[condition].data[0])))
        body.outputs.append(conversion.own(body, again_holds))
        for value in following.values():
            body.outputs.append(conversion.own(body, value))
        for name, piece in pieces.items():
            if piece is None:
                raise UnsupportedInOnnx("an array is written in no round of its loop", name)
            body.outputs.append(conversion.own(body, emit.made(piece)))
    order = [*following, *pieces]
    shapes: list[Shape | Sequence[int | None] | None] = [
        common_shape(_carried_shape(conversion, n, initial[n]), value.shape) for n, value in following.items()
    ]
    types: list[DType | None] = [value.dtype for value in following.values()]
    for piece in pieces.values():
        assert piece is not None
        shapes.append(None if piece.shape.dims is None else Shape([None, *piece.shape]))
        types.append(piece.dtype)
    with emit.at(conversion.items[condition].node):
        operands: list[OnnxValue | None] = [None, begins, *(initial[name] for name in following)]
        made = dict(zip(order, emit.ops("Loop", operands, len(order), shapes, types, {"body": body}), strict=True))
    for item in exits:
        name = _left_variable(conversion, item, heads)
        if name in made:
            emit.bound[f"{item.node.name}:0"] = made[name]


def _as_before(conversion: NodeConversion, value: OnnxValue, before: OnnxValue) -> OnnxValue:
    return value if value.dtype is before.dtype else conversion.emit.cast(value, before.dtype)


def _carried_shape(conversion: NodeConversion, name: str, initial: OnnxValue) -> Shape:
    """The shape that a loop's variable has in every round."""
    dtype = conversion.prepared.inferred.dtype(f"{name}:0")
    if dtype is not None and plain_type(dtype) is initial.dtype and not conversion.emit.is_array(initial):
        return conversion.prepared.inferred.shape(f"{name}:0")
    return initial.shape  # an array keeps its size


def _begun(conversion: NodeConversion, value: OnnxValue) -> OnnxValue:
    """What a loop's variable begins as."""
    if not value.is_made and value.first is None:
        raise UnsupportedInOnnx("the shape of the array's elements is not known; state the shapes of the inputs")
    return conversion.emit.made(value)


def _left_variable(conversion: NodeConversion, item: Item, heads: Collection[str]) -> str:
    """The variable whose last value an Exit gives."""
    source = item.data[0].node
    for _ in range(len(conversion.items)):
        if source in heads:
            return source
        found = conversion.items[source]
        if found.node.op not in ("Switch", "Identity"):
            break
        source = found.data[0].node
    raise UnsupportedInOnnx("the loop gives something that is none of its variables", item.node.name)


def _needed_in(
    conversion: NodeConversion, names: Sequence[str], ends: Sequence[Endpoint], heads: Collection[str]
) -> tuple[dict[str, None], set[str]]:
    """Those of these nodes that compute the tensors ``ends``, in order; and all that do, in inner loops too."""
    seen: set[str] = set()
    waiting = [endpoint.node for endpoint in ends]
    while waiting:
        name = waiting.pop()
        if name in seen or name in heads or name not in conversion.items:
            continue
        seen.add(name)
        waiting.extend(endpoint.node for endpoint in conversion.items[name].data)
    return {name: None for name in names if name in seen}, seen
