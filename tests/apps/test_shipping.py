"""From a trained model and data to what ships: the form that keeps what may be lost, and a verdict that is true."""

from __future__ import annotations

import errno
import json
import os
import pathlib
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from command_line import call
from pocketgraph.apps.shipping import form_gain
from pocketgraph.apps.shipping.answer_judging import kept_answers
from pocketgraph.apps.shipping.form_gain import comparison
from pocketgraph.apps.shipping.resuming import key_of, made_folder
from pocketgraph.apps.shipping.ship import ship
from pocketgraph.datasets.sample_reading import SampleReading
from pocketgraph.errors import FormatError, PocketgraphError, UsageError
from pocketgraph.formats.tflite_metadata import metadata
from pocketgraph.graph import Graph, Signature, const
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization.evaluation.model_verdict import ModelVerdict
from pocketgraph.runtime.comparison.answer_metrics import ClassAccuracy, Comparison
from support import ROOT

DIGITS = ROOT / "examples" / "digits"


pytestmark = pytest.mark.usefixtures("eight_bits_are_faster")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that are run as proposed write where they are called."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    held = np.load(DIGITS / "data" / "held_out.npz")
    path = tmp_path_factory.mktemp("data") / "digits.npz"
    images = held["images"][:120].astype(np.float32).reshape(-1, 8, 8, 1) / 255
    np.savez(path, image=images, labels=held["labels"][:120])
    return path


def test_a_training_becomes_a_file_that_is_proved(
    data: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    labels = DIGITS / "data" / "labels.txt"
    ends = ("--data", data, "--labels", labels, "--outputs=probabilities", "-o", out)
    assert call("ship", DIGITS / "training", *ends) == 0
    told = capsys.readouterr().out
    assert "ships  static" in told
    assert "Ship model.tflite (weights and tensors in eight bits)" in told
    for name in ("frozen.pb", "model.tflite", "labels.txt", "report.html", "ship.html"):
        assert (out / name).exists()
    page = (out / "ship.html").read_text()
    assert "ready to ship" in page
    assert "What to do next" in page
    rows = pocketgraph.evaluate([out / "frozen.pb", out / "model.tflite"], data, skip=72)
    assert rows[0].accuracy is not None
    assert rows[1].accuracy is not None
    assert rows[1].accuracy.top1 >= rows[0].accuracy.top1 - 0.02
    for line in told.partition("next:\n")[2].splitlines():  # every printed command runs
        words = line.split()
        assert call(*words[1:], *(["--num_runs=1"] if words[1] == "benchmark_model" else [])) == 0
    assert "<h1>training in few bits</h1>" in (out / "report.html").read_text("utf-8")
    written = (out / "model.tflite").stat().st_mtime_ns
    assert call("ship", DIGITS / "training", *ends) == 0
    assert "has it already" in capsys.readouterr().err
    assert (out / "model.tflite").stat().st_mtime_ns == written


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (7, "has 7 lines, but the model gives 10 scores"),
        (12, "there are 12 labels and 10 scores in the output 'probabilities'"),
    ],
)
@pytest.mark.parametrize("tells_classes", [True, False])
def test_labels_that_do_not_fit_are_said_before_the_work(
    data: pathlib.Path, tmp_path: pathlib.Path, count: int, said: str, tells_classes: bool
) -> None:
    samples = data
    if not tells_classes:
        samples = tmp_path / "unnamed.npz"
        np.savez(samples, image=np.load(data)["image"][:20])
    (tmp_path / "labels.txt").write_text("".join(f"{number}\n" for number in range(count)))
    with pytest.raises(UsageError, match=said):
        ship(DIGITS / "training", tmp_path / "out", samples, labels=tmp_path / "labels.txt", outputs=["probabilities"])
    assert not (tmp_path / "out" / "model.tflite").exists()


