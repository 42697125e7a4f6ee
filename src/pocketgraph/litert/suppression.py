"""Non-maximum suppression by LiteRT's own kernel, where the boxes are plain and the rest is known to be alike.

NumPy looks at all pairs of boxes; LiteRT's kernel goes box by box and stops at the first that is in the way. It is
given boxes that are sorted already, in a program for the next power of two: padding has a score too low to count.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.arrays import integer, number
from pocketgraph.kernels.image.non_max_suppression import best_apart, combined
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.cost_model import FEW_SUMMED, SUPPRESSED_BOXES
from pocketgraph.litert.native.fork_safety import kept_over_fork
from pocketgraph.litert.program import Operation, Program, Value

SMALLEST = 64  # boxes of the smallest program
LARGEST = 4096  # boxes of the largest: up to here float32 tells the ranks apart, and then some
SMALLEST_AREA = 1e-30  # well above where float32 rounds an area to nothing
SHARE = 3  # candidates for each box that may stay, to begin with
MORE = 4  # times as many where too few of these stay
SUPPRESS = "NON_MAX_SUPPRESSION_V4"

_own = threading.local()


def quick_best_apart(boxes: Array, scores: Array, limit: int, threshold: float, least: float) -> Array:
    """As ``kernels.boxes.best_apart``, with the same result.

    LiteRT drops a box that overlaps by the threshold or more, TensorFlow one that overlaps by more: it is told the
    next number. Boxes without area, which it treats differently, and numbers that are not finite are left to NumPy.
    """
    count = scores.shape[0]
    if not SUPPRESSED_BOXES <= count <= LARGEST or boxes.dtype != np.float32 or limit < 1 or not threshold < 1:
        return best_apart(boxes, scores, limit, threshold, least)
    found: Array | None = None
    some = SHARE * limit
    while count > 2 * some:  # most of them are not worth sorting
        edge = np.partition(scores, count - some)[count - some]
        best = (scores > edge).nonzero()[0]  # all that are equal stay out; nothing is above NaN
        found = _apart(boxes, scores, best, limit, threshold, least)
        if found is None or found.size >= limit or not edge > least:
            break  # where not even the edge counts, no other box does
        found, some = None, MORE * some
    if found is None:
        found = _apart(boxes, scores, None, limit, threshold, least)
    return best_apart(boxes, scores, limit, threshold, least) if found is None else found


def _apart(boxes: Array, scores: Array, some: Array | None, limit: int, threshold: float, least: float) -> Array | None:
    """``quick_best_apart`` of some of the boxes (ascending indices), or of all; None where LiteRT is not for them."""
    marks = scores if some is None else scores[some]
    order = (-marks).argsort(kind="stable")
    if order.size and not marks[order[-1]] > least:
        order = order[: np.count_nonzero(marks > least)]
    if order.size < SUPPRESSED_BOXES:
        return None
    if some is not None:
        order = some.take(order)
    sorted_boxes = boxes.take(order, 0)
    sides = sorted_boxes[:, 2:] - sorted_boxes[:, :2]
    areas = np.abs(sides[:, 0] * sides[:, 1])
    if order.size <= FEW_SUMMED:  # NumPy would take longer; a NaN or an infinite number is in the sum, too
        few = areas.tolist()
        is_plain = min(few) > SMALLEST_AREA and sum(few) < np.inf
    else:
        is_plain = areas.min() > SMALLEST_AREA and areas.max() < np.inf
    if not is_plain:
        return None
    program = _program(order.size, min(limit, order.size))
    return None if program is None else order.take(program(sorted_boxes, threshold)[:limit])


def _power(count: int, least: int) -> int:
    """The smallest power of two that is not less than either."""
    return max(least, 1 << (count - 1).bit_length())


def _program(count: int, limit: int) -> Callable[[Array, float], Array] | None:
    """This thread's program for so many boxes of which so many may be kept."""
    kept: dict[tuple[int, int], Callable[[Array, float], Array] | None] = _own.__dict__.setdefault("programs", {})
    key = count, limit
    if key not in kept:
        capacity = _power(count, SMALLEST)
        size = capacity, min(_power(limit, SMALLEST), capacity)
        made: dict[tuple[int, int], Any] = _own.__dict__.setdefault("made", {})
        if size not in made:
            made[size] = _made(*size)
        kept[key] = made[size]
    return kept[key]


