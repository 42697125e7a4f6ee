"""Masks in front of a softmax reach as low as the scores behind them, which is where the softmax gives 0, not lower.

scores ─ADD(mask)─ SOFTMAX               mask from  lowest sum - largest score  on
scores ─SELECT_V2(fill)─ SOFTMAX         fill from  lowest result  on
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pocketgraph.graph.groups import closure
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core.masked_scores import normalized_scores
from pocketgraph.quantization.core.observation import Observation
from pocketgraph.quantization.core.operator_rules import float_operands, is_layer
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.value_range import Range


def with_mask_ranges(
    program: Program, seen: Mapping[Value, Observation], ranges: Mapping[Value, Range]
) -> tuple[dict[Value, Range], list[Operation]]:
    """The ranges with those of masks and of what is masked, and the operations that have to stay in float.

    These compute masks, whose large numbers no product of codes holds, or mask with numbers that others read as well.

    Args:
        program: the float program.
        seen: what values its tensors took, of masked scores without what a softmax turns into 0.
        ranges: those chosen for the values seen.
    """
    producers, readers, scores = program.producers(), program.consumers(), normalized_scores(program)
    result, in_float = dict(ranges), dict[Operation, None]()
    for value in program.producers():
        maker = producers[value]
        if value not in scores or value not in seen or value not in ranges:
            continue
        for mask, limit in _masks(maker, seen[value].range, seen):
            result[value] = result[value].union(Range(seen[value].low, seen[value].low))
            is_read = any(each.outputs[0] not in scores or each.code != maker.code for each in readers[mask])
            if is_read or mask in program.outputs:
                in_float[maker] = None
                continue
            known = result[mask].low if mask in result and result[mask] != ranges.get(mask) else limit
            result[mask] = Range(min(known, limit), max(limit, _ends(mask, seen).high))
            if mask in producers and maker.code != "ADD":
                in_float[maker] = None
            else:
                in_float |= dict.fromkeys(_before(mask, producers))
    return result, list(in_float)


def _before(value: Value, producers: Mapping[Value, Operation]) -> Iterator[Operation]:
    """What makes the value, back to layers: where 1 - 1 misses 0 by a code, -1e9 times that would be a mask."""

    def makers(values: Iterable[Value]) -> list[Operation]:
        return [maker for maker in map(producers.get, values) if maker is not None and not is_layer(maker)]

    return closure(makers([value]), lambda maker: makers(float_operands(maker)))


def _masks(maker: Operation, shown: Range, seen: Mapping[Value, Observation]) -> Iterator[tuple[Value, float]]:
    """The operands that reach lower than what the results show, and the lowest number that each has to hold.

    Masks do so by more than the results' whole width. Less is rounding, or what only some samples are looked at for.
    """
    operands = float_operands(maker) if maker.code in ("ADD", "SELECT_V2") else []
    for mask in operands:
        others = [_ends(each, seen).high for each in operands if each is not mask]
        limit = shown.low - max(others, default=0.0) if maker.code == "ADD" else shown.low
        if _ends(mask, seen).low < limit - (shown.high - shown.low):
            yield mask, limit


def _ends(value: Value, seen: Mapping[Value, Observation]) -> Range:
    if value.constant is None:
        return seen[value].range
    numbers = value.constant.numpy()
    return Range(float(numbers.min()), float(numbers.max()))


def apply(state: QuantizationState) -> bool:
    """The step."""
    state.ranges, in_float = with_mask_ranges(state.program, state.seen, state.ranges)
    return state.stay_in_float(in_float)
