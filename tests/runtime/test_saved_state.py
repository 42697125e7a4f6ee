"""A session of a SavedModel's directory, or one given a checkpoint, has the values of its variables and tables."""

from __future__ import annotations

import json
import pathlib
import shutil
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import FormatError, PocketgraphError, RunError
from pocketgraph.formats import load
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.graph import Tensor
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from support import ROOT, assert_close, in_threads, model_dir, needs_shared, shared

COUNTER = "sm_counter/saved_model_counter/00000123"


def stored() -> list[tuple[str, str, str]]:
    """(model, directory, signature) of each shared SavedModel whose signature has all its inputs in a golden file."""
    base = shared()
    found = []
    for info in sorted((base / "models").glob("sm_*/model.json")) if base is not None else ():
        for model in json.loads(info.read_text())["models"]:
            if not model.get("golden"):
                continue
            with np.load(info.parent / model["golden"]) as golden:
                for name, signature in model["signatures"].items():
                    tensors = [key(name, "in", given["tensor"]) for given in signature["inputs"].values()]
                    wanted = [key(name, "out", given["tensor"]) for given in signature["outputs"].values()]
                    if tensors and wanted and all(tensor in golden for tensor in tensors + wanted):
                        found.append((info.parent.name, model["dir"], name))
    return found


def key(signature: str, side: str, tensor: str) -> str:
    return f"{signature}|{side}_{tensor.replace(':', '_')}"


@needs_shared
@pytest.mark.parametrize("engine", [None, "reference"])
@pytest.mark.parametrize(("model", "folder", "name"), stored() if shared() is not None else [])
def test_signatures_give_what_tensorflow_gives(model: str, folder: str, name: str, engine: str | None) -> None:
    info = next(m for m in json.loads((model_dir(model) / "model.json").read_text())["models"] if m["dir"] == folder)
    signature = info["signatures"][name]
    with np.load(model_dir(model) / info["golden"]) as golden, Session(model_dir(model) / folder, engine=engine) as run:
        found = run.run_signature(
            {k: golden[key(name, "in", given["tensor"])] for k, given in signature["inputs"].items()}, name
        )
        for output, given in signature["outputs"].items():
            assert_close(found[output], golden[key(name, "out", given["tensor"])])


@needs_shared
@pytest.mark.parametrize("path", [".", "saved_model.pb"], ids=["directory", "file"])
def test_variables_change_and_start_again_in_another_session(path: str) -> None:
    for _ in range(2):
        with Session(model_dir(COUNTER) / path) as session:
            assert session.run_signature({}, "get_counter")["output"] == 0
            assert [float(session.run_signature({}, "incr_counter")["output"]) for _ in range(3)] == [1, 2, 3]
            assert session.run_signature({"delta": np.float32(4)}, "incr_counter_by")["output"] == 7
            assert session.run_signature({}, "get_counter")["output"] == 7


@needs_shared
def test_threads_share_one_start() -> None:
    session = Session(model_dir(COUNTER))
    in_threads(session.run_signature, [({}, "incr_counter")] * 8)
    assert session.run_signature({}, "get_counter")["output"] == 8


@needs_shared
def test_a_directory_without_its_variables_says_so(tmp_path: pathlib.Path) -> None:
    shutil.copytree(model_dir(COUNTER), tmp_path / "model", ignore=shutil.ignore_patterns("variables*"))
    with Session(tmp_path / "model") as session, pytest.raises(RunError, match="uninitialized value counter"):
        session.run_signature({}, "get_counter")


@needs_shared
def test_damaged_variables_are_refused(tmp_path: pathlib.Path) -> None:
    shutil.copytree(model_dir(COUNTER), tmp_path / "model")
    index = tmp_path / "model" / "variables" / "variables.index"
    index.chmod(0o644)
    index.write_bytes(index.read_bytes()[:-10])
    with Session(tmp_path / "model") as session, pytest.raises(PocketgraphError, match=r"variables\.index"):
        session.run_signature({}, "get_counter")


WORDS = pathlib.Path(__file__).parent.parent / "fixtures" / "saved_models_with_tables"


@pytest.mark.parametrize("name", ["tf1", "tf2"])
def test_tables_are_filled_from_the_models_own_files(name: str) -> None:
    expected: dict[str, Any] = json.loads((WORDS / "expected.json").read_text())[name]
    with Session(WORDS / name) as session:
        found = session.run_signature({"words": np.array([word.encode() for word in expected["words"]], object)})
    assert found["ids"].tolist() == expected["ids"]
    assert found["again"].tolist() == [word.encode() for word in expected["again"]]


