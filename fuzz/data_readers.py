"""Targets: what reads samples, labels, feeds, and what an interrupted quantization has kept."""

from __future__ import annotations

import io
import json
import struct

import numpy as np

from fuzz.targets import files, stored, target
from pocketgraph.datasets import (
    class_labels,
    csv_tables,
    file_lists,
    image_loading,
    named_arrays,
    recordings,
    stored_arrays,
)
from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.errors import PocketgraphError
from pocketgraph.exporting import required_ops
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.untrusted import messages
from pocketgraph.quantization.core import resume_state
from pocketgraph.runtime.feeding import feed_files

GRAPH = parse("x = Placeholder(dtype=float, shape=[?, 4])\ntext = Placeholder(dtype=string)\ny = Neg(x, T=float)")
DEEP = b"[" * 2000
INPUTS = (ModelInput("x", (4,), np.dtype(np.float32)),)
NPY_WORDS = (
    b"\x93NUMPY\x01\x00", b"\x93NUMPY\x02\x00", b"\x93NUMPY\x03\x00", b"{'descr': '<f4'", b"'fortran_order': True",
    b"'shape': (", b"'|O'", b"'<U4'", b"'<M8'", b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b".npy", b"1e9", b"-1",
)  # fmt: skip


def pictures(*kinds: str) -> list[bytes]:
    """Small pictures of all the modes that these formats have."""
    from PIL import Image

    found = files("*.png", "*.gif", "*.bmp", most=4096)
    for kind in kinds:
        for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"):
            buffer = io.BytesIO()
            try:
                Image.new(mode, (7, 5), 1).save(buffer, kind)
            except (OSError, ValueError, KeyError):
                continue
            found.append(buffer.getvalue())
    return [data for data in found if len(data) <= 4096]


PICTURE_WORDS = (
    b"IHDR",
    b"IDAT",
    b"PLTE",
    b"tRNS",
    b"IEND",
    b"GIF89a",
    b"\xff\xd8",
    b"\xff\xda",
    b"\xff\xc0",
    b"\xff\xc4",
    b"BM",
)


@target("datasets/image_loading.py", lambda: pictures("PNG", "JPEG", "GIF", "BMP"), PICTURE_WORDS)
def read_picture(data: bytes) -> None:
    path = stored(data, "picture")
    for channels in (1, 3):
        image_loading.read(path, channels)


def wav(channels: int, rate: int, samples: bytes) -> bytes:
    form = struct.pack("<HHIIHH", 1, channels, rate, rate * 2 * channels, 2 * channels, 16)
    return (
        b"RIFF"
        + struct.pack("<I", 36 + len(samples))
        + b"WAVEfmt \x10\0\0\0"
        + form
        + b"data"
        + struct.pack("<I", len(samples))
        + samples
    )


@target(
    "datasets/recordings.py kernels/audio/wav.py",
    lambda: [wav(1, 16000, bytes(64)), wav(2, 8000, bytes(range(64))), wav(1, 44100, bytes(40))],
    (b"RIFF", b"WAVE", b"fmt ", b"data", b"LIST", b"\x01\x00", b"\x80\x3e\x00\x00"),
)  # fmt: skip
def read_recording(data: bytes) -> None:
    path = stored(data, "sound.wav")
    recordings.rate_of(path)
    recordings.samples_at(path, 16000, 100)
    recordings.content_at(path, 16000)


def arrays() -> list[bytes]:
    """Array files of each kind and version."""
    found = []
    values = {"x": np.ones((2, 4), np.float32), "labels": np.array([1, 0])}
    for write in (np.savez, np.savez_compressed):
        buffer = io.BytesIO()
        write(buffer, **values)  # type: ignore[arg-type]
        found.append(buffer.getvalue())
    for array in (*values.values(), np.array(["a", "bc"]), np.ones((2, 2), order="F"), np.array([b"a"]), np.array(1.5)):
        for version in ((1, 0), (2, 0), (3, 0)):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asanyarray(array), version)
            found.append(buffer.getvalue())
    return found


