"""Reads sizes off what is fed, in place of what layers make: masks can then be made before layers run.

words [1, ?] ── GatherV2 ── MatMul [1, ?, 64] ── Shape         Shape(words) ── ConcatV2 [64] ── GatherV2 [0, 1, 2]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from pocketgraph.graph import AttrValue, DType, Graph, Node, Shape, canonical, const
from pocketgraph.graph.dtype import INT32
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.record import Record
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.kernels.shapes.infer import postorder

PREFIX = "sizes_of_feeds"
PROBES = (
    (2, 3, 5, 7, 11, 13),
    (1_000_003, 1_000_033, 1_000_037, 1_000_039, 1_000_081, 1_000_099),
    (1_000_200, 1_000_196, 1_000_194, 1_000_190, 1_000_188, 1_000_184),
)
"""Sizes of what is fed for which shapes are inferred: below and above what is filled up to or cut off at, once the
least first and once the greatest. No number divides all differences within one place, so that what is rounded to
multiples, or to odd ones, differs from it somewhere. What is one of them each time, or the same each time, is so for
all sizes."""

Fed: TypeAlias = "tuple[Endpoint, DType, tuple[int | None, ...]]"
"""A tensor that is fed, its type and its sizes, None where these are open."""
Place: TypeAlias = "tuple[int, int]"
"""An open size: which feed's, and along which axis."""


class Sized(Record):
    """A graph in which shapes are read off what is fed.

    Attributes:
        graph: it; as it was given where nothing is read off.
        alike: open sizes that have to be equal for that, with the one that each has to equal.
    """

    graph: Graph
    alike: Mapping[Place, Place] = {}


def with_sizes_of_feeds(
    graph: Graph,
    feeds: Sequence[Fed],
    values: Mapping[str, np.ndarray[Any, Any]],
    nodes: Sequence[Node],
    inferred: Inferred | None = None,
    before: Sequence[tuple[int | None, ...]] | None = None,
) -> Sized:
    """The graph, in which shapes of what layers make are read off what is fed, as far as they are sizes of that.

    Args:
        graph: it stays as it is.
        feeds: what is fed.
        values: values that tensors are certain to have, by name.
        nodes: those that are needed, producers first.
        inferred: what is known of the graph for some sizes.
        before: the sizes of what was fed then. Open ones that were equal stay so where tensors do not fit together
            else, as the batches of two texts: first axes alone, if that will do. None: none stay so.
    """
    fed = {str(end) for end, _, _ in feeds}
    shapes = [n for n in nodes if n.op == "Shape" and canonical(n.inputs[0]) not in fed]
    places = [(at, axis) for at, (_, _, sizes) in enumerate(feeds) for axis, size in enumerate(sizes) if size is None]
    if not shapes or len(places) > len(PROBES[0]) or any(name.startswith(PREFIX) for name in graph.nodes):
        return Sized(graph)

    def probed(
        probe: Sequence[int], alike: Mapping[Place, Place], before: Inferred | None, nodes: Sequence[Node] = nodes
    ) -> Inferred:
        given = dict(zip(places, probe, strict=False))
        sized = {
            str(end): (
                dtype,
                Shape([given.get(alike.get((at, axis), (at, axis)), size) for axis, size in enumerate(sizes)]),
            )
            for at, (end, dtype, sizes) in enumerate(feeds)
        }
        return infer(graph, sized, values, nodes=nodes, before=before)

    alike: Mapping[Place, Place] = {}
    inferred = probed(PROBES[0], alike, inferred)
    for axes in (1, None) if before is not None else ():
        if inferred.problems:
            alike = _equal([(at, axis) for at, axis in places if axes is None or axis < axes], before or ())
            inferred = probed(PROBES[0], alike, inferred)
    rows: dict[str, list[tuple[int | None, ...]]] = {node.name: [] for node in shapes}
    for probe in PROBES:
        asked = [node for node in shapes if node.name in rows]
        if probe is not PROBES[0]:
            inferred = probed(probe, alike, inferred, postorder(graph, [node.inputs[0] for node in asked]))
        for node in asked:
            sizes = inferred.shape(canonical(node.inputs[0])).dims or ()
            if set(probe[: len(places)]).isdisjoint(sizes):  # none is read off
                del rows[node.name]
            else:
                rows[node.name].append(sizes)
        if not rows:
            return Sized(graph)
    of_probes = dict(zip(zip(*PROBES, strict=True), places, strict=False))
    made: dict[str, Node] = {}
    for node in shapes:
        found = rows.get(node.name, [])
        numbers = list(zip(*found, strict=False)) if len({len(row) for row in found}) == 1 else []
        if any(number in of_probes for number in numbers) and all(
            number in of_probes or (number[0] is not None and len({*number}) == 1) for number in numbers
        ):
            sources = [of_probes.get(number, number[0]) for number in numbers]
            made |= {each.name: each for each in _read_off(node, feeds, sources)}
    kept = [node for node in graph if node.name not in made]
    return Sized(graph.replace([*made.values(), *kept]), alike) if made else Sized(graph)


def _equal(places: Sequence[Place], before: Sequence[tuple[int | None, ...]]) -> dict[Place, Place]:
    """Of each place but the first of some size the first one."""
    first: dict[int | None, Place] = {}
    found = {place: first.setdefault(before[place[0]][place[1]], place) for place in places}
    return {place: other for place, other in found.items() if place != other}


def _read_off(node: Node, feeds: Sequence[Fed], sources: Sequence[tuple[int, int] | int | None]) -> list[Node]:
    """What makes the same numbers as a Shape, and has its name at the end.

    Args:
        node: the Shape.
        feeds: what is fed.
        sources: of each number, the feed and the axis that it is the size of, or itself.
    """
    of_type = node.dtype("out_type", INT32)
    used = sorted({source[0] for source in sources if isinstance(source, tuple)})
    shapes = [
        Node(f"{PREFIX}/{of_type.name}/{at}", "Shape", [str(feeds[at][0])], {"T": feeds[at][1], "out_type": of_type})
        for at in used
    ]
    starts = dict(zip(used, np.cumsum([0, *(len(feeds[at][2]) for at in used)]).tolist(), strict=False))
    numbers = [source for source in sources if isinstance(source, int)]
    first = sum(len(feeds[at][2]) for at in used)
    places = [
        starts[source[0]] + source[1] if isinstance(source, tuple) else first + numbers.index(source)
        for source in sources
        if source is not None
    ]
    own = f"{PREFIX}/{node.name}"
    inputs = [*(each.name for each in shapes), f"{own}/numbers", f"{PREFIX}/axis"]
    attrs: dict[str, AttrValue] = {"T": of_type, "Tidx": INT32, "N": len(inputs) - 1}
    gathered: dict[str, AttrValue] = {"Tparams": of_type, "Tindices": INT32, "Taxis": INT32, "batch_dims": 0}
    return [
        *shapes,
        const(f"{PREFIX}/axis", np.array(0, np.int32)),
        const(f"{own}/numbers", np.array(numbers, of_type.numpy)),
        const(f"{own}/places", np.array(places, np.int32)),
        Node(f"{own}/all", "ConcatV2", inputs, attrs),
        Node(node.name, "GatherV2", [f"{own}/all", f"{own}/places", f"{PREFIX}/axis"], gathered),
    ]
