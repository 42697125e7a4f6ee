"""How a picture goes into a graph: at which node, how large, with how many channels, in which layout."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

from pocketgraph.datasets import image_loading
from pocketgraph.datasets.image_loading import Scale
from pocketgraph.errors import GraphError, PocketgraphError, UsageError, command_on_model, option
from pocketgraph.graph import DType, Graph, Node, Shape, canonical, node_name
from pocketgraph.graph.dtype import FLOAT, STRING, UINT8
from pocketgraph.graph.entry_points import unknown_node_hint
from pocketgraph.graph.op_traits import CONVOLUTIONS_2D, NO_DEFAULT_PLACEHOLDERS, PICTURE_FILES, PLACEHOLDERS
from pocketgraph.kernels.shapes import infer
from pocketgraph.passes.graph_resizing import GraphResizing, graph_resizing, resize_nodes

MOST_NUMBERS = 1 << 27  # in one feed: 512 MB; the graph is not trusted to say a sensible size
_NOISE = re.compile(r"(^|[/_])(noise|latents?|z)([/_\d]|$)", re.I)  # what a generator takes
LEAST_GRAY = 16  # pixels of a gray picture's side; smaller squares are taken for measurements
SMALLEST_FLAT = 49  # a row of fewer numbers is taken for measurements, not for a picture


@dataclass(frozen=True)
class PictureInput:
    """One input tensor and the form of picture it takes.

    Attributes:
        tensor: what to feed.
        dtype: its element type.
        height, width: in pixels; 0 where the graph resizes the picture itself.
        channels: 1 gray, 3 colour.
        layout: the feed's axes: ``NHWC``, ``NCHW``, ``HWC``, ``NHW`` (gray), ``N*`` (pixels in a row) or ``decoded``
            (HWC of any size, in the place of what the graph's own decoder would give) or ``file`` (the bytes of a file
            of any size, which the graph decodes; where it takes a list of them, of one).
        batch: how many pictures a feed must hold; all but the first are repetitions. 0 for a file by itself.
        guessed: whether the size comes from a preset, as neither the caller nor the graph said it.
        form: of files, what the graph decodes, as in ``ModelInput.file_form``.
        resizing: how the graph itself resizes pictures to this size, as they are ahead; None where it does not.

    Raises:
        UsageError: a feed would have over 2^27 numbers.
    """

    tensor: str
    dtype: DType
    height: int
    width: int
    channels: int
    layout: str
    batch: int = 1
    guessed: bool = False
    form: str = ""
    resizing: GraphResizing | None = None

    def __post_init__(self) -> None:
        if self.batch * self.height * self.width * self.channels > MOST_NUMBERS:
            raise UsageError(
                f"{self.batch} pictures of {self.height} x {self.width} pixels are too much to feed",
                where=f"node '{node_name(self.tensor)}'",
            )

    def check_scales(self, *scales: Scale | None) -> None:
        """Raises UsageError where these are numbers of channels, and not of as many as it takes."""
        for scale in scales:
            if isinstance(scale, tuple) and len(scale) != self.channels:
                raise UsageError(
                    f"pixels are scaled by {len(scale)} numbers, one a channel, and '{node_name(self.tensor)}' takes "
                    f"{self.channels}",
                    hint=f"pass {option('input_mean', 'mean')} and {option('input_std', 'std')}",
                )

    def feed(self, path: str, mean: Scale, std: Scale) -> np.ndarray[Any, Any]:
        """The picture in a file, resized and normalised, as this input takes it.

        An input of integers gets the resized pixels as they are, rounded, without mean and std.

        Raises:
            FormatError: the file is no picture, or a damaged one.
        """
        if self.layout == "file":
            return self._file(image_loading.content(path, self.form))
        return self.feed_pixels(image_loading.read(path, self.channels), mean, std)

    def feed_pixels(self, pixels: np.ndarray[Any, Any], mean: Scale, std: Scale) -> np.ndarray[Any, Any]:
        """The same of pixels from 0 to 255, uint8 [height, width, channels]."""
        if self.layout == "decoded":
            return pixels
        if self.layout == "file":
            return self._file(image_loading.encoded(pixels, self.form))
        picture = self._resized(pixels)
        if self.dtype.is_integer or self.dtype.is_quantized:
            picture = np.rint(picture).astype(self.dtype.numpy)
        else:
            picture = image_loading.normalise(picture, mean, std).astype(self.dtype.numpy)
        if self.layout == "HWC":
            return picture
        if self.layout == "NCHW":
            picture = picture.transpose(2, 0, 1)
        if self.layout == "NHW":
            picture = picture[..., 0]
        if self.layout == "N*":
            picture = picture.reshape(-1)
        return np.repeat(picture[np.newaxis], self.batch, axis=0)

    def _resized(self, pixels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The pixels in the input's size, float32."""
        if not self.height:
            return pixels.astype(np.float32)
        if self.resizing is not None and self.resizing.size == (self.height, self.width):
            resized: np.ndarray[Any, Any] = self.resizing(pixels).astype(np.float32)
            return resized
        return image_loading.resize_bilinear(pixels, self.height, self.width)

    def _file(self, content: bytes) -> np.ndarray[Any, Any]:
        return np.full((self.batch,) if self.batch else (), content, object)


