"""Whole models that Keras 2 and 3 saved, as .h5 and as .keras: their answers, and what is said of damaged ones."""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
import zipfile
import zlib
from typing import Any

import numpy as np
import pytest

import pocketgraph
from command_line import call
from pocketgraph.errors import FormatError, MissingExtraError, RunError
from pocketgraph.formats.detect import Kind, identify
from pocketgraph.formats.keras import model_files
from pocketgraph.formats.keras.keras_1_models import layers_of
from pocketgraph.formats.model_file_facts import facts, model_bytes
from pocketgraph.passes.trained_statistics import trained_statistics
from pocketgraph.runtime import Session
from support import ROOT

h5py = pytest.importorskip("h5py", reason="the package h5py, which reads HDF5, is not installed")
ARCHIVES = [ROOT / "tests" / "fixtures" / name for name in ("keras_files.zip", "keras_1_files.zip")]


def names_in(archive: pathlib.Path) -> list[str]:
    with zipfile.ZipFile(archive) as opened:
        return opened.namelist()


HELD = {name: archive for archive in ARCHIVES for name in names_in(archive)}
NAMES = sorted(name for name in HELD if not name.endswith(".npz"))


def content(name: str) -> bytes:
    with zipfile.ZipFile(HELD[name]) as archive:
        return archive.read(name)


def written(folder: pathlib.Path, name: str, changed: bytes | None = None) -> pathlib.Path:
    path = folder / name
    path.write_bytes(content(name) if changed is None else changed)
    return path


def check(path: pathlib.Path, name: str, engine: str | None = "reference") -> None:
    """Makes sure that a file's answers are those that a fixture holds."""
    graph = pocketgraph.load(path)
    with np.load(io.BytesIO(content(name.partition(".")[0] + ".npz"))) as golden:
        values = dict(golden)
    given = [values[f"in{at}"] for at in range(len(graph.inputs))]
    given = [value.astype(object) if value.dtype.kind == "S" else value for value in given]
    with Session(graph, engine=engine) as session:
        found = session.run(list(graph.outputs), dict(zip(graph.inputs, given, strict=True)))
    for at, value in enumerate(found):
        wanted = values[f"out{at}"]
        if wanted.dtype.kind == "S":
            assert np.array_equal(value.astype("S"), wanted)
        else:
            assert value.dtype == wanted.dtype
            np.testing.assert_allclose(value, wanted, rtol=2e-5, atol=4e-6)


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize("name", NAMES)
def test_answers_are_those_of_keras(name: str, engine: str | None, tmp_path: pathlib.Path) -> None:
    check(written(tmp_path, name), name, engine)


@pytest.mark.parametrize("kind", ["float16", "V2"])
def test_weights_of_sixteen_bits_are_computed_in_float32(kind: str, tmp_path: pathlib.Path) -> None:
    """As a model of the policy float16 or bfloat16 has them; h5py knows no type for the second."""
    path = written(tmp_path, "norms_keras3.h5")
    with h5py.File(path, "a") as file:
        names: list[str] = []
        file.visit(names.append)
        for name in names:
            if isinstance(file[name], h5py.Dataset):
                array = file[name][()].astype(np.float32)
                high = (array.view(np.uint32) >> 16).astype(np.uint16)
                del file[name]
                file[name] = array.astype(np.float16) if kind == "float16" else high.view("V2")
    graph = pocketgraph.load(path)
    with np.load(io.BytesIO(content("norms_keras3.npz"))) as golden, Session(graph) as session:
        found = session.run(list(graph.outputs), {graph.inputs[0]: golden["in0"]})
        for at, value in enumerate(found):
            assert value.dtype == np.float32
            np.testing.assert_allclose(value, golden[f"out{at}"], rtol=0.02, atol=0.02)


def test_each_model_is_there_in_both_forms_of_both_versions() -> None:
    assert len(NAMES) == 133
    assert {name.partition("_")[2] for name in NAMES} == {"keras1.h5"} | {
        f"keras{version}{ending}" for version in (2, 3) for ending in (".h5", ".keras")
    }


