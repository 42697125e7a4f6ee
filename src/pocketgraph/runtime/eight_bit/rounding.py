"""Rounding to eight-bit codes in float operations, halves away from zero, in the order of the original."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pocketgraph.graph import Node, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.runtime.eight_bit.range_numbers import ALMOST_HALF


def rounded_values(node: Node, result: str, fresh: Callable[[str], str]) -> Iterator[Node]:
    """Nodes that round what a QuantizeV2 reads to the values of its codes.

    Args:
        node: a QuantizeV2 to quint8, MIN_FIRST, whose range is found while running.
        result: the name of the last of them.
        fresh: makes a name that no node has.
    """
    made: dict[str, str] = {}

    def do(name: str, op: str, *refs: str | float) -> Iterator[Node]:
        inputs = []
        for index, ref in enumerate(refs):
            if isinstance(ref, float):
                constant = const(fresh(f"{node.name}/{name}_{index}"), ref, FLOAT)
                yield constant
                ref = constant.name
            inputs.append(made.get(ref, ref))
        made[name] = result if name == "values" else fresh(f"{node.name}/{name}")
        yield Node(made[name], op, inputs, {"T": FLOAT})

    source, low, high = node.data_inputs[:3]
    yield from do("bottom", "Minimum", low, 0.0)
    yield from do("sizes_low", "Abs", low)
    yield from do("sizes_high", "Abs", high)
    yield from do("largest", "Maximum", "sizes_low", "sizes_high")
    yield from do("at_least_one", "Maximum", "largest", 1.0)
    yield from do("gap", "Mul", "at_least_one", 0.01)
    yield from do("least_top", "Add", "bottom", "gap")
    yield from do("above_zero", "Maximum", high, 0.0)
    yield from do("top", "Maximum", "above_zero", "least_top")
    yield from do("width", "Sub", "top", "bottom")
    yield from do("scale", "RealDiv", 255.0, "width")
    for part, of in (("start", "bottom"), ("levels", source)):
        yield from do(f"{part}_scaled", "Mul", of, "scale")
        yield from do(f"{part}_negative", "Minimum", f"{part}_scaled", 0.0)
        yield from do(f"{part}_down", "Sub", f"{part}_negative", ALMOST_HALF)
        yield from do(f"{part}_ceil", "Ceil", f"{part}_down")
        if part == "start":
            continue
        yield from do(f"{part}_positive", "Maximum", f"{part}_scaled", 0.0)
        yield from do(f"{part}_up", "Add", f"{part}_positive", ALMOST_HALF)
        yield from do(f"{part}_floor", "Floor", f"{part}_up")
        yield from do(part, "Add", f"{part}_ceil", f"{part}_floor")
    yield from do("last", "Add", "start_ceil", 255.0)
    yield from do("inside", "Minimum", "levels", "last")
    yield from do("values", "RealDiv", "inside", "scale")
