"""The last layers trained on: where they begin, what they learn, going on after a stop, and what is wrong."""

import pathlib
import signal
from typing import Any

import numpy as np
import pytest
from PIL import Image

from command_line import call
from pocketgraph import Session
from pocketgraph.apps.retraining import fine_tuning
from pocketgraph.apps.retraining.bottlenecks import Bottlenecks
from pocketgraph.apps.retraining.distortions import Distortions
from pocketgraph.apps.retraining.fine_tuning import FineTuning, Tuning
from pocketgraph.apps.retraining.softmax_head import Head
from pocketgraph.apps.retraining.tool import HEAD_ALONE, Retrained, retrain
from pocketgraph.apps.retraining.trained_tail import tail_of
from pocketgraph.cli.shared.ending import Ended
from pocketgraph.errors import GOES_ON, GraphError, RunError
from pocketgraph.formats import save, to_bytes
from pocketgraph.graph import Graph
from support import with_weights

TUNING = Tuning(2, steps=120, rate=0.02, batch=16, variants=3)
NO_DISTORTION = Distortions(brightness=5)


NO_GRADIENT = "factor = Const(float 2.0)\nsecond = AdjustContrastv2(shifted, factor, T=float)"


def base(between: str = "second = Relu(shifted, T=float)") -> Graph:
    """A classifier of two convolutions, the second with a batch norm that is spelled out."""
    text = f"""
        input = Placeholder(dtype=float, shape=[1,8,8,3])
        w1 = Const(float [0.0])
        conv1 = Conv2D(input, w1, T=float, strides=[1, 1, 1, 1], padding="SAME")
        b1 = Const(float [0.1, 0.0, -0.1, 0.0])
        first = BiasAdd(conv1, b1, T=float)
        bent = Relu6(first, T=float)
        w2 = Const(float [0.0])
        conv2 = Conv2D(bent, w2, T=float, strides=[1, 1, 1, 1], padding="VALID")
        variance = Const(float [3.0, 0.5, 1.0, 2.0])
        scale = Rsqrt(variance, T=float)
        scaled = Mul(conv2, scale, T=float)
        offset = Const(float [0.1, 0.2, 0.0, 0.0])
        shifted = Add(scaled, offset, T=float)
        {between}
        axes = Const(int32 [1, 2])
        mean = Mean(second, axes, T=float, Tidx=int32, keep_dims=false)
        shape = Const(int32 [1, 4])
        features = Reshape(mean, shape, T=float, Tshape=int32)
        w3 = Const(float [0.0])
        logits = MatMul(features, w3, T=float, transpose_a=false, transpose_b=false)
        scores = Softmax(logits, T=float)
    """
    rng = np.random.default_rng(0)
    tables = {
        name: rng.normal(0, 0.4, size).astype(np.float32)
        for name, size in (("w1", (1, 1, 3, 4)), ("w2", (2, 2, 4, 4)), ("w3", (4, 3)))
    }
    tables["w2"] = (tables["w2"] + tables["w2"].transpose(1, 0, 2, 3)) / 2  # what is upright looks as what is level
    return with_weights(text, **tables)