def test_a_table_whose_file_has_gone(tmp_path: pathlib.Path) -> None:
    shutil.copytree(WORDS / "tf2", tmp_path / "model", ignore=shutil.ignore_patterns("*.txt"))
    with Session(tmp_path / "model") as session, pytest.raises(RunError, match="tables of the SavedModel cannot be"):
        session.run_signature({"words": np.array([b"a"], object)})


def test_inputs_that_are_no_mapping() -> None:
    with Session(WORDS / "tf2") as session, pytest.raises(RunError, match="inputs are a mapping"):
        session.run_signature([np.array([b"a"], object)])  # type: ignore[arg-type]


def test_a_graph_that_was_loaded_is_given_the_directory() -> None:
    feeds = {"words": np.array([b"green"], object)}
    with Session(load(WORDS / "tf2")) as session:
        with pytest.raises(RunError):
            session.run_signature(feeds)
        session.restore(WORDS / "tf2")
        assert session.run_signature(feeds)["ids"].tolist() == [10]


@pytest.mark.parametrize("engine", [None, "reference"])
def test_the_folder_around_a_model_has_its_values(engine: str | None, tmp_path: pathlib.Path) -> None:
    """The scores are TensorFlow's (see fixtures/make_on_device_training.py)."""
    model = ROOT / "tests" / "fixtures" / "saved_models" / "on_device"
    shutil.copytree(model, tmp_path / "export" / "best" / "1700000000")
    with np.load(model.with_suffix(".npz")) as golden:
        words, expected = golden["words"], golden["before"]
    with Session(tmp_path, engine=engine) as session:
        np.testing.assert_allclose(session.run_signature({"words": words}, "infer")["scores"], expected, atol=1e-5)
    with Session(load(tmp_path), engine=engine) as session:
        session.restore(tmp_path)
        np.testing.assert_allclose(session.run_signature({"words": words}, "infer")["scores"], expected, atol=1e-5)


DIGITS = ROOT / "examples" / "digits"
TRAINING = DIGITS / "training"


@pytest.mark.parametrize("place", ["model.ckpt-1200", "model.ckpt-1200.index", ""])
def test_the_graph_of_a_checkpoint_is_given_its_values(place: str) -> None:
    """The loss on a batch is TensorFlow's (see fixtures/make_training.py)."""
    with np.load(DIGITS / "data" / "held_out.npz") as data:
        images, labels = data["images"][:64, ..., np.newaxis] / np.float32(255), data["labels"][:64]
    feeds = {"train/images:0": images, "train/labels:0": labels.astype(np.int32), "is_training:0": True,
             "dropout_rate:0": np.float32(0)}  # fmt: skip
    with np.load(ROOT / "tests" / "fixtures" / "training" / "digits.npz") as golden:
        expected = golden["losses"][0]
    with Session(load(TRAINING / "model.ckpt-1200.meta")) as session:
        session.restore(TRAINING / place)
        (loss,) = session.run("loss/total:0", feeds)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_a_checkpoint_of_another_graph_is_refused(tmp_path: pathlib.Path) -> None:
    graph = parse("v = VariableV2(dtype=float, shape=[2])\ny = Identity(v, T=float)")
    with Session(graph) as session:
        with pytest.raises(RunError, match="holds none of the graph's 1 variables"):
            session.restore(TRAINING / "model.ckpt-1200")
        with pytest.raises(FormatError, match="no"):
            session.restore(tmp_path / "gone.ckpt")


COUNTS = """
    x = Placeholder(dtype=string, shape=[?])
    counts = MutableHashTableV2(key_dtype=string, value_dtype=int64, shared_name="table_1")
    none = Const(int64 -1)
    count = LookupTableFindV2(counts, x, none, Tin=string, Tout=int64)
"""
ITS_SAVER = """
    file = Const(string "model")
    names = Const(string ["saved-keys", "saved-values"])
    slices = Const(string ["", ""])
    read = RestoreV2(file, names, slices, dtypes=[string, int64])
    import = LookupTableImportV2(counts, read:0, read:1, Tin=string, Tout=int64)
"""


@pytest.mark.parametrize(("name", "saver"), [("counts", ""), ("saved", ITS_SAVER)])
def test_a_table_that_training_filled_has_what_the_checkpoint_has(
    name: str, saver: str, tmp_path: pathlib.Path
) -> None:
    stored = Tensor.from_numpy(np.array([b"b", b"a"], object), STRING), Tensor.from_numpy(np.array([5, 4]))
    write_checkpoint(tmp_path / "model", dict(zip((f"{name}-keys", f"{name}-values"), stored, strict=True)))
    with Session(parse(COUNTS + saver)) as session:
        session.restore(tmp_path / "model")
        assert session.run(["count"], {"x": np.array([b"a", b"", b"b"], object)})[0].tolist() == [4, -1, 5]