def fragile() -> Graph:
    """A classifier whose answer hangs on small differences of large numbers, which eight bits do not tell apart."""
    rng = np.random.default_rng(0)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,32])
        hidden = MatMul(x, w, T=float)
        large = Add(hidden, offset, T=float)
        scores = MatMul(large, v, T=float)
        y = Softmax(scores, T=float)
    """)
    v = rng.normal(0, 1, (64, 6))
    v -= v.mean(axis=0)
    return Graph(
        [
            *graph, const("w", rng.normal(0, 0.02, (32, 64)).astype(np.float32)),
            const("offset", np.full(64, 30, np.float32)), const("v", v.astype(np.float32)),
        ],
        inputs=["x"], outputs=["y"],
    )  # fmt: skip


def test_what_loses_too_much_does_not_ship(tmp_path: pathlib.Path) -> None:
    pocketgraph.save(fragile(), tmp_path / "fragile.pb")
    samples = np.random.default_rng(1).normal(0, 1, (60, 32)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=samples)
    found = ship(tmp_path / "fragile.pb", tmp_path / "out", tmp_path / "data.npz", max_accuracy_drop=0)
    assert [each.is_kept for each in found.tried] == [False] * (len(found.tried) - 1) + [True]
    assert len(found.tried) > 1
    assert found.tried[0].form == "static"
    rows = pocketgraph.evaluate([tmp_path / "fragile.pb", tmp_path / "out" / "model.tflite"], samples[36:])
    assert rows[1].comparison is not None
    assert rows[1].comparison.agreement == 1


def test_without_data_only_what_is_nearly_exact_is_taken_and_nothing_is_promised(tmp_path: pathlib.Path) -> None:
    pocketgraph.save(fragile(), tmp_path / "fragile.pb")
    found = ship(tmp_path / "fragile.pb", tmp_path / "out")
    assert not found.is_proved
    assert found.unknown
    assert found.verdict.startswith("Try model.tflite")
    assert pocketgraph.verify(tmp_path / "fragile.pb", tmp_path / "out" / "model.tflite", tolerance=0.2).passed


def test_a_folder_in_which_nothing_could_be_written_goes_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    pocketgraph.save(parse("x = Placeholder(dtype=float, shape=[?,4])\ny = Relu(x, T=float)"), tmp_path / "net.pb")
    (tmp_path / "mine").mkdir()
    monkeypatch.setattr("pocketgraph.apps.shipping.ship.save", full)
    for name in ("new", "mine"):
        with pytest.raises(OSError, match="No space left"):
            ship(tmp_path / "net.pb", tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "net.pb"]


@pytest.mark.skipif(os.name != "posix", reason="folders are locked on POSIX only")
def test_two_calls_for_one_folder_come_one_after_the_other(tmp_path: pathlib.Path) -> None:
    pocketgraph.save(fragile(), tmp_path / "net.pb")
    told: list[list[str]] = [[], []]
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(ship, tmp_path / "net.pb", tmp_path / "out", notify=each.append) for each in told]
        made = [call.result() for call in calls]
    assert sorted(each.is_resumed for each in made) == [False, True]
    waiting = f"another call ships into '{tmp_path / 'out'}': waiting for it to end"
    assert sorted(waiting in each for each in told) == [False, True]


@pytest.mark.skipif(os.name != "posix", reason="folders are locked on POSIX only")
def test_a_call_that_waited_for_one_that_failed_leaves_no_folder_when_it_fails(tmp_path: pathlib.Path) -> None:
    begun, waited = Event(), Event()

    def fails(notify: Callable[[str], object]) -> None:
        with made_folder(str(tmp_path / "out"), notify):
            begun.set()
            assert waited.wait(60)
            raise ValueError

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(fails, print)
        assert begun.wait(60)
        with pytest.raises(ValueError):
            fails(lambda said: waited.set())
        with pytest.raises(ValueError):
            first.result()
    assert list(tmp_path.iterdir()) == []


def test_a_changed_model_is_done_anew(tmp_path: pathlib.Path) -> None:
    pocketgraph.save(fragile(), tmp_path / "model.pb")
    ship(tmp_path / "model.pb", tmp_path / "out")
    assert ship(tmp_path / "model.pb", tmp_path / "out").is_resumed
    pocketgraph.save(fragile().replace(inputs=()), tmp_path / "model.pb")
    assert not ship(tmp_path / "model.pb", tmp_path / "out").is_resumed
    state: dict[str, Any] = json.loads((tmp_path / "out" / "ship.json").read_text())
    (tmp_path / "out" / "ship.json").write_text(json.dumps(state)[:-9])
    assert not ship(tmp_path / "model.pb", tmp_path / "out").is_resumed


def test_a_call_that_is_stopped_leaves_no_page_of_the_files_that_it_replaced(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    pocketgraph.save(fragile(), tmp_path / "model.pb")
    ship(tmp_path / "model.pb", tmp_path / "out")
    pocketgraph.save(fragile().replace(inputs=()), tmp_path / "model.pb")
    monkeypatch.setattr("pocketgraph.apps.shipping.ship.device_times", stopped)
    with pytest.raises(KeyboardInterrupt):
        ship(tmp_path / "model.pb", tmp_path / "out")
    assert not (tmp_path / "out" / "ship.html").exists()


@pytest.mark.parametrize("name", ["model.tflite", "frozen.pb", "ship.json"])
def test_what_was_damaged_since_is_made_again(name: str, tmp_path: pathlib.Path) -> None:
    pocketgraph.save(fragile(), tmp_path / "model.pb")
    ship(tmp_path / "model.pb", tmp_path / "out")
    whole = (tmp_path / "out" / name).read_bytes()
    for damaged in (whole[:-9], whole[:100] + bytes([whole[100] ^ 1]) + whole[101:], b"3", b"[" * 100_000):
        (tmp_path / "out" / name).write_bytes(damaged)
        assert not ship(tmp_path / "model.pb", tmp_path / "out").is_resumed
        assert ship(tmp_path / "model.pb", tmp_path / "out").is_resumed


def test_other_weights_beside_the_same_description_are_another_model(tmp_path: pathlib.Path) -> None:
    """As a network has that was trained on: its model.json stays the same to the last byte."""
    kind = {"type": "DT_FLOAT"}
    sizes = {"shape": {"dim": [{"size": "-1"}, {"size": "4"}]}}
    nodes = [
        {"name": "x", "op": "Placeholder", "attr": {"dtype": kind, "shape": sizes}},
        {"name": "w", "op": "Const", "attr": {"dtype": kind}},
        {"name": "y", "op": "MatMul", "input": ["x", "w"], "attr": {"T": kind}},
    ]
    groups = [{"paths": ["shard.bin"], "weights": [{"name": "w", "shape": [4, 4], "dtype": "float32"}]}]
    described = {"format": "graph-model", "modelTopology": {"node": nodes}, "weightsManifest": groups}
    (tmp_path / "model.json").write_text(json.dumps(described))
    for value in (1.0, 2.0):
        (tmp_path / "shard.bin").write_bytes(np.full((4, 4), value, np.float32).tobytes())
        assert not ship(tmp_path / "model.json", tmp_path / "out").is_resumed
        assert ship(tmp_path / "model.json", tmp_path / "out").is_resumed


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names of files are Unicode there")
def test_a_model_is_known_by_a_name_that_is_not_utf8(tmp_path: pathlib.Path) -> None:
    model = tmp_path / os.fsdecode(b"mod\xe8le.pb")
    model.write_bytes(b"1")
    before = key_of([model], str(model))
    model.write_bytes(b"22")
    assert key_of([model], str(model)) != before


def test_other_samples_or_labels_in_the_same_place_are_another_call(tmp_path: pathlib.Path) -> None:
    pocketgraph.save(fragile(), tmp_path / "model.pb")
    data, labels = tmp_path / "data", tmp_path / "labels.txt"
    (tmp_path / "far").mkdir()
    data.mkdir()
    (data / "cat").symlink_to(tmp_path / "far")
    (data / "gone.png").symlink_to(tmp_path / "nowhere")
    labels.write_text("cat\n")
    keys = [key_of([tmp_path / "model.pb", data, labels, None], "")]
    for path in (tmp_path / "far" / "photo.png", labels, data / "more.png"):
        path.write_bytes(b"something else")
        keys.append(key_of([tmp_path / "model.pb", data, labels, None], ""))
    assert len({*keys}) == len(keys)
    assert keys[-1] == key_of([tmp_path / "model.pb", data, labels, None], "")
    (data / "out").mkdir()
    inside = key_of([tmp_path / "model.pb", data, labels], "", str(data / "out"))
    (data / "out" / "report.html").write_text("of the first call")
    assert inside == key_of([tmp_path / "model.pb", data, labels], "", str(data / "out"))
    (data / "photo.png").write_bytes(b"another")
    assert inside != key_of([tmp_path / "model.pb", data, labels], "", str(data / "out"))
    assert inside != key_of([tmp_path / "model.pb", data, labels], "", str(data))  # all of it is data still


def test_other_pictures_behind_the_same_list_are_another_call(tmp_path: pathlib.Path) -> None:
    graph = parse(
        "x = Placeholder(dtype=float, shape=[?,4,4,3])\nm = Mean(x, axes, T=float, Tidx=int32)\ny = Relu(m, T=float)"
    )
    pocketgraph.save(Graph([*graph, const("axes", np.int32([1, 2]))]), tmp_path / "net.pb")
    for name in ("a.png", "b.png"):
        Image.new("RGB", (4, 4), "red").save(tmp_path / name)
    (tmp_path / "list.txt").write_text("a.png\nb.png\n")
    call = tmp_path / "net.pb", tmp_path / "out", tmp_path / "list.txt"
    ship(*call)
    assert ship(*call).is_resumed
    Image.new("RGB", (4, 4), "blue").save(tmp_path / "b.png")
    os.utime(tmp_path / "b.png", (1, 1))
    assert not ship(*call).is_resumed


def test_a_place_that_nothing_can_be_written_to_is_said(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pocketgraph.save(fragile(), tmp_path / "model.pb")
    monkeypatch.setattr(os, "access", lambda path, *_: os.fspath(path) != str(tmp_path))
    with pytest.raises(PocketgraphError, match=f"nothing can be written to {tmp_path}"):
        ship(tmp_path / "model.pb", tmp_path / "out")


def test_bad_calls_are_refused(tmp_path: pathlib.Path) -> None:
    pocketgraph.save(fragile(), tmp_path / "model.pb")
    with pytest.raises(UsageError, match="is a file, not a folder"):
        ship(tmp_path / "model.pb", tmp_path / "model.pb")
    with pytest.raises(UsageError, match="must be 0 or more"):
        ship(tmp_path / "model.pb", tmp_path / "out", max_accuracy_drop=-1)
    (tmp_path / "damaged.pb").write_bytes(b"damaged")
    with pytest.raises(FormatError, match=r"none\.npz: the data cannot be read"):  # which is looked at before the model
        ship(tmp_path / "damaged.pb", tmp_path / "out", tmp_path / "none.npz")
    with pytest.raises(FormatError, match=r"none\.txt: the labels cannot be read"):
        ship(tmp_path / "damaged.pb", tmp_path / "out", labels=tmp_path / "none.txt")
    assert not (tmp_path / "out").exists()


def test_a_model_whose_own_answers_are_wrong_is_not_shipped(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eight bits that agree with answers by chance prove nothing."""
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(16, 4)).astype(np.float32)
    graph = parse("x = Placeholder(dtype=float, shape=[1,16])\nscores = MatMul(x, w, T=float)\ny = Softmax(scores)")
    pocketgraph.save(Graph([*graph, const("w", weights)]), tmp_path / "net.pb")
    rows = rng.normal(size=(80, 16)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=rows, labels=rng.integers(0, 4, 80))
    assert call("ship", tmp_path / "net.pb", "--data", tmp_path / "data.npz", "-o", tmp_path / "out") == 0
    told = capsys.readouterr().out
    assert "Do not ship model.tflite" in told
    assert "guessing among 4 classes would be in 25.0%" in told
    assert "not yet  static" in told
    page = (tmp_path / "out" / "ship.html").read_text()
    assert "its answers are in doubt" in page
    assert ">not yet<" in page
    assert ">ships<" not in page


