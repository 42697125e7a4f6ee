"""Files are told apart by what is in them, and refusals say what a file is and which command takes it."""

from __future__ import annotations

import io
import os
import pathlib
import struct
import zipfile
from typing import Any

import numpy as np
import pytest

import pocketgraph
from command_line import call
from pocketgraph import formats
from pocketgraph.errors import FormatError
from pocketgraph.exporting import export
from pocketgraph.formats import Kind, identify
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.formats.detect import MODELS, sole_model
from pocketgraph.graph import Graph, Node, Tensor, const
from pocketgraph.graph.text_format import parse
from pocketgraph.protobuf import wire
from support import model_dir, needs_shared

GRAPH = Graph([const("w", np.arange(4.0)), Node("y", "Identity", ["w"])])
GRAPH_DEF = formats.to_bytes(GRAPH)
META = wire.bytes_field(1, wire.bytes_field(4, "serve")) + wire.bytes_field(2, GRAPH_DEF)
SAVED_MODEL = wire.number_field(1, 1) + wire.bytes_field(2, META)


def archive(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as pack:
        pack.writestr(name, "{}")
    return file.getvalue()


def record(payload: bytes) -> bytes:
    from pocketgraph.formats.crc32c import checksum, masked

    length = struct.pack("<Q", len(payload))
    return length + struct.pack("<I", masked(checksum(length))) + payload + struct.pack("<I", masked(checksum(payload)))


def package() -> bytes:
    """A memory-mapped package: a region, the graph, the directory, and where the directory begins."""
    graph_at = 64
    element = wire.number_field(1, graph_at) + wire.bytes_field(2, "memmapped_package://.")
    body = b"\0" * graph_at + GRAPH_DEF
    return body + wire.bytes_field(1, element) + struct.pack("<Q", len(body))


def table(value: bytes) -> bytes:
    """As much of an sstable as tells what it holds: the first entry, which has the empty key, and the footer."""
    return b"\0\0" + wire.varint(len(value)) + value + b"\0" * 64 + struct.pack("<Q", 0xDB4775248B80FB57)


CONTENTS: list[tuple[Kind, bytes]] = [
    (
        Kind.KERAS_YAML,
        b"backend: tensorflow\nclass_name: Sequential\nconfig:\n  layers:\n  - class_name: Dense\n    config:\n"
        b"      batch_input_shape: !!python/tuple\n      - null\n      - 4\n      units: 3\nkeras_version: 2.2.4\n",
    ),
    (Kind.TEXT, b"backend: tensorflow\nlayers:\n  - name: Dense\n"),
    (Kind.GRAPH_DEF, GRAPH_DEF),
    (Kind.GRAPH_DEF, b"\x22\x03\x08\x87\x01" + GRAPH_DEF),
    (Kind.GRAPH_DEF, GRAPH_DEF[: len(GRAPH_DEF) // 2]),
    (Kind.GRAPH_DEF_TEXT, b'# made by hand\n\n  node {\n name: "x" }'),
    (Kind.GRAPH_DEF_TEXT, b"versions { producer: 27 }"),
    (Kind.META_GRAPH, META),
    (Kind.META_GRAPH, wire.bytes_field(2, GRAPH_DEF)),
    (Kind.META_GRAPH, META[:60]),
    (Kind.META_GRAPH_TEXT, b'meta_info_def {\n tags: "serve" }'),
    (Kind.SAVED_MODEL_FILE, SAVED_MODEL),
    (Kind.SAVED_MODEL_FILE, SAVED_MODEL[:60]),
    (Kind.SAVED_MODEL_TEXT, b"saved_model_schema_version: 1\n"),
    (Kind.CHECKPOINT_INDEX, table(b"\x08\x01\x1a\x02\x08\x01")),
    (Kind.CHECKPOINT_V1, table(b"\x0a\x02\x08\x01")),
    (Kind.CHECKPOINT_STATE, b'model_checkpoint_path: "model.ckpt-7"\n'),
    (Kind.MEMMAPPED, package()),
    (Kind.TFLITE, b"\x1c\0\0\0TFL3" + b"\0" * 40),
    (Kind.ONNX, wire.number_field(1, 8) + wire.bytes_field(2, "pytorch") + wire.bytes_field(7, b"\x12\x01x")),
    (Kind.MEDIAPIPE, wire.bytes_field(1, wire.bytes_field(2, "GlScalerCalculator") + wire.bytes_field(3, "VIDEO:x"))),
    (
        Kind.MEDIAPIPE,
        wire.bytes_field(
            1, wire.bytes_field(1, "scale") + wire.bytes_field(2, "ScaleCalculator") + wire.bytes_field(6, "IN:x")
        ),
    ),
    (  # a custom op
        Kind.GRAPH_DEF,
        wire.bytes_field(
            1, wire.bytes_field(1, "x") + wire.bytes_field(2, "StepCalculator") + wire.bytes_field(4, "/gpu:0")
        ),
    ),
    (Kind.HDF5, b"\x89HDF\r\n\x1a\n" + b"\0" * 20),
    (Kind.KERAS, archive("metadata.json")),
    (Kind.KERAS, archive("model.weights.h5")),
    (Kind.ARCHIVE, archive("proj/model.weights.h5")),
    (Kind.ARCHIVE, archive("proj/metadata.json")),
    (Kind.ARCHIVE, archive("saved_model.pb")),
    (Kind.ARCHIVE, b"\x1f\x8b\x08\0\0\0\0\0"),
    (Kind.NUMPY, archive("weights.npy")),
    (Kind.PICKLE, archive("model/data.pkl")),
    (Kind.PICKLE, b"\x80\x02}q\x00."),
    (Kind.IMAGE, b"\xff\xd8\xff\xe0\0\x10JFIF"),
    (Kind.IMAGE, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
    (Kind.SOUND, b"RIFF\x24\0\0\0WAVEfmt "),
    (Kind.EVENTS, record(b"\x09" + b"\0" * 8 + b"\x1a\x0dbrain.Event:2")),
    (Kind.TF_RECORDS, record(b"\x0a\x05abcde")),
    (Kind.LFS_POINTER, b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"),
    (Kind.HTML, b"\n<!DOCTYPE html><html><body>404</body></html>"),
    (Kind.TENSORFLOW_JS, b'{"modelTopology": {"node": []}}'),
    (Kind.TENSORFLOW_JS_LAYERS, b'{"format": "layers-model", "generatedBy": "keras v2.11.0"}'),
    (
        Kind.TENSORFLOW_JS_WEIGHTS,
        b'[{"weights": [{"name": "w", "shape": [2], "dtype": "float32"}], "paths": ["w.bin"]}]',
    ),
    (Kind.KERAS_METADATA, b'\n\x74\x1a\x04root"\x14_tf_keras_sequential*P{"name": "x0", "trainable": true'),
    (Kind.JSON, b'{"labels": ["daisy"]}'),
    (Kind.TEXT, b"daisy\nroses\n"),
    (Kind.EMPTY, b""),
    (Kind.UNKNOWN, b"\x07\xff\x00garbage" * 10),
    (Kind.UNKNOWN, b"\0" * 100),
]
LOADABLE = {
    Kind.GRAPH_DEF,
    Kind.MEMMAPPED,
    Kind.TFLITE,
    Kind.ONNX,
    Kind.TENSORFLOW_JS,
    Kind.TENSORFLOW_JS_LAYERS,
    Kind.HDF5,
    Kind.KERAS,
    Kind.GRAPH_DEF_TEXT,
    Kind.META_GRAPH,
    Kind.SAVED_MODEL_FILE,
}


@pytest.mark.parametrize(("kind", "content"), CONTENTS, ids=[f"{i}-{k.name}" for i, (k, _) in enumerate(CONTENTS)])
def test_content_tells(tmp_path: pathlib.Path, kind: Kind, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    identity = identify(path)
    assert identity.kind is kind
    assert identity.next
    assert "{" not in identity.next
    if kind not in LOADABLE and not kind.name.endswith("_TEXT"):
        with pytest.raises(FormatError) as caught:
            formats.load(path)
        assert str(caught.value) == f"{path}: this is {identity.description}, not a GraphDef; {identity.next}"


def test_a_graph_is_loaded_from_each_file_that_holds_one(tmp_path: pathlib.Path) -> None:
    for content in (GRAPH_DEF, META, SAVED_MODEL):
        (tmp_path / "file").write_bytes(content)
        graph = formats.load(tmp_path / "file")
        assert list(graph.nodes) == ["w", "y"]
        np.testing.assert_array_equal(graph["w"].tensor.numpy(), [0, 1, 2, 3])


def test_a_file_that_is_cut_short_is_called_so(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.pb"
    for length in range(1, len(GRAPH_DEF)):
        path.write_bytes(GRAPH_DEF[:length])
        try:
            whole = [node.name for node in formats.load(path)]
        except FormatError as error:
            assert "cut short" in str(error), length  # noqa: PT017
            assert f"ends at byte {length}" in str(error)  # noqa: PT017
        else:
            assert whole == ["w"], length  # the cut is between two nodes


def test_directories(tmp_path: pathlib.Path) -> None:
    assert identify(tmp_path).kind is Kind.DIRECTORY
    (tmp_path / "model.json").write_text('{"labels": ["daisy"]}')
    assert identify(tmp_path).kind is Kind.DIRECTORY
    (tmp_path / "frozen.pb").write_bytes(GRAPH_DEF)
    assert "frozen.pb" in identify(tmp_path).next
    (tmp_path / "model.json").write_text('{"format": "graph-model", "signature": {}}')
    assert "model.json" in identify(tmp_path).next
    (tmp_path / "model.ckpt-1.index").write_bytes(b"")
    assert identify(tmp_path).kind is Kind.CHECKPOINT_DIRECTORY
    (tmp_path / "saved_model.pb").write_bytes(SAVED_MODEL)
    assert identify(tmp_path).kind is Kind.SAVED_MODEL


def test_files_beside_a_graph_are_not_proposed_as_one(tmp_path: pathlib.Path) -> None:
    (tmp_path / "fingerprint.pb").write_bytes(b"\x08\x01")
    (tmp_path / "keras_metadata.pb").write_bytes(b'\n\x74\x1a\x04root"\x14_tf_keras_sequential*P{')
    assert identify(tmp_path).next == "give the model file inside"


def test_a_checkpoint_whose_data_are_cut_off_or_missing_is_damaged(tmp_path: pathlib.Path, capsys: Any) -> None:
    values = {"w": Tensor.from_numpy(np.ones((100, 100), np.float32)), "b": Tensor.from_numpy(np.ones(2, np.float32))}
    write_checkpoint(tmp_path / "model.ckpt-5", values)
    data = tmp_path / "model.ckpt-5.data-00000-of-00001"
    whole = data.read_bytes()
    for path in (tmp_path, tmp_path / "model.ckpt-5", tmp_path / "model.ckpt-5.index"):
        data.write_bytes(whole)
        assert call("identify", path) == 0
        assert "2 tensors of 40.01 kB" in capsys.readouterr().out
        data.write_bytes(whole[:1000])
        assert call("identify", path) == 1
        assert "which has only 1000; the file was cut off, copy it again" in capsys.readouterr().out
        data.unlink()
        assert call("identify", path) == 1
        assert "the data file is missing, it holds 'b'" in capsys.readouterr().out


def test_a_prefix_that_no_file_has(tmp_path: pathlib.Path) -> None:
    (tmp_path / "model.ckpt-1.index").write_bytes(table(b"\x08\x01"))
    (tmp_path / "model.ckpt-1.data-00000-of-00001").write_bytes(b"\0" * 100)
    prefix = str(tmp_path / "model.ckpt-1")
    assert identify(prefix).kind is Kind.CHECKPOINT_V2
    for name in (prefix, prefix + ".index", prefix + ".data-00000-of-00001"):
        with pytest.raises(
            FormatError, match=f"checkpoint.*freeze_graph takes it as input_checkpoint={prefix}, with the graph"
        ):
            formats.load(name)
    (tmp_path / "old.ckpt-00000-of-00002").write_bytes(b"")
    assert identify(tmp_path / "old.ckpt").kind is Kind.CHECKPOINT_V1
    assert identify(tmp_path / "old.ckpt-?????-of-00002").kind is Kind.CHECKPOINT_V1


def test_a_missing_file(tmp_path: pathlib.Path) -> None:
    (tmp_path / "frozen_graph.pb").write_bytes(GRAPH_DEF)
    with pytest.raises(FormatError, match=r"there is no such file; did you mean '.*frozen_graph.pb'"):
        formats.load(tmp_path / "frozen_grph.pb")


@needs_shared
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ckpt_v2_linreg_chain/linear_regression.ckpt.index", Kind.CHECKPOINT_INDEX),
        ("ckpt_v2_linreg_chain/linear_regression.ckpt.data-00000-of-00001", Kind.CHECKPOINT_DATA),
        ("ckpt_v2_linreg_chain/linear_regression.ckpt.meta", Kind.META_GRAPH),
        ("ckpt_v2_linreg_chain/linear_regression.ckpt", Kind.CHECKPOINT_V2),
        ("ckpt_v2_linreg_chain/linear_regression.pbtxt", Kind.GRAPH_DEF),  # in spite of its name
        ("ckpt_v1_nxt/safe_model.ckpt", Kind.CHECKPOINT_V1),
        ("pose_mobilenet_thin_text/graph.pb", Kind.GRAPH_DEF_TEXT),
        ("har_guaniuzzt/human_activity_recognition.pb", Kind.SAVED_MODEL_FILE),
        ("sm_mnist_conv/mnist_conv_model", Kind.SAVED_MODEL),
        ("vibcat/golden.npz", Kind.NUMPY),
    ],
)
def test_real_files(name: str, kind: Kind) -> None:
    assert identify(model_dir(name)).kind is kind


def test_a_library_in_c_that_was_exported(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "library"
    export(parse("x = Placeholder(dtype=float, shape=[1, 2])\ny = Relu(x, T=float)"), folder, target="c")
    found = identify(folder)
    assert found.kind is Kind.C_LIBRARY
    assert found.next == f"make -C {folder} check"
    (folder / "Makefile").unlink()
    assert identify(folder).kind is Kind.DIRECTORY


def test_a_core_ml_package_is_told_from_other_folders(tmp_path: pathlib.Path) -> None:
    (tmp_path / "net.mlpackage" / "Data" / "com.apple.CoreML").mkdir(parents=True)
    assert identify(tmp_path / "net.mlpackage").kind is Kind.DIRECTORY
    (tmp_path / "net.mlpackage" / "Manifest.json").write_text("{}")
    identity = identify(tmp_path / "net.mlpackage")
    assert identity.kind is Kind.CORE_ML
    assert "Xcode" in identity.next


def test_a_directory_of_models_names_them_and_not_their_parts(tmp_path: pathlib.Path) -> None:
    """As an Estimator leaves a training, and exports below directories of their own."""
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-1"')
    (tmp_path / "train" / "graph.pbtxt").write_text("")
    exported = tmp_path / "export" / "1700000000"
    (exported / "variables").mkdir(parents=True)
    (exported / "variables" / "variables.index").write_bytes(b"")
    (exported / "saved_model.pb").write_bytes(b"")
    assert identify(tmp_path).next == f"give what is inside, such as {tmp_path / 'train'} or {exported}"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes among its files")
def test_pipes_in_a_directory_are_not_waited_for(tmp_path: pathlib.Path) -> None:
    for place in (tmp_path, tmp_path / "deep"):
        place.mkdir(exist_ok=True)
        os.mkfifo(place / "pipe")
        os.mkfifo(place / "pipe.json")
        os.mkfifo(place / "pipe.pb")
    (tmp_path / "deep" / "net.pb").write_bytes(GRAPH_DEF)
    assert identify(tmp_path).next == f"give what is inside, such as {tmp_path / 'deep' / 'net.pb'}"
    assert sole_model(str(tmp_path)) == str(tmp_path / "deep" / "net.pb")


def test_of_a_very_large_directory_not_all_is_looked_at(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("1", "2", "3", "4"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "net.pb").write_bytes(GRAPH_DEF)
    monkeypatch.setattr("pocketgraph.formats.detect.MOST_LOOKED_AT", 5)
    assert identify(tmp_path).next == f"give what is inside, such as {tmp_path / '1' / 'net.pb'}"
    assert sole_model(str(tmp_path)) == ""  # what was seen is one of several


def test_the_one_model_of_a_directory_is_taken(tmp_path: pathlib.Path) -> None:
    (tmp_path / "notes.txt").write_text("of the training")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "net.pb").write_bytes(GRAPH_DEF)
    found = pocketgraph.identify(tmp_path)
    assert (found.path, found.kind) == (str(tmp_path / "deep" / "net.pb"), Kind.GRAPH_DEF)
    (tmp_path / "deep" / "small.tflite").write_bytes(bytes(4) + b"TFL3" + bytes(8))
    several = pocketgraph.identify(tmp_path)
    assert several.kind is Kind.DIRECTORY
    assert several.next == f"give what is inside, such as {found.path} or {tmp_path / 'deep' / 'small.tflite'}"


def test_the_newest_of_several_exports_comes_first(tmp_path: pathlib.Path) -> None:
    """As TensorFlow Serving takes it: the highest number, whatever its length."""
    for name in ("1700000001", "1700000099", "900000099"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "saved_model.pb").write_bytes(b"")
    newest = f"{tmp_path / '1700000099'} (the newest)"
    assert identify(tmp_path).next.startswith(f"give what is inside, such as {newest} or {tmp_path / '1700000001'}")


def test_files_of_keras_are_told_from_files_of_weights(tmp_path: pathlib.Path) -> None:
    """Keras 3 saves weights alone in files whose names end in ``.weights.h5``, as its ModelCheckpoint does, too."""
    hdf5, best, last = b"\x89HDF\r\n\x1a\n" + b"\0" * 20, tmp_path / "best.weights.h5", tmp_path / "last.keras"
    best.write_bytes(hdf5)
    (tmp_path / "whole.h5").write_bytes(hdf5)
    last.write_bytes(archive("metadata.json"))
    found = identify(best)
    assert found.kind is Kind.HDF5_WEIGHTS
    assert f"model.load_weights('{best}'); model.export('saved_model')" in found.next
    assert identify(tmp_path / "whole.h5").kind is Kind.HDF5
    for attributes, kind in ((b"layer_names", Kind.HDF5_WEIGHTS), (b"model_config layer_names", Kind.HDF5)):
        (tmp_path / "old.hdf5").write_bytes(hdf5 + attributes)
        assert identify(tmp_path / "old.hdf5").kind is kind
    for path in (tmp_path / "whole.h5", last):
        assert identify(path).next == f"pocketgraph summarize_graph --in_graph={path}"
    assert identify(tmp_path).next == f"give what is inside, such as {best} or {last} or {tmp_path / 'old.hdf5'}"
    (tmp_path / "net.pb").write_bytes(GRAPH_DEF)
    assert identify(tmp_path).next == f"give what is inside, such as {tmp_path / 'net.pb'}"


def test_for_each_model_there_is_a_command_to_type() -> None:
    assert {kind for kind in Kind if kind.value[1].startswith("pocketgraph ")} == MODELS
