"""Keeps one of several nodes that compute the same."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from itertools import pairwise

import numpy as np

from pocketgraph.errors import TransformError, did_you_mean
from pocketgraph.formats.attr_value import encode_attr
from pocketgraph.graph import AttrValue, Func, Graph, Node, Tensor, node_name, opdefs
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.original.node_hash import node_hash
from pocketgraph.transforms.original.numbering import check_duplicate_names
from pocketgraph.transforms.tool import transform


@transform
def merge_duplicate_nodes(graph: Graph, *, compat: Compat = Compat.FIXED) -> Graph:
    """Merges nodes of the same op, inputs, device and attributes, until there are none left.

    Given:   a = Const(int32 3)
             b = Const(int32 3)
             y = Add(a, b, T=int32)
    Result:  a = Const(int32 3)
             y = Add(a, a, T=int32)

    Stateful ops, such as random ones, stay apart, and so do inputs and outputs of the graph. Constants are the same
    when their encoded values are.

    Differs from the original: the nodes keep their order (there, they come out shuffled); names of inputs and outputs
    may have a port; calls of the library's functions, and unknown ops, stay apart (there, they are an error).

    Raises:
        TransformError: an op is unknown, and ``compat`` is "original".
    """
    if compat.original:
        check_duplicate_names(graph)
    merger = _Merger(graph, compat)
    changed: Iterable[int] = range(len(graph))
    empty = graph.replace(())
    del graph  # quantize_nodes does not hold it either: it may be several times as large as what is left of it
    while changed:
        changed = merger.redirect(merger.duplicates(changed))
    if compat.original:  # the order decides on the names that rules keep which are run afterwards
        return empty.replace(merger.shuffled())
    return empty.replace(merger.left())


GONE = -1  # marks a key of the table that was taken out; who searches goes on behind it


class _Merger:
    """Works in rounds, as the original does, but looks only at the nodes whose inputs the last round changed.

    Nodes are called by their places in the graph, and what they read stands in arrays, for there may be very many.

    Attributes:
        nodes: those that are left, by place; None where one was dropped.
        sources, ports: what all the nodes read, one node's references after the other's, from ``starts[place]`` on.
        kept: the one node that has each key.
        consumers: who reads what replaced something, when they are others than in the graph.
        before: the nodes that the last round changed, as they were before; None in the first round.
        rounds: how many there were.
        past: for nodes of ops that stay apart, what they were until which round.
    """

    def __init__(self, graph: Graph, compat: Compat) -> None:
        self.kept = _KeptNodes(len(graph))
        self.before: dict[int, Node] | None = None
        self.rounds = 0
        self.past: dict[int, list[tuple[int, Node]]] = {}
        fetched = (*graph.inputs, *graph.outputs)
        self.protected = set(fetched) if compat.original else {node_name(ref) for ref in fetched}
        self.apart = _ops_that_stay_apart(graph, compat)
        self.static = array("q", static_keys(graph))
        self.nodes: list[Node | None] = list(graph)
        self.fixed = {place for place, name in enumerate(graph.nodes) if name in self.protected}
        self.starts, self.sources, self.ports = _references(graph)
        self.readers = _readers(len(graph), self.starts, self.sources)
        self.consumers: dict[int, set[int]] = {}
        self.stale: list[tuple[int, int]] = []  # keys that nodes had before the last round, and whose

    def left(self) -> list[Node]:
        """The nodes that are left, in the graph's order."""
        return [node for node in self.nodes if node is not None]

    def shuffled(self) -> list[Node]:
        """The nodes that are left, in the original's order: by their hashes. Those of ops that stay apart may have the
        same hash; they stand as the rounds before left them, that is by their hashes then."""
        keys = {place: (self._hash(node), self._past_hashes(place)) for place, node in self._left()}
        return [self._node(place) for place in sorted(keys, key=lambda place: keys[place])]

    def _left(self) -> Iterator[tuple[int, Node]]:
        return ((place, node) for place, node in enumerate(self.nodes) if node is not None)

    def _hash(self, node: Node) -> int:
        return node_hash(node, with_name=node.name in self.protected)

    def _past_hashes(self, place: int) -> tuple[int, ...]:
        """The hashes by which the last round sorted a node, and the ones before; for ops that stay apart."""
        found: list[int] = []
        node = self._node(place)
        versions = dict(self.past.get(place, ()))
        for number in reversed(range(self.rounds)) if node.op in self.apart else ():
            node = versions.get(number, node)
            found.append(self._hash(node))
        return tuple(found)

    def duplicates(self, changed: Iterable[int]) -> dict[int, int]:
        """Drops duplicates of and among the ``changed`` nodes; gives the place of what each is replaced by."""
        for old, place in self.stale:
            self.kept.forget(old, place)
        groups: dict[int, list[int]] = {}
        for place in changed:
            if self._node(place).op in self.apart:
                continue
            key = self._key(place)
            first = self.kept.get(key)
            if first is None:
                first = self.kept.put(key, place)
            if key in groups:
                groups[key].append(place)
            elif first != place:
                groups[key] = [first, place]
        renames: dict[int, int] = {}
        for key, places in groups.items():
            first = min(places, key=self.rank)
            self.kept.put(key, first)
            renames.update((place, first) for place in places if place != first)
        return renames

    def _node(self, place: int) -> Node:
        node = self.nodes[place]
        assert node is not None
        return node

    def _parts(self, place: int) -> tuple[object, ...]:
        """Equal for nodes that compute the same."""
        start, end = self.starts[place], self.starts[place + 1]
        return (
            self.static[place],
            place if place in self.fixed else -1,
            *self.sources[start:end],
            *self.ports[start:end],
        )

    def _key(self, place: int) -> int:
        """A number that only nodes with equal parts have."""
        parts = self._parts(place)
        key = hash(parts)
        while True:
            other = self.kept.get(key)
            if other is None or other == place or self._parts(other) == parts:
                return key
            key = hash((key, parts))

    def _users(self, place: int) -> set[int]:
        users = self.consumers.pop(place, None)
        if users is None:
            starts, readers = self.readers
            users = set(readers[starts[place] : starts[place + 1]])
        return users

    def rank(self, place: int) -> int:
        """Where a node stands among others: the first round goes by the graph, and the next by the hashes of the last
        (the nodes as they were then), which is how the original comes to the names that it keeps."""
        if self.before is None:
            return place
        return self._hash(self.before.get(place) or self._node(place))

    def redirect(self, renames: dict[int, int]) -> list[int]:
        """Makes the consumers of dropped nodes read what replaced them; gives the consumers, in the graph's order."""
        touched: set[int] = set()
        for place, kept in renames.items():
            users = self._users(place)
            touched |= users
            of_kept = self._users(kept)
            of_kept |= users
            self.consumers[kept] = of_kept
        names = {place: (self._node(place).name, self._node(kept).name) for place, kept in renames.items()}
        for place in renames:
            self.nodes[place] = None
        changed = sorted(place for place in touched if self.nodes[place] is not None)
        self.before = {place: self._node(place) for place in changed}
        self.stale = [(self._key(place), place) for place in changed]
        for place, node in self.before.items():
            inputs = list(node.inputs)
            for i, k in enumerate(range(self.starts[place], self.starts[place + 1])):
                source = self.sources[k]
                if source in renames:
                    inputs[i] = inputs[i].replace(*names[source], 1)
                    self.sources[k] = renames[source]
            self.nodes[place] = node.replace(inputs=inputs)
            if node.op in self.apart:
                self.past.setdefault(place, []).append((self.rounds, node))
        self.rounds += 1
        return changed


