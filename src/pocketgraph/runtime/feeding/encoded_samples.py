"""Made-up files for inputs that take a recording or a picture as the bytes of its file."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.dtype import STRING

RATE = 16_000  # samples a second of a recording
SIDE = 64  # pixels of a picture; what reads files of any size scales them
FORMATS = {"DecodeJpeg": "JPEG", "DecodeImage": "JPEG", "DecodePng": "PNG", "DecodeBmp": "BMP", "DecodeGif": "GIF"}
"""Not a trait: what Pillow calls the form of file that an op reads."""


def decoder_of(graph: Graph, name: str) -> Node | None:
    """The node that decodes the bytes of the string input ``name``: DecodeWav, DecodeJpeg and the like; None without.

    An input of another shape than a scalar has none.
    """
    node = graph[node_name(name)]
    shape = node.shape()
    if node.attr("dtype", None) is not STRING or (shape is not None and shape.rank not in (None, 0)):
        return None
    readers = [user for user in graph.consumers.get(node.name, ()) if user.op == "DecodeWav" or user.op in FORMATS]
    return readers[0] if readers else None


def encoded_sample(decoder: Node, rng: np.random.Generator) -> bytes:
    """Noise as a file that ``decoder`` reads: a recording of one second or of the wanted length, or a picture."""
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
