"""The reference engine on the nodes of one compiled part: its results, and how much noise moves them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.budgets import allowance, limits, stated_memory
from pocketgraph.graph import DType, Graph, Node, Shape
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.groups import finishing
from pocketgraph.graph.op_traits import CONVOLUTIONS, MATRIX_PRODUCTS, PASSES, ops_with
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.recycled_arrays import PASS
from pocketgraph.kernels.registry import evaluate, plain
from pocketgraph.litert.lowering import MAY_QUANTIZE, WHOLE_NUMBERS
from pocketgraph.litert.narrow_floats import NARROW
from pocketgraph.runtime.engines.needed import Item, needed

if TYPE_CHECKING:
    from pocketgraph.runtime.certificates.agreement import Precision
    from pocketgraph.runtime.engines.live_bytes import LiveBytes
    from pocketgraph.runtime.profiling.profile import StepTrace

LARGE = 1e15  # beyond this, digits and powers are near the edges of float32
WIDE = 4 * 8  # bytes: of the doubles that an element becomes on the way
SUM_NOISE = 2.0**-30
"""How much one more number in a sum adds to the noise of its result: a 64th of float32's rounding unit.

With ``agreement.MARGIN`` it comes to half a unit: what n numbers of one sign, added one after the other, may be off (n
times the unit times the mean partial sum; N. Higham, Accuracy and Stability of Numerical Algorithms, section 4.2)."""

LOG_NOISE = 2.0**-25
"""How far LiteRT's logarithm of what is near 1 is off, where the result is near 0: 1.2e-7, and 1.8e-7 with the rounding
of the sum that it is of (tools/edge_values.py). ``agreement.MARGIN`` times this are 4.8e-7."""

LOGS_OF_SUMS = ops_with("log_of_sum")
OWN = ops_with("elementwise", "bias", "convolution")
"""Ops whose result of floats is new memory, which no kernel keeps, and no part of which is an operand's."""


