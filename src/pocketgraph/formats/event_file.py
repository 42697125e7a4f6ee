"""Writes event files, which TensorBoard reads: a graph and what its runs did, or numbers by step.

An event file is a row of TFRecords (length, its checksum, data, its checksum), each an Event message
(tensorflow/core/lib/io/record_writer.cc, tensorflow/core/util/event.proto).
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterable, Mapping
from typing import Any

from pocketgraph.formats import crc32c
from pocketgraph.formats.files import write_atomically
from pocketgraph.formats.protos import message

VERSION = "brain.Event:2"


def write_event_file(folder: str | os.PathLike[str], graph_def: bytes, runs: Mapping[str, bytes]) -> None:
    """Writes an event file of its own into a folder, which is made when it is not there.

    Args:
        folder: TensorBoard's ``--logdir``.
        graph_def: an encoded GraphDef, shown under Graphs.
        runs: encoded RunMetadata by tag; the tag is what TensorBoard lists under "Session runs".

    Raises:
        PocketgraphError: the file cannot be written.
    """
    now = time.time()
    events = [_event(now, file_version=VERSION), _event(now, graph_def=graph_def)]
    for step, (tag, metadata) in enumerate(runs.items()):
        run = _event(now, step=step)
        run.tagged_run_metadata.tag = tag
        run.tagged_run_metadata.run_metadata = metadata
        events.append(run)
    _write(folder, now, events)


def write_scalars(folder: str | os.PathLike[str], points: Iterable[tuple[int, Mapping[str, float]]]) -> None:
    """Writes an event file with numbers, which TensorBoard shows as curves.

    Args:
        folder: a run of TensorBoard's ``--logdir``, made when it is not there.
        points: steps, each with numbers by tag.

    Raises:
        PocketgraphError: the file cannot be written.
    """
    now = time.time()
    events = [_event(now, file_version=VERSION)]
    for step, numbers in points:
        event = _event(now, step=step)
        for tag, value in numbers.items():
            event.summary.value.add(tag=tag, simple_value=value)
        events.append(event)
    _write(folder, now, events)


def _write(folder: str | os.PathLike[str], now: float, events: Iterable[Any]) -> None:
    path = _free_name(os.fspath(folder), now)
    write_atomically(path, b"".join(record(event.SerializeToString()) for event in events))


def record(data: bytes) -> bytes:
    """A TFRecord."""
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


def _checksum(data: bytes) -> bytes:
    return struct.pack("<I", crc32c.masked(crc32c.checksum(data)))


def _event(wall_time: float, **what: Any) -> Any:
    return message("tensorflow.Event")(wall_time=wall_time, **what)


def _free_name(folder: str, now: float) -> str:
    """TensorFlow's way of naming event files; TensorBoard looks for ``tfevents``."""
    os.makedirs(folder, exist_ok=True)
    base = os.path.join(folder, f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}")
    return next(p for p in (base, *(f"{base}.{n}" for n in range(1, 1 << 20))) if not os.path.exists(p))
