"""Placeholders that tell training from use have their value in use without being asked for."""

import pathlib

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from command_line import call
from pocketgraph.formats import save
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.passes.training_switches import training_switches

KEEP = """
    x = Placeholder(dtype=float, shape=[?,8,8,1])
    keep_prob = Placeholder(dtype=float, shape=<unknown>)
    one = Const(float 1)
    rate = Sub(one, keep_prob, T=float)
    size = Shape(x, T=float)
    noise = RandomUniform(size, dtype=float)
    mask = GreaterEqual(noise, rate, T=float)
    ones = Cast(mask, SrcT=bool, DstT=float)
    kept = Sub(one, rate, T=float)
    factor = RealDiv(one, kept, T=float)
    scaled = Mul(x, factor, T=float)
    dropped = Mul(scaled, ones, T=float)
"""
"""tf.nn.dropout(x, keep_prob) as TensorFlow 1.15 writes it."""
ENTERING = (
    KEEP.replace("(one, keep_prob,", "(one, enter,")
    + """
    enter = Enter(keep_prob, T=float, frame_name="while", is_constant=true)
"""
)
"""The same in a recurrent layer's loop, as DropoutWrapper writes it."""
OLD_ENTERING = """
    x = Placeholder(dtype=float, shape=[?,8,8,1])
    keep_prob = Placeholder(dtype=float, shape=<unknown>)
    enter = Enter(keep_prob, T=float, frame_name="while", is_constant=true)
    scaled = RealDiv(x, enter, T=float)
    size = Shape(x, T=float)
    noise = RandomUniform(size, dtype=float)
    sum = Add(enter, noise, T=float)
    mask = Floor(sum, T=float)
    dropped = Mul(scaled, mask, T=float)
"""
RATE = """
    x = Placeholder(dtype=float, shape=[?,8,8,1])
    rate = Placeholder(dtype=float, shape=[])
    size = Shape(x, T=float)
    noise = RandomUniform(size, dtype=float)
    mask = GreaterEqual(noise, rate, T=float)
    ones = Cast(mask, SrcT=bool, DstT=float)
    dropped = Mul(x, ones, T=float)
"""
BRANCHES = """
    x = Placeholder(dtype=float, shape=[?,8,8,1])
    flag = Placeholder(dtype=bool, shape=[])
    id = Identity(flag, T=bool)
    s = Switch(x, id, T=float)
    plain = Identity(s, T=float)
    size = Shape(s:1, T=float)
    noise = RandomUniform(size, dtype=float)
    louder = Add(s:1, noise, T=float)
    dropped = Merge(plain, louder, T=float)
"""
AVERAGING = """
    x = Placeholder(dtype=float, shape=[?,3])
    flag = Placeholder(dtype=bool, shape=<unknown>)
    id = Identity(flag, T=bool)
    mean = VariableV2(dtype=float, shape=[3])
    read = Identity(mean, T=float)
    s = Switch(x, id, T=float)
    stored = Switch(read, id, T=float)
    plain = Sub(s, stored, T=float)
    axis = Const(int32[1] 0)
    batch = Mean(s:1, axis, T=float, Tidx=int32)
    r = RefSwitch(mean, id, T=float)
    average = Assign(r:1, batch, T=float)
    normed = Sub(s:1, batch, ^average, T=float)
    y = Merge(plain, normed, T=float)
"""
"""A batch norm written by hand that stores its average with tf.assign."""
CLASSES = """
    flat_size = Const(int32 [-1, 64])
    flat = Reshape(dropped, flat_size, T=float)
    scores = MatMul(flat, w, T=float)
    y = Softmax(scores, T=float)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (KEEP, {"keep_prob": 1.0}),
        (ENTERING, {"keep_prob": 1.0}),
        (OLD_ENTERING, {"keep_prob": 1.0}),
        (ENTERING.replace("is_constant=true", "is_constant=false"), {}),
        (RATE, {"rate": 0.0}),
        (BRANCHES, {"flag": False}),
        (BRANCHES.replace("Identity(s,", "Identity(s:1,").replace("Shape(s:1", "Shape(s").replace("Add(s:1", "Add(s"),
         {"flag": True}),
        (AVERAGING, {"flag": False}),
        (BRANCHES.replace("flag", "net/phase_train"), {"net/phase_train": False}),
        (BRANCHES.replace("RandomUniform", "Fill").replace("size, dtype=float", "size, zero, T=float"), {}),
        ("x = Placeholder(dtype=float, shape=[2])\ntemperature = Placeholder(dtype=float, shape=[])\n"
         "y = RealDiv(x, temperature, T=float)", {}),
    ],
)  # fmt: skip
def test_the_graph_tells(text: str, expected: dict[str, float]) -> None:
    found = training_switches(parse(text + "\nzero = Const(float 0)"))
    assert found == expected
    assert [type(value) for value in found.values()] == [type(value) for value in expected.values()]
    assert not training_switches(parse(text + "\nzero = Const(float 0)"), without=[f"{name}:0" for name in expected])


def classifier(text: str) -> Graph:
    weights = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
    return Graph([*parse(text + CLASSES), const("w", weights)])


@pytest.mark.parametrize("text", [KEEP, RATE, BRANCHES])
def test_commands_need_no_flag_for_them(
    text: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = classifier(text)
    save(graph, "net.pb")
    photos = tmp_path / "photos"
    photos.mkdir()
    rng = np.random.default_rng(1)
    for at in range(12):
        Image.fromarray(rng.integers(0, 256, (8, 8), np.uint8)).save(photos / f"{at}.png")
    pixels = np.asarray(Image.open(photos / "3.png"), np.float64).reshape(1, -1) / 255
    scores = pixels @ graph.constant("w").numpy()  # type: ignore[union-attr]
    expected = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    (labelled,) = pocketgraph.label_image("net.pb", photos / "3.png", ["a", "b", "c"])
    assert labelled.predictions[0].index == expected.argmax()
    assert labelled.predictions[0].score == pytest.approx(expected.max(), abs=1e-5)
    assert call("label_image", "--graph=net.pb", photos / "3.png") == 0
    assert "as outside of training" in capsys.readouterr().err
    assert call("evaluate", "net.pb", "--data=photos") == 0
    assert call("quantize", "net.pb", "--calibrate=photos", "-o", "q.tflite") == 0
    assert call("export", "net.pb", "-o", "net.tflite") == 0
    assert call("benchmark_model", "--graph=net.pb", "--output_layer=y", "--num_runs=1") == 0
    (again,) = pocketgraph.label_image("net.tflite", photos / "3.png")
    assert again.predictions[0].score == pytest.approx(expected.max(), abs=1e-5)
    capsys.readouterr()
    assert call("summarize", "net.pb") == 0
    proposed = capsys.readouterr().out.partition("next:\n")[2].splitlines()
    assert "--repair" in proposed[0]
    assert "--transforms='smallest'" in proposed[1]
    for line in proposed:
        words = line.replace("'", "").split()
        assert call(*words[1:], *(["--num_runs=1"] if words[1] == "benchmark_model" else [])) == 0


def test_a_flag_of_no_stated_rank_is_one_value(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As tf.placeholder(tf.bool) leaves it."""
    monkeypatch.chdir(tmp_path)
    save(classifier(BRANCHES.replace("dtype=bool, shape=[]", "dtype=bool, shape=<unknown>")), "net.pb")
    assert call("plan", "net.pb") == 0
    assert call("verify", "net.pb", "net.pb") == 0
    capsys.readouterr()
