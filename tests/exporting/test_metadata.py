"""The metadata of our files, read back byte by byte as the task libraries do: nothing of the writer is used."""

from __future__ import annotations

import pathlib
import struct
import zipfile
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.datasets.sample_reading import SampleReading
from pocketgraph.errors import FormatError, UsageError
from pocketgraph.exporting import TARGETS, About, Normalization, export_model, opened
from pocketgraph.exporting.tflite import metadata as writer
from pocketgraph.formats.tflite_metadata import metadata
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization.evaluation.evaluator import _as_file_says

CLASSIFIER = parse("""
    picture = Placeholder(dtype=float, shape=[1, 4, 4, 3])
    axes = Const(int32 [1, 2])
    mean = Mean(picture, axes, T=float, Tidx=int32, keep_dims=false)
    scores = Softmax(mean, T=float)
""")
LABELS = ["cat", "dög", "a bird"]


class Bytes:
    """A table of a FlatBuffer by hand."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self.vtable = at - struct.unpack_from("<i", data, at)[0]

    def place(self, slot: int) -> int:
        size = struct.unpack_from("<H", self.data, self.vtable)[0]
        offset = struct.unpack_from("<H", self.data, self.vtable + 4 + 2 * slot)[0] if 4 + 2 * slot < size else 0
        return self.at + offset if offset else 0

    def scalar(self, slot: int, form: str) -> Any:
        place = self.place(slot)
        return struct.unpack_from(form, self.data, place)[0] if place else 0

    def target(self, slot: int) -> int:
        place = self.place(slot)
        assert place, slot
        return place + struct.unpack_from("<I", self.data, place)[0]

    def table(self, slot: int) -> Bytes:
        return Bytes(self.data, self.target(slot))

    def tables(self, slot: int) -> list[Bytes]:
        start = self.target(slot)
        places = [start + 4 + 4 * n for n in range(struct.unpack_from("<I", self.data, start)[0])]
        return [Bytes(self.data, place + struct.unpack_from("<I", self.data, place)[0]) for place in places]

    def text(self, slot: int) -> str:
        start = self.target(slot)
        size = struct.unpack_from("<I", self.data, start)[0]
        assert self.data[start + 4 + size] == 0
        return self.data[start + 4 : start + 4 + size].decode()

    def floats(self, slot: int) -> list[float]:
        start = self.target(slot)
        count = struct.unpack_from("<I", self.data, start)[0]
        return list(struct.unpack_from(f"<{count}f", self.data, start + 4))


def root(data: bytes) -> Bytes:
    return Bytes(data, struct.unpack_from("<I", data)[0])


def packed(path: pathlib.Path) -> Bytes:
    """The ModelMetadata of a file, found as LiteRT's readers find it."""
    data = path.read_bytes()
    assert data[4:8] == b"TFL3"
    model = root(data)
    (entry,) = [table for table in model.tables(6) if table.text(0) == "TFLITE_METADATA"]
    buffer = model.tables(4)[entry.scalar(1, "<I")]
    start = buffer.target(0)
    assert (start + 4) % 16 == 0
    content = data[start + 4 : start + 4 + struct.unpack_from("<I", data, start)[0]]
    assert content[4:8] == b"M001"
    return root(content)


def test_a_classifier(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.tflite"
    pocketgraph.export(
        CLASSIFIER, path, labels=LABELS, input_mean=127.5, input_std=128.0,
        calibration=["1,2,3", "", "4,5,6,0.5"],
        about=About("pets", "Tells pets.", "v2", "an author", "Apache-2.0"),
    )  # fmt: skip
    found = packed(path)
    assert [found.text(slot) for slot in (0, 1, 2, 4, 5, 7)] == [
        "pets", "Tells pets.", "v2", "an author", "Apache-2.0", "1.0.0"
    ]  # fmt: skip
    (subgraph,) = found.tables(3)
    (picture,), (scores,) = subgraph.tables(2), subgraph.tables(3)
    assert picture.text(0) == "image"
    content = picture.table(3)
    assert content.scalar(0, "<B") == 2
    image = content.table(1)
    assert image.scalar(0, "<b") == 1
    assert (image.table(1).scalar(0, "<I"), image.table(1).scalar(1, "<I")) == (4, 4)
    (unit,) = picture.tables(4)
    assert unit.scalar(0, "<B") == 1
    assert (unit.table(1).floats(0), unit.table(1).floats(1)) == ([127.5], [128.0])
    assert picture.table(5).floats(0) == [pytest.approx(127.5 / 128)]
    assert picture.table(5).floats(1) == [pytest.approx(-127.5 / 128)]
    assert scores.text(0) == "probability"
    (unit,) = scores.tables(4)
    assert (unit.scalar(0, "<B"), unit.table(1).scalar(0, "<b"), unit.table(1).scalar(1, "<f")) == (2, 0, 0.0)
    files = [(file.text(0), file.scalar(2, "<b")) for file in scores.tables(6)]
    assert files == [("labels.txt", 2), ("score_calibration.csv", 4)]
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.read("labels.txt").decode() == "cat\ndög\na bird\n"
        assert archive.read("score_calibration.csv") == b"1,2,3\n\n4,5,6,0.5"
        assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())
    data = path.read_bytes()
    end = data.rindex(b"PK\5\6")
    size, start = struct.unpack_from("<II", data, end + 12)
    assert start + size == end  # offsets are those of the whole file
    assert data[start : start + 4] == b"PK\1\2"
    (first,) = struct.unpack_from("<I", data, start + 42)
    assert data[first : first + 4] == b"PK\3\4"