class PartReference:
    """The nodes of a part, computed by the reference engine.

    Args:
        graph: the graph that they are of.
        inputs: what the part takes, in its order.
        outputs: what it gives, in its order.
        without: passes that engines are to do without.
        items: the nodes that are needed, where the caller knows them.
    """

    def __init__(
        self,
        graph: Graph,
        inputs: Sequence[Endpoint],
        outputs: Sequence[Endpoint],
        without: frozenset[str] = frozenset(),
        items: Mapping[str, Item] | None = None,
    ) -> None:
        self.without = without
        self.graph = graph
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self._items = items

    @cached_property
    def _order(self) -> list[Item]:
        """The part's nodes and the constants that they read, each after those it needs."""
        fed = frozenset(self.inputs)
        items = needed(self.graph, fed, self.outputs, ()) if self._items is None else self._items
        wanted = [e.node for e in reversed(self.outputs) if e not in fed]
        return [items[n] for n in finishing(wanted, lambda name: (e.node for e in items[name].data if e not in fed))]

    @cached_property
    def _owned(self) -> frozenset[Endpoint]:
        """The tensors whose memory is theirs alone, so that their last reader may overwrite it."""
        if PASS in self.without:
            return frozenset()
        made = {Endpoint(item.node.name, 0) for item in self._order if item.node.op in OWN}
        shared = {endpoint for item in self._order if item.node.op not in OWN for endpoint in item.data}
        return frozenset(made - shared - {*self.inputs, *self.outputs})

    @property
    def nodes(self) -> list[Node]:
        """The part's nodes and the constants that they read, each after those it needs."""
        return [item.node for item in self._order]

    @cached_property
    def precision(self) -> Precision:
        """How exact the part computes, by what its nodes say."""
        from pocketgraph.runtime.certificates.agreement import EIGHT_BITS, FLOAT, SHORT_FLOAT

        tables = (item.node.attrs for item in self._order)
        attrs = {id(table): table for table in tables}.values()  # nodes that say the same share a table
        if any(MAY_QUANTIZE in each or WHOLE_NUMBERS in each for each in attrs):
            return EIGHT_BITS
        types = {value.base.name for each in attrs for value in each.values() if isinstance(value, DType)}
        return FLOAT if types.isdisjoint(NARROW) else SHORT_FLOAT

    def run(
        self,
        arrays: Sequence[Array],
        change: Callable[[Array, int, float], Array] | None = None,
        trace: StepTrace | None = None,
    ) -> list[Array]:
        """The outputs for these inputs.

        Args:
            arrays: the inputs, which are not changed.
            change: what becomes of each tensor of floats that goes in or is computed; it is told of how many numbers
                each element is a sum, and how far LiteRT's may be off, however small they are.
            trace: is filled with the times of the nodes.

        Raises:
            PocketgraphError: the reference engine refuses them, or they take more memory than a stated limit allows.
            MemoryError: there is not enough.
        """
        values = _RunValues(self, change)
        for endpoint, array in zip(self.inputs, arrays, strict=True):
            view = np.asarray(array).view()
            view.flags.writeable = False
            values.keep(endpoint, view)
        with np.errstate(all="ignore"):
            for place, item in enumerate(self._order):
                node = item.node
                if node.op == "Const" and trace is None:  # more than half of a graph's nodes
                    values.held[Endpoint(node.name, 0)] = node.tensor.numpy()
                    continue
                taken = [values.held[endpoint] for endpoint in item.data]
                began = time.perf_counter_ns()
                made = values.computed(item, taken, place)
                if trace is not None:
                    trace.add(node.name, node.op, began, time.perf_counter_ns(), made, "reference")
                values.keep_results(item, taken, made)
                values.drop_last_read(item, place)
        return [np.array(values.held[endpoint]) for endpoint in self.outputs]

    def noisy(self, arrays: Sequence[Array], seed: int, size: float) -> list[Array] | None:
        """The outputs with noise in all tensors of floats on the way.

        Args:
            arrays: the inputs.
            seed: draws other noise.
            size: of the noise, as a share of each element; a tenth of it as a share of the largest one. Sums
                of many numbers get more, and so do logarithms of what is near 1.

        Returns:
            None where something on the way is not finite or beyond LARGE, so that it is no matter of rounding.
        """
        rng = np.random.default_rng(seed)
        is_tame = True

        def moved(array: Array, addends: int, least: float) -> Array:
            nonlocal is_tame
            wide = array.astype(np.float64)
            peak = float(np.max(np.abs(wide), initial=0.0))
            is_tame = is_tame and peak < LARGE  # a NaN is not
            far = size * (np.abs(wide) + 0.1 * peak) + least
            if addends > 1:  # partial sums of a small result may be as large as other results
                far += SUM_NOISE * addends * (np.abs(wide) + np.sqrt(np.mean(np.square(wide))))
            wide += far * rng.uniform(-1, 1, wide.shape)
            return wide.astype(array.dtype)

        found = self.run(arrays, moved)
        return found if is_tame else None

    def as_graph(self, arrays: Sequence[Array]) -> tuple[Graph, dict[str, Array]]:
        """The part as a graph of its own, and the feeds by the names of its placeholders."""
        fed = {endpoint: f"given_{place}" for place, endpoint in enumerate(self.inputs)}
        while any(name in self.graph.nodes for name in fed.values()):
            fed = {endpoint: f"{name}_" for endpoint, name in fed.items()}
        nodes = [
            Node(fed[e], "Placeholder", (), {"dtype": DType.of_numpy(array.dtype), "shape": Shape(array.shape)})
            for e, array in zip(self.inputs, arrays, strict=True)
        ]
        nodes += [item.node.replace(inputs=[fed.get(e) or str(e) for e in item.data]) for item in self._order]
        outputs = [str(endpoint) for endpoint in self.outputs]
        graph = self.graph.replace(nodes, inputs=tuple(fed.values()), outputs=outputs, signatures={})
        return graph, {fed[e]: array for e, array in zip(self.inputs, arrays, strict=True)}


