"""Targets: what the live applications read: films, pictures one after the other, boxes, words that were said."""

from __future__ import annotations

import io
import itertools
import json

import numpy as np

from fuzz.data_readers import NPY_WORDS, PICTURE_WORDS, arrays, pictures, wav
from fuzz.targets import stored, target
from pocketgraph.apps import embeddings, label_wav
from pocketgraph.apps.live import anchors, sources, stills

MOST_FRAMES = 50
FILM = b"YUV4MPEG2 W4 H2 F30:1 Ip C420jpeg\n" + (b"FRAME\n" + bytes(12)) * 3


def films() -> list[bytes]:
    """Small films of each kind."""
    jpegs = pictures("JPEG")
    return [
        FILM,
        FILM.replace(b"420jpeg", b"mono"),
        jpegs[0] * 3,
        wav(1, 16000, bytes(64)),
        *pictures("GIF", "PNG", "BMP"),
    ]


@target(
    "apps/live/sources.py", films, (*PICTURE_WORDS, b"YUV4MPEG2", b"FRAME", b" W", b" H", b" F30:1", b" C444", b"\n")
)
def read_live_source(data: bytes) -> None:
    for _ in itertools.islice(sources.stream(stored(data, "film")), MOST_FRAMES):
        pass


@target("apps/live/stills.py", lambda: pictures("JPEG", "PNG", "WEBP"), PICTURE_WORDS)
def read_still(data: bytes) -> None:
    stills.pixels_of(data)


@target(
    "apps/live/anchors.py", lambda: [b"1 2 3 4 5 6 7 8\n", b"0.5,1e3;nan"], b"nan inf 1e999 -1 , ; 0x 1_000".split()
)
def read_boxes(data: bytes) -> None:
    anchors.multibox_priors(stored(data, "boxes.txt"), 1)


@target("apps/live/anchors.py", arrays, NPY_WORDS)
def read_boxes_of_an_array(data: bytes) -> None:
    anchors.multibox_priors(stored(data, "boxes.npy"), 1)


@target("apps/embeddings.py", lambda: [vectors(), *arrays()], (*NPY_WORDS, b"vectors.npy", b"about.npy", b'"how": {}'))
def read_vectors(data: bytes) -> None:
    embeddings.read_embeddings(stored(data, "vectors.npz"))


def vectors() -> bytes:
    """A file of vectors."""
    buffer = io.BytesIO()
    about = json.dumps({"tensor": "pool", "identity": "", "how": {}})
    parts = (np.array(["a.jpg"]), np.array(["a"]), np.ones((1, 4), np.float32), np.array(about))
    np.savez(buffer, **dict(zip(embeddings.KEYS, parts, strict=True)))
    return buffer.getvalue()


@target("apps/label_wav.py", lambda: [b"yes, 1200\nno, 3000\n"], b", yes -1 1e999 nan \n 99999999999999999999".split())
def read_said_words(data: bytes) -> None:
    label_wav.said_words(stored(data, "words.txt"))