@pytest.mark.parametrize(("takes_bytes", "span"), [(False, (-1.0, 1.0)), (True, (0.0, 255.0))])
def test_the_values_of_a_picture_are_bytes_where_bytes_go_in(takes_bytes: bool, span: tuple[float, float]) -> None:
    model = replace(opened(CLASSIFIER), normalization=Normalization((127.5,), (127.5,)))
    made = writer.packed(model, takes_bytes=takes_bytes)
    assert made is not None
    about, _ = made
    (subgraph,) = Bytes(about, struct.unpack_from("<I", about)[0]).tables(3)
    (picture,) = subgraph.tables(2)
    (unit,) = picture.tables(4)
    assert (unit.table(1).floats(0), unit.table(1).floats(1)) == ([127.5], [127.5])
    assert (picture.table(5).floats(1), picture.table(5).floats(0)) == ([span[0]], [span[1]])


def test_what_we_read_of_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.tflite"
    each = replace(opened(CLASSIFIER), labels=tuple(LABELS), normalization=Normalization((1, 2, 3), (4, 5, 6)))
    export_model(each, str(path), TARGETS["tflite"], {})
    found = metadata(path.read_bytes())
    assert found is not None
    assert (found.mean, found.std, found.labels) == ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0), tuple(LABELS))
    assert (found.inputs, found.outputs, found.files) == (("image",), ("probability",), ("labels.txt",))
    plain = pocketgraph.export(CLASSIFIER, tmp_path / "plain.tflite", with_metadata=False)
    assert metadata((tmp_path / "plain.tflite").read_bytes()) is None
    assert plain.bytes < path.stat().st_size
    damaged = bytearray(path.read_bytes())
    damaged[damaged.rindex(b"PK\1\2") + 42] ^= 0xFF
    with pytest.raises(FormatError, match="the files behind the model are damaged"):
        metadata(bytes(damaged))
    newer = bytearray(path.read_bytes())
    newer[newer.rindex(b"PK\1\2") + 6] = 235  # asks for version 23.5 of the format
    with pytest.raises(FormatError, match=r"the files behind the model are damaged: zip file version 23\.5"):
        metadata(bytes(newer))


def test_files_behind_a_model_may_be_deflated(tmp_path: pathlib.Path) -> None:
    """As `zip model.tflite labels.txt` packs them."""
    path = tmp_path / "net.tflite"
    export_model(replace(opened(CLASSIFIER), labels=tuple(LABELS)), str(path), TARGETS["tflite"], {})
    stored = path.read_bytes()
    (start,) = struct.unpack_from("<I", stored, stored.rindex(b"PK\5\6") + 16)
    (first,) = struct.unpack_from("<I", stored, start + 42)

    def packed_as(how: int, text: str = "\n".join(LABELS)) -> bytes:
        path.write_bytes(stored[:first])
        with zipfile.ZipFile(path, "a", how) as archive:
            archive.writestr("labels.txt", text)
        return path.read_bytes()

    found = metadata(packed_as(zipfile.ZIP_DEFLATED))
    assert found is not None
    assert found.labels == tuple(LABELS)
    with pytest.raises(FormatError, match=r"'labels\.txt' behind the model is packed in a way that is not read here"):
        metadata(packed_as(zipfile.ZIP_BZIP2))
    with pytest.raises(FormatError, match="have more than 64 MB"):
        metadata(packed_as(zipfile.ZIP_DEFLATED, "a" * ((1 << 26) + 1)))