class _KeptNodes:
    """Which place has each key: a hash table of as few bytes as there can be, in two arrays with open addressing."""

    def __init__(self, most: int) -> None:
        """For so many keys at first; it grows."""
        self._empty(most)

    def _empty(self, most: int) -> None:
        self.mask = (1 << max(4, (2 * most).bit_length())) - 1
        self.places = array("i", [0]) * (self.mask + 1)  # counted from 1; 0 where there is none
        self.keys = array("q", [0]) * (self.mask + 1)
        self.count = 0

    def _slot(self, key: int) -> int:
        slot = key & self.mask
        while self.places[slot] and self.keys[slot] != key:
            slot = (slot + 1) & self.mask
        return slot

    def get(self, key: int) -> int | None:
        place = self.places[self._slot(key)]
        return place - 1 if place > 0 else None

    def put(self, key: int, place: int) -> int:
        """The place that is given."""
        slot = self._slot(key)
        if not self.places[slot]:
            self.keys[slot] = key
            self.count += 1
        self.places[slot] = place + 1
        if 3 * self.count > 2 * self.mask:
            self._grow()
        return place

    def forget(self, key: int, place: int) -> None:
        """Takes a key out if it is that place's."""
        slot = self._slot(key)
        if self.places[slot] == place + 1:
            self.places[slot] = GONE

    def _grow(self) -> None:
        old = [(key, place) for key, place in zip(self.keys, self.places, strict=True) if place > 0]
        self._empty(len(old))
        for key, place in old:
            self.put(key, place - 1)


