"""The metadata of a LiteRT file as Android's, iOS's and MediaPipe's task libraries read it.

A FlatBuffer of its own, ``ModelMetadata`` with the identifier ``M001``, lies in a buffer that the model names
``TFLITE_METADATA``. It says how pictures are normalized and which files at the end of the model's file hold the labels
and the calibration of scores. Source of slots and values: metadata_schema.fbs of the TensorFlow Lite Support library.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence

from pocketgraph.datasets.class_labels import NO_LABEL
from pocketgraph.exporting.labels import check_labels, scores_of
from pocketgraph.exporting.model import About, ExportModel, Normalization, Port
from pocketgraph.formats.tflite_metadata import IDENTIFIER
from pocketgraph.litert.writing import flatbuffer
from pocketgraph.litert.writing.flatbuffer import Entry, Table

NAME = "TFLITE_METADATA"
AXIS_LABELS, VALUE_LABELS, SCORE_CALIBRATION = 2, 3, 4
"""Kinds of associated files."""
FEATURE, IMAGE, BOXES, AUDIO = 1, 2, 3, 4
"""Kinds of content."""
NORMALIZATION, CALIBRATION = 1, 2
"""Kinds of process units."""
COLORS = {3: 1, 1: 2}
"""The color space by channels: RGB, GRAYSCALE."""
ZIP_UTF8 = 1 << 11  # flag: names are UTF-8
ZIP_VERSION = 20  # of the specification, 2.0
ZIP_DAY = (1 << 5) | 1  # 1980-01-01, so that equal models are equal files
LABELS_FILE, CALIBRATION_FILE = "labels.txt", "score_calibration.csv"
PARSER, AUDIO_PARSER = "1.0.0", "1.3.0"
"""The first metadata parser that knows everything that is used here."""
DETECTIONS = {
    "detection_boxes": "location", "detection_classes": "category", "detection_scores": "score",
    "num_detections": "number of detections",
}  # fmt: skip
"""The outputs of the Object Detection API, and what the task libraries call them."""
BOX_ORDER = (1, 0, 3, 2)
"""Where left, top, right and bottom stand among ymin, xmin, ymax, xmax."""
CORNERS, RATIO = 1, 0
"""How boxes are told: their boundaries, as shares of the picture."""


def described(model: ExportModel, made: Callable[[Mapping[str, bytes]], bytes]) -> bytes | None:
    """A file that was made elsewhere, with the metadata of the model that it was made of; None where that tells
    nothing.

    Args:
        model: the model; labels that it has must fit.
        made: the file's content with named metadata in it.

    Raises:
        UsageError: labels or calibration do not fit the output.
    """
    parts = packed(model)
    if parts is None:
        return None
    about, files = parts
    content = made({NAME: about})
    return content + (archive(files, len(content)) if files else b"")


def packed(model: ExportModel, *, takes_bytes: bool = False) -> tuple[bytes, dict[str, bytes]] | None:
    """The ModelMetadata of a model's main entry point, and the files that it refers to by name; None
    where there is nothing to tell beyond names and shapes.

    Args:
        model: the model; labels that it has must fit.
        takes_bytes: whether the first input takes uint8 codes for the graph's floats.

    Raises:
        UsageError: labels or calibration do not fit the output.
    """
    is_detector = {port.name for port in model.main.outputs} == set(DETECTIONS)
    entries = (
        model.labels,
        model.calibration,
        model.normalization,
        model.sample_rate,
        is_detector,
        model.about != About(),
    )
    if not any(entries):
        return None
    files: dict[str, bytes] = {}
    rate = model.sample_rate if model.front is None and model.texts is None else None
    inputs = [
        _input(port, None if at else model.normalization, None if at else rate, takes_bytes=takes_bytes and not at)
        for at, port in enumerate(model.main.inputs)
    ]
    outputs = _outputs(model, files)
    subgraph: Table = ((2, "[table]", inputs), (3, "[table]", outputs))
    about = model.about
    texts = ((0, about.name), (1, about.description), (2, about.version), (4, about.author), (5, about.license))
    root: list[Entry] = [(slot, "string", text) for slot, text in texts if text]
    root += [(3, "[table]", [subgraph]), (7, "string", AUDIO_PARSER if rate else PARSER)]
    content, _, _ = flatbuffer.layout(root, IDENTIFIER)
    return content, files


def _input(port: Port, normalization: Normalization | None, sample_rate: int | None, *, takes_bytes: bool) -> Table:
    if sample_rate:
        properties: Table = ((0, "u32", sample_rate), (1, "u32", 1))
        return ((0, "string", "audio_clip"), (3, "table", _content(AUDIO, properties)))
    sizes = port.sizes or ()
    if len(sizes) != 4 or sizes[3] not in COLORS or (normalization is None and port.dtype.name != "uint8"):
        return ((0, "string", port.name), (3, "table", _content(FEATURE, ())))
    size: Table = ((0, "u32", sizes[2]), (1, "u32", sizes[1]))
    picture: Table = ((0, "i8", COLORS[sizes[3]]), (1, "table", size))
    entries: list[Entry] = [(0, "string", "image"), (3, "table", _content(IMAGE, picture))]
    if port.dtype.name == "uint8":
        return (*entries, (5, "table", _stats((0.0,), (255.0,))))
    assert normalization is not None
    mean, std = normalization.mean, normalization.std
    options: Table = ((0, "[f32]", mean), (1, "[f32]", std))
    low = tuple((0 - m) / s for m, s in zip(mean, std, strict=True))
    high = tuple((255 - m) / s for m, s in zip(mean, std, strict=True))
    entries.append((4, "[table]", [((0, "u8", NORMALIZATION), (1, "table", options))]))
    return (*entries, (5, "table", _stats((0.0,), (255.0,)) if takes_bytes else _stats(low, high)))


def _outputs(model: ExportModel, files: dict[str, bytes]) -> list[Table]:
    ports = model.main.outputs
    if len(ports) == len(DETECTIONS) and {port.name for port in ports} == set(DETECTIONS):
        return [_detection(model, port, files) for port in ports]
    if not model.labels and not model.calibration:
        return [((0, "string", port.name), (3, "table", _content(FEATURE, ()))) for port in ports]
    check_labels(model)
    scores = scores_of(model)
    return [
        _scores(model, files) if port is scores else ((0, "string", port.name), (3, "table", _content(FEATURE, ())))
        for port in ports
    ]


def _scores(model: ExportModel, files: dict[str, bytes]) -> Table:
    """The scores of a classifier, with its labels and their calibration."""
    entries: list[Entry] = [(0, "string", "probability"), (3, "table", _content(FEATURE, ()))]
    associated: list[Table] = []
    if model.labels:
        files[LABELS_FILE] = ("\n".join(model.labels) + "\n").encode()
        associated.append(_file(LABELS_FILE, "The name of each class.", AXIS_LABELS))
    if model.calibration:
        files[CALIBRATION_FILE] = "\n".join(
            model.calibration
        ).encode()  # a line break at its end would be one more line
        associated.append(_file(CALIBRATION_FILE, "Of each class: scale, slope, offset.", SCORE_CALIBRATION))
        options: Table = ((0, "i8", 0), (1, "f32", 0.0))
        entries.append((4, "[table]", [((0, "u8", CALIBRATION), (1, "table", options))]))
    return (*entries, (5, "table", _stats((0.0,), (1.0,))), (6, "[table]", associated))


def _detection(model: ExportModel, port: Port, files: dict[str, bytes]) -> Table:
    """One of a detector's four outputs; the categories have the labels."""
    what = DETECTIONS[port.name]
    entries: list[Entry] = [(0, "string", what)]
    if what == "location":
        boxes: Table = ((0, "[u32]", BOX_ORDER), (1, "i8", CORNERS), (2, "i8", RATIO))
        return (*entries, (3, "table", _content(BOXES, boxes)))
    entries.append((3, "table", _content(FEATURE, ())))
    if what == "category" and model.labels:
        # Its classes count from 1, the task libraries' lines from 0.
        lines = model.labels if model.labels[0] == NO_LABEL else (NO_LABEL, *model.labels)
        files[LABELS_FILE] = ("\n".join(lines) + "\n").encode()
        entries.append((6, "[table]", [_file(LABELS_FILE, "The name of each class.", VALUE_LABELS)]))
    return entries


