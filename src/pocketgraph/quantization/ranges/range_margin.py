"""How much further than the values seen the codes of a tensor reach, because other samples do.

A tensor in the middle loses little when a rare large value is cut off, and finer steps are worth more. Scores are
different: the largest of them decides, and that of another sample is often larger than all those seen. What has one row
a sample, such as pooled features, is not seen often enough either, and each of its values stands for a whole picture:
two of three hundred samples that reach a fifth further made nine tenths of the noise of a network. And a few samples
show for no tensor how large its values get.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pocketgraph.litert.program import Program, Value
from pocketgraph.quantization.core import step_limits
from pocketgraph.quantization.core.observation import Observation
from pocketgraph.quantization.core.operator_rules import OPERATOR_RULES, OperatorRule
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.value_range import Range
from pocketgraph.quantization.mixed_precision.sensitivity import scores
from pocketgraph.quantization.ranges.range_selection import has_few_values

NORMALIZATIONS = {"SOFTMAX", "LOG_SOFTMAX"}
SQUEEZED = {"LOGISTIC", "TANH"}  # what these follow is as good as at its end there


def with_range_margin(
    program: Program, seen: Mapping[Value, Observation], ranges: Mapping[Value, Range], count: int
) -> dict[Value, Range]:
    """The ranges, wider where other samples are likely to reach further.

    Scores that only a softmax reads get more at their upper end only, as the lower end is of next to no probability.
    What only a sigmoid or tanh reads is as good as at its end, and gets nothing.

    Args:
        program: the float program.
        seen: what values its tensors took.
        ranges: those chosen for the values seen.
        count: how many samples there were.
    """
    result = dict(ranges)
    if count < step_limits.FEWEST_SAMPLES_TO_CLIP:
        more = step_limits.FEW_SAMPLES_MARGIN_SHARE / math.sqrt(count)
        for value, span in ranges.items():
            if not has_few_values(seen[value]):
                result[value] = _stretched(seen[value], span, more, more)
    readers = program.consumers().items()  # what comes out is read by whoever runs it, too
    after = {value: {one.code for one in reading} for value, reading in readers if value not in program.outputs}
    squeezed = {value for value, codes in after.items() if codes <= SQUEEZED}
    judged = scores(program)
    more = min(step_limits.ONE_ROW_MARGIN_SHARE / math.sqrt(count), step_limits.MOST_ONE_ROW_MARGIN_SHARE)
    has_own = {v for o in program.operations if OPERATOR_RULES.get(o.code) is OperatorRule.FIXED for v in o.outputs}
    has_own.update(program.inputs, judged)
    for value, span in ranges.items():
        one = seen[value]  # what moves values about has the codes of what it moves, such as those of a picture
        is_one_row = bool(value.shape) and value.size == value.shape[-1] and not one.is_derived
        if is_one_row and value not in has_own and value not in squeezed and not has_few_values(one):
            stretched = _stretched(one, span.union(one.range), more, more)
            result[value] = result[value].union(stretched)
    for value in judged:
        rows = seen[value].samples * value.size / max(value.shape[-1] if value.shape else 1, 1)
        is_known = rows >= step_limits.FEW_SCORE_ROWS or value in squeezed
        if is_known or value not in ranges or value in program.inputs:
            continue
        is_normalized = value in after and after[value] <= NORMALIZATIONS
        span = ranges[value] if is_normalized else ranges[value].union(seen[value].range)
        span = Range(span.low, max(span.high, seen[value].range.high))
        above = step_limits.SCORE_MARGIN_SHARE
        result[value] = result[value].union(_stretched(seen[value], span, 0.0 if is_normalized else above, above))
    return result


def _stretched(seen: Observation, span: Range, below: float, above: float) -> Range:
    """The range with these shares more on either side of zero, but not beyond what no value can be."""
    floor, ceiling = seen.bounds
    low = span.low * (1 + below) if span.low < 0 else span.low
    high = span.high * (1 + above) if span.high > 0 else span.high
    return Range(max(low, min(floor, span.low)) if math.isfinite(floor) else low, min(high, max(ceiling, span.high)))


def _with_room(seen: Observation, span: Range) -> Range:
    """The range for sixteen bits: the further the largest values of the samples lie apart, the wider, up to twice."""
    more = step_limits.MOST_INT16_MARGIN_SHARE
    if seen.samples >= step_limits.FEWEST_SAMPLES_TO_CLIP:
        more = min(more, step_limits.INT16_MARGIN_SHARE * seen.spread)
    return _stretched(seen, span, more, more)


def apply(state: QuantizationState) -> bool:
    """The step."""
    before = state.ranges
    if state.options.bits == 16:
        state.ranges = {value: _with_room(state.seen[value], span) for value, span in before.items()}
    else:
        state.ranges = with_range_margin(state.program, state.seen, before, state.count)
    return state.ranges != before