def test_all_heads_of_a_model_ship(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(4)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,16])
        a = MatMul(x, w, T=float)
        kind = Softmax(a, T=float)
        best = ArgMax(a, axis, T=float, Tidx=int32, output_type=int64)
        axis = Const(int32 1)
        b = MatMul(x, v, T=float)
        where = Sigmoid(b, T=float)
        c = MatMul(x, v, T=float)
        total = Sum(c, axis, T=float, Tidx=int32)
    """)
    weights = [const(name, rng.normal(size=(16, 4)).astype(np.float32)) for name in "wv"]
    pocketgraph.save(Graph([*graph, *weights]), tmp_path / "net.pb")
    np.savez(tmp_path / "data.npz", x=rng.normal(size=(80, 16)).astype(np.float32))
    assert call("ship", tmp_path / "net.pb", "--data", tmp_path / "data.npz", "-o", tmp_path / "out") == 0
    captured = capsys.readouterr()
    assert "'where': " in captured.out
    assert "left out: total; --outputs=kind,where,total ships more" in captured.err
    session = pocketgraph.Session(pocketgraph.load(tmp_path / "out" / "model.tflite"))
    assert set(session.outputs) == {"kind:0", "where:0"}


def test_a_model_that_always_answers_the_same_is_told_of(tmp_path: pathlib.Path) -> None:
    """Without labels, too, where the data are of several classes; on made-up inputs nothing is proved then."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,8,8,3])
        axes = Const(int32 [1, 2])
        mean = Mean(x, axes, T=float, Tidx=int32)
        scores = MatMul(mean, w, T=float)
        sure = AddV2(scores, b, T=float)
        y = Softmax(sure, T=float)
    """)
    weights = [const("w", np.full((3, 4), 1e-9, np.float32)), const("b", np.array([0, 90, 0, 0], np.float32))]
    pocketgraph.save(Graph([*graph, *weights]), tmp_path / "net.pb")
    made_up = ship(tmp_path / "net.pb", tmp_path / "without")
    assert made_up.tried[-1].words.startswith("'y' is always the same in both models")
    assert not any(command.startswith("pocketgraph verify") for command in made_up.commands)
    bright_and_dark(tmp_path / "photos")
    found = ship(tmp_path / "net.pb", tmp_path / "with", data=tmp_path / "photos")
    assert "gives the same answer for" in found.verdict
    assert found.verdict.startswith("Do not ship")


def test_segmentation_by_argmax_is_judged_by_the_places_that_stay(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(3)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,8,8,3])
        c = Conv2D(x, w, strides=[1,1,1,1], padding="SAME", T=float)
        axis = Const(int32 3)
        classes = ArgMax(c, axis, T=float, Tidx=int32, output_type=int64)
    """)
    weights = const("w", rng.normal(size=(3, 3, 3, 5)).astype(np.float32))
    pocketgraph.save(Graph([*graph, weights]), tmp_path / "net.pb")
    np.savez(tmp_path / "data.npz", x=rng.normal(size=(60, 8, 8, 3)).astype(np.float32))
    found = ship(tmp_path / "net.pb", tmp_path / "out", data=tmp_path / "data.npz")
    assert found.form != "float"
    assert "the same answer as before on" in found.tried[-1].words
    for command in found.commands:
        words = command.split()
        assert call(*words[1:], *(["--num_runs=1"] if words[1] == "benchmark_model" else [])) == 0


def test_several_signatures_want_one_for_data(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,4])
        z = Placeholder(dtype=float, shape=[1,4])
        y = Softmax(x, T=float)
        v = Relu(z, T=float)
    """)
    signatures = {"first": Signature({"x": "x:0"}, {"y": "y:0"}), "second": Signature({"z": "z:0"}, {"v": "v:0"})}
    pocketgraph.save(graph.replace(signatures=signatures), tmp_path / "model", form="saved_model")
    np.savez(tmp_path / "data.npz", x=np.eye(4, dtype=np.float32))
    with pytest.raises(UsageError, match="has the signatures first, second") as refused:
        ship(tmp_path / "model", tmp_path / "out", data=tmp_path / "data.npz")
    assert "signature" in str(refused.value.hint)
    assert ship(tmp_path / "model", tmp_path / "out", data=tmp_path / "data.npz", signature="first").form
    np.savez(tmp_path / "data.npz", z=np.eye(4, dtype=np.float32))
    with pytest.raises(UsageError, match="signature=second"):
        ship(tmp_path / "model", tmp_path / "out", data=tmp_path / "data.npz")
    with pytest.raises(UsageError, match="signature=second"):
        pocketgraph.quantize(tmp_path / "model", tmp_path / "data.npz")
    with pytest.raises(UsageError, match=r"first, second, and a file is of one of them.*signature=first"):
        ship(tmp_path / "model", tmp_path / "out")


def test_data_and_labels_that_are_no_paths_are_refused(tmp_path: pathlib.Path) -> None:
    model: Any = tmp_path / "net.pb"
    pocketgraph.save(parse("x = Placeholder(dtype=float, shape=[1,4])\ny = Softmax(x, T=float)"), model)
    with pytest.raises(UsageError, match=r"the data that ship takes are named by a path, not by ndarray; numpy\.savez"):
        ship(model, tmp_path / "out", data=np.eye(4, dtype=np.float32))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the labels that ship takes are named by a path, not by list; 'a,b,c'"):
        ship(model, tmp_path / "out", labels=["a", "b"])  # type: ignore[arg-type]


def test_the_signature_that_is_proposed_takes_inputs(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,4])
        y = Softmax(x, T=float)
        n = Const(int32 3)
    """)
    signatures = {"count": Signature({}, {"n": "n:0"}), "encode": Signature({"x": "x:0"}, {"y": "y:0"})}
    pocketgraph.save(graph.replace(signatures=signatures), tmp_path / "model", form="saved_model")
    with pytest.raises(UsageError, match=r"count, encode, and a file is of one of them.*signature=encode"):
        ship(tmp_path / "model", tmp_path / "out")


def bright_and_dark(folder: pathlib.Path, form: str = "png") -> None:
    rng = np.random.default_rng(5)
    for name, low, high in (("bright", 128, 256), ("dark", 0, 128)):
        (folder / name).mkdir(parents=True)
        for at in range(40):
            Image.fromarray(rng.integers(low, high, (8, 8, 3), np.uint8)).save(folder / name / f"{at}.{form}")