class _RunValues:
    """The tensors of one run, each for as long as somebody reads it, within a stated limit of memory.

    Attributes:
        held: the values so far.
    """

    def __init__(self, part: PartReference, change: Callable[[Array, int, float], Array] | None) -> None:
        order = part._order
        self._ledger = None if stated_memory() is None else _ledger()
        self._last = {endpoint: place for place, item in enumerate(order) for endpoint in item.data}
        self._last.update(dict.fromkeys(part.outputs, len(order)))
        self._owned, self._change = part._owned, change
        self.held: dict[Endpoint, Any] = {}

    def computed(self, item: Item, taken: list[Any], place: int) -> tuple[Any, ...]:
        """What the node at a place of the order gives, in the memory of an operand that nobody else reads."""
        node, ledger = item.node, self._ledger
        if node.op in PASSES:
            return (taken[0],)
        if ledger is None:
            result = None
            if node.op in WRITERS:
                ends = [each for each in item.data if self._last[each] == place and each in self._owned]
                result = written(node, taken, [self.held[each] for each in ends])
            return evaluate(node, taken) if result is None else (result,)
        from pocketgraph.runtime.engines.memory_limit import bytes_of_node

        with limits(memory=ledger.limit - ledger.live):
            wanted = bytes_of_node(node, [0], taken)
            ledger.check(wanted, f"node '{node.name}'", f"comparing the output of this {node.op}")
            return evaluate(node, taken)

    def keep(self, endpoint: Endpoint, value: Any, addends: int = 1, least: float = 0.0) -> None:
        """Holds a tensor; floats as they are changed."""
        ledger, change = self._ledger, self._change
        is_number = change is not None and isinstance(value, (np.ndarray, np.generic))
        if is_number and change is not None and DType.of_numpy(value.dtype).is_floating:
            if ledger is not None:
                ledger.check(WIDE * value.size, f"node '{endpoint.node}'", "noise for a comparison")
            value = change(np.asarray(value), addends, least)
        self.held[endpoint] = value
        if ledger is not None:
            ledger.hold(value)
            ledger.settle(f"node '{endpoint.node}'")

    def keep_results(self, item: Item, taken: Sequence[Any], made: Sequence[Any]) -> None:
        """Holds those of a node's results that somebody reads."""
        for port, value in enumerate(made):
            endpoint = Endpoint(item.node.name, port)
            if item.node.op == "Const":
                self.held[endpoint] = value
            elif endpoint in self._last and endpoint not in self.held:
                shapes = [getattr(each, "shape", ()) for each in taken] if self._change is not None else []
                least = LOG_NOISE if item.node.op in LOGS_OF_SUMS else 0.0
                self.keep(endpoint, value, addends(item.node.op, shapes, np.shape(value)) if shapes else 1, least)

    def drop_last_read(self, item: Item, place: int) -> None:
        """Lets go of what the node at a place of the order read as the last one."""
        for endpoint in item.data:
            if self._last[endpoint] == place:
                self.held.pop(endpoint, None)


def addends(op: str, taken: Sequence[Sequence[int]], given: Sequence[int]) -> int:
    """How many numbers an element of a node's result is the sum of; 1 for what adds nothing up."""
    if op in ops_with("adds_up"):
        return math.prod(taken[0]) // max(1, math.prod(given))
    if op in MATRIX_PRODUCTS and len(taken) > 1:
        rows = math.prod(given) // max(1, given[-1]) if given else 1
        return math.prod(taken[0]) // max(1, rows)
    if op in CONVOLUTIONS and len(taken) > 1:
        weights = tuple(taken[1])
        given_for = slice(-2, None) if "Depthwise" in op else slice(-2, -1) if "Backprop" in op else slice(-1, None)
        return math.prod(weights) // max(1, math.prod(weights[given_for]))
    return 1


WRITERS: dict[str, np.ufunc] = {
    "Add": np.add, "AddV2": np.add, "BiasAdd": np.add, "Sub": np.subtract, "Mul": np.multiply, "RealDiv": np.divide,
    "Neg": np.negative, "Square": np.square, "Relu": np.maximum,
}  # fmt: skip
"""By op: what computes float32 as its kernel does, which need not be imported for it. Relu's second operand is 0."""
NOTHING = np.zeros((), np.float32)


def written(node: Node, taken: Sequence[Any], free: Iterable[Array]) -> Array | None:
    """An element-wise node's result; None where its kernel is to compute it, or to refuse it.

    Args:
        node: the node, whose op has such a function.
        taken: its operands.
        free: those of them that may be overwritten, as one of the result's shape is.
    """
    ufunc = WRITERS[node.op]
    operands = [*taken, NOTHING] if node.op == "Relu" else taken
    if len(operands) != ufunc.nin:
        return None
    if any(type(each) is not np.ndarray or each.dtype != NOTHING.dtype for each in operands):
        return None
    shape = max(operands, key=lambda each: each.size).shape
    if not all(_fits(each.shape, shape) for each in operands) or (node.op == "BiasAdd" and not _is_last(node, taken)):
        return None
    return np.asarray(ufunc(*operands, out=next((each for each in free if each.shape == shape), None)))


def _is_last(node: Node, taken: Sequence[Array]) -> bool:
    """Whether a bias is one of the last axis."""
    value, bias = taken
    is_first = str(plain(node.attr("data_format", "NHWC"))).startswith("NC")
    return value.ndim > 1 and bias.shape == value.shape[-1:] and not is_first


def _fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a shape becomes another one by broadcasting."""
    pairs = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(own in (1, size) for own, size in pairs)


def _ledger() -> LiveBytes:
    """What counts the bytes of a run whose memory is limited, as few are."""
    from pocketgraph.runtime.engines.live_bytes import LiveBytes

    return LiveBytes(allowance())
