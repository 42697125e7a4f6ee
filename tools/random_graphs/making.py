"""Makes nodes: picks an op and registered types, asks the op's rule for inputs, fits them to the signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import GraphError
from pocketgraph.graph import DType, opdefs
from random_graphs import array_rules as array_rules
from random_graphs import cell_rules as cell_rules
from random_graphs import gradient_rules as gradient_rules
from random_graphs import linear_rules as linear_rules
from random_graphs import network_rules as network_rules
from random_graphs import place_rules as place_rules
from random_graphs import quantized_rules as quantized_rules
from random_graphs import sparse_rules as sparse_rules
from random_graphs import sum_rules as sum_rules
from random_graphs import text_rules as text_rules
from random_graphs.growth import COMMON, Growth, UnfitError
from random_graphs.rules import ALIKE, BROADCASTING, RULES

Registered = Mapping[str, Sequence[Mapping[str, Sequence[int]]]]
FLOAT = DType.named("float")
UNUSED = ("resource", "variant", "float8_e5m2", "float8_e4m3fn", "int4", "uint4")


def known_ops() -> list[str]:
    """The ops that a rule or a family describes."""
    return sorted({*RULES, *BROADCASTING, *ALIKE})


def combinations(op: str, registered: Registered) -> list[dict[str, list[DType]]]:
    """For each CPU kernel of an op, the types that each type attribute may have."""
    definition = opdefs.find(op)
    if definition is None:
        return []
    found = []
    for kernel in registered.get(op, []):
        types: dict[str, list[DType]] = {}
        for name, attr in definition.attrs.items():
            if attr.kind != "type":
                continue
            try:
                numbers = kernel.get(name) or [t.number for t in attr.allowed if isinstance(t, DType)]
                kinds = [DType.of(number) for number in numbers] or [DType.named(n) for n in COMMON]
                types[name] = [kind for kind in kinds if kind.name not in UNUSED]
            except GraphError:
                types[name] = []
        if all(types.values()):
            found.append(types)
    return found


def make(g: Growth, op: str, choices: Sequence[Mapping[str, Sequence[DType]]]) -> str | None:
    """Adds a node of this op with random types of one of these combinations. Its name; None when nothing fitted."""
    types = {name: chosen(g, kinds) for name, kinds in g.pick(choices).items()}
    g.op, g.types = op, types
    before = (len(g.graph_nodes), dict(g.feeds), dict(g.pool), dict(g.dtypes))
    try:
        inputs, attrs = RULES[op](g) if op in RULES else family(g, op)
        inputs, attrs = fitted(g, op, inputs, attrs)
        return g.add(op, inputs, attrs)
    except UnfitError:
        del g.graph_nodes[before[0] :]
        g.feeds, g.pool, g.dtypes = before[1:]
        return None


def chosen(g: Growth, kinds: Sequence[DType]) -> DType:
    """One of the types, most often float32 when the graph is to be one for the fast engine."""
    if g.floats and FLOAT in kinds and g.chance(0.95):
        return FLOAT
    kind: DType = g.pick(kinds)
    return kind


def family(g: Growth, op: str) -> tuple[list[str], dict[str, Any]]:
    """Inputs of one shape, or of shapes that broadcast."""
    definition = opdefs.definition(op)
    inputs: list[str] = []
    attrs: dict[str, Any] = {}
    first: tuple[int, ...] | None = None
    for arg in definition.inputs:
        count = 1
        kinds = [arg.dtype or g.types.get(arg.type_attr)]
        if arg.number_attr:
            count = attrs.setdefault(arg.number_attr, g.int(1, 3))
            kinds *= count
        if arg.type_list_attr:
            kinds = [DType.named(g.pick(COMMON)) for _ in range(g.int(1, 3))]
            attrs[arg.type_list_attr] = tuple(kinds)
        for kind in kinds:
            if kind is None:
                raise UnfitError
            if first is None:
                inputs.append(g.tensor(kind))
                first = g.shape(inputs[-1])
            elif op in BROADCASTING:
                inputs.append(g.broadcast(kind, first))
            else:
                inputs.append(g.like(kind, first))
    if op in BROADCASTING and len(inputs) == 2 and g.chance():
        inputs.reverse()
        kinds = [g.dtypes[ref] for ref in inputs]
        if kinds[0] != kinds[1]:
            inputs.reverse()
    return inputs, attrs


def fitted(g: Growth, op: str, inputs: list[str], attrs: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """As many inputs as the op has, in its order, and only the attributes it has, the types among them."""
    definition = opdefs.definition(op)
    numbers = sum(
        attrs.get(a.number_attr, 1) if a.number_attr else 1 for a in definition.inputs if not a.type_list_attr
    )
    if op == "Concat":
        inputs = [inputs[-1], *inputs[:-1]]
    if not any(a.type_list_attr for a in definition.inputs):
        inputs = inputs[:numbers]
    kept = {name: value for name, value in attrs.items() if name in definition.attrs}
    for name, attr in definition.attrs.items():
        if attr.kind == "type":
            kept[name] = g.types[name]
    missing = [n for n, attr in definition.attrs.items() if attr.default is None and n not in kept]
    if missing:
        raise UnfitError
    return inputs, {n: v for n, v in kept.items() if n != "explicit_paddings" or v or "EXPLICIT" in str(kept)}


def grow(
    rng: np.random.Generator, ops: Sequence[str], table: Mapping[str, Any], size: int, wild: bool, floats: bool = False
) -> Growth:
    """A graph of about ``size`` nodes over these ops."""
    g = Growth(rng, wild, floats)
    made = 0
    for _ in range(size * 4):
        if made == size:
            break
        op = g.pick(ops)
        if table[op] and make(g, op, table[op]):
            made += 1
    return g