@pytest.fixture
def stripes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Upright stripes and level ones: the same colours in the mean, so that the base sees next to no difference.

    Their folder is a relative path: photos are split by the hash of their path, which is the same in every run then.
    """
    rng = np.random.default_rng(4)
    for number in range(120):
        name = ("level", "upright")[number % 2]
        (tmp_path / "stripes" / name).mkdir(parents=True, exist_ok=True)
        line = np.where((np.arange(8) + rng.integers(2)) % 2, 190, 60) + rng.normal(0, 25, (8, 8))
        pixels = np.clip((line if name == "upright" else line.T)[..., None].repeat(3, 2), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / "stripes" / name / f"{number}.png")
    monkeypatch.chdir(tmp_path)
    return pathlib.Path("stripes")


def tuned(photos: pathlib.Path, graph: Graph | None = None, tuning: Tuning = TUNING, **how: Any) -> Retrained:
    how.setdefault("distortions", NO_DISTORTION)
    return retrain(graph or base(), photos, testing=30, tuning=tuning, **how)


def test_training_begins_where_one_tensor_leads_on() -> None:
    tails = [tail_of(base(), "input:0", "features:0", layers) for layers in (1, 2, 9)]
    assert [tail.start for tail in tails] == ["bent:0", "input:0", "input:0"]
    assert [tail.layers for tail in tails] == [("conv2",), ("conv1", "conv2"), ("conv1", "conv2")]
    branched = base("around = Tanh(shifted, T=float)\nsecond = Add(around, bent, T=float)")
    assert tail_of(branched, "input:0", "features:0", 1).start == "bent:0"


def test_the_last_layers_learn_what_the_new_layer_cannot_see(stripes: pathlib.Path) -> None:
    made = tuned(stripes)
    assert made.accuracy[HEAD_ALONE] < 0.75
    assert made.accuracy["testing"] > 0.95
    assert made.trained_layers == ("conv1", "conv2")
    only_second = tuned(stripes, tuning=Tuning(1, steps=40, rate=0.02, batch=16, variants=3))
    graph = only_second.graph
    np.testing.assert_array_equal(graph["w1"].tensor.numpy(), base()["w1"].tensor.numpy())
    assert not np.array_equal(graph["w2"].tensor.numpy(), base()["w2"].tensor.numpy())
    with Session(made.graph) as session:
        path = next((stripes / "upright").iterdir())
        pixels = np.asarray(Image.open(path), np.float32)[None] / 255
        (scores,) = session.run(["final_result"], {"input": pixels})
        assert made.labels[int(scores.argmax())] == "upright"


def test_what_comes_out_lies_between_what_was_trained_and_where_it_began(
    stripes: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for share in (0.0, 0.25, 1.0):
        monkeypatch.setattr(fine_tuning, "START_SHARE", share)
        made = tuned(stripes, tuning=Tuning(1, steps=40, rate=0.02, batch=16, variants=3))
        found[share] = made.graph["w2"].tensor.numpy(), made.head.weights
    for part in range(2):
        expected = 0.75 * found[0.0][part] + 0.25 * found[1.0][part]
        np.testing.assert_allclose(found[0.25][part], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1.0][0], base()["w2"].tensor.numpy(), rtol=1e-5)


def test_a_call_that_was_stopped_goes_on_and_gives_the_same_bytes(
    stripes: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    whole = to_bytes(tuned(stripes).graph)
    kept = str(tmp_path / "kept")

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "training" and done >= total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        tuned(stripes, bottleneck_dir=kept, progress=stop)
    assert vars(stopped.value) == {GOES_ON: True}
    told: list[tuple[str, int]] = []
    again = tuned(stripes, bottleneck_dir=kept, progress=lambda stage, done, total: told.append((stage, done)))
    assert to_bytes(again.graph) == whole
    first = min(done for stage, done in told if stage == "training")
    assert first > TUNING.steps / 2
    assert not (pathlib.Path(kept) / "training.npz").exists()


def test_folded_batch_norms_are_trained_too(stripes: pathlib.Path) -> None:
    graph = base("second = Relu(shifted, T=float)")
    folded = graph.replace(
        [node.replace(inputs=("conv2", "offset")) if node.name == "shifted" else node for node in graph
         if node.name not in ("scaled", "scale", "variance")]
    )  # fmt: skip
    made = tuned(stripes, folded)
    assert made.accuracy["testing"] > 0.95
    assert {node.op for node in made.graph} == {node.op for node in folded} | {"PlaceholderWithDefault"}


def test_what_cannot_be_trained_is_said(stripes: pathlib.Path, capsys: Any, tmp_path: pathlib.Path) -> None:
    with pytest.raises(GraphError, match="second"):
        tuned(stripes, base(NO_GRADIENT))
    tail = tail_of(base(), "input:0", "features:0", 1)
    head = Head(np.ones((4, 2), np.float32), np.zeros(2, np.float32), 1.0)
    training = FineTuning(tail, "features:0", head, (8, 8, 4), TUNING)
    with pytest.raises(RunError, match=r"the loss is (nan|inf) at step 0; it began in 'conv2' \(Conv2D\)"):
        training.run(np.full((6, 4, 8 * 8 * 4), 3e38, np.float32), np.arange(6) % 2)
    save(base(NO_GRADIENT), tmp_path / "base.pb")
    out = tmp_path / "out.pb"
    flags = [f"--image_dir={stripes}", f"--output_graph={out}", "--train_layers=2"]
    assert call("retrain", tmp_path / "base.pb", *flags) == 1
    assert "'second' (AdjustContrastv2)" in capsys.readouterr().err
    assert not out.exists()
    assert not (tmp_path / "out.pb.unfinished").exists()


def test_a_command_that_is_stopped_says_that_it_goes_on_where_something_was_kept(
    stripes: pathlib.Path, tmp_path: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(base(), tmp_path / "base.pb")
    flags = [f"--image_dir={stripes}", f"--output_graph={tmp_path / 'out.pb'}", "--train_layers=2"]

    def stop(*arguments: Any, **options: Any) -> Any:
        raise Ended(signal.SIGTERM)

    for place, on in ((Bottlenecks, ""), (FineTuning, "; the same call made again goes on from here")):
        with monkeypatch.context() as patched:
            patched.setattr(place, "of" if place is Bottlenecks else "run", stop)
            assert call("retrain", tmp_path / "base.pb", *flags) == 128 + signal.SIGTERM
        assert capsys.readouterr().err.endswith(f"error: stopped by SIGTERM{on}\n")
        assert (tmp_path / "out.pb.unfinished").exists() == bool(on)


def test_the_command_trains_layers_and_writes_curves(
    stripes: pathlib.Path, tmp_path: pathlib.Path, capsys: Any
) -> None:
    save(base(), tmp_path / "base.pb")
    out, logs = tmp_path / "out.pb", tmp_path / "logs"
    flags = ["--train_layers=2", "--how_many_training_steps=20", "--learning_rate=0.02", "--train_batch_size=8"]
    assert (
        call(
            "retrain",
            tmp_path / "base.pb",
            f"--image_dir={stripes}",
            f"--output_graph={out}",
            f"--summaries_dir={logs}",
            *flags,
        )
        == 0
    )
    said = capsys.readouterr()
    assert "2 layers of the base were trained too, from 'conv1' on" in said.out
    assert "not used" not in said.err
    assert "2 layers of the base were trained too" in (tmp_path / "out.html").read_text()
    assert not (tmp_path / "out.pb.unfinished").exists()
    for run in ("train", "validation"):
        (events,) = (logs / run).iterdir()
        assert b"brain.Event:2" in events.read_bytes()