@pytest.mark.parametrize("ending", [".h5", ".keras"])
def test_files_are_taken_where_graphs_are(ending: str, tmp_path: pathlib.Path, capsys: Any) -> None:
    path = written(tmp_path, f"pictures_keras3{ending}")
    assert identify(path).kind is (Kind.HDF5 if ending == ".h5" else Kind.KERAS)
    assert call("summarize_graph", f"--in_graph={path}") == 0
    assert "name=picture, type=float(1), shape=[?,9,9,4]" in capsys.readouterr().out
    assert call("freeze_graph", path, "-o", tmp_path / "frozen.pb") == 0
    assert pocketgraph.verify(path, tmp_path / "frozen.pb")


def test_the_file_says_what_is_missing_where_it_holds_weights_alone(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "some.h5"
    with h5py.File(path, "w") as file:
        file.create_group("dense")["kernel"] = np.zeros((2, 2))
    with pytest.raises(FormatError, match=r"without a model: it has no 'model_config'; of weights alone"):
        pocketgraph.load(path)


def changed(name: str, change: Any) -> bytes:
    held = io.BytesIO(content(name))
    with h5py.File(held, "r+") as file:
        change(file)
    return held.getvalue()


def linked(file: Any) -> None:
    del file["model_weights/dense"]
    file["model_weights/dense"] = h5py.ExternalLink("/etc/passwd", "/")


def enormous(file: Any) -> None:
    group = file["model_weights/dense/dense"]
    del group["kernel"]
    group.create_dataset("kernel", (1 << 20, 1 << 20), np.float32, chunks=(1024, 1024))


def unpacked(file: Any) -> None:
    """Of the size that deflate makes of 300 MB, all zeros."""
    group = file["model_weights/dense/dense"]
    del group["kernel"]
    zeros = group.create_dataset("kernel", (9216, 8192), np.float32, chunks=(1024, 8192), compression="gzip").id
    for row in range(0, 9216, 1024):
        zeros.write_direct_chunk((row, 0), zlib.compress(bytes(1024 * 8192 * 4), 1))


def packed_kernel(file: Any, content: bytes, chunk: tuple[int, int], **options: Any) -> None:
    group = file["model_weights/dense/dense"]
    shape = group["kernel"].shape
    del group["kernel"]
    item = group.create_dataset("kernel", shape, np.float32, maxshape=(None, None), chunks=chunk, **options)
    item.id.write_direct_chunk((0, 0), zlib.compress(content, 1))


def large_chunk(file: Any) -> None:
    """A few elements in a chunk of 300 MB."""
    packed_kernel(file, bytes(75 << 22), (75 << 16, 16), compression="gzip")


def long_chunk(file: Any) -> None:
    """A chunk that says that it is small, and goes on for 8 MB."""
    packed_kernel(file, bytes(8 << 20), file["model_weights/dense/dense/kernel"].shape, compression="gzip")


def texts(file: Any) -> None:
    """Texts whose length is nowhere but in themselves, which may all be the same one."""
    group = file["model_weights/dense/dense"]
    del group["kernel"]
    group.create_dataset("kernel", (3,), h5py.string_dtype())[:] = "a"


def other_filter(file: Any) -> None:
    packed_kernel(file, bytes(8), (4, 4), scaleoffset=4)


@pytest.mark.parametrize("options", [{"compression": "gzip"}, {"compression": "lzf"}, {}])
def test_arrays_that_somebody_packed_are_read(options: Any, tmp_path: pathlib.Path) -> None:
    def pack(file: Any) -> None:
        group = file["model_weights/dense/dense"]
        kernel = group["kernel"][()]
        del group["kernel"]
        chunks = (max(1, kernel.shape[0] // 2), kernel.shape[1])
        group.create_dataset("kernel", data=kernel, chunks=chunks, shuffle=True, fletcher32=True, **options)

    check(written(tmp_path, "pictures_keras3.h5", changed("pictures_keras3.h5", pack)), "pictures_keras3.h5")


@pytest.mark.parametrize("name", ["words_keras2.h5", "loops_keras3.h5", "lines_keras1.h5", "calls_keras3.keras"])
@pytest.mark.parametrize("is_text", [False, True])
def test_the_layers_in_json_find_the_weights_beside_them(name: str, is_text: bool, tmp_path: pathlib.Path) -> None:
    if name.endswith(".keras"):
        with zipfile.ZipFile(io.BytesIO(content(name))) as archive:
            described, weights = archive.read("config.json").decode(), archive.read("model.weights.h5")
        (tmp_path / "model.weights.h5").write_bytes(weights)
    else:
        with h5py.File(io.BytesIO(content(name))) as whole, h5py.File(tmp_path / "trained.h5", "w") as file:
            described = whole.attrs["model_config"]
            described = described.decode() if isinstance(described, bytes) else described
            version = np.bytes_(whole.attrs["keras_version"]).decode()
            described = json.dumps({**json.loads(described), "keras_version": version})
            for key, group in whole["model_weights"].items():
                whole["model_weights"].copy(group, file, key)
            file.attrs.update(whole["model_weights"].attrs)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(described) if is_text else described)
    assert identify(path).kind is Kind.KERAS_JSON
    check(path, name)
    assert facts(path).bytes == model_bytes(str(path)) == sum(file.stat().st_size for file in tmp_path.iterdir())
    (tmp_path / "another.hdf5").write_bytes(b"")
    if not name.endswith(".keras"):
        with pytest.raises(
            FormatError, match=r"2 files beside it may hold these; call the file of the weights model\.h5"
        ):
            pocketgraph.load(path)


def test_kernels_of_theano_are_turned(tmp_path: pathlib.Path) -> None:
    def turn(file: Any) -> None:
        file.attrs["backend"] = "theano"
        turned: list[str] = []

        def visit(name: str, item: Any) -> None:
            if name.endswith("kernel:0") and item.ndim == 4 and "depthwise" not in name and "separable" not in name:
                item[...] = item[()][::-1, ::-1]
                turned.append(name)

        file.visititems(visit)
        assert len(turned) == 2

    check(written(tmp_path, "channels_keras2.h5", changed("channels_keras2.h5", turn)), "channels_keras2.h5")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (linked, "is a link, which is not followed"),
        (enormous, "are not in the file"),
        (unpacked, "or more than weights in it"),
        (large_chunk, "or more than weights in it"),
        (long_chunk, "or more than weights in it"),
        (other_filter, "or more than weights in it"),
        (texts, "holds no numbers, but object"),
        (lambda file: file.attrs.modify("model_config", "{"), "the description of its layers is damaged"),
        (lambda file: file.attrs.modify("model_config", "[]"), "does not describe a model of layers"),
        (lambda file: file["model_weights/dense/dense"].pop("bias"), "the HDF5 file is damaged"),
    ],
)
def test_damaged_files_are_refused(change: Any, said: str, tmp_path: pathlib.Path) -> None:
    path = written(tmp_path, "pictures_keras3.h5", changed("pictures_keras3.h5", change))
    with pytest.raises(FormatError, match=said):
        pocketgraph.load(path)


