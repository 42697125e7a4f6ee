"""A Merge of TensorFlow 1 becomes an If, with others that choose by the same predicate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pocketgraph.exporting.onnx.node_conversion import NodeConversion
from pocketgraph.exporting.onnx.onnx_program import Body, OnnxValue
from pocketgraph.graph import DType, canonical
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import MERGE
from pocketgraph.runtime.engines import frames as loops
from pocketgraph.runtime.engines.compilation_units import Unit
from pocketgraph.runtime.unrolling.branch_conditions import Guard
from pocketgraph.runtime.unrolling.loop_shapes import common_shape


def convert_branches(
    conversion: NodeConversion, first: str, order: Sequence[Unit], within: frozenset[Guard]
) -> set[str]:
    """Converts a Merge into an If, together with others that choose by the same predicate; gives back which."""
    choice = conversion.guards.chosen_by(conversion.items[first])
    if choice is None:
        conversion.refuse(conversion.items[first], "it joins what no single condition parts")
        return {first}
    predicate = choice[0]
    joined = [first]
    for unit in order:
        if not isinstance(unit, str) or unit == first or conversion.items[unit].node.op not in MERGE:
            continue
        if conversion.guards.only_input(unit) is not None:
            continue
        other = conversion.guards.chosen_by(conversion.items[unit])
        is_same = other is not None and other[0] == predicate and conversion.guards.of(unit) <= within
        if is_same and f"{unit}:0" not in conversion.emit.bound and _is_ready(conversion, unit, within):
            joined.append(unit)
    results: dict[str, list[OnnxValue]] = {}
    bodies: dict[str, Body] = {}
    picks = {name: conversion.guards.chosen_by(conversion.items[name]) for name in joined}
    for side, key in ((True, "then_branch"), (False, "else_branch")):
        wanted = [pick[1] if side else pick[2] for pick in picks.values() if pick is not None]
        body = Body(outer=conversion.emit.body)
        inside = within | {Guard(predicate, side)}
        names = _on_branch(conversion, wanted, within, conversion.frames[first].depth)
        own, inner = loops.split(names, conversion.frames[first], conversion.items, conversion.frames)
        with conversion.emit.inside(body), conversion.emit.at(conversion.items[first].node):
            conversion.region(own, inner, inside)
            for endpoint in wanted:
                body.outputs.append(conversion.own(body, conversion.emit.value(str(endpoint))))
        bodies[key], results[key] = body, body.outputs
    node = conversion.items[first].node
    with conversion.emit.at(node):
        condition = conversion.emit.value(str(predicate))
        shapes = [common_shape(a.shape, b.shape) for a, b in zip(*results.values(), strict=True)]
        types: list[DType | None] = [value.dtype for value in results["then_branch"]]
        made = conversion.emit.ops("If", [condition], len(joined), shapes, types, bodies)
    for name, value in zip(joined, made, strict=True):
        conversion.emit.bound[f"{name}:0"] = value
        ends = conversion.guards.chosen_by(conversion.items[name])
        assert ends is not None
        taken = conversion.items[name].data.index(ends[1])
        with conversion.emit.at(conversion.items[name].node):
            if _reads_index(conversion, name):
                index = [conversion.emit.const(np.int32(taken)), conversion.emit.const(np.int32(1 - taken))]
                conversion.emit.bound[f"{name}:1"] = conversion.emit.op(
                    "Where", [condition, *index], [], index[0].dtype
                )
    return set(joined)


def _reads_index(conversion: NodeConversion, name: str) -> bool:
    consumers = conversion.prepared.graph.consumers.get(name, ())
    return Endpoint(name, 1) in conversion.prepared.outputs or any(
        canonical(ref) == f"{name}:1" for node in consumers for ref in node.data_inputs
    )


def _is_ready(conversion: NodeConversion, merge: str, within: frozenset[Guard]) -> bool:
    """Whether all that a Merge's branches take from outside of them is there."""
    depth = conversion.frames[merge].depth
    inside = set(_on_branch(conversion, conversion.items[merge].data, within, depth))
    for name in inside:
        for endpoint in conversion.items[name].data:
            if endpoint.node in inside or str(endpoint) in conversion.emit.bound:
                continue
            if conversion.emit.known(str(endpoint)) is None and conversion.is_a_tensor(endpoint):
                return False
    return True


def _on_branch(conversion: NodeConversion, ends: Iterable[Endpoint], within: frozenset[Guard], depth: int) -> list[str]:
    """The nodes that compute these tensors and run under more guards than ``within``, in a frame of this depth."""
    items = conversion.items

    def is_on_branch(name: str) -> bool:
        if name not in items or items[name].node.op == "Switch":
            return name in items
        is_in_loop = conversion.frames[name].depth > depth  # whose counter may begin with a constant, without guards
        return (is_in_loop or not conversion.guards.of(name) <= within) and f"{name}:0" not in conversion.emit.bound

    starts = (endpoint.node for endpoint in ends)
    found = set(closure(starts, lambda name: (endpoint.node for endpoint in items[name].data), is_on_branch))
    return [name for name in items if name in found]