def find_input(graph: Graph) -> str:
    """The name of the placeholder that takes a picture.

    Raises:
        UsageError: none does, or several may.
    """
    ranked = sorted(((_likeness(graph, node), node.name) for node in graph if node.op in PLACEHOLDERS), reverse=True)
    if not ranked or ranked[0][0] == 0:
        known = ", ".join(f"{name} {_written_shape(graph[name])}" for _, name in ranked[:5]) or "none at all"
        if any(node.op in PICTURE_FILES for node in graph):
            raise UsageError(
                "this graph reads picture files itself, in a loop",
                hint=f"{command_on_model('pocketgraph ship {} -o out/')} cuts that part off, and writes model.tflite",
            )
        raise UsageError(
            "no placeholder of this graph looks like a picture's",
            hint=f"pass {option('input_layer')} if one is (there are: {known})",
        )
    best = [name for score, name in ranked if score == ranked[0][0]]
    if len(best) > 1:
        raise UsageError(
            f"{len(best)} placeholders may take the picture", hint=f"pass {option('input_layer')}={'|'.join(best)}"
        )
    return best[0]


def describe(graph: Graph, layer: str, width: int | None, height: int | None, fallback: int | None) -> PictureInput:
    """What the input ``layer`` takes.

    Args:
        layer: node or tensor name.
        width, height: what the caller asks for, None to go by the graph.
        fallback: the size where neither the caller nor the graph tells, nor resizes to one itself; 0 for that of each
            picture.

    Raises:
        UsageError: the layer takes no picture, not one of this size, or its size is not known.
        GraphError: there is no such layer.
    """
    node = graph.producer(layer)
    shape, dtype = _declared(graph, node, layer)
    tensor = canonical(layer)
    if dtype is STRING:
        decoder = _decoder(graph, node)
        if decoder is None:
            raise UsageError("this input takes text, not a picture", where=f"node '{node.name}'")
        return PictureInput(
            canonical(decoder.name), UINT8, 0, 0, _one_or_three(decoder.attr("channels"), node), "decoded"
        )
    if not (dtype.is_floating or dtype.is_integer or dtype.is_quantized):
        raise UsageError(f"this input takes {dtype.name}, not a picture", where=f"node '{node.name}'")
    dims = shape.dims
    if dims is None or dims == ():  # [] is what strip_unused_nodes writes when it is not told a shape
        dims = (None, None, None, _channels_of_first_convolution(graph, node) or 3)
    if len(dims) == 2:
        return _flat(tensor, dtype, dims, width, height, node)
    if len(dims) not in (3, 4):
        raise UsageError(f"this input takes {shape}, which is no picture", where=f"node '{node.name}'")
    layout = layout_of(dims)
    rows, columns = dims[layout.index("H")], dims[layout.index("W")]
    channels = _one_or_three(dims[layout.index("C")], node) if "C" in layout else 1
    batch = dims[0] or 1 if layout[0] == "N" else 1
    is_open = rows is columns is height is width is None and layout != "NCHW"
    if is_open and (fallback == 0 or (fallback is None and resize_nodes(graph, node.name))):
        return PictureInput(tensor, dtype, 0, 0, channels, layout, batch)
    resizing = graph_resizing(graph, node.name) if layout != "NCHW" else None
    usual = (fallback, fallback) if resizing is None else resizing.size
    return PictureInput(
        tensor,
        dtype,
        _agreed("input_height", height, rows, usual[0], node),
        _agreed("input_width", width, columns, usual[1], node),
        channels,
        layout,
        batch,
        guessed=resizing is None and (not (height or rows) or not (width or columns)),
        resizing=resizing,
    )