SIZES = ("units", "filters", "kernel_size", "input_dim", "output_dim", "num_heads", "key_dim", "use_bias", "center")
"""Settings that tell how many weights a layer has, and of which sizes."""


@pytest.mark.parametrize("name", ["pictures_keras3.h5", "loops_keras2.h5", "attentions_keras3.h5", "words_keras2.h5"])
def test_weights_of_another_description_are_refused(name: str, tmp_path: pathlib.Path) -> None:
    """Keras likewise: expected shape (None, 6), received (None, 5)."""
    with h5py.File(io.BytesIO(content(name))) as file:
        told = file.attrs["model_config"]
    places = [
        (at, setting)
        for at, layer in enumerate(layers_of(json.loads(told)))
        for setting in SIZES
        if layer["config"].get(setting) not in (None, False)
    ]
    assert len(places) > 5
    for at, setting in places:
        described = json.loads(told)
        config = list(layers_of(described))[at]["config"]
        size = config[setting]
        config[setting] = False if size is True else size + 1 if isinstance(size, int) else [one + 1 for one in size]

        def change(file: Any, described: Any = described) -> None:
            file.attrs["model_config"] = json.dumps(described)

        with pytest.raises(FormatError, match=f"has {setting}=.* in the file; give the weights of this model"):
            pocketgraph.load(written(tmp_path, name, changed(name, change)))


