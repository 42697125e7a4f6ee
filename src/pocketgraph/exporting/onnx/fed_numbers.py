"""Which whole numbers that a part is fed another engine may be given: indices inside of what they take rows of.

TensorFlow, LiteRT and the reference engine refuse others. OpenVINO gives zeros for them, and ONNX counts negative ones
from the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import Node, parse_ref
from pocketgraph.graph.op_traits import GATHERS, SAME_ELEMENTS
from pocketgraph.litert.sixteen_bits import numpy_type
from pocketgraph.runtime.part_engines.part_engine import OfferedPart, PartRunner

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array


MOST_FED = 1 << 20
"""Whole numbers that are fed up to this are computed by engines that compute with them in floats, larger ones by the
reference engine: OpenVINO compares and reduces in float32, which holds each up to 2^24, and keeps 32 bits of 64."""


def index_ranges(part: OfferedPart) -> dict[int, int]:
    """How many rows each input of the part's file may say the index of: those of the smallest table it goes to."""
    reference, about = part.reference, part.entry.about
    if reference is None:
        return {}
    made_by = {node.name: node for node in reference.nodes}
    places = {str(endpoint): place for place, endpoint in enumerate(reference.inputs)}
    found: dict[int, int] = {}
    for node in made_by.values():
        if node.op not in GATHERS or node.attr("batch_dims", 0):
            continue
        table, indices = (_passed(made_by, places, ref) for ref in node.data_inputs[:2])
        if not isinstance(indices, int) or indices not in about["fed"]:
            continue
        shape = about["inputs"][table][2] if isinstance(table, int) else table and table.tensor.shape
        along = _passed(made_by, places, node.data_inputs[2]) if node.op == "GatherV2" else None
        if shape and (node.op == "Gather" or isinstance(along, Node)):
            axis = int(along.tensor.numpy()) if isinstance(along, Node) else 0
            place = about["fed"].index(indices)
            found[place] = min(found.get(place, shape[axis]), shape[axis])
    return found


def _passed(made_by: dict[str, Node], places: dict[str, int], ref: str) -> Node | int | None:
    """The constant that a tensor holds the elements of, or the place of the input; None where it is computed."""
    while True:
        name, port = parse_ref(ref)[:2]
        if f"{name}:{port}" in places:
            return places[f"{name}:{port}"]
        node = made_by.get(name)
        if node is None or node.op == "Const":
            return node
        if node.op not in SAME_ELEMENTS and node.op != "Cast":
            return None
        ref = node.data_inputs[0]


def by_nodes(part: OfferedPart) -> Callable[[Sequence[Array]], list[Array]] | None:
    """What computes a part on the reference engine; None where the graph was not read."""
    reference, types = part.reference, [numpy_type(name) for _, name, _ in part.entry.about["inputs"]]
    if reference is None:
        return None

    def computed(inputs: Sequence[Array]) -> list[Array]:
        given = [array.astype(dtype) for array, dtype in zip(part.all_inputs(inputs), types, strict=True)]
        results = reference.run(given)
        places = zip(part.places, part.outputs, strict=True)
        return [results[place].astype(wanted.dtype).reshape(wanted.shape) for place, wanted in places]

    return computed


class CheckedRunner(PartRunner):
    """A base for runners whose engine takes other numbers for what they are not: the part's nodes run on the reference
    engine for these.

    Attributes:
        ranges: see ``index_ranges``.
        exact: computes the outputs from the part's nodes; None where the graph was not read.
    """

    def __init__(self, part: OfferedPart) -> None:
        self.ranges, self.exact = index_ranges(part), by_nodes(part)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        why = self.refused(inputs)
        if not why:
            return self.computed(inputs)
        if self.exact is None:
            raise RunError(why, hint="use engine=None")
        return self.exact(inputs)

    def refused(self, inputs: Sequence[Array]) -> str:
        """Why the engine is not given these inputs; "" where it is."""
        for place, rows in self.ranges.items():
            array = inputs[place]
            if array.size and array.dtype.kind in "iu" and (array.max() >= rows or array.min() < 0):
                return f"an index lies outside of the {rows} rows of its table"
        return ""

    def computed(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs, from the engine."""
        raise NotImplementedError


def is_beyond_float32(array: Array) -> bool:
    """Whether an array has whole numbers beyond ``MOST_FED``."""
    return is_wide(array.dtype) and bool(array.max(initial=0) > MOST_FED or array.min(initial=0) < -MOST_FED)


def has_finite_squares(array: Array) -> bool:
    """Whether an array has no NaN, infinity or float beyond 1e19; ``numpy.dot`` would wake BLAS's threads."""
    if array.dtype.kind != "f":
        return True
    flat = array.reshape(-1)
    return math.isfinite(np.einsum("i,i->", flat, flat, dtype=np.float32, casting="same_kind"))


def is_wide(dtype: np.dtype[Any]) -> bool:
    """Whether it is of whole numbers that may be beyond 2^24."""
    return dtype.kind in "iu" and dtype.itemsize >= 4
