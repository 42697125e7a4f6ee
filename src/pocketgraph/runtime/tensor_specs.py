"""What a session takes and gives: names, element types and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pocketgraph.graph import DType, Graph, Shape
from pocketgraph.graph.graph import DEFAULT_SIGNATURE
from pocketgraph.runtime.feeding.default_tensors import default_fetches, needed_placeholders
from pocketgraph.runtime.signatures import INITIALIZER

if TYPE_CHECKING:
    from pocketgraph.kernels.shapes import Inferred

LARGE = 20_000  # nodes; of more, shapes that are not declared are not worked out


class TensorSpec(NamedTuple):
    """A tensor that a session takes or gives.

    Attributes:
        name: what ``run`` calls it.
        dtype: its element type; None where the graph does not tell.
        shape: its sizes, None where one is open; None altogether where their number is open.
    """

    name: str
    dtype: DType | None
    shape: tuple[int | None, ...] | None

    def __str__(self) -> str:
        """As in ``x float[?,224,224,3]``."""
        return f"{self.name} {self.dtype.name if self.dtype is not None else '?'}{Shape(self.shape)}"


class SignatureSpec(NamedTuple):
    """A named entry point: what it takes and gives, by the keys that ``run_signature`` knows."""

    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]


class TensorSpecs(Mapping[str, TensorSpec]):
    """Tensors of a graph; their types and shapes are worked out when one is first asked for.

    Args:
        of: the graph's.
        names: the tensors' names, by what they are called here.
    """

    def __init__(self, of: GraphSpecs, names: Mapping[str, str]) -> None:
        self._of, self._names = of, names

    def __getitem__(self, key: str) -> TensorSpec:
        name = self._names.get(key)
        if name is None:
            raise KeyError(f"{key!r} is no tensor here; they go by name: {', '.join(map(repr, self._names)) or 'none'}")
        inferred = self._of.shapes
        ref = name if ":" in name else f"{name}:0"
        node = self._of.graph.producer(name)
        declared = node.attr("dtype", None)
        dtype = declared if isinstance(declared, DType) else inferred.dtype(ref) if inferred is not None else None
        shape = inferred.shape(ref) if inferred is not None else node.shape()
        return TensorSpec(name, dtype, None if shape is None else shape.dims)

    def __contains__(self, key: object) -> bool:
        return key in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[type, tuple[dict[str, TensorSpec]]]:
        return dict, (dict(self),)  # without the graph

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)


class GraphSpecs:
    """What a graph takes and gives; its shapes are worked out when one is first asked for, once for all.

    Args:
        graph: the model.
        inferring: False for shapes that nodes declare; those of very large graphs are never worked out.
    """

    def __init__(self, graph: Graph, *, inferring: bool = True) -> None:
        self.graph = graph
        self._is_inferred = inferring and len(graph) <= LARGE

    @cached_property
    def shapes(self) -> Inferred | None:
        """Those that are worked out; None where only those count that nodes declare."""
        from pocketgraph.kernels.shapes import infer  # not for names alone: a warm start plans nothing

        return infer(self.graph) if self._is_inferred else None

    @cached_property
    def outputs(self) -> TensorSpecs:
        """What the graph is for, declared or likely, by name.

        Raises:
            UsageError: no likely output was found.
        """
        return self._by_name(default_fetches(self.graph))

    @cached_property
    def inputs(self) -> TensorSpecs:
        """What the outputs need to be fed, by name: as declared, by the signature of these outputs, or the placeholders
        they need; errors as for ``outputs``."""
        graph, fetches = self.graph, tuple(self.outputs)
        named = sorted(graph.signatures.items(), key=lambda item: item[0] != DEFAULT_SIGNATURE)
        entry = next((item.inputs for _, item in named if tuple(item.outputs.values()) == fetches), {})
        return self._by_name(graph.inputs or entry.values() or needed_placeholders(graph, fetches))

    @cached_property
    def signatures(self) -> dict[str, SignatureSpec]:
        """The named entry points that compute something."""
        return {
            key: SignatureSpec(TensorSpecs(self, item.inputs), TensorSpecs(self, item.outputs))
            for key, item in self.graph.signatures.items()
            if item.outputs and key != INITIALIZER
        }

    def _by_name(self, names: Iterable[str]) -> TensorSpecs:
        return TensorSpecs(self, {name: name for name in names})
