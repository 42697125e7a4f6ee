"""Folds what multiplies and shifts whole channels, before or behind a convolution or matrix product, into its weights.

``y = L(x * a + b) * s + o`` is ``y = L'(x) + c`` with one other set of weights, where L is linear and a, b, s and o
hold one number a channel. ``b`` must not meet the zeros of a padding, or it would be missing at the borders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pocketgraph.graph import AttrValue, Graph, Node, Tensor, const, node_name, parse_ref
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.op_traits import PLACEHOLDERS, ops_with
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.passes.batch_norm_parameters import affine_of, arranged
from pocketgraph.passes.channel_scaling import (
    LINEAR,
    has_padding,
    input_folded,
    output_channels,
    overflows,
    rank_of,
    scaled_weights,
)
from pocketgraph.passes.constant_values import ConstantValues

BATCH_NORMS = ops_with("batch_norm")
SUMS = ops_with("sum", "difference") | {"BiasAdd"}
"""Sums and differences with a constant, which fold into a bias."""
PRODUCTS = ops_with("product") | {"RealDiv", "Div"}
"""Products and quotients with a constant, which fold into weights."""


PARAMETER_OPS = frozenset({
    "Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "Neg", "Rsqrt", "Sqrt", "Square", "Reciprocal", "Inv", "Reshape",
    "ExpandDims", "Squeeze", "Maximum",
})  # fmt: skip
"""Not a trait: what exporters spell the parameters of batch norms with."""

MANY_UNITS = 64
"""The largest factor of an input's channels by the smallest, or a mean by its deviation, from which channels are in
units of their own; pictures have 2 at most, and quantizing makes up for less."""


class _AffineStep(NamedTuple):
    """What one node does to channel i: ``x * scale[i] + offset[i]``, float64; and which of its inputs x is."""

    node: Node
    source: int
    scale: Array
    offset: Array
    counts: bool


def fold_affine(graph: Graph, ops: frozenset[str], triggers: frozenset[str]) -> Graph:
    """The graph with chains of the given ops folded into the linear nodes beside them.

    Left alone: nodes that are inputs or outputs of the graph or are read elsewhere, types other than float, and what
    would not come out the same at the borders.

    Args:
        ops: the ops that may be folded, of SUMS, PRODUCTS and BATCH_NORMS.
        triggers: only chains with at least one of these are folded (so a bias alone stays as it is).
    """
    if not any(node.op in triggers for node in graph):
        return graph
    work = _AffineFolding(graph, ops, triggers)
    linear = [node.name for node in graph if node.op in LINEAR]
    for name in linear:
        work.fold(name, behind_only=True)
    for name in work.linear_names(linear):
        work.fold(name, behind_only=False)
    return work.result() if work.changed else graph


class _AffineFolding:
    """The graph while it is changed: every step is local, so the whole is linear in the number of nodes."""

    def __init__(self, graph: Graph, ops: frozenset[str], triggers: frozenset[str]) -> None:
        self.graph = graph
        self.ops = ops
        self.triggers = triggers
        self.nodes = dict(graph.nodes)
        self.fixed = {node_name(ref) for ref in (*graph.inputs, *graph.outputs)}
        self.readers: dict[str, dict[str, int]] = {}  # how often each node is read by each other one
        for node in graph:
            self._count(node)
        self.constants = ConstantValues(self.nodes, ops=PARAMETER_OPS, largest=1 << 20)
        self.before: dict[str, list[Node]] = {}
        self.renamed: dict[str, str] = {}
        self.changed = False

    def linear_names(self, names: Iterable[str]) -> list[str]:
        """What the linear nodes of these names are called now."""
        found = (self.renamed.get(name, name) for name in names)
        return [name for name in found if name in self.nodes and self.nodes[name].op in LINEAR]

    def result(self) -> Graph:
        nodes: list[Node] = []
        for name in self.graph.nodes:
            if name in self.nodes:
                nodes += self.before.pop(name, [])
                nodes.append(self.nodes[name])
        return self.graph.replace(nodes)

    def fold(self, name: str, *, behind_only: bool) -> None:
        """Folds what is around one linear node, if anything can be."""
        product = self.nodes[name]
        place = LINEAR[product.op]
        if name in self.fixed or product.attr("T", FLOAT) is not FLOAT or len(product.data_inputs) <= place.source:
            return
        holder = self._own_weights(product, place.weights)
        if holder is None:
            return
        weights = holder.tensor
        channels = output_channels(product, weights.shape)
        if channels is None:
            return
        behind = list(self._behind(product, channels))
        ahead = [] if behind_only else self._ahead(product, weights)
        counting = [i for i, step in enumerate(behind) if step.counts]
        if behind_only and not counting:
            return
        if not counting and not any(step.counts for step in ahead):
            return
        values = weights.numpy()
        offset = np.zeros(channels)
        if ahead:
            folded = self._folded_ahead(product, weights, ahead)
            if folded is None:
                ahead = []
                if not counting:
                    return
            else:
                values, offset = folded
        if not counting and not offset.any():
            behind = []
        scale = np.ones(channels)
        for step in behind:
            scale, offset = scale * step.scale, offset * step.scale + step.offset
        with np.errstate(all="ignore"):
            scaled = scaled_weights(product, Tensor.from_numpy(values), scale.astype(np.float32))
        if scaled is None or overflows(Tensor.from_numpy(values), scaled):
            return
        self._put(product, holder, scaled, offset.astype(np.float32), ahead, behind)

    def _own_weights(self, product: Node, index: int) -> Node | None:
        """The Const of a linear node's weights, when nothing else sees it."""
        name, port, _ = parse_ref(product.data_inputs[index])
        node = self.nodes.get(name)
        if node is None or port != 0 or name in self.fixed or not self._reads_alone(product.name, name):
            return None
        value = node.attrs.get("value") if node.op == "Const" else None
        return node if isinstance(value, Tensor) and value.dtype is FLOAT else None

    def _reads_alone(self, reader: str, name: str) -> bool:
        """Whether one node, and no other, takes a node's data, and once only."""
        for other in self.readers.get(name, ()):
            count = sum(node_name(ref) == name for ref in self.nodes[other].data_inputs)
            if count != (other == reader):
                return False
        return True

    def _behind(self, product: Node, channels: int) -> Iterator[_AffineStep]:
        """The steps behind a linear node, up to the last that can be folded into it."""
        current = product
        waiting: list[_AffineStep] = []
        while current.name not in self.fixed:
            readers = self.readers.get(current.name, {})
            if len(readers) != 1 or 1 not in readers.values():
                break
            reader = self.nodes[next(iter(readers))]
            indices = [i for i, ref in enumerate(reader.data_inputs) if ref in (current.name, f"{current.name}:0")]
            step = self._step(reader, indices[0], product, channels) if len(indices) == 1 else None
            if step is None:
                break
            waiting.append(step)
            current = reader
        yield from waiting

    def _ahead(self, product: Node, weights: Tensor) -> list[_AffineStep]:
        """The steps before a linear node, first to last, that are there for it alone."""
        place = LINEAR[product.op]
        channels = place.inputs(product, weights.shape)
        found: list[_AffineStep] = []
        if channels is None:
            return found
        ref, reader = product.data_inputs[place.source], product.name
        while True:
            name, port, _ = parse_ref(ref)
            node = self.nodes.get(name)
            if node is None or port != 0 or name in self.fixed or self.readers.get(name) != {reader: 1}:
                break
            step = self._first_step(node, product, channels)
            if step is None:
                break
            found.append(step)
            ref, reader = node.data_inputs[step.source], name
        found.reverse()
        while found and not self._keeps_shape(found[0], product, channels):
            del found[0]
        return found

    def _keeps_shape(self, step: _AffineStep, product: Node, channels: int) -> bool:
        """Whether a step's input has the shape of its result for certain: a constant may widen it."""
        if step.node.op in BATCH_NORMS:
            return True
        shape = self.shapes.shape(step.node.data_inputs[step.source])
        if shape.dims is None or len(shape.dims) != rank_of(product):
            return False
        return shape.dims[1 if _layout(product) == "NCHW" else -1] == channels

    @cached_property
    def shapes(self) -> Inferred:
        """The shapes of the graph as it was; what kept its name kept its shape."""
        return infer(self.graph, complete=False)

    def _first_step(self, node: Node, product: Node, channels: int) -> _AffineStep | None:
        for index in range(min(2, len(node.data_inputs))):
            if self.constants.value(node.data_inputs[index]) is None:
                return self._step(node, index, product, channels)
        return None

    def _folded_ahead(self, product: Node, weights: Tensor, ahead: list[_AffineStep]) -> tuple[Array, Array] | None:
        """Weights and offset with the steps before the node in them; None when that is not exact."""
        scale, offset = np.ones(1), np.zeros(1)
        for step in ahead:
            scale, offset = scale * step.scale, offset * step.scale + step.offset
        if offset.any() and has_padding(product, weights.shape):
            return None
        source = self.nodes.get(node_name(ahead[0].node.data_inputs[ahead[0].source]))
        if source is not None and source.op in PLACEHOLDERS and _evens_units(scale, offset):
            return None
        return input_folded(product, weights.numpy(), scale, offset)

    def _step(self, node: Node, index: int, product: Node, channels: int) -> _AffineStep | None:
        """What a node does to its input of this index, when that is to multiply and shift each channel."""
        if node.op not in self.ops or node.attr("T", FLOAT) is not FLOAT:
            return None
        counts = node.op in self.triggers and (node.op != "Sub" or index == 1)  # x - c is a mere shift
        form = _layout(product)
        if node.op in BATCH_NORMS:
            return self._batch_norm_step(node, index, product, channels)
        if len(node.data_inputs) != 2:
            return None
        if node.op == "BiasAdd" and (index != 0 or (product.op != "MatMul" and _layout(node) != form)):
            return None
        other = self.constants.value(node.data_inputs[1 - index])
        plain = "NHWC" if node.op == "BiasAdd" else form
        values = None if other is None else _per_channel(other, channels, plain, rank_of(product))
        if values is None or not np.isfinite(values).all():
            return None
        one, zero = np.ones(channels), np.zeros(channels)
        if node.op == "Mul":
            return _AffineStep(node, index, values, zero, counts)
        if node.op in ("RealDiv", "Div"):
            return _AffineStep(node, index, 1 / values, zero, counts) if index == 0 and values.all() else None
        if node.op == "Sub":
            return (
                _AffineStep(node, index, one, -values, counts)
                if index == 0
                else _AffineStep(node, index, -one, values, counts)
            )
        return _AffineStep(node, index, one, values, counts)

    def _batch_norm_step(self, node: Node, index: int, product: Node, channels: int) -> _AffineStep | None:
        if index != 0 or len(node.data_inputs) != 5 or product.op == "MatMul":
            return None
        if _layout(node) != _layout(product) or any(
            parse_ref(ref).port > 0 and node_name(ref) == node.name
            for reader in self.readers.get(node.name, ())
            for ref in self.nodes[reader].inputs
        ):
            return None
        if node.attr("is_training") and node.attr("exponential_avg_factor", 1.0) != 1.0:
            return None  # it mixes the batch's statistics into those that it is given
        parameters = [self.constants.value(ref) for ref in node.data_inputs[1:]]
        vectors = [p for p in parameters if p is not None and p.dtype == np.float32 and p.shape == (channels,)]
        if len(vectors) != 4:
            return None
        wide = [vector.astype(np.float64) for vector in vectors]
        scale, offset = affine_of(node, *arranged(node, wide), np.float64)
        if not (np.isfinite(scale).all() and np.isfinite(offset).all()):
            return None
        return _AffineStep(node, 0, scale, offset, node.op in self.triggers)

    def _put(
        self,
        product: Node,
        holder: Node,
        weights: Array,
        offset: Array,
        ahead: list[_AffineStep],
        behind: list[_AffineStep],
    ) -> None:
        """Exchanges the linear node and the steps around it for the linear node with other weights, and a bias."""
        self.changed = True
        last = behind[-1].node if behind else product
        gone = [step.node for step in (*ahead, *behind)]
        controls = dict.fromkeys(ref for node in (*gone, product) for ref in node.control_inputs)
        inputs = list(product.data_inputs)
        if ahead:
            inputs[LINEAR[product.op].source] = ahead[0].node.data_inputs[ahead[0].source]
        self._set(holder.replace(attrs={**holder.attrs, "value": Tensor.from_numpy(weights)}))
        for node in gone:
            self._drop(node)
        self._drop(product)
        if offset.any():
            name = product.name if behind else self._free(f"{product.name}_without_bias")
            bias = const(self._free(f"{product.name}_bn_offset"), offset)
            attrs: dict[str, AttrValue] = {"T": FLOAT}
            if "data_format" in product.attrs:
                attrs["data_format"] = _layout(product).encode()
            linear = product.replace(name=name, inputs=inputs)
            self._add(linear)
            self._add(bias)
            self._add(Node(last.name, "BiasAdd", (name, bias.name, *controls), attrs))
            if behind:
                self.before.setdefault(last.name, []).extend([*self.before.pop(name, []), bias])
            else:
                self.before.setdefault(last.name, []).extend([linear, bias])
            self.renamed[product.name] = name
        else:
            self._add(product.replace(name=last.name, inputs=(*inputs, *controls)))
            self.before.setdefault(last.name, []).extend(self.before.pop(product.name, []) if behind else [])
            self.renamed[product.name] = last.name
        self._sweep(ref for node in gone for ref in node.data_inputs)

    def _free(self, name: str) -> str:
        count, found = 0, name
        while found in self.nodes:
            count += 1
            found = f"{name}_{count}"
        return found

    def _set(self, node: Node) -> None:
        """Exchanges a node for one with the same inputs."""
        self.nodes[node.name] = node

    def _add(self, node: Node) -> None:
        self.nodes[node.name] = node
        self._count(node)

    def _drop(self, node: Node) -> None:
        del self.nodes[node.name]
        for ref in node.inputs:
            readers = self.readers[node_name(ref)]
            readers[node.name] -= 1
            if not readers[node.name]:
                del readers[node.name]

    def _count(self, node: Node) -> None:
        for ref in node.inputs:
            readers = self.readers.setdefault(node_name(ref), {})
            readers[node.name] = readers.get(node.name, 0) + 1

    def _sweep(self, refs: Iterable[str]) -> None:
        """Drops the constant nodes that nobody reads any more."""
        waiting = [node_name(ref) for ref in refs]
        while waiting:
            name = waiting.pop()
            node = self.nodes.get(name)
            if node is None or self.readers.get(name) or name in self.fixed or self.constants.value(name) is None:
                continue
            self._drop(node)
            waiting += [node_name(ref) for ref in node.data_inputs]


def _evens_units(scale: Array, offset: Array) -> bool:
    """Whether these factors and offsets bring numbers of many units to one scale. Weights that did so would sum numbers
    that cancel, and codes of the numbers themselves have no scale that suits all."""
    sizes = np.abs(scale[scale != 0])
    return bool(sizes.size and (sizes.max() > MANY_UNITS * sizes.min() or np.abs(offset).max() > MANY_UNITS))


def _layout(node: Node) -> str:
    form = node.attr("data_format", b"NHWC")
    return form.decode().replace("D", "") if isinstance(form, bytes) else "?"  # of volumes as a BiasAdd calls it


def _per_channel(values: Array, channels: int, form: str, rank: int) -> Array | None:
    """One float64 a channel, when an array that is broadcast against the channels' tensor has no more than that."""
    if values.dtype != np.float32 or values.ndim > rank:
        return None
    if values.size == 1:
        return np.full(channels, float(values.reshape(())))
    if values.size != channels:
        return None
    axis = values.ndim - (rank - 1 if form == "NCHW" else 1)
    if form not in ("NCHW", "NHWC") or axis < 0 or values.shape[axis] != channels:
        return None
    return values.reshape(-1).astype(np.float64)
