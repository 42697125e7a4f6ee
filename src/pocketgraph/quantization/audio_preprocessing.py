"""What a graph does with the content of a recording before numbers are at hand that LiteRT can take.

    wav_data ─DecodeWav─ AudioSpectrogram ─Mfcc─┊─ Reshape ─ Conv2D …

The part in front of the mark runs once for each recording; the part behind it is what gets quantized and judged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pocketgraph.datasets.recordings import content_at
from pocketgraph.datasets.sample_rate import model_sample_rate
from pocketgraph.errors import FormatError, RunError, UsageError, option
from pocketgraph.graph import Graph, canonical, node_name
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.entry_points import check_names
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.shapes import infer
from pocketgraph.quantization.input_cut import behind
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_shapes

READING = ops_with("recording")
"""Ops that make numbers out of a recording."""


class AudioPreprocessing:
    """The part of a graph that reads recordings.

    Args:
        source: the placeholder of a file's content.
        shapes: the tensors where the part ends, and their shapes.
        rate: samples a second of what it hears; None where the graph does not say.
    """

    def __init__(
        self, graph: Graph, source: str, shapes: Mapping[str, tuple[int, ...]], rate: int | None = None
    ) -> None:
        from pocketgraph.runtime import Session

        self.graph, self.shapes, self.rate = graph, dict(shapes), rate
        self.source = source
        self._session = Session(graph)

    def __call__(self, path: str, rate: int) -> list[Array]:
        """The numbers for a recording, resampled where its rate is another than this one.

        Raises:
            FormatError: it cannot be read, is no recording or an empty one.
        """
        try:
            made = self._session.run(list(self.shapes), {self.source: content_at(path, rate)})
        except RunError as error:
            raise FormatError(f"the model does not take this recording: {error.what}", where=path) from error
        for (name, shape), array in zip(self.shapes.items(), made, strict=True):
            if array.shape != shape:
                raise FormatError(
                    f"this recording gives '{name}' the shape {list(array.shape)}, not {list(shape)}", where=path
                )
        return made


def audio_preprocessing_of(
    graph: Graph, outputs: Sequence[str], fed: Collection[str] = ()
) -> AudioPreprocessing | None:
    """The part of a graph that reads recordings; None when it does not read any.

    Args:
        outputs: what is to be computed.
        fed: placeholders that are set to something else.

    Raises:
        UsageError: the shape of what the part makes is not known.
    """
    needed = reachable(graph, [node_name(name) for name in outputs])
    taken = {canonical(name) for name in fed}
    sources = [
        node.name
        for node in graph
        if node.name in needed and node.op == "Placeholder" and node.attr("dtype") is STRING
        and canonical(node.name) not in taken
    ]  # fmt: skip
    if len(sources) != 1:
        return None
    inside = set(sources)
    for node in graph.replace(_ordered(graph)):
        if node.op in READING and any(node_name(ref) in inside for ref in node.data_inputs):
            inside.add(node.name)
    cuts: dict[str, None] = {}
    for node in graph:
        if node.name in needed and node.name not in inside:
            cuts.update((canonical(r), None) for r in node.data_inputs if node_name(r) in inside)
    if not cuts or any(node_name(name) in sources for name in cuts):
        return None
    inferred = infer(graph)
    shapes = {name: known_shape(inferred, name) for name in cuts}
    return AudioPreprocessing(graph, canonical(sources[0]), shapes, model_sample_rate(graph))


def behind_audio_preprocessing(graph: Graph, cuts: Mapping[str, tuple[int, ...]]) -> Graph:
    """The graph with placeholders where the part that reads recordings ends."""
    inferred = infer(graph)
    known = {name: (inferred.dtype(name), shape) for name, shape in cuts.items() if name.endswith(":0")}
    return behind(graph, {name: (dtype, shape) for name, (dtype, shape) in known.items() if dtype is not None})


def input_shapes(
    graph: Graph, outputs: Sequence[str], inputs: Sequence[str], fed: Collection[str] = ()
) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors to feed: placeholders that the outputs need, or the ``inputs``, which may be any.

    Raises:
        GraphError: there is no such tensor.
        UsageError: the shape of one is not known.
    """
    if not inputs:
        try:
            return synthetic_shapes(graph, outputs, tuple(fed))
        except UsageError as error:
            hint = (
                "set it for good when it is a switch or a number, as in "
                f"{option('feed', 'feeds')}=keep_prob=1, or name all {option('inputs')}"
            )
            raise UsageError(error.what, hint=hint) from error
    check_names(graph, inputs, is_fed=True)
    inferred = infer(graph)
    return {name: known_shape(inferred, name) for name in inputs}


def known_shape(inferred: Any, name: str) -> tuple[int, ...]:
    """The shape of a tensor, 1 where a size is open.

    Raises:
        UsageError: not even the number of dimensions is known.
    """
    shape = inferred.shape(canonical(name))
    if shape.dims is None:
        raise UsageError(f"the shape of the input '{name}' is not known", hint="choose another place to start")
    return tuple(1 if size is None else size for size in shape.dims)


def _ordered(graph: Graph) -> list[Any]:
    from pocketgraph.graph.order import topological

    return topological(graph, partial=True)
