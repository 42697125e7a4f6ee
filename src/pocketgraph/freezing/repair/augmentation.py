"""Augmentation of inputs, such as random flips and rotations of pictures, is taken out: what went in comes out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pocketgraph.graph import Func, Graph, Node, node_name, parse_ref
from pocketgraph.graph.edit import remove_attributes
from pocketgraph.graph.op_traits import PLACEHOLDERS, RANDOM, ops_with
from pocketgraph.graph.order import dependents, reachable
from pocketgraph.kernels.shapes.infer import Inferred, infer

_SEEDED = ("StatelessRandom", "StatelessTruncatedNormal", "StatelessParameterizedTruncatedNormal", "StatefulUniform",
           "StatefulStandardNormal", "StatefulTruncatedNormal")  # fmt: skip
"""Not a trait: how the names of ops begin that draw by a seed, which they are given or keep."""
LEAST_WEIGHTS = 128
"""Elements of a layer's constant, from which on it is taken as learned: kernels that sharpen or blur have fewer."""
LEAST_RANK = 3
"""Of a picture, or of a sound's spectrum, without a batch."""
SCOPE = re.compile(
    r"(?i)augment|jitter|gaussian_?noise|cut_?out|mix_?up|random_?(flip|rotat|zoom|shear|shift|transl|perspective|crop|eras"
    r"|contrast|bright|hue|satur|jpeg|quality|sharp|blur|colou?r|gray|grey|invert|poster|solar|elastic)"
)
"""How layers and functions are called that augment, where no state of a seed shows them."""


class Augmentation(NamedTuple):
    """The nodes of one scope that change data by what they draw.

    Attributes:
        scope: the name that all of them begin with.
        source: the tensor that goes in.
        result: the node that makes what comes out, as its first output.
        draw: the node that draws.
    """

    scope: str
    source: str
    result: str
    draw: str