def test_a_scaling_that_nothing_tells_is_said(tmp_path: pathlib.Path) -> None:
    bright_and_dark(tmp_path / "photos")
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?, 8, 8, 3])
        y = Sigmoid(x, T=float)
    """)
    pocketgraph.save(graph, tmp_path / "net.pb")
    made = ship(tmp_path / "net.pb", tmp_path / "out", data=tmp_path / "photos")
    (said,) = [text for text in made.unknown if "how pixels were scaled in training" in text]
    assert said.endswith("input_mean=127.5 input_std=127.5 feeds those from -1 to 1")
    made = ship(tmp_path / "net.pb", tmp_path / "other", data=tmp_path / "photos", input_mean=0, input_std=255)
    assert not any("how pixels" in text for text in made.unknown)


def test_several_numbers_that_nothing_calls_scores_are_judged_by_signal_to_noise(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(1)
    text = f"""
        x = Placeholder(dtype=float, shape=[?, 8])
        w = Const(float {rng.normal(size=(8, 4)).tolist()})
        NAME = MatMul(x, w, T=float)
    """
    np.savez(tmp_path / "rows.npz", x=rng.normal(size=(80, 8)).astype(np.float32))
    words = {}
    for name, most in (("forecast", None), ("logits", None), ("forecast", 5.0)):
        pocketgraph.save(parse(text.replace("NAME", name)), tmp_path / "net.pb")
        folder = tmp_path / f"{name}{most}"
        made = ship(tmp_path / "net.pb", folder, tmp_path / "rows.npz", max_accuracy_drop=most)
        assumed = [each for each in made.unknown if "taken for values such as forecasts" in each]
        words[name, most] = made.tried[-1].words, assumed
    said, (assumed,) = words["forecast", None]
    assert said.startswith("signal to noise")
    assert "max_accuracy_drop=5 judges by how many answers change" in assumed
    for key in (("logits", None), ("forecast", 5.0)):
        assert words[key][0].startswith("the same answer as before")
        assert words[key][1] == []


@pytest.mark.parametrize("output", ["share", "logit"])
@pytest.mark.parametrize("with_names", [False, True])
def test_one_score_is_judged_by_how_many_answers_are_right(
    output: str, with_names: bool, tmp_path: pathlib.Path
) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(16, 80)), rng.normal(size=(80, 1))
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?, 16])
        a = Const(float {a.tolist()})
        b = Const(float {b.tolist()})
        hidden = MatMul(x, a, T=float)
        active = Relu(hidden, T=float)
        logit = MatMul(active, b, T=float)
        share = Sigmoid(logit, T=float)
        extra = Mean(hidden, one, T=float, Tidx=int32, keep_dims=true)
        one = Const(int32[1] [1])
    """)
    rows = rng.normal(size=(120, 16)).astype(np.float32)
    right = (np.maximum(rows @ a, 0) @ b > 0).astype(np.int64).ravel()
    right[100:110] = 1 - right[100:110]
    np.savez(tmp_path / "rows.npz", x=rows, labels=right)
    outputs = [output, "extra"] if with_names else [output]
    pocketgraph.save(graph, tmp_path / "net.pb")
    (tmp_path / "names.txt").write_text("bad\ngood\n")
    labels = tmp_path / "names.txt" if with_names else None
    made = ship(tmp_path / "net.pb", tmp_path / "out", tmp_path / "rows.npz", labels=labels, outputs=outputs)
    words = made.tried[-1].words
    assert re.match(r"(79|81)\.\d% of 48 answers are right, 79.2% before; same answer in (97|98|100)\.", words)
    assert re.search(r"; 'extra': signal to noise \d+\.\d dB on 48 samples$", words) or not with_names
    assert made.is_proved
    alone = pocketgraph.evaluate(tmp_path / "out" / "model.tflite", tmp_path / "rows.npz", labels=labels)
    assert alone[0].accuracy is not None
    assert alone[0].accuracy.top1 > 0.85


def test_what_all_numbers_have_in_common_is_no_signal() -> None:
    """Of temperatures that differ by some kelvin, errors of 3 K are no tenth, though they are a hundredth of 290."""
    rng = np.random.default_rng(4)
    verdicts = [ModelVerdict("float"), ModelVerdict("form", comparison=Comparison())]
    for wanted in rng.normal(290, 5, (100, 1, 1)).astype(np.float32):
        verdicts[1].add(wanted, wanted + np.float32(3 * rng.choice([-1, 1])), None, None)
    found = kept_answers(*verdicts, 100, most=None, assumed=None)
    assert found.words.startswith("signal to noise 4.")  # 20 log10(5 / 3)
    assert not found.is_kept


def test_what_each_number_of_a_forecast_has_in_common_is_no_signal() -> None:
    """Temperatures near 290 beside pressures near 1013, each off by 3 where it differs by 5."""
    rng = np.random.default_rng(4)
    verdicts = [ModelVerdict("float"), ModelVerdict("form", comparison=Comparison(are_forecasts=True))]
    wanted = rng.normal(0, 5, (100, 1, 12)) + np.tile([290, 1013], 6)
    for row in wanted.astype(np.float32):
        verdicts[1].add(row, row + (3 * rng.choice([-1, 1], row.shape)).astype(np.float32), None, None)
    found = kept_answers(*verdicts, 100, most=None, assumed=None)
    own = 10 * np.log10(((wanted - wanted.mean(axis=0)) ** 2).sum() / (9 * wanted.size))
    assert found.words.startswith(f"signal to noise {own:.1f} dB")
    assert not found.is_kept
    pictures = Comparison()
    for row in wanted.astype(np.float32):
        pictures.add(row.reshape(1, 3, 4, 1), row.reshape(1, 3, 4, 1) + 3)
    assert pictures.snr_of_changes == pictures.snr > 40


def test_classes_judge_the_output_that_has_scores_of_them(tmp_path: pathlib.Path) -> None:
    """All outputs of a SavedModel pass through one node, the number first."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(16, 4)), rng.normal(size=(16, 1))
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?, 16])
        a = Const(float {a.tolist()})
        b = Const(float {b.tolist()})
        age = MatMul(x, b, T=float)
        sums = MatMul(x, a, T=float)
        kind = Softmax(sums, T=float)
        all = IdentityN(age, kind, T=[float, float])
    """)
    rows = rng.normal(size=(60, 16)).astype(np.float32)
    np.savez(tmp_path / "rows.npz", x=rows, labels=(rows @ a).argmax(axis=1))
    served = Signature({"x": "x:0"}, {"age": "all:0", "kind": "all:1"})
    pocketgraph.save(graph.replace(signatures={"serving_default": served}), tmp_path / "net", form="saved_model")
    made = ship(tmp_path / "net", tmp_path / "out", tmp_path / "rows.npz")
    words = made.tried[-1].words
    assert re.match(r"\d+\.\d% of 24 answers are right, 100.0% before; .*'all:0': [^']*$", words)
    assert "off the right numbers" not in words


@pytest.mark.parametrize("told", ["kind", "tags"])
def test_labels_judge_the_output_that_they_are_of_alone(told: str, tmp_path: pathlib.Path) -> None:
    """Classes 0 to 2 are none of four tags, and tags of a sample none of three classes."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(16, 3)), rng.normal(size=(16, 4))
    graph = Graph(parse(f"""
        x = Placeholder(dtype=float, shape=[?, 16])
        a = Const(float {a.tolist()})
        b = Const(float {b.tolist()})
        sums = MatMul(x, a, T=float)
        logits = MatMul(x, b, T=float)
        kind = Softmax(sums, T=float)
        tags = Sigmoid(logits, T=float)
    """), outputs=["kind", "tags"])  # fmt: skip
    pocketgraph.save(graph, tmp_path / "net.pb")
    rows = rng.normal(size=(60, 16)).astype(np.float32)
    labels = (rows @ a).argmax(axis=1) if told == "kind" else (rows @ b > 0).astype(int)
    np.savez(tmp_path / "rows.npz", x=rows, labels=labels)
    made = ship(tmp_path / "net.pb", tmp_path / "out", tmp_path / "rows.npz", outputs=["kind", "tags"])
    first, second = made.tried[-1].words.split("; '" + ("tags" if told == "kind" else "kind") + "': ")
    assert "100.0% before" in first
    assert ("answers are right" in first, "F1 of the tags" in first) == (told == "kind", told == "tags")
    assert second.startswith("the same answer as before on ")


def test_a_model_that_gives_nan_is_not_shipped(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        least = Const(float 1.0)
        below = Sub(x, least, T=float)
        y = Log(below, T=float)
    """)
    pocketgraph.save(graph, tmp_path / "net.pb")
    np.savez(tmp_path / "rows.npz", x=np.random.default_rng(1).uniform(0, 1, (30, 4)).astype(np.float32))
    made = ship(tmp_path / "net.pb", tmp_path / "out", tmp_path / "rows.npz")
    assert made.verdict.startswith(
        "Do not ship model.tflite (floats) yet: frozen.pb gives NaN or infinity for 12 of 12"
    )
    assert "it begins in 'y' (Log)" in made.verdict
    assert "inf dB" not in made.tried[-1].words


