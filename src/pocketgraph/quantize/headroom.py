"""How much further than the values seen the codes of a tensor reach, because other samples do.

A tensor in the middle loses little when a rare large value is cut off, and finer steps are worth more. Scores are
different: the largest of them decides, and that of another sample is often larger than all those seen. And a few
samples show for no tensor how large its values get.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pocketgraph.litert.program import Program, Value
from pocketgraph.quantize.choose_range import has_few_values
from pocketgraph.quantize.harm import scores
from pocketgraph.quantize.observe import Observation
from pocketgraph.quantize.ranges import Range

FEW_ROWS = 4096  # of scores; more of them, as of all places of a picture, show how far they reach
BEYOND = 0.25  # of the largest score seen
FOR_FEW = 0.6  # of all values seen, over the square root of the number of samples
FEWEST = 16  # samples that show how far the tensors in the middle reach
NORMALIZATIONS = ("SOFTMAX", "LOG_SOFTMAX")
SQUEEZED = ("LOGISTIC", "TANH")  # what these follow is as good as at its end there


def with_headroom(
    program: Program, seen: Mapping[Value, Observation], ranges: Mapping[Value, Range], count: int
) -> dict[Value, Range]:
    """The ranges, wider where other samples are likely to reach further.

    Scores that a softmax follows get more at their upper end only, as the lower end is of next to no probability.

    Args:
        program: the float program.
        seen: what values its tensors took.
        ranges: those chosen for the values seen.
        count: how many samples there were.
    """
    result = dict(ranges)
    if count < FEWEST:
        more = FOR_FEW / math.sqrt(count)
        for value, span in ranges.items():
            if not has_few_values(seen[value]):
                result[value] = _stretched(seen[value], span, more, more)
    after = {value: operation.code for operation in program.operations for value in operation.inputs if value}
    for value in scores(program):
        rows = seen[value].samples * value.size / max(value.shape[-1] if value.shape else 1, 1)
        if value not in ranges or value in program.inputs or rows >= FEW_ROWS or after.get(value) in SQUEEZED:
            continue
        is_normalized = after.get(value) in NORMALIZATIONS
        span = ranges[value] if is_normalized else ranges[value].union(seen[value].range)
        span = Range(span.low, max(span.high, seen[value].range.high))
        result[value] = result[value].union(_stretched(seen[value], span, 0.0 if is_normalized else BEYOND, BEYOND))
    return result


def _stretched(seen: Observation, span: Range, below: float, above: float) -> Range:
    """The range with these shares more on either side of zero, but not beyond what no value can be."""
    floor, ceiling = seen.bounds
    low = span.low * (1 + below) if span.low < 0 else span.low
    high = span.high * (1 + above) if span.high > 0 else span.high
    return Range(max(low, min(floor, span.low)) if math.isfinite(floor) else low, min(high, max(ceiling, span.high)))
