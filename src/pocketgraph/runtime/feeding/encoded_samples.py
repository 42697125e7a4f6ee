"""Made-up files for inputs that take a recording or a picture as the bytes of its file."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.order import reachable

RATE = 16_000  # samples a second of a recording
SIDE = 64  # pixels of a picture; what reads files of any size scales them
FORMATS = {"DecodeJpeg": "JPEG", "DecodeImage": "JPEG", "DecodePng": "PNG", "DecodeBmp": "BMP", "DecodeGif": "GIF"}
"""Not a trait: what Pillow calls the form of file that an op reads."""
BASE64 = " in base64"
"""What stands behind the form of a file that is fed in web-safe base64, as services on the web take it."""
CARRYING = {
    "PlaceholderWithDefault",
    "DecodeBase64",
    *ops_with("passes", "moves", "enter", "switch", "merge", "array_write", "array_read"),
}
"""What hands one file of a list to what reads it."""


def decoder_of(graph: Graph, name: str) -> Node | None:
    """The node that decodes the bytes of the string input ``name``: DecodeWav, DecodeJpeg and the like; None without.

    Of a list of files that is an op in a loop over them. An input of more dimensions has none. Of several, as
    tf.image.decode_image has them in TensorFlow 1, it is one that reads JPEG.
    """
    node = graph[node_name(name)]
    shape = node.shape()
    if node.attr("dtype", None) is not STRING or (shape is not None and shape.rank not in (None, 0, 1)):
        return None
    found = list(_decoders_behind(graph, node.name))
    return next((one for one in found if FORMATS.get(one.op) == "JPEG"), found[0] if found else None)


def file_form(graph: Graph, name: str) -> str:
    """The form of the picture's file that the string input ``name`` takes, as ``ModelInput.file_form`` has it."""
    decoder = decoder_of(graph, name)
    if decoder is None or decoder.op not in FORMATS:
        return ""
    return FORMATS[decoder.op] + (BASE64 if _is_in_base64(graph, decoder) else "")


def _is_in_base64(graph: Graph, decoder: Node) -> bool:
    before = reachable(graph, decoder.data_inputs, data_only=True) if decoder.name in graph else set()
    return any(graph[name].op == "DecodeBase64" for name in before)


def _decoders_behind(graph: Graph, name: str) -> Iterator[Node]:
    """The decoders that a string gets to as it is, perhaps in a function."""
    from pocketgraph.runtime.engines.functions import FunctionLibrary

    library = FunctionLibrary(graph)
    waiting, seen = [name], {name}
    while waiting:
        for user in graph.consumers.get(waiting.pop(0), ()):
            if user.name in seen:
                continue
            seen.add(user.name)
            if is_decoder(user):
                yield user
            elif user.op in CARRYING:
                waiting.append(user.name)
            else:
                yield from filter(is_decoder, library.with_bodies([user]))


def is_decoder(node: Node) -> bool:
    """Whether a node reads a recording or a picture from the bytes of a file."""
    return node.op == "DecodeWav" or node.op in FORMATS


def encoded_sample(graph: Graph, decoder: Node, rng: np.random.Generator) -> bytes:
    """Noise as a file that a graph's ``decoder`` reads, in base64 where it does: a recording of one second or of the
    wanted length, or a picture."""
    made = _noise(decoder, rng)
    return base64.urlsafe_b64encode(made) if _is_in_base64(graph, decoder) else made


def _noise(decoder: Node, rng: np.random.Generator) -> bytes:
    if decoder.op == "DecodeWav":
        from pocketgraph.kernels.audio.wav import encode_wav

        samples, channels = (int(decoder.attr(key, -1)) for key in ("desired_samples", "desired_channels"))
        size = (samples if samples > 0 else RATE, max(1, channels))
        made = encode_wav(rng.uniform(-1, 1, size).astype(np.float32), np.array(RATE, np.int32))
        return bytes(made.reshape(()).item())
    from PIL import Image

    pixels: np.ndarray[Any, Any] = rng.integers(0, 256, (SIDE, SIDE, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, FORMATS[decoder.op])
    return file.getvalue()