def _content(kind: int, properties: Table) -> Table:
    return ((0, "u8", kind), (1, "table", properties))


def _stats(low: Sequence[float], high: Sequence[float]) -> Table:
    return ((0, "[f32]", tuple(high)), (1, "[f32]", tuple(low)))


def _file(name: str, description: str, kind: int) -> Table:
    return ((0, "string", name), (1, "string", description), (2, "i8", kind))


def archive(files: Mapping[str, bytes], start: int) -> bytes:
    """Files kept behind a model in its own file: a ZIP archive whose offsets are those of the whole file.

    The task libraries map labels from there, so that nothing is compressed. Source: PKWARE's APPNOTE.TXT, 4.3.

    Args:
        files: the content by name.
        start: where in the whole file it begins.
    """
    body, directory = bytearray(), bytearray()
    for name, data in files.items():
        encoded = name.encode()
        common = struct.pack(
            "<HHHHHIIIHH", ZIP_VERSION, ZIP_UTF8, 0, 0, ZIP_DAY, zlib.crc32(data), len(data), len(data), len(encoded), 0
        )
        directory += b"PK\1\2" + struct.pack("<H", ZIP_VERSION) + common
        directory += struct.pack("<HHHII", 0, 0, 0, 0, start + len(body)) + encoded
        body += b"PK\3\4" + common + encoded + data
    end = struct.pack("<HHHHIIH", 0, 0, len(files), len(files), len(directory), start + len(body), 0)
    return bytes(body + directory + b"PK\5\6" + end)