def repaired(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """Lets each scope that augments hand on what goes into it.

    Given:   x = Placeholder(dtype=float, shape=[1,8,8,3])
             one = Const(int32 [1])
             axis = Const(int32 [2])
             half = Const(float 0.5)
             random_flip/noise = RandomUniform(one, dtype=float)
             random_flip/turn = LessEqual(random_flip/noise, half, T=float)
             random_flip/turned = ReverseV2(x, axis, T=float, Tidx=int32)
             random_flip/out = SelectV2(random_flip/turn, random_flip/turned, x, T=float)
             w = Const(float[3,3,3,8] 0.5)
             y = Conv2D(random_flip/out, w, T=float, strides=[1,1,1,1], padding="SAME")
    Result:  x = Placeholder(dtype=float, shape=[1,8,8,3])
             random_flip/out = Identity(x, T=float)
             w = Const(float[3,3,3,8] 0.5)
             y = Conv2D(random_flip/out, w, T=float, strides=[1,1,1,1], padding="SAME")

    A scope augments that draws random numbers, takes one tensor of what is fed, before any weights, and gives one that
    could stand in its place, for layers to take. It is the layer of Keras in which the state of a seed is read, or is
    named as such. A graph that does nothing but augment stays as it is.
    """
    lines: dict[str, str] = {}
    while True:
        known = infer(graph, outputs=graph.outputs)
        found = list(augmentations(graph, known))
        if not found:
            return graph, lines
        lines |= {
            one.scope: f"'{one.scope}' changed its input by what '{one.draw}' drew; it hands on '{one.source}'"
            for one in found
        }
        by_result = {one.result: one for one in found}
        graph = graph.map_nodes(
            lambda node, known=known, found=by_result: _handed_on(known, found.get(node.name), node)  # type: ignore[misc]
        )
        if any(known.shape(one.source) != known.shape(one.result) for one in found):
            graph = remove_attributes(graph, ["_output_shapes"])  # those behind a crop are of the cropped picture


def augmentations(graph: Graph, known: Inferred | None = None) -> Iterator[Augmentation]:
    """The scopes that augment what is fed, each draw in the smallest one; see ``repaired``.

    One that crops is named when there are no others, as what is behind it may draw for each pixel that it leaves.

    Args:
        graph: with its outputs.
        known: what is known of its tensors; computed where it is not given.
    """
    needed = reachable(graph, graph.outputs, missing_ok=True)
    draws = [node.name for node in graph if _draws(node) and node.name in needed]
    if not draws:
        return
    finder = _Finder(graph, known or infer(graph, outputs=graph.outputs), needed)
    taken: set[str] = set()
    for may_crop in (False, True):
        for draw in draws:
            if not any(draw.startswith(f"{scope}/") for scope in taken):
                found = finder.around(draw, may_crop=may_crop)
                if found is not None:
                    taken.add(found.scope)
                    yield found
        if taken:
            return


def stored_augmentations(graph: Graph) -> list[str]:
    """The scopes that augment, by their names, in a model as it is stored, its calls not inlined.

    Only what the outputs call is looked at.
    """
    waiting = [graph[name] for name in reachable(graph, graph.outputs, missing_ok=True)]
    found: dict[str, None] = {}
    called: set[str] = set()
    while waiting:
        node = waiting.pop()
        if _draws(node) and (named := SCOPE.search(node.name)):
            end = node.name.find("/", named.end())
            found[node.name[:end] if end >= 0 else node.name] = None
        for value in node.attrs.values():
            if isinstance(value, Func) and value.name not in called and value.name in graph.functions:
                called.add(value.name)
                waiting += graph.functions[value.name].nodes
    return list(found)


class _Finder:
    """What of a graph comes from where, by the names of nodes."""

    def __init__(self, graph: Graph, known: Inferred, needed: set[str]) -> None:
        self.graph, self.known, self.needed = graph, known, needed
        fed = [node.name for node in graph if node.op in PLACEHOLDERS]
        self._of_data = {*fed, *_behind(graph, fed)}
        self._drawn = {node.name for node in dependents(graph, (node.name for node in graph if _draws(node)))}
        self._layers = {node.name for node in graph if self._has_weights(node)}
        self._before_layers = reachable(graph, [node.name for node in graph if _may_be_a_layer(node)], missing_ok=True)
        self._behind_layers = {*self._layers, *(node.name for node in dependents(graph, self._layers))}

    def around(self, draw: str, *, may_crop: bool = False) -> Augmentation | None:
        """The smallest scope with this draw that augments."""
        end = draw.find("/")
        scopes = []
        while end >= 0:
            scopes.append(draw[:end])
            end = draw.find("/", end + 1)
        for scope in reversed(scopes):
            inside = {name for name in self.needed if name == scope or name.startswith(f"{scope}/")}
            if inside & self._layers:
                return None
            ends = self._ends(inside)
            if ends is not None and self._augments(scope, inside) and self._fits(*ends, may_crop):
                return Augmentation(scope, *ends, draw)
        return None

    def _ends(self, inside: set[str]) -> tuple[str, str] | None:
        """The one tensor of data that goes into these nodes, and the one node whose result comes out."""
        sources: set[str] = set()
        results: set[str] = set()
        for name in inside:
            node = self.graph[name]
            for ref in node.data_inputs:
                if node_name(ref) not in inside and node_name(ref) in self._of_data:
                    sources.add(ref.removesuffix(":0"))
            for reader in self.graph.consumers.get(name, ()):
                if reader.name not in inside and reader.name in self.needed:
                    results.update(ref.removesuffix(":0") for ref in reader.data_inputs if node_name(ref) == name)
        results.update(ref.removesuffix(":0") for ref in self.graph.outputs if node_name(ref) in inside)
        drawn = {ref for ref in results if node_name(ref) in self._drawn & self._of_data}
        if len(sources) != 1 or len(drawn) != 1 or len(results) != 1:
            return None
        [source], [result] = sources, drawn
        return (source, result) if parse_ref(result).port == 0 else None

    def _augments(self, scope: str, inside: set[str]) -> bool:
        """Whether a scope is a layer that keeps the state of its own seed, or is named as one that augments."""
        return SCOPE.search(scope.rpartition("/")[2]) is not None or any(
            name.rpartition("/")[0] == scope and self._reads_seed(self.graph[name]) for name in inside
        )

    def _reads_seed(self, node: Node) -> bool:
        """Whether a node reads what a generator of seeds keeps, two whole numbers."""
        if node.op not in {"ReadVariableOp", "Identity"}:
            return False
        dtype = self.known.dtype(node.name)
        return dtype is not None and dtype.name == "int64" and self.known.shape(node.name).dims == (2,)

    def _fits(self, source: str, result: str, may_crop: bool) -> bool:
        """Whether the one tensor can stand in the other's place, before layers that take it and behind no weights."""
        before, after = self.known.shape(source).dims, self.known.shape(result).dims
        dtypes = self.known.dtype(source), self.known.dtype(result)
        if node_name(result) not in self._before_layers:
            return False
        if node_name(source) in self._behind_layers or before is None or after is None or None in dtypes:
            return False
        if len(before) != len(after) or len(before) < LEAST_RANK:
            return False
        return before == after or (may_crop and self._fits_cropped(source, result))

    def _fits_cropped(self, source: str, result: str) -> bool:
        """Whether the rest of the model takes a picture as it was before a crop, with results of the same shape."""
        passed = Augmentation("", source, result, "")
        tried = self.graph.map_nodes(lambda node: _handed_on(self.known, passed if node.name == result else None, node))
        tried = remove_attributes(tried, ["_output_shapes"])
        known = infer(tried, outputs=self.graph.outputs)
        return not (set(known.problems) - set(self.known.problems)) and all(
            known.shape(ref) == self.known.shape(ref) for ref in self.graph.outputs
        )

    def _has_weights(self, node: Node) -> bool:
        """Whether a node combines data with weights that were learned."""
        if node.op not in ops_with("layer"):
            return False
        for ref in node.data_inputs:
            if node_name(ref) in self._of_data or node_name(ref) in self._drawn:
                continue
            sizes = self.known.shape(ref).dims
            if sizes is None or None in sizes:
                return True
            count = 1
            for size in sizes:
                count *= size or 0
            if count >= LEAST_WEIGHTS:
                return True
        return False


def _may_be_a_layer(node: Node) -> bool:
    """Whether a node may combine data with weights, however few, or calls what may; and does not augment itself."""
    return node.op in ops_with("layer", "call", "branch", "loop") and SCOPE.search(node.name) is None


def _draws(node: Node) -> bool:
    if node.op.startswith("StatelessRandomGet"):
        return False  # the generator's key and kind
    return node.op in RANDOM or node.op.startswith(_SEEDED)


def _behind(graph: Graph, sources: list[str]) -> Iterator[str]:
    """The nodes that are computed with the elements of these, and not with their sizes alone."""
    behind = set(sources)
    looks_only = ops_with("shape")
    for node in dependents(graph, sources):
        if node.op not in looks_only and any(node_name(ref) in behind for ref in node.data_inputs):
            behind.add(node.name)
            yield node.name


def _handed_on(known: Inferred, found: Augmentation | None, node: Node) -> Node:
    """The node that hands on what goes into its scope, in the type of what came out."""
    if found is None:
        return node
    given, wanted = known.dtype(found.source), known.dtype(found.result)
    assert given is not None
    assert wanted is not None
    if given is wanted:
        return Node(node.name, "Identity", [found.source], {"T": given}, node.device)
    return Node(node.name, "Cast", [found.source], {"SrcT": given, "DstT": wanted}, node.device)
