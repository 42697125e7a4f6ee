"""Finds dropout and takes it out, all of it or what keeps everything; and noise that training adds to layers.

TensorFlow exports dropout as ``x / keep * floor(uniform + keep)``, as ``x * scale * cast(uniform >= rate)`` or as a
SelectV2. Where keep is 1, or rate 0, the mask is all ones, as uniform numbers reach from 0 up to, but not, 1. An alpha
dropout is ``a * (x * mask + b * (1 - mask)) + c``. Gaussian noise is ``x + normal``, or ``x * normal`` of mean 1.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from pocketgraph.graph import Graph, Node, Tensor, node_name
from pocketgraph.graph.op_traits import BINARY_SWITCHES, PASSES, PRODUCTS, QUOTIENTS, SELECTS, SUMS, ops_with
from pocketgraph.graph.order import dependents
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.shapes.infer import Inferred, infer
from pocketgraph.passes.constant_values import ConstantValues

_RANDOM = ops_with("uniform_noise")
_NORMAL = ops_with("normal_noise")
_LAYERS = ops_with("matrix_product", "convolution", "batch_norm")
MASKS = ops_with("order") | {"Floor"}
OF_RATE = ops_with("sum", "difference", "product", "quotient", "reciprocal", "passes", "switch") | {"Cast"}
"""What tf.nn.dropout computes its rate with."""
DEPTH = 8  # nodes between a mask and its random numbers, or a scale and its rate; exporters write at most five


class Tensors(Protocol):
    """What dropout is looked for in: a graph, or the part of one that a plan needs."""

    def producer(self, ref: str) -> Node | None:
        """The node that makes a tensor, past those that only pass it on; None for one that is fed or not there."""

    def value(self, ref: str) -> Array | None:
        """The value of a small tensor where it is the same in every run."""


class Mask(NamedTuple):
    """A tensor of zeros and ones, or of truths, that random numbers decide.

    Attributes:
        noise: the node that draws them.
        keeps_everything: whether all of it is certainly ones.
    """

    noise: Node
    keeps_everything: bool


def without_dropout(graph: Graph, *, only_noop: bool = False) -> tuple[Graph, dict[str, str]]:
    """The graph in which every dropout, and every layer of noise, hands on what goes into it, and a line for
    each, by its node.

    Given:   x = Placeholder(dtype=float)
             keep_prob = Placeholder(dtype=float)
             scaled = RealDiv(x, keep_prob, T=float)
             size = Shape(x, T=float)
             noise = RandomUniform(size, dtype=float)
             sum = Add(keep_prob, noise, T=float)
             mask = Floor(sum, T=float)
             y = Mul(scaled, mask, T=float)
    Result:  y = Identity(x, T=float)

    What nobody reads any more stays in the graph. So does noise whose size or shape is not that of one number and of
    what it is added to, as a draw from a distribution that the model gives, and noise that no layer follows, as that of
    a policy that explores.

    Args:
        only_noop: take out only the dropouts whose rate is known to be 0 (a keep_prob bound to 1), which do nothing.
    """
    if not any(node.op in _RANDOM | _NORMAL for node in graph):
        return graph, {}
    tensors = _GraphTensors(graph)
    found: dict[str, Node] = {}
    lines: dict[str, str] = {}
    for node in graph:
        match = _source_and_mask(tensors, node)
        if match is None or (only_noop and not match[1].keeps_everything):
            continue
        source, mask = match
        found[node.name] = Node(node.name, "Identity", [source, *node.control_inputs], {"T": node.dtype()}, node.device)
        did = "added or multiplied" if mask.noise.op in _NORMAL else "dropped out"
        lines[node.name] = f"'{node.name}' {did} what '{mask.noise.name}' said; it hands on '{source}'"
    return graph.map_nodes(lambda node: found.get(node.name, node)), lines


def is_noise_of_dropout(graph: Graph, name: str) -> bool:
    """Whether what this node draws is what ``without_dropout`` takes out: it decides what a dropout lets through, or is
    a layer's noise."""
    tensors = _GraphTensors(graph)
    near, seen = [name], {name}
    for _ in range(2 * DEPTH):
        near = [node.name for place in near for node in graph.consumers.get(place, ()) if node.name not in seen]
        seen.update(near)
        for place in near:
            match = _source_and_mask(tensors, graph[place])
            if match is not None and match[1].noise.name == name:
                return True
    return False


