"""Windows that slide over an image, taken apart and put back along one axis at a time.

The n-th elements of all windows lie a stride apart: the axis is cut into groups of a stride's length, so that they lie
in one piece of the groups, and are put back in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.kernels.windows import Window
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowerings.pieces import cut, pad
from pocketgraph.litert.program import Value


def elements_of_windows(emit: Emit, value: Value, span: Window, fill: float = 0) -> list[Value]:
    """For each place in a window, what all windows have there.

    Args:
        value: (outer, length, inner); the windows slide along the second axis.
        span: the windows.
        fill: what lies beyond the ends.

    Returns:
        as many values as a window has elements, each (outer, windows, inner).
    """
    outer, _, inner = value.shape
    groups = span.output + (span.reach - 1) // span.stride
    extended = _fitted(emit, value, span.before, groups * span.stride, fill)
    grouped = emit.reshape(extended, (outer, groups, span.stride * inner))
    size = [outer, span.output, inner]
    places = [place * span.dilation for place in range(span.taps)]
    return [cut(emit, grouped, [0, place // span.stride, place % span.stride * inner], size) for place in places]


def at_their_places(emit: Emit, parts: Sequence[Value], span: Window, length: int) -> Value:
    """The reverse of ``elements_of_windows``: what comes to the same place is added up, zeros where nothing does."""
    outer, output, inner = parts[0].shape
    groups = max(output + (span.reach - 1) // span.stride, -(-(span.before + length) // span.stride))
    sums: list[Value | None] = [None] * span.stride
    for place, part in enumerate(parts):
        shift, remainder = divmod(place * span.dilation, span.stride)
        borders = np.array([[0, 0], [shift, groups - output - shift], [0, 0]], np.int32)
        moved, total = pad(emit, part, borders), sums[remainder]
        sums[remainder] = moved if total is None else emit.add("ADD", [total, moved], moved.shape, activation="")
    shape = (outer, groups, inner)
    filled = [emit.const(np.zeros(shape, np.float32)) if total is None else total for total in sums]
    spread = emit.reshape(emit.concatenated(filled, 2), (outer, groups * span.stride, inner))
    return cut(emit, spread, [0, span.before, 0], [outer, length, inner])


def _fitted(emit: Emit, value: Value, before: int, length: int, fill: float) -> Value:
    """``value`` (outer, length, inner) with this many elements, ``before`` of them in front of its own."""
    outer, own, inner = value.shape
    kept = min(own, length - before)
    value = cut(emit, value, [0, 0, 0], [outer, kept, inner])
    return pad(emit, value, np.array([[0, 0], [before, length - before - kept], [0, 0]], np.int32), fill)