@pytest.mark.parametrize("ending", [".keras", ".zip"])
def test_an_archive_in_another_order_is_read(ending: str, tmp_path: pathlib.Path) -> None:
    name, path = "pictures_keras3.keras", tmp_path / f"packed{ending}"
    with zipfile.ZipFile(HELD[name]) as held, zipfile.ZipFile(io.BytesIO(held.read(name))) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    members = {"LICENSE": bytes(5000), "config.json": b"", **members, "metadata.json": members.pop("metadata.json")}
    with zipfile.ZipFile(path, "w") as archive:
        for member, held_bytes in members.items():
            archive.writestr(member, held_bytes)
    check(path, name)


def test_an_archive_without_weights_says_so(tmp_path: pathlib.Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.keras", "w") as archive:
        archive.writestr("config.json", "{}")
    with pytest.raises(FormatError, match=r"no config\.json, or no model\.weights\.h5"):
        pocketgraph.load(tmp_path / "a.keras")


@pytest.mark.parametrize("name", ["nested_keras2.h5", "nested_keras3.keras"])
def test_bytes_that_flip_end_in_words(name: str, tmp_path: pathlib.Path) -> None:
    whole, numbers = content(name), np.random.default_rng(0)
    for at in numbers.integers(0, len(whole), 60):
        path = written(tmp_path, name, whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with contextlib.suppress(pocketgraph.PocketgraphError):  # any other error would be a traceback
            pocketgraph.load(path)
    with pytest.raises(FormatError):
        pocketgraph.load(written(tmp_path, name, whole[: len(whole) // 2]))


@pytest.mark.parametrize("at", range(0, 40, 4))
def test_groups_of_weights_that_lie_nowhere_are_refused(at: int, tmp_path: pathlib.Path) -> None:
    """The first groups of a file begin with a name's place in the heap and an object's place in the file."""
    whole = content("nested_keras3.h5")
    node = whole.index(b"SNOD") + 8 + at
    damaged = whole[:node] + b"\xff\xff\xff\x0f" + whole[node + 4 :]
    with contextlib.suppress(FormatError):
        pocketgraph.load(written(tmp_path, "nested_keras3.h5", damaged))


def test_a_vocabulary_that_is_not_there_is_told(tmp_path: pathlib.Path) -> None:
    held = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content("vocabularies_keras3.keras"))) as old, zipfile.ZipFile(held, "w") as new:
        for item in old.namelist():
            if not item.startswith("assets/"):
                new.writestr(item, old.read(item))
    path = written(tmp_path, "vocabularies_keras3.keras", held.getvalue())
    with pytest.raises(FormatError, match=r"Lookup\) has its vocabulary in no list of the file"):
        pocketgraph.load(path)


@pytest.mark.parametrize("engine", ["reference", None])
def test_words_that_are_in_no_vocabulary_are_errors_where_there_is_no_row_for_them(
    engine: str | None, tmp_path: pathlib.Path
) -> None:
    graph = pocketgraph.load(written(tmp_path, "crossings_keras3.keras"))
    rows = [np.array([[b"a"]], object), np.int64([[3]]), np.array([[b"q"]], object)]
    with (
        Session(graph, engine=engine) as session,
        pytest.raises(RunError, match=r"in the vocabulary of num_oov_indices=0, found\] \[q\]"),
    ):
        session.run(list(graph.outputs), dict(zip(graph.inputs, rows, strict=True)))


def test_a_model_of_a_class_of_ones_own_is_named(tmp_path: pathlib.Path) -> None:
    """As the backbones of keras_hub, which tell what they are made with."""
    path = tmp_path / "model.keras"
    described = {"class_name": "BertBackbone", "config": {"name": "bert", "num_layers": 2}}
    with zipfile.ZipFile(path, "w") as file, io.BytesIO() as weights:
        h5py.File(weights, "w").close()
        file.writestr("config.json", json.dumps(described))
        file.writestr("metadata.json", json.dumps({"keras_version": "3.15.1"}))
        file.writestr("model.weights.h5", weights.getvalue())
    with pytest.raises(FormatError, match=r"class 'BertBackbone', which is .* give the SavedModel .* model\.export"):
        pocketgraph.load(path)


def test_a_layer_of_ones_own_is_named(tmp_path: pathlib.Path) -> None:
    held = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content("words_keras3.keras"))) as old, zipfile.ZipFile(held, "w") as new:
        for item in old.namelist():
            text = old.read(item)
            if item == "config.json":
                described = json.loads(text)
                next(x for x in described["config"]["layers"] if x["class_name"] == "Embedding")["class_name"] = "Mine"
                text = json.dumps(described).encode()
            new.writestr(item, text)
    path = written(tmp_path, "words_keras3.keras", held.getvalue())
    with pytest.raises(FormatError, match=r"\(Mine\) is of a kind that is not read; give the SavedModel"):
        pocketgraph.load(path)


def test_without_h5py_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pocketgraph\[keras\]'"):
        model_files.parse_hdf5(content("words_keras2.h5"), "words.h5")


def test_without_h5py_a_file_is_identified_and_so_are_those_behind_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: Any
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    first, second = written(tmp_path, "words_keras3.keras"), tmp_path / "labels.txt"
    second.write_text("daisy\n")
    assert call("identify", first, second) == 1
    told = capsys.readouterr().out.splitlines()
    assert "a Keras model archive" in told[0]
    assert "pip install 'pocketgraph[keras]'" in told[0]
    assert "a text file" in told[1]


@pytest.mark.parametrize(
    ("name", "norm", "op"),
    [
        ("pictures_keras2.keras", "block/norm", "FusedBatchNormV3"),
        ("pictures_keras3.h5", "block_norm", "FusedBatchNormV3"),
        ("loops_keras3.keras", "time_distributed_2/step/batch_normalization", "FusedBatchNormV3"),
        ("policies_keras2.h5", "batch_normalization", "AddV2"),
        ("models_keras1.h5", "batchnormalization_1", "AddV2"),
    ],
)
def test_a_batch_norm_tells_what_training_saw_as_that_of_a_saved_model(
    name: str, norm: str, op: str, tmp_path: pathlib.Path
) -> None:
    """One op where that has one, of pictures in float32, else spelled out: gamma and beta are there as trained."""
    graph = pocketgraph.load(written(tmp_path, name))
    assert graph[norm].op == op
    with h5py.File(io.BytesIO(content(name.replace(".keras", ".h5")))) as file:
        stored: dict[str, Any] = {}
        file.visititems(lambda path, item: stored.update({path: item[()]} if hasattr(item, "dtype") else {}))
    layer = norm.rpartition("/")[2]
    gamma, beta = (
        next(array for path, array in stored.items() if f"/{layer}" in path and kind in path)
        for kind in ("gamma", "beta")
    )
    mean, deviation = trained_statistics(graph)[norm]
    np.testing.assert_array_equal(mean, beta)
    np.testing.assert_array_equal(deviation, np.abs(gamma))


def test_a_batch_norm_of_keras_1_that_has_no_moments_of_training_is_refused(tmp_path: pathlib.Path) -> None:
    before = content("channels_keras1.h5")
    assert before.count(b'"mode": 0') == 1
    path = written(tmp_path, "channels_keras1.h5", before.replace(b'"mode": 0', b'"mode": 2'))
    with pytest.raises(FormatError, match="mode=2 and normalizes by the moments of the batch it is given") as caught:
        pocketgraph.load(path)
    assert "simple_save" in str(caught.value.hint)


def test_a_batch_norm_of_keras_1_without_a_mode_has_the_moments_of_training(tmp_path: pathlib.Path) -> None:
    def change(file: Any) -> None:
        file.attrs["model_config"] = file.attrs["model_config"].replace('"mode": 0', '"mode": null')

    check(written(tmp_path, "channels_keras1.h5", changed("channels_keras1.h5", change)), "channels_keras1.h5")


@pytest.mark.parametrize("epsilon", [0.0, 0.25])
def test_the_epsilon_of_a_batch_norm_of_keras_1_is_as_told(epsilon: float, tmp_path: pathlib.Path) -> None:
    """Keras 1.2.2 with mode=1: gamma * (x - mean) / (sqrt(variance + epsilon) + epsilon) + beta."""
    weights: dict[str, np.ndarray[Any, Any]] = {}

    def change(file: Any) -> None:
        told = file.attrs["model_config"]
        assert told.count('"epsilon": 0.001') == 1
        file.attrs["model_config"] = told.replace('"epsilon": 0.001', f'"epsilon": {epsilon}')
        held = file["model_weights"]["batchnormalization_1"]
        weights.update((name, held[f"batchnormalization_1_{name}:0"][()].astype(float)) for name in ("gamma", "beta"))

    graph = pocketgraph.load(written(tmp_path, "slopes_keras1.h5", changed("slopes_keras1.h5", change)))
    x = np.random.default_rng(0).normal(scale=0.01, size=(5, 6)).astype(np.float32)
    (normed,) = pocketgraph.Session(graph, engine="reference").run(["batchnormalization_1"], {"x": x})
    centred = x - x.astype(float).mean(axis=1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + epsilon) + epsilon
    np.testing.assert_allclose(normed, weights["gamma"] * centred / deviation + weights["beta"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("version", "advice"),
    [("1.2.2", "Keras 1"), ("2.1.6", "TensorFlow 1"), ("2.2.4-tf", "TensorFlow 1"), ("2.15.0", "model.export(")],
)
def test_the_advice_for_a_layer_that_is_not_read_is_for_the_keras_that_wrote_it(
    version: str, advice: str, tmp_path: pathlib.Path
) -> None:
    """``model.export`` came with Keras 2.13."""

    def renamed(file: Any) -> None:
        file.attrs["keras_version"] = version
        described = json.loads(file.attrs["model_config"])
        next(x for x in described["config"]["layers"] if x["class_name"] == "LocallyConnected1D")["class_name"] = "Mine"
        file.attrs["model_config"] = json.dumps(described)

    name = f"places_keras{version[0]}.h5"
    path = written(tmp_path, name, changed(name, renamed))
    with pytest.raises(FormatError, match=r"\(Mine\) is of a kind that is not read") as caught:
        pocketgraph.load(path)
    assert advice in str(caught.value.hint)
    assert ("model.export(" in str(caught.value.hint)) != ("simple_save(" in str(caught.value.hint))


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("models_keras1.h5", lambda layers: layers.clear(), "is damaged"),
        ("models_keras1.h5", lambda layers: layers[0]["config"]["layers"][2]["config"].clear(), "is damaged"),
        ("models_keras1.h5", lambda layers: layers[0]["config"]["layers"].clear(), "is damaged"),
        ("places_keras2.h5", lambda layers: layers[-1]["config"].update(filters=1 << 40), "is damaged: ValueError"),
        ("places_keras2.h5", lambda layers: layers[-1]["config"].update(padding="causal"), "has padding=causal"),
    ],
)
def test_damaged_descriptions_of_joined_models_and_places_are_refused(
    name: str, change: Any, said: str, tmp_path: pathlib.Path
) -> None:
    def changing(file: Any) -> None:
        described = json.loads(file.attrs["model_config"])
        config = described["config"]
        change(config if isinstance(config, list) else [x for x in config["layers"] if "2D" in x["class_name"]])
        file.attrs["model_config"] = json.dumps(described)

    with pytest.raises(FormatError, match=said):
        pocketgraph.load(written(tmp_path, name, changed(name, changing)))