def _made(capacity: int, most: int) -> Callable[[Array, float], Array] | None:
    """Takes (boxes (n, 4), best first; the largest overlap) and gives the places of those that stay, in a new array.

    None where this LiteRT cannot be spoken to directly.
    """
    from ai_edge_litert.interpreter import Interpreter

    from pocketgraph.litert.native.native_messages import quiet

    try:
        with quiet():
            interpreter: Any = kept_over_fork(Interpreter(model_content=_content(capacity, most), num_threads=1))
            interpreter.allocate_tensors()
        core = interpreter._interpreter
        set_value, invoke, get = core.SetTensor, core.Invoke, core.GetTensor
        boxes, ranks, overlap = (detail["index"] for detail in interpreter.get_input_details())
        places, found = (detail["index"] for detail in interpreter.get_output_details())
        given, marks, kept = (interpreter.tensor(index)() for index in (boxes, ranks, places))
    except (RuntimeError, ValueError, AttributeError):
        return None
    given[:] = 0
    descending = np.arange(capacity, 0, -1, dtype=np.float32)
    marks[:] = -1
    last, filled = None, 0

    def suppress(sorted_boxes: Array, threshold: float) -> Array:
        nonlocal last, filled
        count = len(sorted_boxes)
        given[:count] = sorted_boxes
        if count > filled:
            marks[filled:count] = descending[filled:count]
        elif count < filled:
            marks[count:filled] = -1
        filled = count
        if threshold != last:
            set_value(overlap, np.array(np.nextafter(np.float32(threshold), np.float32(2))))
            last = threshold
        invoke()
        return np.array(kept[: int(get(found, 0))])

    suppress.__dict__["keeps"] = interpreter  # the views above point into its memory
    return suppress


@lru_cache(maxsize=32)
def _content(capacity: int, most: int) -> bytes:
    """The model file: boxes, scores and threshold in; places and their number out."""
    from pocketgraph.litert.writing import writer

    def constant(name: str, number: Any) -> Value:
        array = np.asarray(number)
        return Value(name, INT32 if array.dtype == np.int32 else FLOAT, (), Constant.of(array))

    inputs = [Value("boxes", FLOAT, (capacity, 4)), Value("scores", FLOAT, (capacity,)), Value("overlap", FLOAT, ())]
    outputs = [Value("places", INT32, (most,)), Value("found", INT32, ())]
    limit, least = constant("limit", np.int32(most)), constant("least", np.float32(0))
    operands: list[Value | None] = [inputs[0], inputs[1], limit, inputs[2], least]
    program = Program(inputs, outputs, [Operation(SUPPRESS, operands, outputs, {}, ("suppress",))])
    return b"".join(bytes(piece) for piece in writer.pieces(program))


def quicker(node: Node, call: Callable[..., Any]) -> Callable[..., Any]:
    """A call for a NonMaxSuppression node that gives the same as its kernel ``call``, which does what is not plain."""
    if node.op == "CombinedNonMaxSuppression":
        pads, clips = bool(node.attr("pad_per_class", False)), bool(node.attr("clip_boxes", True))

        def of_all_classes(boxes: Array, scores: Array, each: Array, total: Array, overlap: Array, least: Array) -> Any:
            sizes, limits = (integer(each), integer(total)), (number(overlap), number(least))
            return combined(
                boxes, scores, *sizes, *limits, pad_per_class=pads, clip_boxes=clips, apart=quick_best_apart
            )

        return of_all_classes
    counts = node.op in ("NonMaxSuppressionV4", "NonMaxSuppressionV5")
    is_plain = not (counts and node.attr("pad_to_max_output_size", False))

    def suppression(*inputs: Array) -> Any:
        boxes, scores, most, overlap = inputs[:4]
        threshold = number(overlap)
        if boxes.ndim != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1] or not 0 <= threshold <= 1:
            return call(*inputs)
        if not is_plain or scores.dtype != np.float32 or (len(inputs) == 6 and number(inputs[5]) != 0):
            return call(*inputs)
        limit = -1 if most.ndim or overlap.ndim else integer(most)
        if limit < 0:
            return call(*inputs)
        least = number(inputs[4]) if len(inputs) > 4 else -np.inf
        found = quick_best_apart(boxes, scores, limit, threshold, least)
        kept = found.astype(np.int32)
        if not counts:
            return kept
        count = np.array(kept.size, np.int32)
        return (kept, count) if len(inputs) == 5 else (kept, scores[found], count)

    return suppression


HELPED = ops_with("box_selection")
"""The ops that ``quicker`` takes."""
