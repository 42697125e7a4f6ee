"""How samples are read for a model: the scaling and size of pictures, the rate of recordings, sizes left open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from pocketgraph.datasets import presets
from pocketgraph.datasets.evaluation_dataset import Dataset, open_dataset
from pocketgraph.datasets.file_lists import is_picture, is_recording
from pocketgraph.datasets.file_sizes import common_side, files_of, usual_length
from pocketgraph.datasets.image_loading import Scale
from pocketgraph.datasets.inferred_scaling import inferred_scaling
from pocketgraph.datasets.model_input import ModelInput, RecordingReader, signature_keys
from pocketgraph.datasets.named_arrays import SampleSource, are_arrays, sized_by_arrays
from pocketgraph.datasets.picture_input import find_input, is_single_picture, may_take_picture
from pocketgraph.datasets.picture_scaling import PictureScaling
from pocketgraph.datasets.recordings import USUAL_RATE
from pocketgraph.datasets.sample_rate import model_sample_rate
from pocketgraph.errors import GraphError, PocketgraphError, option
from pocketgraph.graph import Graph, Shape, canonical, node_name
from pocketgraph.kernels.shapes import infer
from pocketgraph.passes.graph_resizing import graph_resizing

Notify = Callable[[str], None]
"""Told what is easily overlooked, a sentence each."""


STEPS = (1, 2, 4, 8, 16, 32, 64)
"""Of a picture's sides, as networks halve them."""
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
    input_mean: Scale | None = None
    input_std: Scale | None = None
    input_width: int | None = None
    input_height: int | None = None
    sample_rate: int | None = None
    notify: Notify = unheard

    @property
    def has_size(self) -> bool:
        """Whether the caller says a size of pictures."""
        return bool(self.input_width or self.input_height)

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
        source = None if graph is None else _takes_pictures(graph, inputs)
        resizing = None if graph is None or source is None else graph_resizing(graph, source)
        return PictureScaling(mean, std, self.input_width, self.input_height, resizing)

    def _inferred(self, graph: Graph, inputs: Sequence[str]) -> tuple[float | None, float | None]:
        source = _takes_pictures(graph, inputs)
        found = None if source is None else inferred_scaling(graph, source)
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
        beside this one, else to what the graph itself resizes them to, else to the size that all have, else to what
        ``shapes`` has. Recordings are cut, or filled with silence, to what another model takes, else to the length that
        half of them have at most.

        Args:
            graph: it has the inputs, any of its tensors.
            shapes: of the inputs, some size where it is open.
            source: the samples; None where there are none but the caller says a size of pictures.
            others: the shapes of the only inputs of the models beside it.
        """
        inferred = infer(graph)
        known_shapes = {name: inferred.shape(canonical(name)) for name in shapes}
        declared = {
            name: found.dims or (graph.declared_shape(node_name(name)) or found).dims or ()
            for name, found in known_shapes.items()
        }
        left = {  # the first axis of several is the batch's, but of a single picture
            name: [at for at, size in enumerate(sizes)
                   if size is None and (at or len(sizes) == 1 or _is_picture(sizes, source))]
            for name, sizes in declared.items()
        }  # fmt: skip
        if (source is None and not self.has_size) or not any(left.values()):
            return dict(shapes)
        if source is not None and are_arrays(source):
            return sized_by_arrays(source, shapes, left, {name: signature_keys(graph, name) for name in shapes})
        if len(shapes) != 1:
            return dict(shapes)
        ((name, shape),) = shapes.items()
        known = next((other for other in others if len(other) == len(shape)), None)
        dtype = inferred.dtype(canonical(name))
        if source is not None and len(left[name]) == 1 and dtype is not None and dtype.is_floating:
            files = files_of(source)
            if files and is_recording(files[0]):
                return {name: self._as_long(graph, name, shape, left[name][0], files, known)}
        if len(left[name]) != 2:
            found = known or shape
            return {name: tuple(found[at] if at in left[name] else size for at, size in enumerate(shape))}
        return {name: self._as_large(graph, name, shape, left[name], source, known)}

    def _as_long(
        self, graph: Graph, name: str, shape: tuple[int, ...], axis: int, files: Sequence[str],
        known: tuple[int, ...] | None,
    ) -> tuple[int, ...]:  # fmt: skip
        """The shape of recordings, whose length the graph leaves open."""
        rate = self.sample_rate or model_sample_rate(graph) or USUAL_RATE
        length = known[axis] if known is not None else usual_length(files, rate)
        if length is None:
            return shape
        if known is None:
            self.notify(
                f"the model leaves the length of its recordings open, '{node_name(name)}'; they are cut, or filled "
                f"with silence, to {length:,} samples"
            )
        return tuple(length if at == axis else size for at, size in enumerate(shape))

    def _as_large(
        self, graph: Graph, name: str, shape: tuple[int, ...], axes: Sequence[int], source: SampleSource | None,
        known: tuple[int, ...] | None,
    ) -> tuple[int, ...]:  # fmt: skip
        """The shape of pictures, whose height and width the graph leaves open."""
        sizes: tuple[int | None, int | None] = (self.input_height, self.input_width)
        if known is not None or source is None or self.has_size:
            found = known or shape
            given = dict(zip(axes, sizes, strict=True))
            return tuple(given.get(at) or found[at] if at in axes else size for at, size in enumerate(shape))
        resizing = graph_resizing(graph, name)
        taken = None if resizing is None else resizing.size
        own = taken or common_side(files_of(source))
        fitting = None if own is None else _nearest_fitting(graph, name, shape, axes, own)
        height, width = fitting or own or (shape[axes[0]], shape[axes[1]])
        chosen = dict(zip(axes, (height, width), strict=True))
        if min(height, width) > 1:
            what = "are fed as they are, all" if own and not fitting and not taken else "are resized to"
            why = ", as it does itself" if taken else ""
            why = f", as it does not take {own[1]} x {own[0]}" if own and fitting else why
            self.notify(
                f"the model leaves the size of its pictures open; they {what} {width} x {height}{why} "
                f"({option('input_width')}, {option('input_height')})"
            )
        return tuple(chosen.get(at, size) for at, size in enumerate(shape))

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


def _is_picture(sizes: Sequence[int | None], source: SampleSource | None) -> bool:
    """Whether an input takes one picture without a batch, as files of such are there for it."""
    files = files_of(source) if source is not None and is_single_picture(sizes) else []
    return bool(files) and is_picture(files[0])


def _takes_pictures(graph: Graph, inputs: Sequence[str]) -> str | None:
    """The one input that pictures go to, of those that the caller named or of all; None where there is not one."""
    try:
        if len(inputs) == 1:
            return inputs[0] if may_take_picture(graph, inputs[0]) else None
        return None if inputs else find_input(graph)
    except PocketgraphError:
        return None


def _nearest_fitting(
    graph: Graph, name: str, shape: tuple[int, ...], axes: Sequence[int], own: tuple[int, int]
) -> tuple[int, int] | None:
    """The height and width nearest to those of pictures that a network takes, as it halves and doubles them, else those
    of ``shape``; None where it takes the pictures' own, or none of these."""
    dtype = infer(graph).dtype(canonical(name))
    if dtype is None:
        return None
    stepped = [tuple(max(step, round(size / step) * step) for size in own) for step in STEPS]
    for height, width in (*stepped, tuple(shape[at] for at in axes)):
        chosen = dict(zip(axes, (height, width), strict=True))
        fed = {canonical(name): (dtype, Shape(chosen.get(at, size) for at, size in enumerate(shape)))}
        try:
            infer(graph, fed, strict=True, complete=False)
        except GraphError:
            continue
        return None if (height, width) == own else (height, width)
    return None