def test_a_form_that_gives_one_answer_for_all_is_not_kept_where_one_class_is_rare() -> None:
    """Of 60 samples 2 are of the rare class: 58 right answers are within 5 points."""
    verdicts = [ModelVerdict(name, accuracy=ClassAccuracy()) for name in ("float", "form")]
    verdicts[1].comparison = Comparison()
    for at in range(60):
        wanted = np.float32([[0, 1] if at < 2 else [1, 0]])
        verdicts[0].add(wanted, wanted, int(at < 2), None)
        verdicts[1].add(wanted, np.float32([[1, 0]]), int(at < 2), None)
    found = kept_answers(*verdicts, 60, most=5.0, assumed=None)
    assert found.words.startswith("96.7% of 60 answers are right, 100.0% before")
    assert found.words.endswith("as it gives one answer for all")
    assert not found.is_kept


def test_a_made_up_size_of_pictures_is_said(tmp_path: pathlib.Path) -> None:
    text = """
        x = Placeholder(dtype=float, shape=[?, ?, ?, 3])
        axes = Const(int32 [1, 2])
        y = Mean(x, axes, T=float, Tidx=int32)
    """
    pocketgraph.save(parse(text), tmp_path / "net.pb")
    made = ship(tmp_path / "net.pb", tmp_path / "out")
    (said,) = [each for each in made.unknown if "size of the pictures for 'x'" in each]
    assert 'judged and timed at 224 x 224; shapes={"x": (1, 224, 224, 3)} says' in said
    made = ship(tmp_path / "net.pb", tmp_path / "other", shapes={"x": (1, 32, 32, 3)})
    assert not any("size of the pictures" in each for each in made.unknown)


def test_random_numbers_that_a_model_draws_are_fed_by_what_the_error_names(tmp_path: pathlib.Path) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1, 4])
        w = Const(float {np.eye(4).tolist()})
        mean = MatMul(x, w, T=float)
        size = Const(int32 [1, 4])
        noise = RandomStandardNormal(size, T=int32, dtype=float)
        code = Add(mean, noise, T=float)
        y = Tanh(code, T=float)
    """)
    pocketgraph.save(graph, tmp_path / "net.pb")
    with pytest.raises(PocketgraphError, match="inputs=x,noise names all tensors to feed"):
        ship(tmp_path / "net.pb", tmp_path / "out")
    made = ship(tmp_path / "net.pb", tmp_path / "fed", inputs=["x", "noise"])
    taken = [node.name for node in pocketgraph.load(tmp_path / "fed/model.tflite") if node.op == "Placeholder"]
    assert len(taken) == 2
    assert not made.doubt


def test_a_graph_that_reads_files_itself_ships_behind_that_part(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it does to pixels in front of the cut becomes the scaling: here values from 0 to 1."""
    bright_and_dark(tmp_path / "photos", "jpg")
    graph = parse("""
        contents = Placeholder(dtype=string, shape=[])
        decoded = DecodeJpeg(contents, channels=3)
        floats = Cast(decoded, SrcT=uint8, DstT=float)
        most = Const(float 255)
        shares = RealDiv(floats, most, T=float)
        first = Const(int32 0)
        batch = ExpandDims(shares, first, T=float, Tdim=int32)
        size = Const(int32 [4, 4])
        resized = ResizeBilinear(batch, size, T=float)
        half = Const(float 0.5)
        centred = Sub(resized, half, T=float)
        axes = Const(int32 [1, 2])
        means = Mean(centred, axes, T=float, Tidx=int32)
        scores = MatMul(means, w, T=float)
        y = Softmax(scores, T=float)
    """)
    whole = Graph([*graph, const("w", np.float32([[3, -3]] * 3))])
    pocketgraph.save(whole, tmp_path / "net.pb")
    assert call("ship", tmp_path / "net.pb", "--data", tmp_path / "photos", "-o", tmp_path / "out") == 0
    captured = capsys.readouterr()
    assert "the part behind 'resized' ships" in captured.err
    assert "input_mean 0, --input_std 255" in captured.err
    assert "100.0% of 32 answers are right" in captured.out
    content = (tmp_path / "photos" / "bright" / "0.jpg").read_bytes()
    pixels, expected = pocketgraph.Session(whole).run(["resized", "y"], {"contents": np.array(content, object)})
    shipped = pocketgraph.Session(pocketgraph.load(tmp_path / "out" / "model.tflite"))
    (found,) = shipped.run(list(shipped.outputs), {next(iter(shipped.inputs)): pixels})
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_the_scaling_with_which_answers_are_right_is_found(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A network that was trained with pixels from -1 to 1, which nothing in it shows."""
    bright_and_dark(tmp_path / "photos")
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,8,8,3])
        axes = Const(int32 [1, 2])
        means = Mean(x, axes, T=float, Tidx=int32)
        scores = MatMul(means, w, T=float)
        y = Softmax(scores, T=float)
    """)
    weights = const("w", np.float32([[3, -3]] * 3))
    pocketgraph.save(Graph([*graph, weights]), tmp_path / "net.pb")
    arguments = (tmp_path / "net.pb", "--data", tmp_path / "photos")
    assert call("ship", *arguments, "-o", tmp_path / "out") == 0
    captured = capsys.readouterr()
    assert "--input_mean=127.5 --input_std=127.5: 100% of 48 answers are right so, and 50%" in captured.err
    assert "100.0% of 32 answers are right, 100.0% before" in captured.out
    assert "--input_mean=127.5" in captured.out.partition("next:")[2]
    names = tmp_path / "labels.txt"
    names.write_text("bright\ndark\n")
    shipped = tmp_path / "out" / "model.tflite"
    for kind in ("bright", "dark"):  # the file says how pixels are scaled, so that no option is needed
        (found,) = pocketgraph.label_image(shipped, sorted((tmp_path / "photos" / kind).iterdir())[0], names)
        assert found.predictions[0].label == kind
    judged = pocketgraph.evaluate(shipped, tmp_path / "photos", labels=names)
    assert judged[0].accuracy is not None
    assert judged[0].accuracy.top1 == 1
    assert call("ship", *arguments, "-o", tmp_path / "as_told", "--input_mean=0", "--input_std=255") == 0
    assert "Do not ship" in capsys.readouterr().out


def test_a_class_that_is_picked_ships_as_the_scores_that_it_is_picked_from(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bright_and_dark(tmp_path / "photos")
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,8,8,3])
        axes = Const(int32 [1, 2])
        axis = Const(int32 1)
        means = Mean(x, axes, T=float, Tidx=int32)
        logits = MatMul(means, w, T=float)
        shares = Softmax(logits, T=float)
        class_id = ArgMax(shares, axis, T=float, Tidx=int32, output_type=int64)
    """)
    pocketgraph.save(Graph([*graph, const("w", np.float32([[3, -3]] * 3))]), tmp_path / "net.pb")
    (tmp_path / "labels.txt").write_text("bright\ndark\n")
    labels = ("--labels", tmp_path / "labels.txt")
    assert call("ship", tmp_path / "net.pb", "--data", tmp_path / "photos", *labels, "-o", tmp_path / "out") == 0
    captured = capsys.readouterr()
    assert "'class_id' is picked from 'shares', whose scores are taken; --outputs=class_id ships" in captured.err
    assert "100.0% of 32 answers are right" in captured.out
    assert call("app", "pi", tmp_path / "net.pb", "-o", tmp_path / "pi", *labels) == 0
    assert "as labels are for them" in capsys.readouterr().err


def test_a_model_in_which_nothing_is_quantized_ships_as_floats(tmp_path: pathlib.Path) -> None:
    """Without data eight bits are for layers of some size, and a model of 12 weights has none."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,4])
        w = Const(float [[1, 2, 3], [4, 5, 6], [7, 8, 9], [1, 5, 9]])
        y = MatMul(x, w, T=float)
    """)
    pocketgraph.save(graph, tmp_path / "tiny.pb")
    found = ship(tmp_path / "tiny.pb", tmp_path / "out")
    assert "weights" in [each.form for each in found.tried if not each.is_kept]
    dtypes = {
        node.tensor.dtype.name for node in pocketgraph.load(tmp_path / "out" / "model.tflite") if node.op == "Const"
    }
    assert ("half" in dtypes) == (found.form == "float16")
    assert found.form in ("float16", "float")


def test_what_ships_in_half_precision_passes_the_command_that_is_printed(tmp_path: pathlib.Path) -> None:
    """One weight of each channel is so large that eight bits leave nothing of the others."""
    w = np.random.default_rng(0).normal(size=(64, 512)).astype(np.float32)
    w[0], scale = 1000, np.r_[np.float32(1e-6), np.ones(63, np.float32)]
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,64])
        scaled = Mul(x, scale, T=float)
        y = MatMul(scaled, w, T=float)
    """)
    pocketgraph.save(Graph([*graph, const("scale", scale), const("w", w)]), tmp_path / "net.pb")
    found = ship(tmp_path / "net.pb", tmp_path / "out")
    assert found.form == "float16"
    command = found.commands[0].split()
    assert command[:2] == ["pocketgraph", "verify"]
    assert call(*command[1:]) == 0