@pytest.mark.parametrize("labels", [["a", "b"], ["???", "a", "b"]])
def test_a_detector(labels: list[str], tmp_path: pathlib.Path) -> None:
    graph = parse("""
        image_tensor = Placeholder(dtype=uint8, shape=[1, 2, 2, 3])
        detection_boxes = Const(float [[[0.0, 0.0, 0.5, 1.0]]])
        detection_classes = Const(float [[1.0]])
        detection_scores = Const(float [[0.75]])
        num_detections = Const(float [1.0])
        floats = Cast(image_tensor, SrcT=uint8, DstT=float, Truncate=false)
    """)
    outputs = ["detection_boxes", "detection_classes", "detection_scores", "num_detections"]
    pocketgraph.export(graph, tmp_path / "net.tflite", inputs=["image_tensor"], outputs=outputs, labels=labels)
    (subgraph,) = packed(tmp_path / "net.tflite").tables(3)
    assert [table.text(0) for table in subgraph.tables(3)] == ["location", "category", "score", "number of detections"]
    (picture,) = subgraph.tables(2)
    assert picture.text(0) == "image"
    assert picture.place(4) == 0  # bytes are fed as they are
    boxes = subgraph.tables(3)[0].table(3)
    assert boxes.scalar(0, "<B") == 3
    start = boxes.table(1).target(0)
    assert struct.unpack_from("<5I", boxes.data, start) == (4, 1, 0, 3, 2)
    assert boxes.table(1).scalar(1, "<b") == 1
    (file,) = subgraph.tables(3)[1].tables(6)
    assert (file.text(0), file.scalar(2, "<b")) == ("labels.txt", 3)
    with zipfile.ZipFile(tmp_path / "net.tflite") as beside:  # line i is class i, and the API's classes count from 1
        assert beside.read("labels.txt").decode().split() == ["???", "a", "b"]


def test_labels_for_what_has_no_scores(tmp_path: pathlib.Path) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[1, 4, 4, 3])\ny = Relu(x, T=float)")
    with pytest.raises(UsageError, match=r"labels are for scores of classes, \[1, N\]; the output 'y' is float"):
        pocketgraph.export(graph, tmp_path / "net.tflite", labels=["a"])
    with pytest.raises(UsageError, match="there are 2 labels and 3 scores in the output 'scores'"):
        pocketgraph.export(CLASSIFIER, tmp_path / "net.tflite", labels=["a", "b"])
    assert not list(tmp_path.iterdir())


def of_channels(path: pathlib.Path, mean: tuple[float, ...], std: tuple[float, ...]) -> pathlib.Path:
    """A file whose metadata have a normalization of these numbers, of a model that gives the means of channels."""
    each = replace(opened(CHANNELS), labels=tuple(LABELS), normalization=Normalization(mean, std))
    export_model(each, str(path), TARGETS["tflite"], {})
    return path


CHANNELS = parse("""
    picture = Placeholder(dtype=float, shape=[1, 4, 4, 3])
    axes = Const(int32 [1, 2])
    scores = Mean(picture, axes, T=float, Tidx=int32, keep_dims=false)
""")


def test_each_channel_is_scaled_by_its_own_numbers(tmp_path: pathlib.Path) -> None:
    path = of_channels(tmp_path / "net.tflite", (10, 20, 30), (2, 5, 0.5))
    pixels = np.full((4, 4, 3), (100, 40, 31), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    (found,) = pocketgraph.label_image(path, tmp_path / "photo.png")
    assert [(one.label, one.score) for one in found.predictions] == [("cat", 45), ("dög", 4), ("a bird", 2)]
    np.savez(tmp_path / "samples.npz", x=pixels[np.newaxis], labels=np.array([0]))
    for samples in (tmp_path / "samples.npz", tmp_path / "photo.png"):
        data = _as_file_says([str(path)], SampleReading())
        inputs = (ModelInput("picture:0", (1, 4, 4, 3), np.dtype(np.float32)),)
        ((fed,),) = data.open(str(samples), inputs, data.scaling(None)).samples()
        assert fed[0, 0, 0].tolist() == [45, 4, 2]


def test_a_normalization_that_does_not_go_with_the_picture_is_an_error(tmp_path: pathlib.Path) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "photo.png")
    path = of_channels(tmp_path / "two.tflite", (10, 20), (2, 5))
    with pytest.raises(UsageError, match="pixels are scaled by 2 numbers, one a channel, and 'picture' takes 3"):
        pocketgraph.label_image(path, tmp_path / "photo.png")
    data = path.read_bytes()
    (tmp_path / "zero.tflite").write_bytes(data.replace(struct.pack("<2f", 2, 5), bytes(8)))
    with pytest.raises(FormatError, match=r"normalization is impossible: mean \[10.0, 20.0\], std \[0.0, 0.0\]"):
        pocketgraph.label_image(tmp_path / "zero.tflite", tmp_path / "photo.png")


def test_labels_with_line_ends_of_windows(tmp_path: pathlib.Path) -> None:
    path = of_channels(tmp_path / "net.tflite", (0,), (1,))
    end = path.read_bytes().index(b"PK\3\4")
    files = {"labels.txt": b"\xef\xbb\xbfcat\r\ndog\r\na bird\r\n"}
    path.write_bytes(path.read_bytes()[:end] + writer.archive(files, end))
    found = metadata(path.read_bytes())
    assert found is not None
    assert found.labels == ("cat", "dog", "a bird")
