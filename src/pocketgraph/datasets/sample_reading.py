"""How samples are read for a model: the scaling and size of pictures, the rate of recordings, sizes left open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from pocketgraph.datasets import presets
from pocketgraph.datasets.dataset import Dataset, open_dataset
from pocketgraph.datasets.inferred_scaling import inferred_scaling
from pocketgraph.datasets.model_input import ModelInput, RecordingReader
from pocketgraph.datasets.named_arrays import SampleSource, are_arrays, sized_by_arrays
from pocketgraph.datasets.picture_input import find_input
from pocketgraph.datasets.picture_scaling import PictureScaling
from pocketgraph.errors import PocketgraphError, option
from pocketgraph.graph import Graph, canonical
from pocketgraph.kernels.shapes import infer

Notify = Callable[[str], None]
"""Told what is easily overlooked, a sentence each."""


_TESTS_OF_GAPS = ("IsNan", "IsFinite", "IsInf")
"""Not a trait: what a model asks of numbers that it fills in."""


def takes_gaps(graph: Graph) -> bool:
    """Whether a model looks for NaN or infinity itself, as those do that fill the gaps of measurements."""
    nodes = chain(graph, *(function.nodes for function in graph.functions.values()))
    return any(node.op in _TESTS_OF_GAPS for node in nodes)


def unheard(text: str) -> None:
    """A notice that nobody is told."""


def once(notify: Notify) -> Notify:
    """Says each sentence only the first time."""
    said: set[str] = set()

    def tell(text: str) -> None:
        if text not in said:
            said.add(text)
            notify(text)

    return tell


@dataclass(frozen=True)
class SampleReading:
    """How the caller wants samples to be fed.

    Attributes:
        preset: the scaling of a known family of models; None for that which the graph's layers show.
        input_mean, input_std: pictures are fed as ``(value - mean) / std``; None for the preset's, else 0 and 255.
        input_width, input_height: of pictures, where the model leaves it open.
        sample_rate: samples a second that the model hears; None for what its graph says, else 16,000.
        notify: told what is easily overlooked.

    Raises:
        UsageError: there is no such preset, or ``input_std`` is 0.
    """

    preset: str | None = None
    input_mean: float | None = None
    input_std: float | None = None
    input_width: int | None = None
    input_height: int | None = None
    sample_rate: int | None = None
    notify: Notify = unheard

    def scaling(self, graph: Graph | None, inputs: Sequence[str] = ()) -> PictureScaling:
        """The scaling of pictures: as the caller says, else as the preset that is named or that the layers show, else
        as the graph's first nodes show.

        Args:
            graph: the model; None where nothing is to be concluded from it.
            inputs: what is fed, where the caller named it.
        """
        named = presets.get(self.preset) if self.preset else None
        chosen = named or (presets.recognise(graph) if graph is not None else None)
        mean, std = self.input_mean, self.input_std
        if chosen is not None and (mean is None or std is None):
            mean = chosen.mean if mean is None else mean
            std = chosen.std if std is None else std
            if named is None:
                self.notify(
                    f"the layers are those of {option('preset')}={chosen.name}: input_mean {mean:g}, input_std {std:g}"
                )
        if chosen is None and graph is not None and mean is None and std is None:
            mean, std = self._inferred(graph, inputs)
        return PictureScaling(mean, std, self.input_width, self.input_height)

    def _inferred(self, graph: Graph, inputs: Sequence[str]) -> tuple[float | None, float | None]:
        try:
            source = inputs[0] if len(inputs) == 1 else find_input(graph)
        except PocketgraphError:
            return None, None
        found = None if len(inputs) > 1 else inferred_scaling(graph, source)
        if found is None or found.is_usual:
            return None, None
        self.notify(found.note())
        return found.mean, found.std

    def sized(
        self,
        graph: Graph,
        shapes: Mapping[str, tuple[int, ...]],
        source: SampleSource | None,
        others: Sequence[tuple[int, ...]] = (),
    ) -> dict[str, tuple[int, ...]]:
        """The shapes of inputs, sizes that the graph leaves open being those of the samples.

        Arrays have sizes. Pictures are resized to what the caller says, else to what another model takes, which stands
        beside this one, else to what ``shapes`` has.

        Args:
            graph: it has the inputs, any of its tensors.
            shapes: of the inputs, some size where it is open.
            source: the samples.
            others: the shapes of the only inputs of the models beside it.
        """
        inferred = infer(graph)
        declared = {name: inferred.shape(canonical(name)).dims or () for name in shapes}
        left = {name: [at for at, size in enumerate(sizes) if at and size is None] for name, sizes in declared.items()}
        if source is None or not any(left.values()):
            return dict(shapes)
        if are_arrays(source):
            return sized_by_arrays(source, shapes, left)
        if len(shapes) != 1:
            return dict(shapes)
        ((name, shape),) = shapes.items()
        given = dict(zip(left[name], (self.input_height, self.input_width), strict=False))
        known = next((other for other in others if len(other) == len(shape)), shape)
        result = tuple(given.get(at) or known[at] if at in left[name] else size for at, size in enumerate(shape))
        is_guessed = known is shape and len(left[name]) == 2 and not any(given.values())
        if is_guessed and min(result[at] for at in left[name]) > 1:
            self.notify(
                f"the model leaves the size of its pictures open; they are resized to {result[left[name][1]]} x "
                f"{result[left[name][0]]} ({option('input_width')}, {option('input_height')})"
            )
        return {name: result}

    def open(
        self,
        source: SampleSource,
        inputs: tuple[ModelInput, ...],
        scaling: PictureScaling,
        reader: RecordingReader | None = None,
        *,
        has_gaps: bool = False,
    ) -> Dataset:
        """The samples for a model that takes ``inputs``; see ``open_dataset``.

        Broken pictures are left out, and arrays' samples that hold NaN or infinity but where the model takes such
        (``has_gaps``).
        """
        data, broken = open_dataset(source, inputs, scaling, reader, self.sample_rate).without_broken()
        for path, problem in broken.items():
            self.notify(f"{path} is left out: {problem}")
        if not has_gaps:
            data, words = data.without_gaps()
            if words:
                self.notify(words)
        return data

    def mention(self, data: Dataset) -> None:
        """Notes what is easily overlooked about the data."""
        for note in data.notes():
            self.notify(note)