def layout_of(dims: Sequence[int | None]) -> str:
    """The axes of a picture of three sizes, or of a batch of pictures of four, or of gray ones of three."""
    if len(dims) == 3 and is_gray(dims):
        return "NHW"
    return "HWC" if len(dims) == 3 else "NCHW" if dims[1] in (1, 3) and dims[3] not in (1, 3) else "NHWC"


def is_gray(dims: Sequence[int | None]) -> bool:
    """Whether three sizes are those of a batch of gray pictures without an axis for their one channel: squares."""
    return dims[1] == dims[2] and (dims[1] or 0) >= LEAST_GRAY


def is_single_picture(dims: Sequence[int | None] | None) -> bool:
    """Whether sizes are those of one picture by itself, or of a batch of rows of as many numbers as colours."""
    return dims is not None and len(dims) == 3 and dims[2] in (1, 3)


def _one_or_three(channels: int | None, node: Node) -> int:
    """The number of channels; 3 where it is open."""
    if channels not in (None, 0, 1, 3):
        raise UsageError(f"this input takes {channels} channels; a picture has 1 or 3", where=f"node '{node.name}'")
    return channels or 3


def _declared(graph: Graph, node: Node, layer: str) -> tuple[Shape, DType]:
    """The shape and dtype of a placeholder as written, of another node as inferred."""
    dtype = node.attr("dtype")
    if node.op in PLACEHOLDERS:
        return _written_shape(node), dtype if isinstance(dtype, DType) else FLOAT
    try:
        inferred = infer(graph)
    except PocketgraphError:
        return Shape(None), FLOAT
    return inferred.shape(canonical(layer)), inferred.dtype(canonical(layer)) or FLOAT


def _written_shape(node: Node) -> Shape:
    shape = node.shape()
    return Shape(None) if shape is None else shape


def may_take_picture(graph: Graph, name: str) -> bool:
    """Whether nothing in a tensor's type and sizes says that it takes no picture; an unknown rank does not."""
    node = graph.producer(name)
    return not _declared(graph, node, name)[0].dims or _likeness(graph, node) > 0


def _likeness(graph: Graph, node: Node) -> int:
    """How much a placeholder looks like a picture's: 0 not at all, 4 surely."""
    shape, dtype = _declared(graph, node, node.name)
    if dtype is STRING:
        return 3 if _decoder(graph, node) is not None else 0
    if not (dtype.is_floating or dtype.is_integer or dtype.is_quantized):
        return 0
    dims = shape.dims
    if dims is None or dims == ():
        return 2 if _channels_of_first_convolution(graph, node) in (1, 3) else 0
    if len(dims) == 3 and is_gray(dims):
        others = [_written_shape(one).rank for one in graph if one.op in NO_DEFAULT_PLACEHOLDERS and one is not node]
        return int(not any(others) and not _NOISE.search(node.name))  # a square beside rows may be attention's mask
    if len(dims) in (3, 4):
        return len(dims) if dims[-1] in (1, 3) or (len(dims) == 4 and dims[1] in (1, 3)) else 0
    if _NOISE.search(node.name):
        return 0
    return 1 if len(dims) == 2 and (dims[1] or 0) >= SMALLEST_FLAT and _square(dims[1] or 0) is not None else 0


