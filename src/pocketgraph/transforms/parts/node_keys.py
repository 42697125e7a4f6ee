"""Keys by which nodes are compared: equal keys mean equal op, device and attributes, tensors as they are encoded."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable

from pocketgraph.formats.attr_value import encode_attr
from pocketgraph.graph import AttrValue, Func, Graph, Node, Tensor

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
