"""Models of two kinds to be judged side by side: graphs, and LiteRT files that may take and give codes."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from pocketgraph.datasets.class_scores import judged_outputs
from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.datasets.named_arrays import other_sizes_hint
from pocketgraph.errors import FormatError, PocketgraphError, UsageError, option
from pocketgraph.formats.model_file_facts import model_bytes
from pocketgraph.freezing.ready_models import Tell, read_model
from pocketgraph.freezing.training_dir import model_path
from pocketgraph.graph import Graph, canonical, node_name
from pocketgraph.graph.entry_points import check_names, unknown_node_hint
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.shapes import infer
from pocketgraph.litert.tensor_detail import TensorDetail
from pocketgraph.litert.trusted import TrustedInterpreter
from pocketgraph.litert.untrusted.isolated import IsolatedInterpreter
from pocketgraph.litert.writing.schema import IDENTIFIER
from pocketgraph.passes.training_switches import values_in_use
from pocketgraph.quantization.audio_preprocessing import (
    audio_preprocessing_of,
    behind_audio_preprocessing,
    input_shapes,
)
from pocketgraph.quantization.core.program_runner import Sample
from pocketgraph.quantization.stated_sizes import Sizes as Stated
from pocketgraph.quantization.stated_sizes import by_tensor, with_sizes
from pocketgraph.quantization.text_inputs import model_input
from pocketgraph.runtime.feeding.default_tensors import default_fetches

AT = 4  # where in a LiteRT file the identifier stands
Sizes = Callable[[Graph, "dict[str, tuple[int, ...]]"], "dict[str, tuple[int, ...]]"]
"""Gives the shapes of a graph's inputs with the sizes that the graph leaves open, 1 until then."""


class RunnableModel(Protocol):
    """A model that is ready to run."""

    path: str
    size: int | None
    inputs: tuple[ModelInput, ...]

    def run(self, sample: Sample) -> list[Array]:
        """The outputs as numbers for one array an input."""
        ...

    def identity(self) -> str:
        """What tells its answers from another model's: a digest of its content, and what is computed."""
        ...


@runtime_checkable
class QuantizedBytes(Protocol):
    """A model that can say its LiteRT file."""

    name: str

    def to_bytes(self, form: str) -> bytes:
        """The file's content."""
        ...


def check_feeds(feeds: Iterable[str], graphs: Sequence[Graph], said: str = "") -> None:
    """Refuses values, or what else an option says by name, for what no graph has.

    Raises:
        UsageError: there is such a value.
    """
    for name in feeds:
        if graphs and not any(node_name(name) in graph.nodes for graph in graphs):
            raise UsageError(
                f"{said or option('feed', 'feeds')}: the graph has no node '{name}'",
                hint=unknown_node_hint(graphs[0], name, is_fed=True),
            )


def is_litert(path: QuantizedBytes | str | os.PathLike[str]) -> bool:
    """Whether a file, or the only model in a folder, is one of LiteRT."""
    if not isinstance(path, (str, os.PathLike)):
        return True
    try:
        with open(model_path(path), "rb") as file:
            return file.read(AT + len(IDENTIFIER))[AT:] == IDENTIFIER
    except OSError:
        return False


