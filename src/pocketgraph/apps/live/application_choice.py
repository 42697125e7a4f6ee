"""Which application a model is for, by its inputs and outputs, and that application made."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import Any

from pocketgraph.apps.live.answers import Application
from pocketgraph.apps.live.detection import DetectionApp, SizesOf, recognised, sizes_in
from pocketgraph.apps.picture_model import SHARES_OF_TWO, find_output
from pocketgraph.datasets import presets
from pocketgraph.datasets.class_scores import VIEWS_OF_FILES
from pocketgraph.datasets.picture_input import describe, find_input
from pocketgraph.errors import PocketgraphError, UsageError, did_you_mean, option
from pocketgraph.graph import Graph, Shape, canonical, node_name
from pocketgraph.graph.dtype import FLOAT, INT32, INT64
from pocketgraph.graph.entry_points import likely_inputs, likely_outputs
from pocketgraph.graph.op_traits import NO_DEFAULT_PLACEHOLDERS, PASSES, PLACEHOLDERS, SAME_VALUES
from pocketgraph.graph.order import reachable
from pocketgraph.kernels.shapes import infer
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_shapes

APPLICATIONS = {
    "classify": "the best classes of each frame",
    "detect": "boxes around things, followed over frames",
    "stylize": "the frame in a mixture of styles",
    "image": "the picture that the model makes: larger, sharper, or its classes over the frame",
    "pose": "skeletons of people",
    "speech": "words that are said",
    "embed": "the nearest of the examples that were named",
    "benchmark": "how long the model takes, again and again",
}
"""Every application with what it shows."""

VECTORS = re.compile(r"embed|bottleneck|feature|vector|descriptor|Dropout|PreLogits", re.IGNORECASE)
"""Names of outputs that are no scores."""
NEAR = 8
"""Nodes that compute, from the end, in which its kind shows."""
BEST = ("ArgMax", "tfl.arg_max")
"""Not a trait: ends that tell the best class alone; its scores go into them."""
KEEPING_CLASSES = SAME_VALUES | {"ResizeNearestNeighbor", "tfl.cast", "tfl.expand_dims", "tfl.reshape", "tfl.squeeze"}
"""What may stand behind the best classes of places and leaves them the numbers of classes."""
LEAST_GRID = 8
"""An output of fewer rows and columns is no picture."""
MOST_STRETCHED = 1.2
"""How much wider or narrower a plane may be than the picture that it was made of: borders are left out or rounded."""


def chosen(
    graph: Graph, output: str | None = None, kind: str | None = None, labels: Sequence[str] = ()
) -> tuple[str, str | None]:
    """The application for a graph, and the tensor that it reads where it reads one.

    Args:
        graph: the model.
        output: the tensor, where the caller knows it.
        kind: the application, where the caller knows it.
        labels: the names that the caller has; two make one share of a sigmoid a classifier's.

    Raises:
        UsageError: there is no such application, or nothing tells which tensor it reads.
    """
    if kind is not None and kind not in APPLICATIONS:
        raise UsageError(
            f"there is no application '{kind}'", hint=did_you_mean(kind, APPLICATIONS) or ", ".join(APPLICATIONS)
        )
    if kind in ("speech", "detect", "benchmark"):
        return kind, output
    found, tensor = _by_the_graph(graph, output, len(labels) == 2)
    return (found, tensor) if kind in (None, found) else (kind or found, output or tensor or find_output(graph))


def _by_the_graph(graph: Graph, output: str | None, are_two: bool) -> tuple[str, str | None]:
    from pocketgraph.apps.live.pictures import STYLES
    from pocketgraph.apps.live.pose_decoding import MAPS
    from pocketgraph.apps.live.speech import hears

    if hears(graph):
        return "speech", output
    sizes = sizes_in(graph)
    if recognised(graph, sizes=sizes) is not None:
        return "detect", None
    try:
        source = find_input(graph)
    except PocketgraphError:
        return "benchmark", None
    if STYLES in graph and (found := output or _picture(graph, source, sizes)):
        return "stylize", found
    name = output or next(iter(_ends(graph, source)), None)
    dims = sizes(name) if name else None
    if dims is not None and name is not None and len(dims) in (3, 4):
        if _is_wide(graph, name) and not are_classes(graph, name):
            return "benchmark", None  # counts, boxes or words
        is_open = None in (dims if len(dims) == 3 else dims[1:])  # an open batch of rows is as one of open height
        made = _made_up(graph, name, dims) if is_open else dims
        if made[-1] == MAPS:
            return "pose", name
        if _is_picture(graph, source, made):
            return "image", name
    scores = output or _scores(graph, sizes, are_two)
    if scores is not None:
        return ("benchmark", None) if _is_one_of_several_rows(graph, source, scores) else ("classify", scores)
    row = dims is not None and len(dims) == 2 and (dims[1] or 2) > 1
    if name is None or not row or _is_wide(graph, name):
        return "benchmark", None
    if VECTORS.search(name) or is_normalised(graph, name):
        return "embed", name
    is_alone = output is not None or len(_ends(graph, source)) == 1  # numbers beside others may be points of a face
    return ("classify", name) if is_alone else ("benchmark", None)


def _is_one_of_several_rows(graph: Graph, source: str, scores: str) -> bool:
    """Whether the scores come of rows of numbers beside an input that has no four axes, and so is hardly a picture."""
    needed = [graph[name] for name in reachable(graph, [scores]) if graph[name].op in NO_DEFAULT_PLACEHOLDERS]
    ranks = {node.name: shape.rank or 0 for node in needed if (shape := node.shape()) is not None}
    return 2 <= ranks.get(source, 0) < len("NHWC") and any(rank > 1 for name, rank in ranks.items() if name != source)


def _is_picture(graph: Graph, source: str, dims: tuple[int | None, ...]) -> bool:
    """Whether three or four sizes are those of a picture: [.., height, width, channels] or [.., 1 or 3, height, width].
    Of three that begin with 1 or 3 the others have to be as those of the input are, else they are rows of numbers."""
    rows, columns, depth = dims[-3:]
    if rows in (1, 3) and _is_large(columns) and _is_large(depth):
        return len(dims) == 4 or _is_as_wide(graph, source, columns, depth)
    return depth is not None and _is_large(rows) and _is_large(columns)


def _is_as_wide(graph: Graph, source: str, rows: int | None, columns: int | None) -> bool:
    """Whether sides are in the proportion of the picture that goes in, as far as both are known."""
    try:
        picture = describe(graph, source, None, None, None)
    except PocketgraphError:
        return True
    if not rows or not columns or not picture.height or not picture.width:
        return True
    return abs(math.log(rows * picture.width / (columns * picture.height))) < math.log(MOST_STRETCHED)


def _made_up(graph: Graph, name: str, dims: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """The sizes of a tensor for the inputs that fit the model, where it leaves them open: a map may be one number."""
    try:
        shapes = synthetic_shapes(graph, [name])
    except PocketgraphError:
        return dims
    feeds = {f"{key}:0": (graph[key].dtype("dtype", FLOAT), Shape(sizes)) for key, sizes in shapes.items()}
    made = infer(graph, feeds, outputs=[name]).shape(canonical(name)).dims
    return dims if made is None else made


def application(
    graph: Graph,
    kind: str | None = None,
    labels: Sequence[str] = (),
    *,
    output_layer: str | None = None,
    decoder: str = "",
    boxes: str | os.PathLike[str] | None = None,
    sample_rate: int | None = None,
    **how: Any,
) -> Application:
    """An application of a model.

    Args:
        graph: the model.
        kind: a name of ``APPLICATIONS``; by default what the model is for.
        labels: of its classes, styles or words.
        output_layer: the tensor that is read, where it is not found.
        decoder, boxes: of a detector, see DetectionApp.
        sample_rate: samples a second that a model of sound hears.
        how: as in PictureModel.

    Raises:
        UsageError: there is no such application, the graph is not for it or has no inputs, or more must be told.
    """
    from pocketgraph.apps.label_image import Labeler
    from pocketgraph.apps.live.classification import Classification
    from pocketgraph.apps.live.embedding import EmbeddingApp
    from pocketgraph.apps.live.pictures import PictureApp, PoseApp, SegmentationApp, StylizeApp
    from pocketgraph.apps.live.speech import SoundModel, SpeechApp
    from pocketgraph.apps.live.timing import BenchmarkApp

    if how.get("input_layer") is None and not likely_inputs(graph):
        raise UsageError("the model has no inputs, and nothing can be given to it", hint="see pocketgraph summarize")
    kind, output = chosen(graph, output_layer, "detect" if decoder and kind is None else kind, labels)
    if output_layer is None and how.get("input_layer") is None and how.get("preset") is None:
        preset = presets.recognise(graph)
        how["preset"] = preset.name if preset is not None else None
    if kind == "speech":
        return SpeechApp(SoundModel(graph, output_layer, rate=sample_rate, threads=how.get("threads")), labels)
    if kind == "detect":
        return DetectionApp(graph, labels, decoder=decoder, boxes=boxes, **how)
    if kind == "benchmark":
        return BenchmarkApp(graph, threads=how.get("threads"), outputs=[output_layer] if output_layer else None)
    if output is None:
        raise UsageError(f"nothing tells what a graph for '{kind}' gives", hint=f"pass {option('output_layer')}")
    if kind == "classify":
        return Classification(Labeler(graph, labels, output_layer=output, **how))
    if kind == "stylize":
        return StylizeApp(graph, output, labels, **how)
    if kind == "pose":
        return PoseApp(graph, output, **how)
    if kind == "embed":
        return EmbeddingApp(graph, output, **how)
    channels = sizes_in(graph)(output)
    is_picture = channels is not None and (channels[-1] in (1, 3) or channels[-3:][0] in (1, 3))
    is_picture = is_picture and not _are_shares(graph, output) and not are_classes(graph, output)
    return PictureApp(graph, output, **how) if is_picture else SegmentationApp(graph, output, labels, **how)


def _are_shares(graph: Graph, output: str) -> bool:
    """Whether a tensor has shares of classes, which three of them do not make a picture."""
    node = graph.find_producer(output)
    for _ in range(NEAR):
        if node is None or node.op not in PASSES or not node.data_inputs:
            break
        node = graph.find_producer(node.data_inputs[0])
    return node is not None and node.op in ("Softmax", "tfl.softmax")


def are_classes(graph: Graph, output: str) -> bool:
    """Whether a tensor has the best class of each place: the places of the largest scores, in whichever type, or a
    plane of wide integers, which are neither pixels nor scores."""
    node = graph.find_producer(output, KEEPING_CLASSES)
    if node is not None and node.op in BEST:
        return True
    return _is_wide(graph, output) and _is_plane(sizes_in(graph)(output))


def _is_wide(graph: Graph, output: str) -> bool:
    return infer(graph, outputs=[output]).dtype(canonical(output)) in (INT32, INT64)


def _is_plane(dims: Sequence[int | None] | None) -> bool:
    """Whether a tensor has one number for each place of a picture."""
    if dims is None or len(dims) not in (3, 4):
        return False
    rows, columns = dims[1:] if len(dims) == 3 else dims[1:3]
    return _is_large(rows) and _is_large(columns) and (len(dims) == 3 or dims[3] == 1)


def misfit(graph: Graph, made: Application) -> str:
    """A warning where an application of a graph has not one label for each of its scores; "" where it has."""
    from pocketgraph.apps.live.classification import Classification
    from pocketgraph.apps.live.speech import SpeechApp

    if isinstance(made, Classification):
        return unlike_scores(graph, made.labeler.outputs[0], made.labeler.labels)
    return unlike_scores(graph, made.model.output, made.labels) if isinstance(made, SpeechApp) else ""


def unlike_scores(graph: Graph, tensor: str, labels: Sequence[str]) -> str:
    """A warning where there is not one label for each score of a tensor; "" where there is, or nothing tells."""
    from pocketgraph.apps.label_image import mismatch

    dims = sizes_in(graph)(tensor)
    return mismatch(labels, dims[-1]) if dims and dims[-1] else ""


def shows_numbers(made: Application) -> bool:
    """Whether an application shows classes by their numbers, as nothing names them."""
    from pocketgraph.apps.live.classification import Classification
    from pocketgraph.apps.live.pictures import SegmentationApp
    from pocketgraph.apps.live.speech import SpeechApp

    if isinstance(made, Classification):
        return not made.labeler.labels
    return isinstance(made, DetectionApp | SegmentationApp | SpeechApp) and not made.labels


def _is_large(size: int | None) -> bool:
    return size is None or size >= LEAST_GRID


def _ends(graph: Graph, source: str) -> list[str]:
    """The likely outputs that depend on a placeholder."""
    return [name for name, _ in likely_outputs(graph) if source in reachable(graph, [name])]


def _picture(graph: Graph, source: str, sizes: SizesOf) -> str | None:
    """The last batch of pictures before an end: what follows may be another order of channels, for a screen."""
    for end in _ends(graph, source):
        name: str | None = node_name(end)
        while name is not None:
            dims = sizes(name)
            if dims is not None and len(dims) == 4 and dims[-1] == 3:
                return name
            inputs = graph[name].data_inputs
            name = node_name(inputs[0]) if inputs else None
    return None


def _scores(graph: Graph, sizes: SizesOf, are_two: bool) -> str | None:
    """The classifier's output by its preset, or the one end whose rows are scores, or one share of two classes where
    there are two; None where that is not clear."""
    preset = presets.recognise(graph)
    if preset is not None:
        return preset.output_layer
    try:
        name = find_output(graph)
    except PocketgraphError:
        return None
    if graph[node_name(name)].op in BEST:
        name = graph[node_name(name)].data_inputs[0]
    dims = sizes(name)
    if are_two and dims is not None and set(dims[1:]) <= {1}:
        node = graph.find_producer(name, SAME_VALUES | VIEWS_OF_FILES)
        return name if node is not None and node.op in SHARES_OF_TWO else None
    if dims is not None and (
        max((size or 0 for size in dims[1:]), default=0) < 2 or sum((size or 0) > 1 for size in dims[1:]) > 1
    ):
        return None  # one number, or rows of them, as of boxes
    ends = ("Softmax", "Sigmoid", "tfl.softmax", "tfl.logistic")
    return name if _leads_from(graph, name, ends) else None


def is_normalised(graph: Graph, name: str) -> bool:
    """Whether a vector has its length divided out."""
    return _leads_from(graph, name, ("L2Normalize", "Rsqrt", "tfl.l2_normalization"))


def _leads_from(graph: Graph, name: str, ops: tuple[str, ...]) -> bool:
    """Whether an op of these, on what is fed, is near the end, behind whatever reshapes its results."""
    seen: set[str] = set()
    waiting = [name]
    while waiting and sum(graph[each].op not in SAME_VALUES for each in seen) < NEAR:
        node = graph[waiting.pop(0)]
        if node.op in ops and any(graph[each].op in PLACEHOLDERS for each in reachable(graph, [node.name])):
            return True
        seen.add(node.name)
        waiting.extend(node_name(ref) for ref in node.data_inputs if node_name(ref) not in seen)
    return False
