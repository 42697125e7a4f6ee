"""Finds out whether the indices of a scattering are the places that a max pooling has told.

Un-pooling is spelled in many ways: places are divided and their remainders taken, stacked, transposed. The arithmetic
is not looked at, only its outcome: each index has to follow from the place of one pooled element, and has to be the
right one for every place that this element's window has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Node, canonical, parse_ref
from pocketgraph.graph.dtype import INT64
from pocketgraph.kernels.registry import evaluate
from pocketgraph.litert.constant import Array
from pocketgraph.litert.emitter import Emit

MOST_NODES = 64  # between a pooling and the scattering; exporters write about ten
MOVING = {"Reshape": 1, "Transpose": 1, "ExpandDims": 1, "Squeeze": 1, "Identity": 1, "Pack": 0, "ConcatV2": -1}
"""Ops that move elements, and the first of their inputs that does not hold such (0: none; -1: the last one)."""
ELEMENTWISE = frozenset((
    "Cast", "FloorDiv", "FloorMod", "Mod", "Div", "TruncateDiv", "TruncateMod", "Mul", "Add", "AddV2", "Sub", "Neg",
))  # fmt: skip
"""Not a trait: what the places of a pooling are computed with."""
NOBODY = -1  # stands in the place of a pooled element where an index follows from none


class Indices(NamedTuple):
    """How the indices of a ScatterNd follow from a pooling's places.

    Attributes:
        pool: the MaxPoolWithArgmax.
        ref: the indices.
        nodes: what lies between the two, each after those it needs.
        known: the operands of these that are constant, by tensor name.
    """

    pool: Node
    ref: str
    nodes: list[Node]
    known: Mapping[str, Array]

    def at(self, places: Array) -> Array:
        """The indices when the largest pixels lie at these places."""
        values: dict[str, Array] = {f"{self.pool.name}:1": places, **self.known}
        for node in self.nodes:
            operands = [values[canonical(text)] for text in node.data_inputs]
            values[f"{node.name}:0"] = np.asarray(evaluate(node, operands)[0])
        return values[self.ref]

    def owners(self, shape: Sequence[int]) -> Array | None:
        """The number of the pooled element that each index follows from, NOBODY where it follows from none.

        None where an index follows from several. ``shape`` is that of the pooled image.
        """
        values: dict[str, Array] = {f"{self.pool.name}:1": np.arange(int(np.prod(shape))).reshape(shape)}
        for node in self.nodes:
            refs = [canonical(text) for text in node.data_inputs]
            if node.op not in MOVING:
                operands = np.broadcast_arrays(*(self._owner(ref, values) for ref in refs))
                first = operands[0]
                if any(((first != other) & (first != NOBODY) & (other != NOBODY)).any() for other in operands[1:]):
                    return None
                values[f"{node.name}:0"] = np.maximum.reduce(operands)
                continue
            held = MOVING[node.op] or len(refs)
            moved = [self._owner(ref, values) for ref in refs[:held]]
            values[f"{node.name}:0"] = np.asarray(
                evaluate(node, [*moved, *(self.known[ref] for ref in refs[held:])])[0]
            )
        return values[self.ref]

    def _owner(self, ref: str, values: Mapping[str, Array]) -> Array:
        return values[ref] if ref in values else np.full(self.known[ref].shape, NOBODY)


def indices_of(emit: Emit, ref: str) -> Indices | None:
    """How a tensor follows from one pooling's places; None where it does not, or not in ways that are known here."""
    indices, pool = ref, None
    nodes: dict[str, Node] = {}
    known: dict[str, Array] = {}
    stack = [(ref, False)]
    while stack:
        ref, is_ready = stack.pop()
        name, port, _ = parse_ref(ref)
        node = emit.graph.nodes.get(name)
        if node is None or name in nodes or ref in known:
            continue
        if is_ready:
            nodes[name] = node
            continue
        constant = emit.statics.constant(ref)
        if constant is not None:
            known[ref] = constant.numpy()
        elif ref in emit.statics.fed or len(nodes) + len(stack) > MOST_NODES:
            return None
        elif node.op == "MaxPoolWithArgmax" and port == 1 and pool in (None, node):
            pool = node
        elif port == 0 and (node.op in ELEMENTWISE or node.op in MOVING):
            stack.append((ref, True))
            stack.extend((canonical(text), False) for text in node.data_inputs)
        else:
            return None
    return Indices(pool, indices, list(nodes.values()), known) if pool is not None and indices not in known else None


def are_places(indices: Indices, choices: Sequence[Array], shape: tuple[int, ...]) -> bool:
    """Whether the indices are those of the largest pixels in a tensor of this shape, whose elements are the image's.

    Args:
        indices: what is scattered to.
        choices: for every pixel of a window the flat position (batch, rows, columns, channels) that it has in the
            image, for all windows: int64 of the pooled image's shape.
        shape: what is scattered into.
    """
    pooled = choices[0]
    try:
        owners = indices.owners(pooled.shape)
        if owners is None or owners.size != pooled.size * len(shape) or owners.shape[-1] != len(shape):
            return False
        by_row = owners.reshape(-1, len(shape))
        if not ((by_row == np.arange(pooled.size)[:, None]) | (by_row == NOBODY)).all():
            return False
        dtype = indices.pool.attr("Targmax", INT64).numpy
        images = 0
        if not indices.pool.attr("include_batch_in_index", False):
            images = np.arange(pooled.shape[0]).reshape(-1, 1, 1, 1) * (int(np.prod(shape)) // pooled.shape[0])
        for positions in choices:
            found = indices.at((positions - images).astype(dtype)).reshape(-1, len(shape))
            if (found < 0).any() or (found >= np.array(shape)).any():
                return False
            if not np.array_equal(np.ravel_multi_index(tuple(found.T), shape), positions.reshape(-1)):
                return False
    except PocketgraphError:
        return False
    return True