def test_models_that_a_function_joins_are_refused(tmp_path: pathlib.Path) -> None:
    def change(file: Any) -> None:
        described = json.loads(file.attrs["model_config"])
        described["config"][0]["config"]["mode"] = "joined"
        file.attrs["model_config"] = json.dumps(described)

    path = written(tmp_path, "models_keras1.h5", changed("models_keras1.h5", change))
    with pytest.raises(FormatError, match=r"\(Merge\) joins by code of Python, which is not run") as caught:
        pocketgraph.load(path)
    assert "simple_save" in str(caught.value.hint)


def test_layers_that_keras_quantized_are_refused(tmp_path: pathlib.Path) -> None:
    """What ``model.quantize("int8")`` of Keras 3.15 writes into a layer's description."""
    quantized = {"class_name": "QuantizedDTypePolicy", "config": {"mode": "int8", "source_name": "float32"}}
    path = written(tmp_path, "pictures_keras3.h5")
    with h5py.File(path, "r+") as file:
        described = json.loads(file.attrs["model_config"])
        described["config"]["layers"][1]["config"]["dtype"] = quantized
        file.attrs["model_config"] = json.dumps(described)
    with pytest.raises(FormatError, match="was quantized by Keras \\(int8\\)") as caught:
        pocketgraph.load(path)
    assert "before model.quantize()" in str(caught.value.hint)


