"""Grows a random graph: what a rule for an op may ask for, and how a node gets into the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import DType, Graph, Node, Shape, const, opdefs
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels import registry
from random_graphs import values
from random_graphs.choices import Choices

Inputs = Sequence[str]
COMMON = ("float", "float", "float", "int32", "int64", "double", "half", "bool", "uint8", "string")
LARGEST = 20_000  # elements that a tensor may have before it is left out of the pool


class UnfitError(Exception):
    """A rule cannot use the types that it was given."""


class Growth(Choices):
    """A graph that grows.

    Attributes:
        rng: where all choices come from.
        wild: whether sources hold NaN, infinities and extremes.
        floats: whether nearly all of it shall be float32.
        graph_nodes: the nodes so far.
        feeds: what the placeholders are given.
        pool: the values so far by tensor name, as our kernels see them.
        op, types: the op of the node that is being made, and its types by attribute.
        refused: the nodes that our kernels refused, with their words; nothing reads them.
    """

    def __init__(self, rng: np.random.Generator, wild: bool, floats: bool = False) -> None:
        self.rng = rng
        self.wild = wild
        self.floats = floats
        self.graph_nodes: list[Node] = []
        self.feeds: dict[str, Array] = {}
        self.pool: dict[str, Array] = {}
        self.dtypes: dict[str, DType] = {}
        self.types: dict[str, DType] = {}
        self.refused: dict[str, str] = {}
        self.count = 0
        self.op = ""

    def value(self, ref: str) -> Array:
        return self.pool[ref]

    def shape(self, ref: str) -> tuple[int, ...]:
        return self.pool[ref].shape

    # Sources

    def source(self, value: Any, dtype: DType | None = None, fixed: bool | None = None) -> str:
        """A Const, or a Placeholder that is fed ``value``."""
        array = np.asarray(value)
        dtype = dtype or DType.of_numpy(array.dtype)
        array = array.astype(dtype.numpy, copy=False)
        self.count += 1
        name = f"s{self.count}"
        if self.chance() if fixed is None else fixed or dtype.is_quantized:
            self.graph_nodes.append(const(name, array, dtype))
        else:
            shape = self.pick([Shape(array.shape), Shape(array.shape), Shape([None] * array.ndim)])
            self.graph_nodes.append(Node(name, "Placeholder", (), {"dtype": dtype, "shape": shape}))
            self.feeds[name] = array
        self.pool[name] = array
        self.dtypes[name] = dtype
        return name

    def const(self, value: Any, dtype: str | DType = "int32") -> str:
        """What tells an op how to compute: nearly always a constant."""
        kind = DType.named(dtype) if isinstance(dtype, str) else dtype
        return self.source(np.asarray(value), kind, fixed=self.chance(0.9))

    def new(self, dtype: DType, shape: Sequence[int]) -> str:
        return self.source(values.array(self.rng, dtype, tuple(shape), self.wild), dtype)

    def ordinary(self, dtype: DType, shape: Sequence[int], low: float, high: float) -> str:
        """A source of numbers between two bounds."""
        kind = dtype.numpy
        if kind.kind in "iu":
            return self.source(self.rng.integers(int(low), int(high) + 1, tuple(shape)).astype(kind), dtype)
        return self.source(self.rng.uniform(low, high, tuple(shape)).astype(kind), dtype)

    def tensor(self, dtype: DType, rank: int | None = None, least: int = 0, most: int = 5) -> str:
        """A tensor of this type: one that is there, or a new one."""
        fits = [
            ref
            for ref, value in self.pool.items()
            if self.dtypes[ref] == dtype and (value.ndim == rank if rank is not None else least <= value.ndim <= most)
        ]
        if fits and self.chance(0.65):
            return str(self.pick(fits[-8:]))
        return self.new(dtype, values.shape(self.rng, rank, least, min(most, 4)))

    def like(self, dtype: DType, shape: Sequence[int]) -> str:
        """A tensor of exactly this shape."""
        fits = [r for r, v in self.pool.items() if self.dtypes[r] == dtype and v.shape == tuple(shape)]
        return str(self.pick(fits)) if fits and self.chance() else self.new(dtype, shape)

    def broadcast(self, dtype: DType, shape: tuple[int, ...]) -> str:
        return self.like(dtype, values.broadcastable(self.rng, shape))

    def axis(self, rank: int, extra: int = 0) -> int:
        """An axis of a tensor of this rank, from the front or from the back."""
        if rank + extra == 0:
            raise UnfitError
        return self.int(-rank - extra, rank + extra - 1)

    def axes(self, rank: int) -> list[int]:
        chosen = [a for a in range(rank) if self.chance()]
        self.rng.shuffle(chosen)
        return [a - rank if self.chance(0.3) else a for a in chosen]

    def nonempty(self, dtype: DType, rank: int) -> str:
        return self.new(dtype, [self.int(1, 6) for _ in range(rank)])

    # Nodes

    def add(self, op: str, inputs: Inputs, attrs: Mapping[str, Any]) -> str | None:
        """Puts a node in, and its values into the pool when our kernel computes them. The node's name."""
        self.count += 1
        name = f"n{self.count}_{op}"
        node = Node(name, op, tuple(inputs), attrs)
        self.graph_nodes.append(node)
        try:
            with np.errstate(all="ignore"):
                results = registry.evaluate(node, [self.pool[ref] for ref in inputs])
        except PocketgraphError as error:
            self.refused[name] = str(error)
            return name
        dtypes = opdefs.output_dtypes(node)
        for port, result in enumerate(results):
            if port and op.startswith("FusedBatchNorm"):  # beside the first, what is no statistic is undefined
                break
            if port and not (attrs.get("compute_v", True) and attrs.get("compute_uv", True)):  # memory as it was
                break
            ref = name if port == 0 else f"{name}:{port}"
            if isinstance(result, np.ndarray) and result.size <= LARGEST:
                self.pool[ref] = result
                self.dtypes[ref] = dtypes[port]
        return name

    def graph(self) -> Graph:
        from pocketgraph.graph.graph import Versions

        return Graph(self.graph_nodes, versions=Versions(producer=987))
