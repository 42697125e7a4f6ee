"""What the tensors of one model are called in another one, which may be a file of another kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pocketgraph.errors import UsageError, option
from pocketgraph.graph import Graph, canonical, node_name
from pocketgraph.graph.graph import DEFAULT_SIGNATURE
from pocketgraph.runtime.comparison.compared_models import ComparedModel
from pocketgraph.runtime.feeding.default_tensors import default_fetches, needed_placeholders


class Counterparts:
    """Pairs of tensors: of the same name; else of the same public name; else, of files, the only ones left.

    Args:
        a: the model whose names the caller uses.
        b: the other one.

    Attributes:
        notes: which tensors were taken for each other though their names differ, a sentence each.
    """

    def __init__(self, a: ComparedModel, b: ComparedModel) -> None:
        self._a, self._b = a, b
        self.notes: list[str] = []
        is_file = a.is_file or b.is_file
        self._own_inputs = set(map(canonical, _inputs(b.graph))) if b.is_file else None
        self._inputs = _paired(_inputs(a.graph), _inputs(b.graph), _public(a.graph, 0), _public(b.graph, 0), is_file)
        self.computed = self._computed_inputs(a) if b.is_file and not a.is_file else {}
        self._outputs = _paired(_outputs(a.graph), _outputs(b.graph), _public(a.graph, 1), _public(b.graph, 1), is_file)

    def _computed_inputs(self, a: ComparedModel) -> dict[str, str]:
        """Inputs of a file that was made from a part of the other model: the tensor there that each of them was."""
        paired = set(self._inputs.values())
        plain = {_plain(name): name for name in a.graph.nodes}
        found = {}
        for own in self._own_inputs or ():
            name = plain.get(_plain(own), "")
            by_name = name and name not in map(node_name, _inputs(a.graph))
            if by_name and (own not in paired or self._is_leftover(own)):
                found[own] = canonical(name)
        self._inputs = {mine: theirs for mine, theirs in self._inputs.items() if theirs not in found}
        return found

    def _is_leftover(self, own: str) -> bool:
        """Whether an input was only paired because no other was left."""
        return any(theirs == own and _plain(mine) != _plain(own) for mine, theirs in self._inputs.items())

    def output(self, name: str) -> str:
        """An output's name in the other model."""
        if not self._b.is_file and node_name(name) in self._b.graph:
            return name
        return self._outputs.get(canonical(name), name)

    def has_output(self, name: str) -> bool:
        """Whether the other model has an output."""
        return node_name(self.output(name)) in self._b.graph

    def common_outputs(self) -> list[str]:
        """The outputs that A has for certain or is likely to have, as far as B has them too. Where B has none of them,
        but as many: the results of a single node, in their order, and the only inputs, whatever their names.

        Raises:
            UsageError: there are none.
        """
        likely = default_fetches(self._a.graph)
        if common := [name for name in likely if self.has_output(name)]:
            return common
        theirs = _outputs(self._b.graph)
        if len(likely) != len(theirs) or len(set(map(node_name, likely))) != 1:
            raise UsageError(
                f"none of the first model's likely outputs ({', '.join(likely)}) is in the second",
                hint=f"name the outputs to compare, e.g. {option('outputs')}=softmax",
            )
        ends = dict(zip(likely, theirs, strict=True))
        self._outputs |= {canonical(mine): other for mine, other in ends.items()}
        self._inputs |= _paired(_inputs(self._a.graph), _inputs(self._b.graph), {}, {}, sole=True)
        pairs = {mine: self.input(mine) for mine in _inputs(self._a.graph)} | ends
        self.notes += [
            f"'{mine}' is compared with '{other}'"
            for mine, other in pairs.items()
            if _plain_names(mine).isdisjoint(_plain_names(other))
        ]
        return list(likely)

    def input(self, name: str) -> str:
        """An input's name in the other model."""
        if self._own_inputs is None and node_name(name) in self._b.graph:
            return name
        return self._inputs.get(canonical(name), name)

    def missing(self, feeds: Mapping[str, Any]) -> dict[str, str]:
        """Inputs of the other model that these feeds leave open, and the tensors of this one that they stand for."""
        given = self.feeds(feeds)
        return {own: tensor for own, tensor in self.computed.items() if own not in map(canonical, given)}

    def feeds(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Feeds for the other model: those that it takes."""
        called = {self.input(name): value for name, value in feeds.items()}
        if self._own_inputs is None:
            return {name: value for name, value in called.items() if node_name(name) in self._b.graph}
        return {name: value for name, value in called.items() if canonical(name) in self._own_inputs}


def _inputs(graph: Graph) -> list[str]:
    declared = [name for signature in graph.signatures.values() for name in signature.inputs.values()]
    if declared:
        return list(dict.fromkeys(map(canonical, declared)))
    fetches = _outputs(graph)
    return [canonical(name) for name in needed_placeholders(graph, fetches)] if fetches else []


def _outputs(graph: Graph) -> list[str]:
    declared = [name for signature in graph.signatures.values() for name in signature.outputs.values()]
    if declared:
        return list(dict.fromkeys(map(canonical, declared)))
    try:
        return [canonical(name) for name in default_fetches(graph)]
    except UsageError:  # the caller names those to compare
        return []


def _public(graph: Graph, side: int) -> dict[str, set[str]]:
    """The public names of tensors, as they are written, by tensor."""
    found: dict[str, set[str]] = {}
    for signature in graph.signatures.values():
        for name, tensor in (signature.inputs, signature.outputs)[side].items():
            found.setdefault(canonical(tensor), set()).add(name)
    return found


def _paired(
    mine: Iterable[str], theirs: list[str], public: Mapping[str, set[str]], others: Mapping[str, set[str]], sole: bool
) -> dict[str, str]:
    found: dict[str, str] = {}
    left = []
    exact = {canonical(key): other for other in theirs for key in others.get(other, ())}  # "f:1" is not "f_1" there
    for name in mine:
        names = {*_plain_names(name), *map(_plain, public.get(name, ()))}
        same = [other for other in theirs if names & {*_plain_names(other), *map(_plain, others.get(other, ()))}]
        if name in exact:
            found[name] = exact[name]
        elif same:
            found[name] = next((other for other in same if other not in exact.values()), same[0])
        else:
            left.append(name)
    free = [other for other in theirs if other not in found.values()]
    if sole and len(left) == len(free) == 1:
        found[left[0]] = free[0]
    return found


def _plain_names(name: str) -> set[str]:
    """A plain name, and what TensorFlow 2 calls it in the signature by whose key the input's name begins."""
    plain = _plain(name)
    return {plain, plain.removeprefix(f"{DEFAULT_SIGNATURE}_")}


def _plain(name: str) -> str:
    """A name without what formats write differently: ``a/b:0`` is ``a_b``, ``a/b:1`` is ``a_b_1``."""
    return re.sub(r"\W+", "_", canonical(name).removesuffix(":0"))
