"""Takes the ranges of a quantization-aware training for those of its tensors, and its fake quantization away.

    x ─QUANTIZE─ DEQUANTIZE─ y      becomes      y, with the range of these codes

Eight-bit codes round as the training did; computed beside them, its rounding would cost many operations in float.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from types import MappingProxyType

import numpy as np

from pocketgraph.graph import Graph, Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.lowering import MAY_QUANTIZE
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.litert.rewriting.weight_folding import float_constant
from pocketgraph.pages.quantities import listed
from pocketgraph.quantization.core import operator_rules
from pocketgraph.quantization.core.observation import Observation
from pocketgraph.quantization.core.operator_rules import OperatorRule
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.value_range import HIGHEST, LOWEST, Range
from pocketgraph.quantization.program_pass import copied

RANGED = ("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
"""Not a trait: ops whose second and third operand are the range that training found."""
MOST_CUT = 0.1
"""How far values may lie beyond a trained range, of its width, where they may stay floats that nothing cuts off."""


def marked(graph: Graph) -> Graph:
    """The graph, with fake quantization to all codes of eight bits lowered to these codes."""

    def mark(node: Node) -> Node:
        is_whole = node.attr("num_bits", 8) == 8 and not node.attr("narrow_range", False)
        if node.op != "FakeQuantWithMinMaxVars" or not is_whole:
            return node
        return node.with_attrs(**{MAY_QUANTIZE: True})

    return graph.map_nodes(mark)


def collapsed_ranges_note(graph: Graph) -> str:
    """Which trained ranges hold no number but 0, or none at all, in a sentence; empty where none does."""
    collapsed = []
    for node in graph.nodes.values():
        if node.op in RANGED:
            low, high = (graph.constant(ref) for ref in node.data_inputs[1:3])
            if low is not None and high is not None and not (low.numpy() < high.numpy()).any():
                collapsed.append(f"{node.name} ({low.numpy().min():g} to {high.numpy().max():g})")
    if not collapsed:
        return ""
    return (
        f"warning: the trained range of {listed(collapsed)} has no width, so that no value passes it; train on, or "
        "freeze another checkpoint"
    )


def with_trained_ranges(
    program: Program, seen: Mapping[Value, Observation] = MappingProxyType({})
) -> tuple[Program, dict[Value, Range]]:
    """A program without its fake quantization, and the ranges that this had; the program stays as it is.

    Args:
        program: lowered from a graph that was ``marked``.
        seen: what values its tensors took; what cuts much of them off becomes a bound, for readers without codes.
    """
    result, ranges = copied(program), dict[Value, Range]()
    producers, consumers, replaced = result.producers(), result.consumers(), dict[Value, Value]()
    gone: list[Operation] = []
    for back in list(result.operations):
        codes = producers.get(back.inputs[0]) if back.code == "DEQUANTIZE" and back.inputs[0] is not None else None
        source = codes.inputs[0] if codes is not None and codes.code == "QUANTIZE" else None
        observed = seen.get(source) if source is not None else None
        while source in replaced:
            source = replaced[source]
        grid = back.inputs[0].quantization if back.inputs[0] is not None else None
        if source is None or grid is None or source.dtype is not FLOAT or source in result.outputs:
            continue
        (value,), before, span = back.outputs, producers.get(source), _range(grid)
        if observed is not None and _is_cut(observed.range, span):
            ranges[value] = span
            if before is not None and consumers[source] == [codes]:
                ranges[source] = span
                _bound(result, back, source, span)
            continue
        if before is not None:  # the result keeps its name
            before.outputs = [value if each is source else each for each in before.outputs]
            producers[value], replaced[source] = before, value
        elif value not in result.outputs:
            replaced[value] = source
        else:
            continue
        ranges[value if before is not None else source] = span
        gone.append(back)
    result.drop(gone)
    result.substitute(replaced)
    result.drop_unused()
    for operation in result.operations:  # what moves numbers gives none that are not on their grid
        spans = [ranges.get(value) for value in operator_rules.float_operands(operation) if value.constant is None]
        if operator_rules.OPERATOR_RULES.get(operation.code) is OperatorRule.SAME and spans and None not in spans:
            span = reduce(Range.union, (each for each in spans if each is not None))
            ranges.update((value, span) for value in operation.outputs if value.dtype is FLOAT)
    return (result, ranges) if ranges else (program, {})


def _bound(program: Program, back: Operation, source: Value, span: Range) -> None:
    """Cuts a value off at the ends of its trained range, which codes of that range do by themselves."""
    (value,) = back.outputs
    inner = Value(f"{value.name}/low", FLOAT, source.shape)
    low, high = (float_constant(f"{value.name}/{end:g}", np.array(end)) for end in (span.low, span.high))
    at = program.operations.index(back)
    program.operations[at : at + 1] = [
        Operation("MAXIMUM", [source, low], [inner], nodes=back.nodes),
        Operation("MINIMUM", [inner, high], [value], nodes=back.nodes),
    ]


def _range(grid: Quantization) -> Range:
    (scale,), (zero,) = grid.scales, grid.zero_points
    return Range((LOWEST - zero) * scale, (HIGHEST - zero) * scale)


def _is_cut(seen: Range, span: Range) -> bool:
    return max(seen.high - span.high, span.low - seen.low) > MOST_CUT * (span.high - span.low)


def apply(state: QuantizationState) -> bool:
    """The step; a way to choose ranges that was asked for chooses these too."""
    state.program, trained = with_trained_ranges(state.program, state.seen)
    bounded = ((each.outputs[0], each.operands[0]) for each in state.program.operations if each.code == "MAXIMUM")
    state.seen = {**{value: state.seen[source] for value, source in bounded if source in state.seen}, **state.seen}
    if state.options.ranges == "auto":
        state.ranges = {**state.ranges, **trained}
    return bool(trained)
