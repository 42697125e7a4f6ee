"""What the searches for layers that are trained share (pooled_layers.py, rectified_layers.py)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.kernels import blas_threads
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.recycled_arrays import recycled
from pocketgraph.kernels.registry import Context, plain
from pocketgraph.kernels.windows import Window, windows_of_op
from pocketgraph.runtime.engines.compilation_units import PartCall, Plan
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.engines.reference_arguments import is_reference_output

RunApart = Callable[[Mapping[str, Item], Sequence[Endpoint], Sequence[Endpoint]], Callable[..., tuple[Any, ...]]]
"""Makes what runs nodes one by one: (their items, inputs, outputs) give a function of the Run and the inputs."""

WINDOW = ("strides", "padding", "explicit_paddings", "dilations", "data_format")
"""The attributes that tell where a convolution's windows lie."""


def attributes(node: Node, names: Sequence[str]) -> list[Any]:
    """Their values, to be compared."""
    return [node.attr(name, b"NHWC" if name == "data_format" else None) or None for name in names]


def made_by(plan: Plan, endpoint: Endpoint, *ops: str) -> Item | None:
    """The node that a tensor comes from, where it is the first output of one of these ops."""
    item = plan.items.get(endpoint.node) if endpoint not in plan.fed and endpoint.port == 0 else None
    return item if item is not None and item.node.op in ops else None


def chain(plan: Plan, endpoint: Endpoint, *ops: str) -> list[Item]:
    """The nodes that a tensor comes from, each the first input of the one before it, of these ops one after the other.

    Args:
        plan: what is compiled.
        endpoint: the tensor.
        ops: one for each node, or several by ``|``.

    Returns:
        The nodes; none where there are others.
    """
    found: list[Item] = []
    for op in ops:
        item = made_by(plan, found[-1].data[0] if found else endpoint, *op.split("|"))
        if item is None:
            return []
        found.append(item)
    return found


def readers(plan: Plan, item: Item) -> list[Item]:
    """The nodes that take a node's outputs, one as often as it does."""
    return [plan.items[name] for found in plan.taken_from(item.node.name).values() for name in found]


def waited_for(plan: Plan) -> set[str]:
    """The nodes that others wait for."""
    return {name for item in plan.items.values() for name in item.control}


def trained_images(plan: Plan) -> set[Endpoint]:
    """The tensors that convolutions take whose weights are trained."""
    return {item.data[0] for item in plan.items.values() if item.node.op == "Conv2DBackpropFilter"}


def nodes_of(layer: Iterable[Item | None]) -> list[Item]:
    """The nodes of a layer, of which None stand for gradients that nobody wants."""
    return [item for item in layer if item is not None]


def names_of(layer: Iterable[Item | None]) -> frozenset[str]:
    """Their names."""
    return frozenset(item.node.name for item in nodes_of(layer))


def are_float_images(items: Iterable[Item]) -> bool:
    """Whether nodes compute with float32 images whose channels are last."""
    return all(
        item.node.attrs.get("T") is FLOAT and item.node.attr("data_format", b"NHWC") == b"NHWC" for item in items
    )


def are_free(plan: Plan, items: Collection[Item]) -> bool:
    """Whether nodes are different ones that run in every run, wait for nothing, and are run by no other engine."""
    names = {item.node.name for item in items}
    is_free = len(names) == len(items) and not any(item.control for item in items)
    return is_free and not any(name in plan.parts or plan.frames[name].depth for name in names)


def take_values(plan: Plan, parts: Sequence[PartCall]) -> bool:
    """Whether parts take values alone, and no variable by reference."""
    members = frozenset[str]().union(*(part.members for part in parts))
    inputs = {e for part in parts for e in part.inputs if e not in plan.fed and e.node not in members}
    return not any(is_reference_output(plan.items[e.node].node.op, e.port) for e in inputs)


class LayerCall:
    """A layer's part as a call: the Run and the inputs' values in, a tuple of the outputs out.

    Attributes:
        apart: does the same node by node.
        node: whose result is put into recycled memory.
    """

    traces_itself = True
    is_pure = True

    def __init__(self, apart: Callable[..., tuple[Any, ...]], node: Node) -> None:
        self.apart, self.node = apart, node

    def __call__(self, run: Any, *arrays: Any) -> tuple[Any, ...]:
        if run.trace is None and run.ledger is None and run.deadline is None:
            with blas_threads.at_most(1):  # OpenBLAS's threads would wait for each other in many small products
                found = self.fused(run, *arrays)
            if found is not None:
                return found
        return self.apart(run, *arrays)

    def fused(self, run: Any, *arrays: Any) -> tuple[Any, ...] | None:
        """The outputs in one go; None where these values are not for that."""
        raise NotImplementedError

    def result(self, run: Any, shape: tuple[int, ...]) -> Array:
        """Memory for the node's result, float32."""
        context = Context(self.node, run.state, caller=run.caller)
        return recycled(context, shape, np.float32, is_aligned=True)


def layer_part(
    node: Node,
    members: Iterable[Item],
    inputs: Sequence[Endpoint],
    outputs: Sequence[Endpoint],
    run_apart: RunApart,
    call: Callable[[Callable[..., tuple[Any, ...]]], LayerCall],
) -> PartCall:
    """Nodes of a layer as a part.

    Args:
        node: whose name it bears.
        members: the nodes.
        inputs, outputs: what they take and give.
        run_apart: makes what runs nodes one by one.
        call: makes the part's call of that.
    """
    names = {item.node.name: item for item in members}
    made = call(run_apart(names, inputs, outputs))
    return PartCall(node, frozenset(names), tuple(inputs), tuple(outputs), made, takes_run=True)


def first_outputs(items: Iterable[Item]) -> tuple[Endpoint, ...]:
    """The first output of each node."""
    return tuple(Endpoint(item.node.name, 0) for item in items)


def has_windows_of(conv: Item, gradients: Iterable[Item | None]) -> bool:
    """Whether gradients of a convolution, of which None stand for those that nobody wants, have its windows."""
    own = attributes(conv.node, WINDOW)
    return all(attributes(each.node, WINDOW) == own for each in gradients if each)


class ConvolutionWindows:
    """Where the windows of a convolution lie, by its node's attributes."""

    def __init__(self, node: Node) -> None:
        self.attributes = {name: plain(value) for name, value in node.attrs.items() if name in WINDOW}
        self._latest: tuple[tuple[int, ...], tuple[Window, ...]] = (), ()

    def over(self, x: Array, weights: Array) -> tuple[Window, ...]:
        """The windows along rows and columns of images [batch, rows, columns, channels]."""
        return self.of(x.shape[1:3], weights)

    def of(self, sizes: Sequence[int], weights: Array) -> tuple[Window, ...]:
        """The windows along so many rows and columns."""
        known, latest, asked = self.attributes, self._latest, (*sizes, *weights.shape[:2])
        if latest[0] != asked:
            self._latest = latest = asked, windows_of_op(
                sizes, weights.shape[:2], known["strides"], known["padding"], "NHWC",
                known.get("dilations", ()), known.get("explicit_paddings", ()),
            )  # fmt: skip
        return latest[1]
