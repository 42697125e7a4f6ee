"""Training goes on where TensorFlow stopped: the digits example, step by step against TensorFlow 1.15."""

import pathlib

import numpy as np
import pytest

from pocketgraph.formats import load, open_checkpoint
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "digits"
BATCH = 64


@pytest.fixture(scope="module")
def graph() -> Graph:
    return load(EXAMPLE / "training" / "model.ckpt-1200.meta")


def test_twenty_more_steps_are_tensorflows(graph: Graph, tmp_path: pathlib.Path) -> None:
    """fixtures/make_training.py made the losses with TensorFlow 1.15."""
    with np.load(ROOT / "tests" / "fixtures" / "training" / "digits.npz") as data:
        wanted = {key: data[key] for key in data.files}
    with np.load(EXAMPLE / "data" / "held_out.npz") as data:
        images = data["images"][:BATCH, :, :, np.newaxis].astype(np.float32) / np.float32(255)
        labels = data["labels"][:BATCH]
    feeds = {"train/images": images, "train/labels": labels, "is_training": True, "dropout_rate": np.float32(0)}
    for source in (EXAMPLE / "training").glob("model.ckpt-1200.*"):
        (tmp_path / source.name).write_bytes(source.read_bytes())
    with Session(graph, allow="files", files_dir=tmp_path) as session:
        session.run([], {"save/Const": "model.ckpt-1200"}, targets=["save/restore_all"])
        losses = [session.run("loss/total", feeds, targets=["train_op"])[0] for _ in wanted["losses"]]
        np.testing.assert_allclose(losses, wanted["losses"], rtol=1e-4)
        assert losses[-1] < 0.9 * losses[0]
        np.testing.assert_allclose(session.run("digits/bn1/beta")[0], wanted["beta"], rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(session.run("digits/bn1/moving_mean")[0], wanted["moving_mean"], rtol=1e-4)
        assert session.run("save/Identity", {"save/Const": "model.ckpt-1220"}) == [b"model.ckpt-1220"]
        after = session.run(["digits/conv1/kernel", "global_step"])
    saved = open_checkpoint(tmp_path / "model.ckpt-1220")
    assert set(saved) == set(open_checkpoint(EXAMPLE / "training"))
    np.testing.assert_array_equal(saved["digits/conv1/kernel"].numpy(), after[0])
    assert saved["global_step"].numpy() == after[1] == wanted["global_step"]
    assert len(list(tmp_path.glob("model.ckpt-1220.data-*-of-00003"))) == 3
    assert not list(tmp_path.glob("*_temp*"))
    with Session(graph, allow="files", files_dir=tmp_path) as again:
        again.run([], {"save/Const": "model.ckpt-1220"}, targets=["save/restore_all"])
        np.testing.assert_array_equal(again.run("digits/conv1/kernel")[0], after[0])


def test_variables_start_from_their_initial_values() -> None:
    """One variable, gradient descent on (w - 3)²: w follows 3 - 3·0.8ᵏ."""
    graph = parse("""
        w = VariableV2(dtype=float, shape=[])
        zero = Const(float 0.0)
        init = Assign(w, zero, T=float)
        read = Identity(w, T=float)
        three = Const(float 3.0)
        error = Sub(read, three, T=float)
        two = Const(float 2.0)
        gradient = Mul(error, two, T=float)
        rate = Const(float 0.1)
        step = ApplyGradientDescent(w, rate, gradient, T=float)
    """)
    session = Session(graph)
    session.run([], targets=["init"])
    for k in range(1, 6):
        session.run([], targets=["step"])
        np.testing.assert_allclose(session.run("read")[0], 3 - 3 * 0.8**k, rtol=1e-6)