def mask_of(tensors: Tensors, ref: str) -> Mask | None:
    """The mask that a tensor is, ``floor(keep + noise)`` or ``noise >= rate``; None when it is none."""
    node = tensors.producer(ref)
    for _ in range(DEPTH):
        if node is None or node.op != "Cast":
            break
        node = tensors.producer(node.data_inputs[0]) if node.data_inputs else None
    if node is None or node.op not in MASKS or not node.data_inputs:
        return None
    if node.op != "Floor":
        for noise, rate in _both_ways(node):
            drawn = _drawn(tensors, noise)
            if drawn is not None and _is_rate(tensors, rate):
                is_above = node.op == "GreaterEqual" and noise == node.data_inputs[0]
                return Mask(drawn[0], drawn[1] and is_above and is_number(tensors, rate, 0))
        return None
    total = tensors.producer(node.data_inputs[0])
    for keep, noise in _both_ways(total) if total is not None and total.op in SUMS else ():
        drawn = _drawn(tensors, noise)
        if drawn is not None and _is_rate(tensors, keep) and _may_keep(tensors, keep):
            return Mask(drawn[0], drawn[1] and is_number(tensors, keep, 1))
    return None


def is_number(tensors: Tensors, ref: str, number: float) -> bool:
    """Whether a tensor is certainly this one number."""
    value = tensors.value(ref)
    if value is None or value.size != 1 or not (value.dtype.kind in "fiu" or value.dtype.name == "bfloat16"):
        return False
    return bool(np.all(value == number))


def with_invariants_passed_on(graph: Graph) -> Graph:
    """The graph to look at in which loops read what they do not change without an ``Enter``: as an Identity of it.

    That is no graph to run. Rates of dropouts in recurrent layers enter their loops so.
    """
    if not any(node.op == "Enter" for node in graph):
        return graph

    def passed_on(node: Node) -> Node:
        if node.op != "Enter" or node.attrs.get("is_constant") is not True:
            return node
        return Node(node.name, "Identity", node.inputs, {"T": node.dtype()}, node.device)

    return graph.map_nodes(passed_on)


class _GraphTensors:
    def __init__(self, graph: Graph) -> None:
        self.graph = with_invariants_passed_on(graph)
        self.value = ConstantValues(self.graph.nodes).value

    def producer(self, ref: str) -> Node | None:
        return self.graph.find_producer(ref, PASSES)

    @functools.cached_property
    def known(self) -> Inferred:
        return infer(self.graph)


def _both_ways(node: Node) -> Iterator[tuple[str, str]]:
    inputs = node.data_inputs
    if len(inputs) == 2:
        yield inputs[0], inputs[1]
        yield inputs[1], inputs[0]


def _source_and_mask(tensors: _GraphTensors, node: Node) -> tuple[str, Mask] | None:
    """What goes into the dropout that ends at ``node``, and its mask; None when it is none."""
    inputs = node.data_inputs
    if (changed := _noisy(tensors, node) or _alpha(tensors, node)) is not None:
        return changed
    if node.op in PRODUCTS:
        choices = list(_both_ways(node))
    elif node.op in SELECTS and len(inputs) == 3 and is_number(tensors, inputs[2], 0):
        choices = [(inputs[1], inputs[0])]
    else:
        return None
    for scaled, ref in choices:
        if len(tensors.graph.consumers.get(node_name(ref), ())) != 1:
            continue  # alpha dropout also adds what the mask leaves out
        mask = mask_of(tensors, ref)
        if mask is not None:
            return _unscaled(tensors, scaled, mask.noise) or scaled, mask
    return None


def _noisy(tensors: _GraphTensors, node: Node) -> tuple[str, Mask] | None:
    """What goes into a layer of Gaussian noise, or Gaussian dropout, that ends at ``node``, and the noise."""
    if node.op not in SUMS | PRODUCTS:
        return None
    for source, ref in _both_ways(node):
        drawn = _normal(tensors, ref)
        if drawn is None or drawn[1] != (node.op in PRODUCTS):
            continue
        shape = tensors.known.shape(source)
        follows = any(other.op in _LAYERS for other in dependents(tensors.graph, [node.name]))
        if shape.rank is not None and shape == tensors.known.shape(ref) and follows:
            return source, Mask(drawn[0], keeps_everything=False)
    return None


def _normal(tensors: Tensors, ref: str) -> tuple[Node, float] | None:
    """The node that draws the normal numbers that a tensor is, scaled and moved by constant numbers, and their mean."""
    mean, scale = 0.0, 1.0
    for _ in range(DEPTH):
        node = tensors.producer(ref)
        if node is None or node.op in _NORMAL:
            return (node, round(mean, 6)) if node is not None else None
        pairs = _both_ways(node) if node.op in SUMS | PRODUCTS else ()
        found = ((kept, value) for kept, other in pairs if (value := tensors.value(other)) is not None)
        ref, number = next(found, ("", None))
        if number is None or number.ndim:
            return None
        mean += scale * float(number) if node.op in SUMS else 0.0
        scale *= float(number) if node.op in PRODUCTS else 1.0
    return None