NUMPY = "keras.src.ops.numpy"
INPUTS: dict[str, list[int | None]] = {
    "x": [None, 4, 3], "m": [None, 4, 3], "wide": [None, 30000, 30000], "deep": [None, *[1] * 8],
    "heads": [None, 4, None, 2],
}  # fmt: skip


def made_by(kind: str, **settings: Any) -> dict[str, Any]:
    """A layer's call with a tensor ``x``, and what else the call has, as Keras 3 writes it; others by their name."""
    config, module = settings.pop("config", {}), settings.pop("module", "")
    tensors = {name: {"class_name": "__keras_tensor__", "config": {"keras_history": [name, 0, 0]}} for name in INPUTS}
    args = [one if isinstance(one, list) else tensors.get(one, one) for one in settings.pop("args", "x")]
    kwargs = {name: tensors.get(one, one) for name, one in settings.items()}
    called = {"args": args, "kwargs": kwargs}
    return {
        "class_name": kind,
        "module": module,
        "name": "y",
        "config": {"name": "y", **config},
        "inbound_nodes": [called],
    }


@pytest.mark.parametrize(
    ("version", "layer", "said"),
    [
        ("3.15.1", made_by("UnitNormalization", args="xm"), "is given a tensor as its argument 2"),
        ("3.15.1", made_by("UnitNormalization", args=""), "takes 1 input, and is given 0"),
        ("3.15.1", made_by("UnitNormalization", scales="m"), "is given a tensor as its scales"),
        ("3.15.1", made_by("UnitNormalization", mask="m"), "is given a mask"),
        ("3.15.1", made_by("MultiHeadAttention", args="xx", query_mask="m"), "is given a tensor as its query_mask"),
        ("3.15.1", made_by("Attention", args=["x", "m"]), "is given a tensor as its argument 2"),
        ("3.15.1", made_by("Bidirectional", initial_state="m"), "is given the state of one way alone"),
        ("3.15.1", made_by("Tanh", args="xm", module="keras.src.ops.nn"), "is given its argument 2"),
        (
            "3.15.1",
            made_by("Cumsum", module="keras.src.ops.numpy", config={"axis": 1, "dtype": "int32"}),
            "has dtype=int",
        ),
        ("3.15.1", made_by("Sort", module="keras.src.ops.numpy", config={"axis": None}), "is for no single axis"),
        ("3.15.1", made_by("Tile", module=NUMPY, config={"repeats": 2}), "repeats along other axes"),
        ("3.15.1", made_by("Tile", module=NUMPY), "takes no list of sizes"),
        ("3.15.1", made_by("Tile", args="xm", module=NUMPY), "takes a shape that is computed"),
        ("3.15.1", made_by("Tril", args=["wide"], module=NUMPY), "has a triangle of 30,000 by 30,000"),
        ("3.15.1", made_by("Diff", module=NUMPY, config={"n": 10**9}), "takes differences 1,000,000,000 times"),
        ("3.15.1", made_by("Tensordot", args=["x", "deep"], module=NUMPY), "is of tensors with 9 axes"),
        (
            "3.15.1",
            made_by("DotProductAttention", args=["heads"] * 3, module="keras.src.ops.nn"),
            "has heads of open sizes",
        ),
        ("2.15.0", made_by("TFOpLambda", config={"function": "linalg.matmul"}, b="m", adjoint_b=True), "has adjoint_b"),
        ("2.15.0", made_by("Dropout", config={"rate": 0.5}, training=True), "is called with training=True"),
        ("2.15.0", made_by("FixedDropout", config={"rate": 0.5}, training=True), "is called with training=True"),
        ("2.15.0", made_by("LSTM", config={"dropout": 0.5}, training=True), "is called with training=True"),
    ],
)
def test_no_argument_of_a_call_is_overlooked(
    version: str, layer: dict[str, Any], said: str, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(FormatError, match=f"the layer 'y' .*{said}"):
        pocketgraph.load(model_of(layer, tmp_path, version))


def test_an_array_may_be_the_first_of_what_is_joined(tmp_path: pathlib.Path) -> None:
    array = {"class_name": "__numpy__", "config": {"value": [[[1.0, 2.0, 3.0]]], "dtype": "float32"}}
    x = {"class_name": "__keras_tensor__", "config": {"keras_history": ["x", 0, 0]}}
    graph = pocketgraph.load(model_of(made_by("Hstack", args=[[array, x]], module=NUMPY), tmp_path))
    given = np.arange(12, dtype=np.float32).reshape(1, 4, 3)
    with Session(graph) as session:
        (found,) = session.run(list(graph.outputs), {"x": given})
    np.testing.assert_array_equal(found, np.hstack([np.float32([[[1, 2, 3]]]), given]))


def test_a_norm_of_root_mean_squares_has_its_factor_whatever_scale_says(tmp_path: pathlib.Path) -> None:
    """``self.scale or self.rms_scaling`` makes gamma in Keras 3: its answers are those of the same model."""
    asked = b'"scale": true, "rms', b'"scale":false, "rms'
    name = "backwards_keras3.h5"
    check(written(tmp_path, name, content(name).replace(*asked)), name)
    name = "backwards_keras3.keras"
    with zipfile.ZipFile(io.BytesIO(content(name))) as old, zipfile.ZipFile(tmp_path / name, "w") as new:
        for member in old.namelist():
            new.writestr(member, old.read(member).replace(*asked))
    check(tmp_path / name, name)


def model_of(layer: dict[str, Any], folder: pathlib.Path, version: str = "3.15.1") -> pathlib.Path:
    given = [
        {"class_name": "InputLayer", "name": name, "config": {"name": name, "batch_shape": shape}}
        for name, shape in INPUTS.items()
    ]
    ends = {"input_layers": [[name, 0, 0] for name in INPUTS], "output_layers": [["y", 0, 0]]}
    described = {"class_name": "Functional", "config": {"layers": [*given, layer], **ends}}
    path = folder / "model.keras"
    with zipfile.ZipFile(path, "w") as file, io.BytesIO() as weights:
        h5py.File(weights, "w").close()
        file.writestr("config.json", json.dumps(described))
        file.writestr("metadata.json", json.dumps({"keras_version": version}))
        file.writestr("model.weights.h5", weights.getvalue())
    return path
