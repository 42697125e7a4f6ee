"""A graph that takes one picture: where it goes in, how it is scaled, and what comes out for pixels or a file."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pocketgraph.datasets import image_loading, presets
from pocketgraph.datasets.class_scores import apart, scores_picked_from
from pocketgraph.datasets.image_loading import Scale
from pocketgraph.datasets.inferred_scaling import InferredScaling, inferred_scaling
from pocketgraph.datasets.picture_input import PictureInput, describe, find_input, require
from pocketgraph.errors import MissingKernelError, RunError, UsageError, option
from pocketgraph.formats.tflite_metadata import Metadata, metadata
from pocketgraph.graph import Graph, Node, Shape, canonical, node_name
from pocketgraph.graph.dtype import FLOAT, STRING
from pocketgraph.graph.model_file_graph import coded, has_codes, is_litert_file, numbers
from pocketgraph.graph.op_traits import NO_DEFAULT_PLACEHOLDERS, PLACEHOLDERS, SAME_ELEMENTS
from pocketgraph.graph.order import reachable
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.shapes import infer
from pocketgraph.passes.training_switches import training_switches
from pocketgraph.runtime.feeding.encoded_samples import decoder_of, file_form

DEFAULT_MEAN, DEFAULT_STD = 0.0, 255.0  # label_image's
SHARES = ("Softmax", "tfl.softmax")
"""Not a trait: what gives shares of classes, in a graph and in a LiteRT file."""
SHARES_OF_TWO = ("Sigmoid", "tfl.logistic")
"""Not a trait: what gives the share of each of classes that do not exclude each other."""
GRAY = (0.299, 0.587, 0.114)  # ITU-R BT.601, of red, green, blue


class PictureModel:
    """Runs one graph on pictures.

    What is not given is taken from the preset, then from the graph itself (a LiteRT file's metadata, the size from a
    placeholder's shape, the scaling from what the first nodes do to pixels), then from the defaults of the original
    label_image (mean 0, std 255).

    Args:
        graph: takes a picture in one place.
        outputs: the tensors or nodes wanted; none for the preset's.
        preset: a name from ``presets.PRESETS``; by default the one whose layer names the graph has, provided that
            neither layer is given.
        input_layer: the node that takes the picture.
        width, height: of the pictures that the graph takes, in pixels.
        mean, std: pixels from 0 to 255 are fed as ``(pixel - mean) / std``; one number each, or one a channel.
        feeds: values for other placeholders that the outputs need, such as ``{"keep_prob": 1.0}``.
        threads: as in Session.
        fallback: the size of the picture, where nothing else tells it.

    Raises:
        UsageError: the graph has not these layers, takes no pictures, not pictures of this size, or needs feeds that
            are not given.
    """

    def __init__(
        self,
        graph: Graph,
        outputs: Sequence[str] = (),
        *,
        preset: str | None = None,
        input_layer: str | None = None,
        width: int | None = None,
        height: int | None = None,
        mean: Scale | None = None,
        std: Scale | None = None,
        feeds: Mapping[str, Any] | None = None,
        threads: int | None = None,
        fallback: int | None = None,
    ) -> None:
        from pocketgraph.runtime import Session

        if std == 0:
            raise UsageError(f"{option('input_std', 'std')} is 0; pixels are divided by it")
        chosen = presets.get(preset) if preset else None
        if chosen is None and input_layer is None and not outputs:
            chosen = presets.recognise(graph)
        self.preset = chosen
        self.metadata_of_file: Metadata | None = metadata(graph.extra) if is_litert_file(graph) else None
        stated = self.metadata_of_file.scaling if self.metadata_of_file is not None else None
        if stated is not None:
            mean, std = stated[0] if mean is None else mean, stated[1] if std is None else std
        if input_layer is None:
            input_layer = chosen.input_layer if chosen and chosen.input_layer in graph else _find_input(graph)
        if not outputs:
            outputs = [chosen.output_layer if chosen and chosen.output_layer in graph else _scores_of_classes(graph)]
        self.outputs = [canonical(require(graph, name, option("output_layer"), is_fed=False)) for name in outputs]
        require(graph, input_layer, option("input_layer"), is_fed=True)
        self.input: PictureInput = file_input(graph, input_layer) or describe(
            graph, input_layer, width, height, chosen.size if chosen else fallback
        )
        if has_codes(graph, input_layer):
            self.input = replace(self.input, dtype=FLOAT)  # codes are made of the scaled picture
        self.inferred: InferredScaling | None = None
        if mean is None and std is None and chosen is None:
            self.inferred = inferred_scaling(graph, input_layer)
        if self.inferred is not None:
            mean, std = self.inferred.mean, self.inferred.std
        self.mean = mean if mean is not None else chosen.mean if chosen else DEFAULT_MEAN
        self.std = std if std is not None else chosen.std if chosen else DEFAULT_STD
        self.input.check_scales(self.mean, self.std)
        self.feeds = {
            canonical(require(graph, name, option("feed", "feeds"), is_fed=True)): value
            for name, value in (feeds or {}).items()
        }
        self.switches = training_switches(graph, [*self.feeds, input_layer])
        needed = reachable(graph, self.outputs, stop={node_name(self.input.tensor)})
        self.switches = {name: value for name, value in self.switches.items() if name in needed}
        self.feeds = {**{canonical(name): value for name, value in self.switches.items()}, **self.feeds}
        for output in self.outputs:
            require_feeds(graph, output, (self.input.tensor, *self.feeds))
        self._entrance, self._threads = input_layer, threads
        self._session = Session(graph, threads=threads)

    def at(self, graph: Graph, tensor: str) -> PictureModel:
        """What gives another tensor for the same pictures, of this graph or of one with the same input."""
        return PictureModel(
            graph,
            [tensor],
            input_layer=self._entrance,
            width=self.input.width or None,
            height=self.input.height or None,
            mean=self.mean,
            std=self.std,
            feeds=self.feeds,
            threads=self._threads,
        )

    def of_file(self, path: str | os.PathLike[str], feeds: Mapping[str, Any] | None = None) -> list[Array]:
        """The outputs for the picture in a file.

        Raises:
            FormatError: the file is no picture.
            RunError: the graph cannot run.
        """
        if self.input.layout == "file":
            return self._of_feed(self.input.feed(os.fspath(path), self.mean, self.std), feeds)
        return self.of_pixels(image_loading.read(path, self.input.channels), feeds)

    def of_pixels(self, pixels: Array, feeds: Mapping[str, Any] | None = None) -> list[Array]:
        """The outputs for pixels; float32 also where a file has codes.

        Args:
            pixels: uint8 [height, width, 3], or 1 channel where the model takes gray.
            feeds: values of other placeholders, for this run alone.

        Raises:
            RunError: the graph cannot run.
            UsageError: the array is no picture.
        """
        if pixels.ndim != 3 or 0 in pixels.shape or pixels.shape[2] not in (3, self.input.channels):
            raise UsageError(
                f"pixels are uint8 [height, width, {self.input.channels}], not {pixels.dtype}{list(pixels.shape)}"
            )
        return self._of_feed(self._fed(pixels), feeds)

    def _of_feed(self, feed: Array, feeds: Mapping[str, Any] | None) -> list[Array]:
        graph = self._session.graph
        try:
            found = self._session.run(self.outputs, {self.input.tensor: feed, **self.feeds, **(feeds or {})})
        except MissingKernelError:
            raise
        except RunError as error:
            if not self.input.guessed:
                raise
            size = f"{self.input.width} x {self.input.height}"
            hint = (
                f"the size {size} is a guess: pass {option('input_width', 'width')} and "
                f"{option('input_height', 'height')} if the graph takes another"
            )
            raise RunError(error.what, where=error.where, hint=hint) from error
        return [numbers(graph, name, array) for name, array in zip(self.outputs, found, strict=True)]

    def times(self, pixels: Array) -> list[str]:
        """What each kind of op takes for pixels, a line each, as the Android demo's statistics show it."""
        from pocketgraph.runtime.profiling.profile import StepTrace
        from pocketgraph.runtime.profiling.stat_summarizer import StatSummarizer

        trace, summarizer = StepTrace(), StatSummarizer()
        self._session.run(self.outputs, {self.input.tensor: self._fed(pixels), **self.feeds}, trace=trace)
        summarizer.add_run(trace.nodes)
        return [line for line in summarizer.type_table() if line.strip()]

    def _fed(self, pixels: Array) -> Array:
        """What is fed for pixels, of a colour picture also where the model takes gray."""
        if pixels.shape[2] == 3 and self.input.channels == 1:
            pixels = np.rint(pixels @ np.array(GRAY, np.float32)).astype(np.uint8)[..., np.newaxis]
        return coded(self._session.graph, self.input.tensor, self.input.feed_pixels(pixels, self.mean, self.std))

    def __getstate__(self) -> dict[str, Any]:
        """Without the session: where the model goes there is a new one, on one core."""
        return {**self.__dict__, "_session": self._session.graph, "_threads": 1}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from pocketgraph.runtime import Session

        self.__dict__.update(state)
        self._session = Session(state["_session"], threads=1)

    def close(self) -> None:
        """Frees what the session holds."""
        self._session.close()


def _find_input(graph: Graph) -> str:
    """The placeholder that takes a picture, or the only one that takes the bytes of its file."""
    try:
        return find_input(graph)
    except UsageError:
        files = [node.name for node in graph if node.op in PLACEHOLDERS and file_input(graph, node.name) is not None]
        if len(files) != 1:
            raise
        return files[0]


def file_input(graph: Graph, layer: str) -> PictureInput | None:
    """An input of pictures' files that the graph decodes in a loop or a function; None for others.

    What is decoded at once takes pixels in the decoder's place (see ``describe``).
    """
    node = graph.producer(layer)
    if node.op not in PLACEHOLDERS or node.attr("dtype", None) is not STRING:
        return None
    form = file_form(graph, node.name)
    if not form or decoder_of(graph, node.name) in graph.consumers.get(node.name, ()):
        return None
    shape = node.shape()
    is_list = shape is None or shape.rank != 0
    return PictureInput(canonical(layer), STRING, 0, 0, 3, "file", batch=int(is_list), form=form)


def find_output(graph: Graph) -> str:
    """The name of the node that gives the scores: the one that the file states, else the one that nothing consumes, a
    Softmax where there are several, else the likeliest.

    Raises:
        UsageError: that does not decide it.
    """
    from pocketgraph.graph.entry_points import main_outputs
    from pocketgraph.inspect import summarize

    likely = _scores(graph, main_outputs(graph))
    shares = [name for name in likely if _origin(graph, name).op in SHARES]
    shares = shares or [name for name in likely if _origin(graph, name).op in SHARES_OF_TWO]
    likely = shares if len(shares) == 1 else likely
    if len(likely) == 1 and (graph.outputs or graph.signatures):
        return likely[0]
    sinks = summarize(graph).sinks
    scores = _scores(graph, [node.name for node in sinks])
    sinks = tuple(node for node in sinks if node.name in scores)
    for group in (sinks, [node for node in sinks if _origin(graph, node.name).op in SHARES]):
        if len(group) == 1:
            return group[0].name
    if len(likely) == 1:
        return likely[0]
    if not sinks:
        raise UsageError("nothing in this graph looks like an output", hint=f"pass {option('output_layer')}")
    shown = ", ".join(node.name for node in sinks[:5]) + (", …" if len(sinks) > 5 else "")
    keys = sorted(graph.public_signatures)
    signature = f", or {option('signature')}={keys[0]} or another of {', '.join(keys)}" if len(keys) > 1 else ""
    detects = any(node.op.startswith(("NonMaxSuppression", "CombinedNonMaxSuppression")) for node in graph)
    live = "; what finds boxes is shown by live" if detects else ""
    raise UsageError(
        f"{len(sinks)} nodes may be the output ({shown})", hint=f"pass {option('output_layer')}{signature}{live}"
    )


def _scores_of_classes(graph: Graph) -> str:
    """The output, or the scores of classes that it is picked from."""
    output = find_output(graph)
    return scores_picked_from(graph, output) or output


def _scores(graph: Graph, names: Sequence[str]) -> list[str]:
    """Those of the tensors that are floats, not the names or numbers of classes beside them; all where none is."""
    inferred = infer(graph)
    types = {name: inferred.dtype(canonical(name)) for name in names}
    return [name for name, dtype in types.items() if dtype is not None and dtype.is_floating] or list(names)


def _origin(graph: Graph, name: str) -> Node:
    """What makes the elements that a tensor hands on."""
    source = apart(graph, name)
    return graph.find_producer(source, SAME_ELEMENTS) or graph.producer(source)


def require_feeds(graph: Graph, output: str, fed: Collection[str]) -> None:
    """Raises UsageError when ``output`` needs a placeholder that is not fed."""
    names = {node_name(tensor) for tensor in fed}
    needed = reachable(graph, [output], stop=names) - names
    missing = [node for node in graph if node.name in needed and node.op in NO_DEFAULT_PLACEHOLDERS]
    if missing:
        shapes = {node.name: node.shape() or Shape(None) for node in missing}
        arrays = [f"{name} {shape}" for name, shape in shapes.items() if any(size != 1 for size in shape.dims or ())]
        flags = " ".join(f"{option('feed', 'feeds')} {name}=VALUE" for name in [*shapes][:5])
        hint = f"a Session feeds arrays from Python: {', '.join(arrays[:5])}" if arrays else f"pass {flags}"
        raise UsageError(f"'{node_name(output)}' needs more than a picture", hint=hint)