def _alpha(tensors: _GraphTensors, node: Node) -> tuple[str, Mask] | None:
    """What goes into the alpha dropout that ends at ``node``, and its mask."""
    for scaled in _beside_a_rate(tensors, node, SUMS):
        for mixed in _beside_a_rate(tensors, scaled, PRODUCTS):
            for kept, other in _both_ways(mixed) if mixed.op in SUMS else ():
                product = tensors.producer(kept)
                left_out = [
                    node_name(one.data_inputs[1])
                    for one in _beside_a_rate(tensors, tensors.producer(other), PRODUCTS)
                    if one.op == "Sub" and is_number(tensors, one.data_inputs[0], 1)
                ]
                for source, ref in _both_ways(product) if product is not None and product.op in PRODUCTS else ():
                    mask = mask_of(tensors, ref) if node_name(ref) in left_out else None
                    if mask is not None:
                        return source, mask
    return None


def _beside_a_rate(tensors: Tensors, node: Node | None, ops: Collection[str]) -> Iterator[Node]:
    """What is added to, or multiplied with, one number that follows from a rate."""
    for kept, other in _both_ways(node) if node is not None and node.op in ops else ():
        found = tensors.producer(kept)
        if found is not None and found.op not in ("Const", "Placeholder") and _is_rate(tensors, other):
            yield found


def _drawn(tensors: Tensors, ref: str) -> tuple[Node, bool] | None:
    """The uniform random numbers that a tensor comes from through arithmetic with constants, and whether it holds them
    as they were drawn, perhaps times 1 or plus 0."""
    waiting = [(ref, True)]
    for _ in range(DEPTH * 2):
        if not waiting:
            break
        ref, is_as_drawn = waiting.pop()
        node = tensors.producer(ref)
        if node is not None and node.op in _RANDOM:
            return node, is_as_drawn
        if node is not None and (node.op in SUMS or node.op in PRODUCTS):
            neutral = 1 if node.op in PRODUCTS else 0
            for kept, other in _both_ways(node):
                waiting.append((kept, is_as_drawn and is_number(tensors, other, neutral)))
        elif node is not None and node.op in ("Sub", "Cast"):
            waiting.extend((source, False) for source in node.data_inputs)
    return None


def _unscaled(tensors: _GraphTensors, ref: str, noise: Node) -> str | None:
    """``x`` of x / keep or x * scale; the random numbers mostly have the shape of x, which tells them apart."""
    nodes = tensors.graph.nodes
    node = nodes.get(node_name(ref))
    if node is None or len(node.data_inputs) != 2 or node.op not in QUOTIENTS | PRODUCTS:
        return None
    first, second = node.data_inputs
    shape = nodes.get(node_name(noise.data_inputs[0])) if noise.data_inputs else None
    like = shape.data_inputs[0] if shape is not None and shape.op == "Shape" else ""
    if second == like and node.op in PRODUCTS and _is_rate(tensors, first):
        return second
    if _is_rate(tensors, second):
        return first
    if node.op in PRODUCTS and _is_rate(tensors, first):
        return second
    return None


def _is_rate(tensors: Tensors, ref: str) -> bool:
    """Whether a tensor is one number that follows from constants and placeholders of one number."""
    value = tensors.value(ref)
    if value is not None:
        return value.size == 1
    waiting = [ref]
    steps = 0
    while waiting:
        steps += 1
        node = tensors.producer(waiting.pop())
        if node is None or steps > 4 * DEPTH:
            return False
        if node.op == "Const":
            tensor = node.attrs.get("value")
            if not isinstance(tensor, Tensor) or tensor.size != 1:
                return False
        elif node.op.startswith("Placeholder"):
            shape = node.shape()
            if shape is not None and shape.rank not in (None, 0):
                return False
        elif node.op in OF_RATE:
            data = node.data_inputs[:1] if node.op in BINARY_SWITCHES else node.data_inputs
            waiting.extend(data)
        else:
            return False
    return True


def _may_keep(tensors: Tensors, ref: str) -> bool:
    """Whether a number can be the part that is kept: more than 0 and at most 1, where it is known."""
    value = tensors.value(ref)
    return value is None or 0.0 < float(value.reshape(-1)[0]) <= 1.0