def test_a_form_that_is_larger_than_floats_and_no_faster_does_not_ship(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each quantized tensor brings a scale, which outweighs what a few weights save."""
    ops = ("Tanh", "Sigmoid", "Exp", "Square", "Abs", "Rsqrt", "Relu", "Neg", "Sigmoid", "Sqrt", "Tanh")
    lines = [f"n{n + 1} = {op}(n{n}, T=float)\n" for n, op in enumerate(ops)]
    nodes = parse("x = Placeholder(dtype=float, shape=[?,?,4])\none = Const(int32 1)\nmean = Mean(x, one, T=float)\n"
                  f"n0 = MatMul(mean, w, T=float)\n{''.join(lines)}y = Softmax(n{len(ops)}, T=float)")  # fmt: skip
    pocketgraph.save(Graph([*nodes, const("w", np.eye(4, dtype=np.float32))]), tmp_path / "tiny.pb")
    np.savez(tmp_path / "rows.npz", x=np.random.default_rng(5).normal(size=(60, 5, 4)).astype(np.float32))
    small = ship(tmp_path / "tiny.pb", tmp_path / "mcu", tmp_path / "rows.npz", target="microcontroller")
    assert small.form == "static"
    monkeypatch.setattr(form_gain, "_times", lambda *_: (0.01, 0.01))  # times of so small a model are noise
    found = ship(tmp_path / "tiny.pb", tmp_path / "out", tmp_path / "rows.npz")
    assert found.tried[0].bytes == small.tried[0].bytes > found.tried[-1].bytes
    assert "its file is larger than that of floats" in found.tried[0].words
    assert "Ship model.tflite (floats)" in found.verdict
    assert "Not weights and tensors in eight bits: its file is larger" in found.verdict
    assert "float.tflite" not in os.listdir(tmp_path / "out")
    assert pocketgraph.load(tmp_path / "out" / "model.tflite")["x"].shape().dims == (1, 5, 4)  # as samples are
    assert ship(tmp_path / "tiny.pb", tmp_path / "out", tmp_path / "rows.npz").verdict == found.verdict


@pytest.mark.parametrize(
    ("size", "share", "is_worse", "told"),
    [
        (2000, 1.0, True, "its file is larger than that of floats, 2.00 kB for 1.50 kB"),
        (2000, 1.5, True, "2.00 kB for 1.50 kB, and a run takes 1.5 times as long"),
        (2000, 0.5, False, ""), (1200, 1.0, False, ""),
        (1200, 2.0, True, "a run takes 2.0 times as long as of floats, for 1.20 kB instead of 1.50 kB"),
        (700, 2.0, True, "for 700 B instead of 1.50 kB"), (700, 1.1, False, ""),
    ],
)  # fmt: skip
def test_what_a_form_brings_is_weighed_in_bytes_and_time(size: int, share: float, is_worse: bool, told: str) -> None:
    found = comparison(size, 1500, share, 1.0)
    assert found[0] == is_worse
    assert told in found[1]
    assert bool(found[1]) == bool(told)
    much = comparison(1000 * size, 1_500_000, share, 1.0)  # a large file made half is worth a slower run, and is told
    assert much[0] == (is_worse and size != 700)
    assert bool(much[1]) == bool(told)
    short = comparison(size, 1500, share * 0.01, 0.01)  # nobody feels ten microseconds more, and fewer bytes ship
    assert short[0] == (size == 2000 and share >= 1)
    assert "times as long" not in short[1]


@pytest.mark.parametrize(("share", "form"), [(1.5, "float"), (0.9, "static")])
def test_small_models_ship_by_their_time_beside_that_of_floats(
    share: float, form: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The graph is run in another way than a file, and so is quicker or slower where a run takes microseconds."""
    rng = np.random.default_rng(3)
    graph = parse("x = Placeholder(dtype=float, shape=[?,40])\ny = MatMul(x, w, T=float)\nz = Tanh(y, T=float)")
    pocketgraph.save(Graph([*graph, const("w", rng.normal(size=(40, 64)).astype("f"))]), tmp_path / "net.pb")
    np.savez(tmp_path / "rows.npz", x=rng.normal(size=(60, 40)).astype(np.float32))
    monkeypatch.setattr(form_gain, "_times", lambda *_: (0.2 * share, 0.2))
    assert call("ship", tmp_path / "net.pb", "--data", tmp_path / "rows.npz", "-o", tmp_path / "out") == 0
    said = capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "ship.json").read_text())["form"] == form
    if form == "static":
        assert "a run takes 180 us on this machine, that of floats takes 200 us" in said
    else:
        assert "Not weights and tensors in eight bits: a run takes 1.5 times as long as of floats" in said
        assert "the graph's took" in said


@pytest.mark.parametrize("name", ["boxes", "loc", "head/regressors"])
def test_a_box_takes_no_labels(tmp_path: pathlib.Path, name: str) -> None:
    """Four numbers of a box by a sigmoid are as many as four labels."""
    rng = np.random.default_rng(3)
    graph = parse(
        """
        x = Placeholder(dtype=float, shape=[?,16])
        a = MatMul(x, v, T=float)
        box_scores = Sigmoid(a, T=float)
        z = MatMul(x, w, T=float)
        NAME = Sigmoid(z, T=float)
    """.replace("NAME", name)
    )
    weights = [const(name, rng.normal(size=(16, 4)).astype(np.float32)) for name in "vw"]
    graph = Graph([*graph, *weights])
    np.savez(tmp_path / "rows.npz", x=rng.normal(size=(40, 16)).astype(np.float32))
    how: dict[str, Any] = {"outputs": [name], "labels": "a,b,c,d"}
    pocketgraph.save(graph, tmp_path / "net.pb")
    for data in (None, tmp_path / "rows.npz"):
        with pytest.raises(UsageError, match=f"'{name}' gives boxes by its name; name the scores with outputs"):
            ship(tmp_path / "net.pb", tmp_path / "out", data, **how)
    with pytest.raises(UsageError, match=rf"the output '{name}' is float\[1, 4\], by its name of boxes"):
        pocketgraph.export(graph, tmp_path / "net.tflite", **how)
    pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["box_scores"], labels="a,b,c,d")
    found = ship(tmp_path / "net.pb", tmp_path / "out", tmp_path / "rows.npz", outputs=[name])
    assert found.budget == "20 dB"  # numbers, and no classes
    assert "signal to noise" in found.tried[-1].words