def _decoder(graph: Graph, node: Node) -> Node | None:
    """The node that turns the file that ``node`` holds into uint8 pixels."""
    users = graph.consumers.get(node.name, ())
    return next((user for user in users if user.op in PICTURE_FILES and user.dtype("dtype", UINT8) is UINT8), None)


def _channels_of_first_convolution(graph: Graph, node: Node) -> int | None:
    """The input channels of the first convolution that the node leads to."""
    seen = {node.name}
    queue = deque([node.name])
    while queue:
        name = queue.popleft()
        for consumer in graph.consumers.get(name, ()):
            data = consumer.data_inputs
            is_first = (consumer.op in CONVOLUTIONS_2D and len(data) == 2) or consumer.op == "QuantizedConv2D"
            if is_first and node_name(data[0]) == name:
                weights = graph.constant(data[1])
                return weights.shape[2] if weights is not None and len(weights.shape) == 4 else None
            if consumer.name not in seen and any(node_name(ref) == name for ref in data):
                seen.add(consumer.name)
                queue.append(consumer.name)
    return None


def _square(count: int) -> tuple[int, int] | None:
    """(side, channels) of a square picture of so many numbers."""
    for channels in (1, 3):
        side = isqrt(count // channels)
        if side * side * channels == count:
            return side, channels
    return None


def _flat(
    tensor: str, dtype: DType, dims: tuple[int | None, ...], width: int | None, height: int | None, node: Node
) -> PictureInput:
    """An input of pixels in a row, such as MNIST's 784."""
    batch, count = dims[0] or 1, dims[1]
    if width and height and (count is None or count in (width * height, 3 * width * height)):
        channels = 3 if count == 3 * width * height else 1
        return PictureInput(tensor, dtype, height, width, channels, "N*", batch)
    square = _square(count or 0) if (count or 0) >= SMALLEST_FLAT and not (width or height) else None
    if square is None:
        raise UsageError(
            f"this input takes rows of {count or 'unknown'} numbers, which make no picture of the size asked for",
            where=f"node '{node.name}'",
            hint=f"pass {option('input_width')} and {option('input_height')} if it is one",
        )
    return PictureInput(tensor, dtype, square[0], square[0], square[1], "N*", batch)


def _agreed(name: str, asked: int | None, declared: int | None, fallback: int | None, node: Node) -> int:
    """The size to use: what is asked for, else what the graph declares, else the fallback."""
    if asked is not None and declared is not None and asked != declared:
        raise UsageError(
            f"the graph takes {declared} here, not {option(name)}={asked}",
            where=f"node '{node.name}'",
            hint=f"leave {option(name)} out",
        )
    size = asked or declared or fallback
    if not size:
        raise UsageError(
            "the graph does not say how large its pictures are",
            where=f"node '{node.name}'",
            hint=f"pass {option('input_width')} and {option('input_height')}, or a {option('preset')}",
        )
    return size


def require(graph: Graph, layer: str, flag: str, *, is_fed: bool) -> str:
    """The layer's name, when the graph has it.

    Raises:
        UsageError: it has not; the message suggests near names, and likely ones.
    """
    try:
        graph.producer(layer)
    except GraphError as error:
        hint = error.hint if node_name(layer) in graph else unknown_node_hint(graph, layer, is_fed=is_fed)
        raise UsageError(f"{flag}: {error.what}", hint=hint) from None
    return layer
