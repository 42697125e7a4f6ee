"""Models of two kinds to be judged side by side: graphs, and LiteRT files that may take and give codes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pocketgraph.errors import FormatError
from pocketgraph.graph import Graph, canonical, node_name
from pocketgraph.quantize.front import behind, front_of, input_shapes
from pocketgraph.quantize.running import Array, Sample
from pocketgraph.runtime.samples import sample_fetches

IDENTIFIER = b"TFL3"
SAVED_MODEL = "saved_model.pb"
AT = 4  # where in a LiteRT file the identifier stands
Sizes = Callable[[Graph, "dict[str, tuple[int, ...]]"], "dict[str, tuple[int, ...]]"]
"""Gives the shapes of a graph's inputs with the sizes that the graph leaves open, 1 until then."""


@dataclass(frozen=True)
class Input:
    """What a model takes in one place.

    Attributes:
        name: of the tensor.
        shape: its shape; 1 where it is open.
        dtype: the NumPy type of what is fed; float32 also where the file takes codes.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Model(Protocol):
    """A model that is ready to run."""

    path: str
    inputs: tuple[Input, ...]

    def run(self, sample: Sample) -> list[Array]:
        """The outputs as numbers for one array an input."""
        ...


def is_litert(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a LiteRT model."""
    try:
        with open(path, "rb") as file:
            return file.read(AT + len(IDENTIFIER))[AT:] == IDENTIFIER
    except OSError:
        return False


def open_model(
    path: str | os.PathLike[str],
    *,
    outputs: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    values: Mapping[str, Any] | None = None,
    threads: int | None = None,
    sizes: Sizes | None = None,
) -> Model:
    """A model file, ready to run.

    Args:
        path: a graph (any form that ``load`` takes) or a LiteRT file.
        outputs: to compute, by default the model's own; of a LiteRT file those that have these names come first.
        inputs: of a graph; its own by default.
        values: what a graph's other placeholders are fed with; of those that it has.
        threads: how many threads to compute with.
        sizes: see Sizes.

    Raises:
        FormatError: it is neither, or damaged.
        UsageError: the graph has no such inputs or outputs.
    """
    name = os.fspath(path)
    if is_litert(name):
        return LiteRTModel(name, threads or 1, outputs)
    return GraphModel(read_graph(name, outputs), name, outputs, inputs, values, threads, sizes)


def read_graph(path: str, outputs: Sequence[str] | None = None) -> Graph:
    """The graph of a file; that of a SavedModel's or a training's directory, with its variables as constants.

    Args:
        path: of the file or directory.
        outputs: what is to be computed; by default what the graph says.

    Raises:
        FormatError, FreezeError: it is neither, or damaged.
    """
    from pocketgraph.formats import load
    from pocketgraph.freezing import freeze
    from pocketgraph.freezing.variables import is_variable

    if not os.path.isdir(path):
        return load(path)
    graph = load(path) if os.path.exists(os.path.join(path, SAVED_MODEL)) else None
    if graph is not None and not any(map(is_variable, graph)):
        return graph
    return freeze(path, list(outputs) if outputs else None)


class GraphModel:
    """A graph in a session."""

    def __init__(
        self,
        graph: Graph,
        path: str = "",
        outputs: Sequence[str] | None = None,
        inputs: Sequence[str] | None = None,
        values: Mapping[str, Any] | None = None,
        threads: int | None = None,
        sizes: Sizes | None = None,
    ) -> None:
        from pocketgraph.runtime import Session
        from pocketgraph.runtime.feeds import FeedSpec
        from pocketgraph.runtime.tensor_names import feed_endpoints

        self.path = path
        self.graph = graph
        fed = {canonical(name): value for name, value in (values or {}).items()}
        self.values = {name: value for name, value in fed.items() if node_name(name) in graph.nodes}
        self.outputs = list(outputs) if outputs else list(sample_fetches(graph))
        self.front = None if inputs else front_of(graph, self.outputs, tuple(self.values))
        shapes: dict[str, tuple[int, ...]]
        if self.front is not None:
            shapes = dict(self.front.shapes)
            graph = behind(graph, shapes)
        else:
            shapes = input_shapes(graph, self.outputs, inputs or (), tuple(self.values))
            shapes = sizes(graph, shapes) if sizes is not None else shapes
        made = []
        for endpoint, label in feed_endpoints(graph, shapes).items():
            dtype = FeedSpec.of(graph, endpoint, label).numpy
            made.append(Input(canonical(label), shapes[label], dtype or np.dtype(np.float32)))
        self.inputs = tuple(made)
        self._session = Session(graph, threads=threads)

    def run(self, sample: Sample) -> list[Array]:
        """The outputs for one sample."""
        feeds = {item.name: array for item, array in zip(self.inputs, sample, strict=True)}
        return self._session.run(self.outputs, {**feeds, **self.values})


class LiteRTModel:
    """A LiteRT file in its interpreter; codes go in and come out as numbers."""

    def __init__(self, path: str, threads: int = 1, outputs: Sequence[str] | None = None) -> None:
        from ai_edge_litert.interpreter import Interpreter

        from pocketgraph.litert.runner import quiet

        self.path = path
        try:
            with quiet():
                self._interpreter: Any = Interpreter(model_path=path, num_threads=threads)
                self._interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            raise FormatError(f"LiteRT cannot run this file: {' '.join(str(error).split())}", where=path) from error
        self._given = self._interpreter.get_input_details()
        self._made = _in_order(self._interpreter.get_output_details(), outputs or ())
        self.inputs = tuple(
            Input(
                str(detail["name"]),
                tuple(int(size) for size in detail["shape"]),
                np.dtype(np.float32) if detail["quantization"][0] else np.dtype(detail["dtype"]),
            )
            for detail in self._given
        )

    def run(self, sample: Sample) -> list[Array]:
        """The outputs for one sample; codes are made and read here where the file wants them."""
        for detail, array in zip(self._given, sample, strict=True):
            self._interpreter.set_tensor(detail["index"], _coded(array, detail))
        self._interpreter.invoke()
        return [_number(self._interpreter.get_tensor(detail["index"]), detail) for detail in self._made]


def _in_order(details: list[dict[str, Any]], wanted: Sequence[str]) -> list[dict[str, Any]]:
    """What a file gives, those of the wanted names first; names of a graph may have got an ending in the file."""

    def place(detail: Mapping[str, Any]) -> int:
        name = str(detail["name"])
        found = (at for at, other in enumerate(wanted) if name == other or name.startswith(canonical(other)))
        return next(found, len(wanted))

    return sorted(details, key=place)


def _coded(array: Array, detail: Mapping[str, Any]) -> Array:
    scale, zero = detail["quantization"]
    if not scale:
        return np.ascontiguousarray(array, detail["dtype"])
    info = np.iinfo(detail["dtype"])
    result: Array = np.clip(np.rint(array / scale) + zero, info.min, info.max).astype(detail["dtype"])
    return result


def _number(array: Array, detail: Mapping[str, Any]) -> Array:
    scale, zero = detail["quantization"]
    if not scale:
        return np.asarray(array)
    result: Array = (array.astype(np.float32) - np.float32(zero)) * np.float32(scale)
    return result