def test_labels_are_a_file_or_a_list(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(3)
    graph = parse("x = Placeholder(dtype=float, shape=[?,16])\nz = MatMul(x, w, T=float)\ny = Softmax(z, T=float)")
    weights = rng.normal(size=(16, 3)).astype(np.float32)
    pocketgraph.save(Graph([*graph, const("w", weights)]), tmp_path / "net.pb")
    rows = rng.normal(size=(60, 16)).astype(np.float32)
    named = np.array(["ant", "bee", "cat"])[(rows @ weights).argmax(1)]
    np.savez(tmp_path / "rows.npz", x=rows, labels=named)
    data, out = ("--data", tmp_path / "rows.npz"), tmp_path / "out"
    assert call("ship", tmp_path / "net.pb", *data, "--labels=ant, bee,cat", "-o", out) == 0
    assert "100.0% of 24 answers are right, 100.0% before" in capsys.readouterr().out
    assert metadata((out / "model.tflite").read_bytes()).labels == ("ant", "bee", "cat")
    assert call("evaluate", tmp_path / "net.pb", *data, "--labels=ant,bee,cat") == 0
    assert call("ship", tmp_path / "net.pb", *data, "--labels=ant,bee", "-o", out) == 2
    assert "has 2 lines, but the model gives 3 scores" in capsys.readouterr().err
    assert call("ship", tmp_path / "net.pb", *data, "--labels=ant,bee.txt", "-o", out) == 1
    assert "the labels cannot be read: No such file" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["ant bee cat dog", "ant bee cat"])