@target("datasets/stored_arrays.py datasets/named_arrays.py datasets/class_labels.py", arrays, NPY_WORDS)
def read_arrays(data: bytes) -> None:
    path = stored(data, "samples.npz")
    found, classes, _ = named_arrays.of_inputs(path, INPUTS)
    for array in found:
        stored_arrays.whole(array)
    class_labels.indices(classes, ["a", "b"], 2)


@target("datasets/stored_arrays.py", arrays, NPY_WORDS)
def read_arrays_in_place(data: bytes) -> None:
    """As if all arrays were too large to be read at once."""
    largest, stored_arrays.LARGE = stored_arrays.LARGE, 1
    try:
        for array in stored_arrays.read_arrays(stored(data, "samples.npy")).values():
            if isinstance(array, stored_arrays.StoredArray) and len(array) < 1 << 16:
                stored_arrays.whole(array)
    finally:
        stored_arrays.LARGE = largest


@target("runtime/feeding/feed_files.py", arrays, NPY_WORDS)
def read_feeds(data: bytes) -> None:
    path = stored(data, "feeds.npz")
    for read in (
        lambda: feed_files.read_feeds(path, GRAPH),
        lambda: feed_files.read_array(path),
        lambda: feed_files.read_input(GRAPH, "text", path),
    ):
        try:
            read()
        except PocketgraphError as error:
            last = error
        else:
            last = None
    if last is not None:
        raise last


@target("quantization/core/resume_state.py", lambda: [*arrays(), resume()], (*NPY_WORDS, b"key.npy"))
def read_resume_state(data: bytes) -> None:
    state = resume_state.ResumeState(stored(data, "resume.npz"), "k")
    state.get("calibration")


def resume() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, key=np.array("k"), **{"calibration/x": np.ones(3)})
    return buffer.getvalue()


TABLE = b"a,b,c,d,label\n1,2,3,4,1\n1.5,-2,3e2,nan,0\n"


@target(
    "datasets/csv_tables.py",
    lambda: [TABLE, b"1,2,3,4\n", b'"1",2,3,4,"a\n b"\n'],
    (b",", b'"', b"\n", b"\r", b"nan", b"inf", b"1e999", b"\0", b"label"),
)
def read_csv(data: bytes) -> None:
    csv_tables.read_table(stored(data, "table.csv"), [4])


@target(
    "datasets/file_lists.py",
    lambda: [b"# a list\nlist.txt\t1\nlist.txt\t2\n", b"a b.png 1\n", b"\xef\xbb\xbflist.txt\n"],
    (b"\t", b"\n", b" ", b"#", b"\0", b"../", b"list.txt"),
)
def read_list(data: bytes) -> None:
    file_lists.of_list(stored(data, "list.txt"))


@target(
    "datasets/class_labels.py",
    lambda: [b"cat\ndog\n", b"\xef\xbb\xbfcat\r\n\r\n"],
    (b"\n", b"\r", b"\0", b"\x1b[2J", b"cat"),
)
def read_labels(data: bytes) -> None:
    names = class_labels.read_labels(stored(data, "labels.txt"))
    class_labels.indices(["cat", "dog"], names, 2)


@target(
    "exporting/required_ops.py",
    lambda: [b'[["Add", "BinaryOp<CPUDevice>"], ["Const", null]]', DEEP],
    (b"[", b"]", b'"', b"null", b"{", b"1e999", b","),
)
def read_ops_list(data: bytes) -> None:
    required_ops.ops_list(data.decode("utf-8", "replace"), "list")


def message() -> bytes:
    buffer = io.BytesIO()
    texts = np.empty(2, object)
    texts[:] = [b"a", b"bc"]
    messages.send(buffer, {"path": "x"}, [np.ones(3, np.float32), texts])
    return buffer.getvalue()


@target(
    "litert/untrusted/messages.py",
    lambda: [message()],
    (b'"dtype"', b'"shape"', b'"|O"', b'"texts"', b'"arrays"', json.dumps({}).encode()),
)
def read_worker_message(data: bytes) -> None:
    """What the process of a foreign LiteRT file answers: it may have been taken over."""
    try:
        messages.receive(io.BytesIO(data))
    except EOFError:
        return
