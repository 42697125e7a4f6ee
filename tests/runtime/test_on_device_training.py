"""Training by signatures, as TensorFlow's guide to training on devices has it: train, infer, save, restore.

fixtures/make_on_device_training.py made the model, and the numbers with TensorFlow 2.21.
"""

import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pocketgraph.apps.model_timing import likely_output_names
from pocketgraph.errors import PocketgraphError, RunError
from pocketgraph.formats import load
from pocketgraph.runtime import Session

MODEL = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "saved_models" / "on_device"


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    with np.load(MODEL.with_suffix(".npz")) as data:
        return {key: data[key] for key in data.files}


@pytest.fixture(params=[None, "reference"])
def session(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[Session]:
    with Session(MODEL, engine=request.param, allow="files", files_dir=tmp_path) as opened:
        yield opened


def test_twenty_steps_are_tensorflows(session: Session, golden: dict[str, Any]) -> None:
    batch = {"words": golden["words"], "labels": golden["labels"]}
    before = session.run_signature({"words": golden["words"]}, "infer")["scores"]
    np.testing.assert_allclose(before, golden["before"], atol=1e-5)
    losses = [session.run_signature(batch, "train")["loss"] for _ in golden["losses"]]
    np.testing.assert_allclose(losses, golden["losses"], atol=1e-4)
    assert losses[-1] < 0.8 * losses[0]
    after = session.run_signature({"words": golden["words"]}, "infer")["scores"]
    np.testing.assert_allclose(after, golden["after"], atol=1e-4)


def test_what_is_saved_is_restored(session: Session, golden: dict[str, Any], tmp_path: pathlib.Path) -> None:
    batch = {"words": golden["words"], "labels": golden["labels"]}
    assert session.run_signature({"path": "kept"}, "save")["path"] == b"kept"
    losses = [session.run_signature(batch, "train")["loss"] for _ in range(3)]
    session.run_signature({"path": "kept"}, "restore")
    assert [session.run_signature(batch, "train")["loss"] for _ in range(3)] == losses
    assert [file.name for file in tmp_path.iterdir()] == ["kept"]
    with pytest.raises(RunError, match=r"may not reach '\.\./kept'"):
        session.run_signature({"path": "../kept"}, "save")
    with pytest.raises(PocketgraphError, match="no file"):
        session.run_signature({"path": "kepd"}, "restore")


def test_saving_is_refused_unasked(golden: dict[str, Any]) -> None:
    with Session(MODEL) as session:
        for signature in ("save", "restore"):
            with pytest.raises(RunError, match="reads or writes files, which a model may not do unasked"):
                session.run_signature({"path": "kept"}, signature)
        session.run_signature({"words": golden["words"]}, "infer")  # the others run


def test_of_several_entry_points_the_harmless_one_is_shown() -> None:
    with Session(MODEL) as session:
        (words,) = session.plan().feeds
        assert words == "infer_words:0"
        assert likely_output_names(session.graph) == [session.graph.signatures["infer"].outputs["scores"]]


def test_the_loaders_own_step_is_no_output() -> None:
    from pocketgraph.graph.entry_points import likely_outputs

    graph = load(MODEL)
    assert "__saved_model_init_op" in graph.signatures
    assert "NoOp" not in [name for name, _ in likely_outputs(graph)]
