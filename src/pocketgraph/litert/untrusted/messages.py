"""Arrays over a pipe between two processes that need not trust each other: JSON of bounded size, then plain bytes."""

from __future__ import annotations

import base64
import json
import math
from typing import IO, Any

import numpy as np

from pocketgraph.graph.tensor import Array

LARGEST_HEAD = 64 << 20  # bytes of the JSON
LARGEST_ARRAY = 1 << 40  # bytes
KINDS = "biufcS"  # of NumPy's types: what bytes alone say


def send(pipe: IO[bytes], about: dict[str, Any], arrays: list[Array] | None = None) -> None:
    """Writes one message; arrays of objects hold bytes.

    Raises:
        OSError: nobody reads.
    """
    plain: list[Array] = []
    listed: list[dict[str, Any]] = []
    for array in arrays or ():
        entry: dict[str, Any] = {"dtype": array.dtype.str, "shape": list(array.shape)}
        if array.dtype.kind == "O":
            entry["texts"] = [base64.b64encode(bytes(item)).decode() for item in array.reshape(-1).tolist()]
        else:
            plain.append(np.ascontiguousarray(array))
        listed.append(entry)
    head = json.dumps({**about, "arrays": listed}).encode()
    pipe.write(len(head).to_bytes(8, "little") + head)
    for array in plain:
        pipe.write(array.reshape(-1).view(np.uint8).data if array.size else b"")
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[dict[str, Any], list[Array]]:
    """Reads one message.

    Raises:
        EOFError: the other side has gone, or what it says is no message.
    """
    size = int.from_bytes(_exactly(pipe, bytearray(8)), "little")
    if size > LARGEST_HEAD:
        raise EOFError("a message too long")
    try:
        about = json.loads(bytes(_exactly(pipe, bytearray(size))))
        arrays = [_array(pipe, entry) for entry in about.pop("arrays")]
    except (
        Exception
    ) as error:  # the other side may be anybody; NumPy parses the names of types with Python's own parser
        raise EOFError("no message") from error
    return about, arrays


def _array(pipe: IO[bytes], entry: dict[str, Any]) -> Array:
    dtype, shape = np.dtype(str(entry["dtype"])), tuple(map(int, entry["shape"]))
    if dtype.kind == "O":
        texts = np.empty(len(entry["texts"]), object)
        texts[:] = [base64.b64decode(text) for text in entry["texts"]]
        return texts.reshape(shape)
    if dtype.kind not in KINDS or any(size < 0 for size in shape):
        raise ValueError(f"an array of {dtype}{list(shape)}")
    if math.prod(shape) * dtype.itemsize > LARGEST_ARRAY:
        raise ValueError("an array too large")
    found = np.empty(shape, dtype)
    if found.nbytes:
        _exactly(pipe, found.reshape(-1).view(np.uint8).data)
    return found


def _exactly(pipe: IO[bytes], room: Any) -> Any:
    """``room``, filled from the pipe."""
    view, filled = memoryview(room), 0
    while filled < len(view):
        count = pipe.readinto(view[filled:])  # type: ignore[attr-defined]
        if not count:
            raise EOFError("the other side has gone")
        filled += count
    return room