def open_model(
    path: Graph | QuantizedBytes | str | os.PathLike[str],
    *,
    outputs: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    values: Mapping[str, Any] | None = None,
    threads: int | None = None,
    sizes: Sizes | None = None,
    signature: str | None = None,
    notify: Tell | None = None,
    shapes: Stated | None = None,
) -> RunnableModel:
    """A model file, ready to run.

    Args:
        path: a graph (any form that ``load`` takes) or a LiteRT file; or the graph, or the model, itself.
        outputs: to compute, by default the model's own; of a LiteRT file those that have these names come first.
        inputs: of a graph; its own by default.
        values: what a graph's other placeholders are fed with; of those that it has.
        threads: how many threads to compute with.
        sizes: see Sizes.
        signature, notify: see ``read_model``; of a file that is not LiteRT's.
        shapes: sizes of a graph's inputs, of those that it has; "" for the only one.

    Raises:
        FormatError: it is neither, or damaged.
        UsageError: the graph has no such inputs or outputs.
    """
    if isinstance(path, Graph):
        return GraphModel(path, path.source or "graph", outputs, inputs, values, threads, sizes, shapes)
    if not isinstance(path, (str, os.PathLike)) or is_litert(path):
        return LiteRTModel(path, threads or 1, outputs)
    name = os.fspath(path)
    return GraphModel(
        read_model(name, outputs, signature=signature, notify=notify), name, outputs, inputs, values, threads, sizes,
        shapes,
    )  # fmt: skip


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
        stated: Stated | None = None,
    ) -> None:
        from pocketgraph.runtime import Session
        from pocketgraph.runtime.feeding.feeds import FeedSpec
        from pocketgraph.runtime.tensor_names import feed_endpoints

        self.path, self.size = path, model_bytes(path) or None
        self.graph = graph
        fed = {canonical(name): value for name, value in (values or {}).items()}
        self.switches = values_in_use(graph, [*fed, *(inputs or ())])
        self.values: dict[str, Any] = {canonical(name): value for name, value in self.switches.items()}
        self.values |= {name: value for name, value in fed.items() if node_name(name) in graph.nodes}
        check_names(graph, outputs or (), is_fed=False)
        self.outputs = list(outputs) if outputs else judged_outputs(graph, default_fetches(graph))
        own = {
            name: size for name, size in by_tensor(graph, stated).items() if not name or node_name(name) in graph.nodes
        }
        self.graph = graph = with_sizes(graph, self.outputs, own, tuple(self.values))
        self.audio = None if inputs else audio_preprocessing_of(graph, self.outputs, tuple(self.values))
        shapes: dict[str, tuple[int, ...]]
        if self.audio is not None:
            shapes = dict(self.audio.shapes)
            graph = behind_audio_preprocessing(graph, shapes)
        else:
            shapes = input_shapes(graph, self.outputs, inputs or (), tuple(self.values))
            shapes = sizes(graph, shapes) if sizes is not None else shapes
        made = []
        for endpoint, label in feed_endpoints(graph, shapes).items():
            dtype = FeedSpec.of(graph, endpoint, label).numpy
            made.append(model_input(graph, label, shapes[label], dtype or np.dtype(np.float32)))
        self.inputs = tuple(made)
        self._session = Session(graph, threads=threads)

    @property
    def declared(self) -> tuple[ModelInput, ...]:
        """What it takes, with -1 for each size that is open."""
        shapes = [infer(self.graph).shape(canonical(item.name)).dims for item in self.inputs]
        return tuple(
            item if dims is None else replace(item, shape=tuple(-1 if size is None else size for size in dims))
            for item, dims in zip(self.inputs, shapes, strict=True)
        )

    def judge_by(self, place: int) -> None:
        """Gives the output at this place first from now on."""
        self.outputs.insert(0, self.outputs.pop(place))

    def run(self, sample: Sample) -> list[Array]:
        """The outputs for one sample."""
        return self._session.run(self.outputs, self._feeds(sample))

    def _feeds(self, sample: Sample) -> dict[str, Any]:
        return {**{item.name: array for item, array in zip(self.inputs, sample, strict=True)}, **self.values}

    def where_not_finite(self, sample: Sample) -> str:
        """Where the first NaN or infinity of a run begins, in words, see ``where_of``; "" where nothing tells."""
        from pocketgraph.runtime.not_finite import first_not_finite, where_of

        try:
            node = first_not_finite(self._session, self.outputs[0], self._feeds(sample))
        except PocketgraphError:
            return ""  # what is inside of loops and branches cannot be looked at
        return "" if node is None else where_of(self._session.graph, node)

    def identity(self) -> str:
        """Of the graph, its outputs, inputs and other feeds."""
        from pocketgraph.formats import to_bytes

        graph = hashlib.sha256(bytes(to_bytes(self.graph))).hexdigest()
        return repr((graph, self.outputs, self.inputs, sorted(self.values.items())))

    def __getstate__(self) -> dict[str, Any]:
        """Without the session: where the model goes there is a new one, on one core."""
        return {**self.__dict__, "_session": None, "audio": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from pocketgraph.runtime import Session

        self.__dict__.update(state)
        self._session = Session(self.graph, threads=1)


class LiteRTModel:
    """A LiteRT file: one of others in a process of its own; codes go in and come out as numbers.

    Attributes:
        seconds: how long the last run took, without the way to the process and back.
        declared: what it takes, with -1 for each size that is open.
    """

    def __init__(
        self, model: QuantizedBytes | str | os.PathLike[str], threads: int = 1, outputs: Sequence[str] | None = None
    ) -> None:
        """Raises FormatError where the file is damaged, or LiteRT does not take it."""
        self.seconds = 0.0
        self._wanted = list(outputs or ())
        self._interpreter: IsolatedInterpreter | TrustedInterpreter
        self._made: bytes | None = None
        if isinstance(model, (str, os.PathLike)):
            self.path = path = model_path(model)
            try:
                self.size: int | None = os.path.getsize(path)
                self._interpreter = IsolatedInterpreter(path, threads)
            except OSError as error:
                raise FormatError(f"the file cannot be read: {error.strerror}", where=path) from error
        else:
            self._made = content = model.to_bytes("tflite")
            self.path, self.size = model.name, len(content)
            self._interpreter = TrustedInterpreter(content, threads, model.name)
        self._given = self._interpreter.inputs
        self.declared = tuple(
            ModelInput(detail.name, detail.declared or detail.shape, detail.dtype) for detail in self._given
        )
        self._order = self.order(outputs or ())
        self.inputs = tuple(
            ModelInput(detail.name, detail.shape, np.dtype(np.float32) if detail.scale else detail.dtype)
            for detail in self._given
        )

    def order(self, wanted: Sequence[str]) -> list[int]:
        """The places of what the file gives, those of these names first."""
        return _in_order([detail.name for detail in self._interpreter.outputs], wanted)

    def give_first(self, wanted: Sequence[str]) -> None:
        """Gives the outputs of these names first from now on."""
        self._wanted = list(wanted)
        self._order = self.order(wanted)

    def judge_by(self, place: int) -> None:
        """Gives the output at this place first from now on."""
        self._order.insert(0, self._order.pop(place))
        self._wanted = self.outputs

    @property
    def outputs(self) -> list[str]:
        """The names of what it gives, in that order."""
        return [self._interpreter.outputs[place].name for place in self._order]

    def run(self, sample: Sample) -> list[Array]:
        """The outputs for one sample; codes are made and read here where the file wants them.

        Raises:
            UsageError: an array has sizes that the file does not take.
        """
        start = time.perf_counter()
        for array, detail in zip(sample, self._given, strict=True):
            _check_sizes(array.shape, detail, self.path)
        codes = [detail.coded(array) for detail, array in zip(self._given, sample, strict=True)]
        asked = time.perf_counter()
        found = self._interpreter.run(codes)
        answered = time.perf_counter()
        numbers = [self._interpreter.outputs[place].number(found[place]) for place in self._order]
        self.seconds = (asked - start) + self._interpreter.seconds + (time.perf_counter() - answered)
        return numbers

    def as_graph(self) -> Graph:
        """The operators of the file."""
        from pocketgraph.formats import tflite

        return tflite.parse(self._content(), self.path)

    def identity(self) -> str:
        """Of the file, and what of it is read first."""
        return repr((hashlib.sha256(self._content()).hexdigest(), self._wanted))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Where the model goes it is opened anew, on one core; a file of others in a process of its own there too."""
        if isinstance(self._interpreter, IsolatedInterpreter):
            return LiteRTModel, (self.path, 1, self._wanted)
        return LiteRTModel, (_LiteRTBytes(self.path, self._content()), 1, self._wanted)

    def _content(self) -> bytes:
        if self._made is not None:
            return self._made
        with open(self.path, "rb") as file:
            return file.read()


@dataclass(frozen=True)
class _LiteRTBytes:
    """A model that was made in memory."""

    name: str
    content: bytes

    def to_bytes(self, form: str) -> bytes:
        """The file's content."""
        return self.content


def _in_order(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """The places of what a file gives, wanted names first; names of a graph may have got an ending in the file.

    What has another name there (a result that is passed through has that of its source) stands for what is not found,
    in the file's order.
    """
    tensors = [canonical(name) for name in wanted]
    places: dict[int, int] = {}
    for fits in (lambda name, tensor: canonical(name) == tensor, str.startswith):
        for at, tensor in enumerate(tensors):
            found = (place for place, name in enumerate(names) if place not in places.values() and fits(name, tensor))
            if at not in places and (place := next(found, None)) is not None:
                places[at] = place
    others = iter([place for place in range(len(names)) if place not in places.values()])
    first = [places[at] if at in places else next(others, None) for at in range(len(tensors))]
    return [*(place for place in first if place is not None), *others]


def _check_sizes(given: tuple[int, ...], detail: TensorDetail, path: str) -> None:
    """Refuses sizes that LiteRT would, in words: a file has the ones that it was made with."""
    taken = tuple(detail.declared or detail.shape)
    if len(given) == len(taken) and all(size in (-1, have) for have, size in zip(given, taken, strict=True)):
        return
    raise UsageError(
        f"the input '{detail.name.removesuffix(':0')}' takes {list(taken)} and gets {list(given)}", where=path,
        hint=other_sizes_hint(detail.name, taken, given),
    )  # fmt: skip