def test_a_table_in_the_graph_names_the_classes(
    tmp_path: pathlib.Path, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In labels.txt, in the file and in label_image; not where the table has other numbers than the scores."""
    listed = ", ".join(f'"{word}"' for word in words.split())
    nodes = parse(f"""
        image = Placeholder(dtype=float, shape=[?,8,8,3])
        axes = Const(int32 [1, 2])
        mean = Mean(image, axes, T=float)
        weighed = MatMul(mean, weights, T=float)
        probs = Softmax(weighed, T=float)
        k = Const(int32 2)
        best = TopKV2(probs, k, T=float, sorted=true)
        at = Cast(best:1, SrcT=int32, DstT=int64)
        table = HashTableV2(key_dtype=int64, value_dtype=string, shared_name="classes")
        keys = Const(int64 {list(range(len(words.split())))})
        values = Const(string [{listed}])
        fill = LookupTableImportV2(table, keys, values, Tin=int64, Tout=string)
        none = Const(string "none")
        names = LookupTableFindV2(table, at, none, ^fill, Tin=int64, Tout=string)
    """)
    rng = np.random.default_rng(3)
    graph = Graph([*nodes, const("weights", rng.normal(size=(3, 4)).astype(np.float32))], outputs=["probs", "names"])
    pocketgraph.save(graph, tmp_path / "net.pb")
    np.savez(tmp_path / "data.npz", image=rng.random((40, 8, 8, 3), np.float32))
    found = ship(tmp_path / "net.pb", tmp_path / "out", tmp_path / "data.npz", outputs=["probs"])
    is_named = words.endswith("dog")
    assert ("labels.txt" in found.files) == is_named
    Image.new("RGB", (8, 8), (200, 30, 10)).save(tmp_path / "photo.png")
    for model in (tmp_path / "out" / "model.tflite", tmp_path / "net.pb"):
        assert call("label_image", "--graph", model, tmp_path / "photo.png", "--output_layer=probs") == 0
        assert ("ant (0): " in capsys.readouterr().out) == is_named
    if is_named:
        assert (tmp_path / "out" / "labels.txt").read_text().split() == words.split()


def test_names_in_a_table_that_an_estimator_asks_by_its_logits_judge(tmp_path: pathlib.Path) -> None:
    """Its ``label_vocabulary`` is in no alphabetical order."""
    graph = Graph(parse("""
        x = Placeholder(dtype=float, shape=[?,3])
        w = Const(float [[4, 0, 0], [0, 4, 0], [0, 0, 4]])
        logits = MatMul(x, w, T=float)
        probs = Softmax(logits, T=float)
        axis = Const(int32 1)
        best = ArgMax(logits, axis, T=float, Tidx=int32, output_type=int64)
        table = HashTableV2(key_dtype=int64, value_dtype=string, shared_name="classes")
        keys = Const(int64 [0, 1, 2])
        words = Const(string ["cheap", "fair", "dear"])
        fill = LookupTableImportV2(table, keys, words, Tin=int64, Tout=string)
        none = Const(string "none")
        names = LookupTableFindV2(table, best, none, ^fill, Tin=int64, Tout=string)
    """), outputs=["probs", "names"])  # fmt: skip
    pocketgraph.save(graph, tmp_path / "net.pb")
    samples = np.random.default_rng(0).random((60, 3), np.float32)
    classes = np.array(["cheap", "fair", "dear"])[samples.argmax(axis=1)]
    np.savez(tmp_path / "data.npz", x=samples, labels=classes)
    found = ship(tmp_path / "net.pb", tmp_path / "out", tmp_path / "data.npz")
    assert (tmp_path / "out" / "labels.txt").read_text().split() == ["cheap", "fair", "dear"]
    assert "100.0% before" in found.verdict
    assert "labels.txt" in found.commands[0]


def test_a_table_behind_the_scores_that_are_wanted_names_the_classes(tmp_path: pathlib.Path) -> None:
    """A SavedModel is frozen up to what is wanted, and so without its table."""
    graph = Graph(parse("""
        x = Placeholder(dtype=float, shape=[?,2])
        w = Const(float [[1, 2, 3], [4, 5, 6]])
        sums = MatMul(x, w, T=float)
        probs = Softmax(sums, T=float)
        axis = Const(int32 1)
        best = ArgMax(probs, axis, T=float, Tidx=int32, output_type=int64)
        table = HashTableV2(key_dtype=int64, value_dtype=string, shared_name="classes")
        keys = Const(int64 [0, 1, 2])
        words = Const(string ["ant", "bee", "cat"])
        fill = LookupTableImportV2(table, keys, words, Tin=int64, Tout=string)
        none = Const(string "none")
        names = LookupTableFindV2(table, best, none, ^fill, Tin=int64, Tout=string)
    """), outputs=["probs", "names"])  # fmt: skip
    pocketgraph.save(graph, tmp_path / "served", form="saved_model")
    found = ship(tmp_path / "served", tmp_path / "out", outputs=["probs"])
    assert "labels.txt" in found.files
    assert (tmp_path / "out" / "labels.txt").read_text().split() == ["ant", "bee", "cat"]


@pytest.mark.parametrize("place", ["served/assets/classes_labels.txt", "served/assets.extra/labels.txt", "labels.txt"])
def test_a_file_of_labels_in_a_saved_model_or_beside_it_names_the_classes(place: str, tmp_path: pathlib.Path) -> None:
    """As retrain writes one, and those whose models take it along."""
    graph = Graph(parse("""
        x = Placeholder(dtype=float, shape=[?,2])
        w = Const(float [[1, 2, 3], [4, 5, 6]])
        sums = MatMul(x, w, T=float)
        probs = Softmax(sums, T=float)
    """), outputs=["probs"])  # fmt: skip
    pocketgraph.save(graph, tmp_path / "served", form="saved_model")
    labels = tmp_path / place
    labels.parent.mkdir(exist_ok=True)
    (labels.parent / "other_labels.txt").write_text("one\ntwo\n")
    for names in (["ant", "bee", "cat"], ["cat", "bee", "ant"]):
        labels.write_text("\n".join(names))
        told: list[str] = []
        found = ship(tmp_path / "served", tmp_path / "out", notify=told.append)
        assert (tmp_path / "out" / "labels.txt").read_text().split() == names
        assert any(f"{labels.name}' names the classes" in line for line in told)
        assert not found.is_resumed
    (labels.parent / "own_labels.txt").write_text("x\ny\nz\n")  # which of the two it is, nothing tells
    assert "labels.txt" not in ship(tmp_path / "served", tmp_path / "other").files


def test_a_placeholder_that_is_set_for_good_does_not_ship(tmp_path: pathlib.Path, capsys: Any) -> None:
    """One that no dropout reads, which data have nothing for."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,2])
        gain = Placeholder(dtype=float)
        w = Const(float [[1, 2, 3], [4, 5, 6]])
        sums = MatMul(x, w, T=float)
        y = Mul(sums, gain, T=float)
    """)
    pocketgraph.save(graph, tmp_path / "net.pb")
    rows = np.random.default_rng(0).random((40, 2), np.float32)
    np.savez(tmp_path / "rows.npz", x=rows)
    flags = ("ship", tmp_path / "net.pb", "--data", tmp_path / "rows.npz", "-o", tmp_path / "out")
    assert call(*flags, "--feed=gain=0.5") == 0
    with pocketgraph.Session(tmp_path / "out" / "frozen.pb") as session:
        assert "gain" not in session.graph or session.graph["gain"].op == "Const"
        (given,) = session.run(["y"], {"x": rows})
    np.testing.assert_allclose(given, rows @ [[1, 2, 3], [4, 5, 6]] * 0.5, rtol=1e-5)
    capsys.readouterr()
    assert call(*flags, "--feed=grain=0.5") == 2
    assert "the graph has no node 'grain'; did you mean 'gain'" in capsys.readouterr().err


def test_numbers_that_are_wanted_are_no_classes(tmp_path: pathlib.Path) -> None:
    """A forecast of three numbers is judged by how near it is; small ones are alike as scores, whatever is lost."""
    rng = np.random.default_rng(3)
    nodes = parse("""
        x = Placeholder(dtype=float, shape=[?,8])
        hidden = MatMul(x, a, T=float)
        active = Relu(hidden, T=float)
        y = MatMul(active, b, T=float)
    """)
    a, b = rng.normal(size=(8, 64)).astype(np.float32), (rng.normal(size=(64, 3)) * 1e-3).astype(np.float32)
    pocketgraph.save(Graph([*nodes, const("a", a), const("b", b)]), tmp_path / "forecast.pb")
    rows = rng.normal(size=(60, 8)).astype(np.float32)
    right = np.maximum(rows @ a, 0) @ b + 0.001
    np.savez(tmp_path / "rows.npz", x=rows, y=right)
    found = ship(tmp_path / "forecast.pb", tmp_path / "out", tmp_path / "rows.npz")
    assert found.budget == "20 dB"
    told = found.tried[-1].words
    assert told.startswith("signal to noise")
    assert "off the right numbers by 0.001" in told
    assert told.endswith("on average, 0.001 before")
    made = pocketgraph.quantize(tmp_path / "forecast.pb", tmp_path / "rows.npz")
    assert made.judged is not None
    assert made.judged.comparison.width == 0
    with pytest.raises(UsageError, match="no scores of classes"):
        pocketgraph.quantize(tmp_path / "forecast.pb", tmp_path / "rows.npz", max_kl=0.1)
    beside = pocketgraph.evaluate([tmp_path / "forecast.pb", tmp_path / "out" / "model.tflite"], tmp_path / "rows.npz")
    assert "agreement" not in beside[1].as_dict()


@pytest.mark.parametrize("masks", ["picked", "probabilities"])
def test_the_classes_of_places_are_no_forecasts(tmp_path: pathlib.Path, masks: str) -> None:
    """Masks that stand beside the pictures do not make numbers of what a segmentation picks at each place."""
    rng = np.random.default_rng(3)
    nodes = parse("""
        x = Placeholder(dtype=float, shape=[?,4,4,2])
        scores = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
        shares = Softmax(scores, T=float)
        axis = Const(int32 3)
        picked = ArgMax(shares, axis, T=float, Tidx=int32, output_type=int64)
    """)
    weights = rng.normal(size=(1, 1, 2, 3)).astype(np.float32)
    pocketgraph.save(Graph([*nodes, const("w", weights)]), tmp_path / "places.pb")
    pictures = rng.normal(size=(60, 4, 4, 2)).astype(np.float32)
    right = (pictures @ weights[0, 0]).argmax(-1)
    output, wanted = ("picked", right) if masks == "picked" else ("shares", np.eye(3, dtype=np.float32)[right])
    np.savez(tmp_path / "masks.npz", x=pictures, y=wanted)
    found = ship(tmp_path / "places.pb", tmp_path / "out", tmp_path / "masks.npz", outputs=[output])
    assert found.budget.endswith("% other answers")
    made = pocketgraph.quantize(tmp_path / "places.pb", tmp_path / "masks.npz", outputs=[output], max_accuracy_drop=20)
    assert made.judged is not None
    assert made.judged.comparison.width == 3
    assert made.judged.comparison.agreement > 0.9


def test_pixels_are_scaled_as_the_model_does_what_is_folded(tmp_path: pathlib.Path) -> None:
    """A division by 255 that becomes part of the first layer is not done twice; no classes tell by their answers."""
    net = parse("""
        x = Placeholder(dtype=float, shape=[?,8,8,3])
        of_bytes = Const(float 0.003921569)
        shares = Mul(x, of_bytes, T=float)
        conv = Conv2D(shares, w, T=float, strides=[1, 1, 1, 1], padding="SAME", data_format="NHWC")
        rectified = Relu(conv, T=float)
        axes = Const(int32 [1, 2])
        pooled = Mean(rectified, axes, T=float, Tidx=int32, keep_dims=false)
        y = Softmax(pooled, T=float)
    """)
    rng = np.random.default_rng(4)
    weights = rng.normal(size=(3, 3, 3, 4)).astype(np.float32)
    pocketgraph.save(Graph([*net, const("w", weights)]), tmp_path / "net.pb")
    (tmp_path / "photos").mkdir()
    for at in range(24):
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8)).save(tmp_path / "photos" / f"{at}.png")
    for data in (tmp_path / "photos", None):
        said: list[str] = []
        ship(tmp_path / "net.pb", tmp_path / f"out_{data is None}", data=data, notify=said.append)
        assert any("'shares' shows" in text for text in said)
        content = (tmp_path / f"out_{data is None}" / "model.tflite").read_bytes()
        about = metadata(content)
        assert about is not None
        assert about.scaling == (0.0, 1.0)
        frozen = pocketgraph.load(tmp_path / f"out_{data is None}" / "frozen.pb")
        assert SampleReading().scaling(frozen).mean == 0
        assert pocketgraph.verify(tmp_path / "net.pb", frozen)


@pytest.mark.parametrize(("told", "points"), [("rows", None), ("one score", 2.0), ("scores", 2.0), ("no classes", 5.0)])
def test_two_points_of_right_answers_may_be_lost_wherever_the_data_say_which_are_right(
    told: str, points: float | None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also without a file of labels; where they do not, five of answers that change, and none of a row of numbers."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 4)).astype(np.float32)
    width = 1 if told == "one score" else 3
    weights = rng.normal(size=(4, width)).astype(np.float32)
    ends = {"rows": "y = Identity(sums, T=float)", "one score": "y = Sigmoid(sums, T=float)"}
    text = "x = Placeholder(dtype=float, shape=[?,4])\nsums = MatMul(x, w, T=float)\n"
    text += ends.get(told, "y = Softmax(sums, T=float)")
    pocketgraph.save(Graph([*parse(text), const("w", weights)]), tmp_path / "net.pb")
    sums = rows @ weights
    labels = (sums[:, 0] > 0).astype(np.int64) if width == 1 else sums.argmax(1)
    np.savez(tmp_path / "data.npz", x=rows, **({"labels": labels} if "score" in told.removeprefix("no ") else {}))
    seen: list[float | None] = []

    def quantized(*models: object, mode: str, max_accuracy_drop: float | None, **how: object) -> None:
        seen.extend([max_accuracy_drop] if mode == "static" else [])
        raise UsageError("not here")

    monkeypatch.setattr("pocketgraph.apps.shipping.ship.quantize", quantized)
    ship(tmp_path / "net.pb", tmp_path / "out", tmp_path / "data.npz")
    assert seen == [points]


def test_no_app_is_proposed_of_a_model_without_inputs(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pocketgraph.save(parse("w = Const(float [1, 2])\ny = Relu(w, T=float)"), tmp_path / "none.pb")
    assert call("ship", tmp_path / "none.pb", "-o", tmp_path / "out") == 0
    proposed = capsys.readouterr().out.partition("next:\n")[2]
    assert "pocketgraph view" in proposed
    assert "pocketgraph app" not in proposed