def _references(graph: Graph) -> tuple[array[int], array[int], array[int]]:
    """Where each node's references start, and their sources and ports; a name that no node has gets a place, too."""
    places = dict(zip(graph.nodes, range(len(graph)), strict=True))
    starts, sources, ports = array("i", [0]), array("i"), array("i")
    for node in graph:
        for ref in node.inputs:
            name = node_name(ref)
            sources.append(places.setdefault(name, len(places)))
            ports.append(-1 if ref.startswith("^") else int(ref[len(name) + 1 :] or 0))
        starts.append(len(sources))
    return starts, sources, ports


def _readers(count: int, starts: array[int], sources: array[int]) -> tuple[array[int], array[int]]:
    """For each of so many nodes where its readers start, and the readers, in graph order."""
    read = np.array(sources, np.int32)
    lengths = [end - start for start, end in pairwise(starts)]
    readers = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    found = readers[np.argsort(read, kind="stable")]
    ends = np.cumsum(np.bincount(read, minlength=count), dtype=np.int32)
    return array("i", [0]) + array("i", ends.tobytes()), array("i", found.tobytes())


def _ops_that_stay_apart(graph: Graph, compat: Compat) -> set[str]:
    """Ops with a state of their own, unknown ones, and functions, which may call such ops."""
    apart: set[str] = set() if compat.original else set(graph.functions)
    for node in graph:
        if node.op in apart:
            continue
        found = opdefs.find(node.op)
        if found is None and compat.original:
            hint = did_you_mean(node.op, opdefs.names())
            raise TransformError(f"Op type not registered '{node.op}'", where=f"node '{node.name}'", hint=hint)
        if found is None or found.stateful:
            apart.add(node.op)
    return apart


SAMPLE = 256  # bytes from either end of an encoded tensor that tell most tensors apart


def static_keys(graph: Graph) -> list[int]:
    """A number for each node, in graph order; two nodes have the same when op, device and attributes are equal.

    Tensors are read whole only where nodes cannot be told apart by the ends of theirs.
    """
    numbers: dict[Hashable, int] = {}
    of_shared: dict[tuple[str, str, int], int] = {}  # nodes that a rule made often have one mapping of attributes
    times = Counter(id(node.attrs) for node in graph)

    def number(node: Node) -> int:
        if times[id(node.attrs)] == 1:
            return _number(numbers, _key(node, whole=False))
        same = (node.op, node.device, id(node.attrs))
        if same not in of_shared:
            of_shared[same] = _number(numbers, _key(node, whole=False))
        return of_shared[same]

    rough = [number(node) for node in graph]
    counts = [0] * len(numbers)
    for found in rough:
        counts[found] += 1
    whole_of_shared: dict[tuple[int, int], int] = {}
    for index, node in enumerate(graph):
        found = rough[index]
        if counts[found] > 1 and any(isinstance(value, (Tensor, tuple)) for value in node.attrs.values()):
            place = (found, id(node.attrs))
            if place not in whole_of_shared:
                exact = _number(numbers, (found, _key(node, whole=True)))
                if times[id(node.attrs)] == 1:
                    rough[index] = exact
                    continue
                whole_of_shared[place] = exact
            rough[index] = whole_of_shared[place]
    return rough


def _number(numbers: dict[Hashable, int], key: Hashable) -> int:
    return numbers.setdefault(key, len(numbers))


def _key(node: Node, whole: bool) -> Hashable:
    attrs = node.attrs
    return node.op, node.device, tuple((key, _value_key(attrs[key], whole)) for key in sorted(attrs))


def _value_key(value: AttrValue, whole: bool) -> Hashable:
    if isinstance(value, Tensor):
        return _tensor_key(value, whole)
    if isinstance(value, tuple):
        return tuple(_value_key(member, whole) for member in value)
    if isinstance(value, Func):
        return value.name, tuple((key, _value_key(value.attrs[key], whole)) for key in sorted(value.attrs))
    return type(value), str(value) if isinstance(value, float) else value


def _tensor_key(tensor: Tensor, whole: bool) -> Hashable:
    parts = [memoryview(part) for part in encode_attr(tensor)]
    if whole:
        digest = hashlib.blake2b(digest_size=16)
        for part in parts:
            digest.update(part)
        return digest.digest()
    head = b"".join(part[:SAMPLE] for part in parts)[:SAMPLE]  # however the encoding is cut into parts
    tail = b"".join(part[-SAMPLE:] for part in parts)[-SAMPLE:]
    return sum(len(part) for part in parts), head, tail
