"""``evaluate`` on data that tell classes, numbers, or what does not fit the model."""

from __future__ import annotations

import json
import pathlib
import time
from typing import Any

import numpy as np
import pytest
from PIL import Image

from command_line import call
from pocketgraph.datasets.class_labels import of_two
from pocketgraph.exporting import export
from pocketgraph.formats import save
from pocketgraph.graph import Graph, const
from pocketgraph.graph.dtype import INT8, INT32
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.quantization.evaluation.evaluator import evaluate
from pocketgraph.quantization.evaluation.runnable_models import GraphModel
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes

ROWS = np.random.default_rng(0).normal(size=(30, 8)).astype(np.float32)


def judged(capsys: Any, *arguments: object) -> list[dict[str, Any]]:
    assert call("evaluate", *arguments, "--json") == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def linear(path: pathlib.Path, results: int, *, weights: Any = None) -> np.ndarray[Any, Any]:
    """A model of ROWS @ weights; returns what it gives for ROWS."""
    weights = np.random.default_rng(results).normal(size=(8, results)) if weights is None else weights
    weights = weights.astype(np.float32)
    graph = parse("x = Placeholder(dtype=float, shape=[?,8])\ny = MatMul(x, w, T=float)")
    save(Graph([*graph, const("w", weights)]), path)
    made: np.ndarray[Any, Any] = ROWS @ weights
    return made


@pytest.mark.parametrize("results", [1, 3])
def test_a_model_of_numbers_is_judged_by_its_mean_error(tmp_path: pathlib.Path, capsys: Any, results: int) -> None:
    right = linear(tmp_path / "net.pb", results)
    off = np.where(np.arange(30) % 2, 0.5, 1.0).reshape(-1, 1)  # mean 0.75
    np.savez(tmp_path / "data.npz", x=ROWS, targets=right + off)
    (row,) = judged(capsys, tmp_path / "net.pb", "--data", tmp_path / "data.npz")
    assert row["true_error"] == pytest.approx(0.75, abs=1e-4)
    assert row["true_error_interval"] == [pytest.approx(0.655, abs=2e-3), pytest.approx(0.845, abs=2e-3)]
    assert "top1" not in row
    assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "data.npz") == 0
    assert "true error" in capsys.readouterr().out


@pytest.mark.parametrize("place", ["", "deep/net.tflite"])
def test_the_folder_around_a_file_of_eight_bits_is_fed_numbers_as_the_file_is(
    place: str, tmp_path: pathlib.Path, capsys: Any
) -> None:
    right = linear(tmp_path / "net.pb", 3)
    np.savez(tmp_path / "data.npz", x=ROWS, targets=right)
    file = tmp_path / "around" / "deep" / "net.tflite"
    file.parent.mkdir(parents=True)
    export(tmp_path / "net.pb", file, mode="static", io="uint8", samples={"x": ROWS})
    (row,) = judged(capsys, tmp_path / "around" / place, "--data", tmp_path / "data.npz")
    assert row["true_error"] < 0.02 * np.abs(right).max()
    assert row["bytes"] == file.stat().st_size


def test_a_table_tells_numbers_as_well(tmp_path: pathlib.Path, capsys: Any) -> None:
    right = linear(tmp_path / "net.pb", 1)
    np.savetxt(tmp_path / "rows.csv", np.hstack([ROWS, right + 2]), delimiter=",")
    (row,) = judged(capsys, tmp_path / "net.pb", "--data", tmp_path / "rows.csv")
    assert row["true_error"] == pytest.approx(2, abs=1e-4)


@pytest.mark.parametrize(("results", "is_judged_by_classes"), [("input", False), (8, True), (7, True)])
def test_what_stands_in_place_of_its_input_has_no_classes(
    tmp_path: pathlib.Path, capsys: Any, results: Any, is_judged_by_classes: bool
) -> None:
    """An autoencoder's largest number is no class, and the divergence of its numbers says nothing; scores of as many
    classes as there are features are no input."""
    principal = np.linalg.svd(ROWS, full_matrices=False)[2][:6]
    how = {"weights": principal.T @ principal} if results == "input" else {}
    for name in ("net.pb", "same.pb"):
        linear(tmp_path / name, 8 if how else results, **how)
    np.savez(tmp_path / "data.npz", x=ROWS)
    _, row = judged(capsys, tmp_path / "net.pb", tmp_path / "same.pb", "--data", tmp_path / "data.npz")
    assert ("agreement" in row, "kl" in row) == (is_judged_by_classes, is_judged_by_classes)
    assert row["mean_error"] == 0
    arguments = ["quantize", tmp_path / "net.pb", "--data", tmp_path / "data.npz", "-o", tmp_path / "x.tflite"]
    assert call(*arguments) == 0
    assert ("same best class" in capsys.readouterr().out) == is_judged_by_classes
    is_taken = call(*arguments, "--max-kl=10") == 0
    assert (is_taken, "no scores of classes" in capsys.readouterr().err) == (is_judged_by_classes, not is_taken)


def test_classes_in_rows_are_classes(tmp_path: pathlib.Path, capsys: Any) -> None:
    right = linear(tmp_path / "net.pb", 3).argmax(axis=1)
    np.savez(tmp_path / "data.npz", x=ROWS, labels=np.eye(3)[right])
    (row,) = judged(capsys, tmp_path / "net.pb", "--data", tmp_path / "data.npz")
    assert row["top1"] == 1
    assert "true_error" not in row
    assert "top5" not in row  # of three classes


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("cat\ndog\n", "has 2 lines, but the model gives 3 scores"),
        ("", "has 0 lines, but the model gives 3 scores"),
        ("cat\ndog\ncat\n", "has the class 'cat' 2 times"),
        ("ape\nbat\nelk\ncat\ndog\n", "'cat' is line 4 of 5 in the labels file, but the model gives 3 scores"),
        ("ape\nbat\nelk\n", "does not have the class 'cat'"),
    ],
)
def test_label_files_that_do_not_fit_are_refused(tmp_path: pathlib.Path, capsys: Any, lines: str, said: str) -> None:
    linear(tmp_path / "net.pb", 3)
    (tmp_path / "labels.txt").write_text(lines)
    np.savez(tmp_path / "data.npz", x=ROWS, labels=np.array(["cat", "dog"] * 15))
    flags = ["evaluate", tmp_path / "net.pb", "--data", tmp_path / "data.npz", "--labels", tmp_path / "labels.txt"]
    assert call(*flags) == 2
    printed = capsys.readouterr().err.strip().splitlines()
    assert len(printed) == 1
    assert said in printed[0]


def test_models_that_give_other_shapes_and_too_few_labels_are_refused(tmp_path: pathlib.Path, capsys: Any) -> None:
    linear(tmp_path / "net.pb", 3)
    linear(tmp_path / "other.pb", 4)
    np.savez(tmp_path / "data.npz", x=ROWS, labels=np.zeros(30))
    assert call("evaluate", tmp_path / "net.pb", tmp_path / "other.pb", "--data", tmp_path / "data.npz") == 2
    assert "its output is [1, 4]" in capsys.readouterr().err
    np.savez(tmp_path / "data.npz", x=ROWS, labels=np.float32(3))
    assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "data.npz") == 2
    assert "30 samples but only 1 label\n" in capsys.readouterr().err


def test_arrays_are_found_by_the_names_of_inputs_in_scopes(tmp_path: pathlib.Path, capsys: Any) -> None:
    graph = parse("""
        scope/a = Placeholder(dtype=float, shape=[?,8])
        scope/b = Placeholder(dtype=float, shape=[?,8])
        y = AddV2(scope/a, scope/b, T=float)
    """)
    save(graph, tmp_path / "net.pb")
    for names in (("scope/a", "scope/b"), ("scope_a", "scope_b"), ("in_scope_a_0", "in_scope_b_0"), ("b", "scope_b")):
        np.savez(tmp_path / "data.npz", **dict.fromkeys(names, ROWS))
        code = call("evaluate", tmp_path / "net.pb", tmp_path / "net.pb", "--data", tmp_path / "data.npz")
        assert code == (2 if names[0] == "b" else 0)
    assert "there is no array for the input 'scope/a:0'; there are b, scope_b" in capsys.readouterr().err


def test_arrays_are_found_by_names_of_tensors_and_by_keys_of_a_signature(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        serving_default_a = Placeholder(dtype=float, shape=[?,8])
        b = Placeholder(dtype=float, shape=[?,8])
        y = AddV2(serving_default_a, b, T=float)
    """)
    save(graph, tmp_path / "net.pb")
    for names in (("serving_default_a:0", "b:0"), ("a", "b"), ("a:0", "b")):
        np.savez(tmp_path / "data.npz", **dict.fromkeys(names, ROWS))
        assert call("evaluate", tmp_path / "net.pb", tmp_path / "net.pb", "--data", tmp_path / "data.npz") == 0


def test_outputs_of_a_litert_file_are_chosen_by_the_graphs_names(tmp_path: pathlib.Path, capsys: Any) -> None:
    rng = np.random.default_rng(0)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,8])
        h = MatMul(x, a, T=float)
        r = Relu(h, T=float)
        scores = MatMul(r, b, T=float)
        boxes = MatMul(r, c, T=float)
    """)
    shapes = {"a": (8, 32), "b": (32, 3), "c": (32, 4)}
    extra = [const(name, rng.normal(size=shape).astype(np.float32)) for name, shape in shapes.items()]
    save(Graph([*graph, *extra]), tmp_path / "net.pb")
    np.savez(tmp_path / "data.npz", x=ROWS)
    both, files = "--outputs=scores,boxes", [tmp_path / "net.pb", tmp_path / "net.tflite"]
    assert call("quantize", files[0], "--calibrate", tmp_path / "data.npz", "-o", files[1], both) == 0
    capsys.readouterr()
    for outputs in ("scores", "boxes", "boxes,scores"):
        found = judged(capsys, *files, "--data", tmp_path / "data.npz", f"--outputs={outputs}")
        assert found[1]["snr_db"] > 25


def test_a_graph_that_was_fixed_stands_beside_one_that_is_fed(tmp_path: pathlib.Path, capsys: Any) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,8])
        keep = Placeholder(dtype=float, shape=[])
        m = MatMul(x, w, T=float)
        y = Mul(m, keep, T=float)
    """)
    weights = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    save(Graph([*graph, const("w", weights)]), tmp_path / "net.pb")
    np.savez(tmp_path / "data.npz", x=ROWS)
    feed = "--feed=keep=1.0"
    assert (
        call("quantize", tmp_path / "net.pb", "--calibrate", tmp_path / "data.npz", "-o", tmp_path / "q.pb", feed) == 0
    )
    capsys.readouterr()
    found = judged(capsys, tmp_path / "net.pb", tmp_path / "q.pb", "--data", tmp_path / "data.npz", feed)
    assert found[1]["snr_db"] > 30


@pytest.mark.parametrize(("scale", "doubted"), [(0.001, "gives the same answer for 60 of 60"), (1.0, "")])
def test_answers_that_are_always_the_same_are_doubted(
    tmp_path: pathlib.Path, capsys: Any, scale: float, doubted: str
) -> None:
    """Inputs that are scaled wrongly leave the biases to decide."""
    rows = np.random.default_rng(1).normal(size=(60, 8)).astype(np.float32)
    weights = np.random.default_rng(3).normal(size=(8, 3)).astype(np.float32)
    graph = parse(
        "x = Placeholder(dtype=float, shape=[?,8])\nscores = MatMul(x, w, T=float)\ny = Add(scores, b, T=float)"
    )
    save(Graph([*graph, const("w", weights), const("b", np.float32([0, 0.1, 0]))]), tmp_path / "net.pb")
    np.savez(tmp_path / "data.npz", x=rows * scale, labels=(rows @ weights).argmax(axis=1))
    assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "data.npz") == 0
    told = capsys.readouterr().err
    assert (doubted in told) if doubted else not told


def test_few_samples_of_known_classes_are_enough_to_doubt_one_answer_for_all(
    tmp_path: pathlib.Path, capsys: Any
) -> None:
    """Without classes they may be of one."""
    graph = parse("x = Placeholder(dtype=float, shape=[?,3])\nb = Const(float [0, 9, 0])\ny = Add(x, b, T=float)")
    save(graph, tmp_path / "net.pb")
    rows = np.random.default_rng(1).normal(size=(8, 3)).astype(np.float32)
    np.savez(tmp_path / "told.npz", x=rows, labels=[0, 1, 2, 0, 1, 2, 0, 1])
    np.savez(tmp_path / "untold.npz", x=rows)
    for name, is_doubted in (("told", True), ("untold", False)):
        assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / f"{name}.npz") == 0
        assert ("gives the same answer for 8 of 8 samples" in capsys.readouterr().err) == is_doubted


def test_answers_that_are_right_by_chance_are_doubted(tmp_path: pathlib.Path, capsys: Any) -> None:
    linear(tmp_path / "net.pb", 3)
    np.savez(tmp_path / "data.npz", x=ROWS, labels=np.random.default_rng(5).integers(0, 3, 30))
    assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "data.npz") == 0
    told = capsys.readouterr().err
    assert "guessing among 3 classes would be in 33.3%" in told
    assert "If so, the model itself is poor on these samples" in told


def test_one_score_tells_two_classes_apart(tmp_path: pathlib.Path, capsys: Any) -> None:
    """A sigmoid's score is the share of the second class; rows of which the sum is positive are of it."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        w = Const(float [[1],[1],[1],[1]])
        score = MatMul(x, w, T=float)
        y = Sigmoid(score, T=float)
    """)
    save(graph, tmp_path / "net.pb")
    rows = np.random.default_rng(2).normal(size=(40, 4)).astype(np.float32)
    classes = (rows.sum(axis=1) > 0).astype(int)
    classes[:4] = 1 - classes[:4]
    np.savez(tmp_path / "data.npz", x=rows, labels=np.array(["bad", "good"])[classes])
    (tmp_path / "labels.txt").write_text("bad\ngood\n")
    flags = ["--data", tmp_path / "data.npz", "--labels", tmp_path / "labels.txt"]
    assert call("evaluate", tmp_path / "net.pb", *flags) == 0
    assert "90.00%" in capsys.readouterr().out
    assert call("evaluate", tmp_path / "net.pb", *flags, "--outputs=score") == 0  # a logit, above 0 for the second
    assert "90.00%" in capsys.readouterr().out
    (tmp_path / "labels.txt").write_text("bad\ngood\nugly\n")
    assert call("evaluate", tmp_path / "net.pb", *flags) == 2
    assert "gives 1 score; --outputs names that of a sigmoid, which tells two classes apart" in capsys.readouterr().err


@pytest.mark.parametrize("labels", [np.array(["bad", "good"]), np.arange(2), np.float32([0, 1])])
@pytest.mark.parametrize("output", ["y", "score"])
def test_labels_of_two_classes_judge_one_score(labels: Any, output: str, tmp_path: pathlib.Path) -> None:
    """A share is above 0.5 for the second class, a logit above 0; of ten wrong labels each is a wrong answer."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        w = Const(float [[1],[1],[1],[1]])
        score = MatMul(x, w, T=float)
        y = Sigmoid(score, T=float)
    """).replace(outputs=[output])
    rows = np.random.default_rng(2).normal(size=(100, 4)).astype(np.float32)
    classes = (rows.sum(axis=1) > 0).astype(int)
    classes[:10] = 1 - classes[:10]
    export(graph, tmp_path / "net.tflite", mode="float16")
    found = evaluate([graph, tmp_path / "net.tflite"], {"x": rows, "labels": labels[classes]})
    for row in found:
        assert row.accuracy is not None
        assert row.accuracy.top1 == 0.9
    assert found[1].comparison is not None
    assert found[1].comparison.agreement == 1


def test_what_gives_nan_is_named(tmp_path: pathlib.Path, capsys: Any) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,2])
        w = Const(float [[1,1],[1,-1]])
        dense = MatMul(x, w, T=float)
        log = Log(dense, T=float)
        y = Neg(log, T=float)
    """)
    save(graph, tmp_path / "net.pb")
    rows = np.float32([[3, 1], [2, 1], [1, 2], [5, 2], [1, 3]])  # the logarithm of 1 - 2, and of 1 - 3
    np.savez(tmp_path / "rows.npz", x=rows)
    assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "rows.npz") == 0
    told = capsys.readouterr().err
    assert "net.pb gives NaN or infinity for 2 of 5 samples, the first is number 3 of those judged" in told
    assert "it begins in 'log' (Log), behind the layer 'dense'" in told


def test_where_nan_begins_is_found_for_inputs_in_another_order_than_the_data(tmp_path: pathlib.Path) -> None:
    """A model of more open sizes than another says what is read, in its own order of inputs."""
    lines = {"a": "a = Placeholder(dtype=float, shape=[SIZE,2])", "b": "b = Placeholder(dtype=float, shape=[SIZE,2])"}
    for name, order, size in (("first", "ab", "?"), ("second", "ba", "2")):
        inputs = "\n".join(lines[key].replace("SIZE", size) for key in order)
        rest = "root = Sqrt(a, T=float)\nlog = Log(b, T=float)\ny = Add(root, log, T=float)"
        save(parse(f"{inputs}\n{rest}"), tmp_path / f"{name}.pb")
    ones = np.ones((3, 2), np.float32)
    data = {"a": ones, "b": np.where(np.arange(3)[:, None] == 1, -ones, ones)}
    found = evaluate([tmp_path / "first.pb", tmp_path / "second.pb"], data)
    assert any("it begins in 'log' (Log)" in note for note in found.notes)


def test_scores_that_are_masked_by_infinity_are_compared() -> None:
    """Both models mask the same: what is left is compared, and NaN is not."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,3])
        mask = Const(float [0,-inf,0])
        logits = AddV2(x, mask, T=float)
    """)
    rows = np.random.default_rng(1).normal(size=(20, 3)).astype(np.float32)
    found = evaluate([graph, graph], {"x": rows})
    assert found[1].comparison is not None
    assert found[1].comparison.snr == np.inf
    assert found[1].comparison.mean_error == 0
    assert not found[0].doubt


def test_numbers_that_are_no_scores_are_not_judged_by_two_classes() -> None:
    """What leaves 0 to 1 behind no layer, the layer of one output of several, and labels that are two stars of five."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        w = Const(float [[1],[1],[1],[1]])
        age = MatMul(x, w, T=float)
        rating = Exp(age, T=float)
    """)
    rows = np.random.default_rng(2).normal(size=(40, 4)).astype(np.float32)
    labels = (rows.sum(axis=1) > 0).astype(int)
    for outputs, given in ((["rating"], labels), (["age", "rating"], labels), (["age"], labels + 1)):
        found = evaluate(graph, {"x": rows, "labels": given}, outputs=outputs)
        assert found[0].accuracy is None
        assert (found[0].errors is not None) == (given.max() == 2)  # numbers that are wanted; 0 and 1 are classes


def test_classes_do_not_judge_what_was_fed_once_more() -> None:
    """As an autoencoder gives it, of which labels say what is odd: there is no score of such a class."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,6])
        share = Const(float 0.2)
        y = Mul(x, share, T=float)
    """)
    rows = np.random.default_rng(2).normal(size=(30, 6)).astype(np.float32)
    found = evaluate(graph, {"x": rows, "labels": np.arange(30) % 2})
    assert found[0].accuracy is None


@pytest.mark.parametrize(("name", "scale"), [("logits", 1), ("y", 4)])
def test_classes_judge_as_many_logits_as_there_are_features(name: str, scale: float) -> None:
    """Of which the data have a few: a name says that they are scores, or how far they are from what was fed."""
    turned = (np.roll(np.eye(6), 1, axis=1) * scale).tolist()
    graph = parse(
        f"x = Placeholder(dtype=float, shape=[?,6])\nw = Const(float {turned})\n{name} = MatMul(x, w, T=float)"
    )
    rows = np.random.default_rng(2).normal(size=(80, 6)).astype(np.float32)
    right = np.roll(rows, 1, axis=1).argmax(axis=1)
    found = evaluate(graph, {"x": rows[right < 2], "labels": right[right < 2]})
    assert found[0].accuracy is not None
    assert found[0].accuracy.top1 == 1


def test_a_line_that_was_fitted_to_0_and_1_is_no_logit() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,1])
        w = Const(float [[1]])
        y = MatMul(x, w, T=float)
    """)
    scores = np.float32([-0.1, 0.1, 0.2, 0.4, 0.7, 0.9, 1.1, 0.8]).reshape(-1, 1)
    found = evaluate(graph, {"x": scores, "labels": np.int64([0, 0, 0, 0, 1, 1, 1, 1])})
    assert found[0].accuracy is not None
    assert found[0].accuracy.top1 == 1


def test_shares_of_two_named_classes() -> None:
    np.testing.assert_allclose(of_two(np.float32([[0.25]]), ["bad", "good"]), [0.75, 0.25])
    np.testing.assert_allclose(of_two(np.float32([3]), ["bad", "good"]), [0.0474259, 0.952574], rtol=1e-5)
    np.testing.assert_allclose(of_two(np.float32([0.5]), ["bad", "good"], is_logit=True)[1], 0.6224593, rtol=1e-5)
    for scores, names in (
        (np.float32([0.25]), ["a"]),
        (np.int64([1]), ["a", "b"]),
    ):
        assert of_two(scores, names) is scores


def test_a_scaling_with_which_more_answers_are_right_is_named(tmp_path: pathlib.Path, capsys: Any) -> None:
    """A network that was trained with pixels from -1 to 1, which nothing in it shows."""
    for name, low in (("bright", 160), ("dark", 20)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for at in range(15):
            pixels = np.full((8, 8, 3), low + 5 * at, np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{at}.png")
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,8,8,3])
        axes = Const(int32 [1, 2])
        means = Mean(x, axes, T=float, Tidx=int32)
        scores = MatMul(means, w, T=float)
        y = Softmax(scores, T=float)
    """)
    save(Graph([*graph, const("w", np.float32([[3, -3]] * 3))]), tmp_path / "net.pb")
    arguments = ("evaluate", tmp_path / "net.pb", "--data", tmp_path / "photos")
    assert call(*arguments) == 0
    captured = capsys.readouterr()
    assert "--input_mean=127.5 --input_std=127.5: 100% of 30 answers are right so, and 50%" in captured.err
    assert "50.00%" in captured.out
    assert call(*arguments, "--input_mean=127.5", "--input_std=127.5") == 0
    captured = capsys.readouterr()
    assert "is the scaling right" not in captured.err
    assert "100.00%" in captured.out


def test_a_model_is_judged_by_its_scores_not_by_the_names_of_classes_beside_them(
    tmp_path: pathlib.Path, capsys: Any
) -> None:
    """As an estimator's signature has them, in the order of the alphabet."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,3])
        shares = Softmax(x, T=float)
        axis = Const(int32 1)
        place = ArgMax(shares, axis, T=float, Tidx=int32, output_type=int64)
        names = AsString(place, T=int64)
    """).replace(inputs=("x",), outputs=("names", "place", "shares"))

    found = evaluate(graph, {"x": np.eye(3, dtype=np.float32), "labels": np.int64([0, 1, 1])})
    assert found[0].accuracy is not None
    assert found[0].accuracy.top1 == 2 / 3


@pytest.mark.parametrize("samples", [1, 3])
def test_the_time_of_few_samples_is_not_that_of_a_first_run(
    samples: int, tmp_path: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, runs, passed = GraphModel.run, [], [0.0]

    def slow_at_first(self: GraphModel, sample: Any) -> Any:
        runs.append(sample)
        passed[0] += 0.2 if len(runs) <= samples else 0.001
        return answer(self, sample)

    monkeypatch.setattr(GraphModel, "run", slow_at_first)
    monkeypatch.setattr(time, "perf_counter", lambda: passed[0])
    save(parse("x = Placeholder(dtype=float, shape=[1, 4])\ny = Softmax(x, T=float)"), tmp_path / "net.pb")
    np.savez(tmp_path / "data.npz", x=np.eye(4, dtype=np.float32)[:samples])
    (row,) = judged(capsys, tmp_path / "net.pb", f"--data={tmp_path / 'data.npz'}")
    assert row["milliseconds"] == pytest.approx(1)


@pytest.mark.parametrize(("scale", "zero", "low"), [(1 / 127.5, -1, "-1"), (1.0, -128, "0")])
def test_an_eight_bit_file_that_says_nothing_of_pictures_gets_them_as_its_codes_show(
    scale: float, zero: int, low: str, tmp_path: pathlib.Path, capsys: Any
) -> None:
    coding = Quantization((scale,), (zero,))
    pixels, means = Value("x", INT8, (1, 8, 8, 3), None, coding), Value("y", INT8, (1, 3), None, coding)
    axes = Value("axes", INT32, (2,), Constant.of(np.array([1, 2], np.int32)))
    program = Program([pixels], [means], [Operation("MEAN", [pixels, axes], [means], {"keep_dims": False})])
    (tmp_path / "net.tflite").write_bytes(model_bytes(program))
    for at, name in enumerate(("blue", "green", "red")):
        (tmp_path / "data" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8), tuple(90 * (2 - at == channel) + 60 for channel in range(3))).save(
            tmp_path / "data" / name / "0.png"
        )
    (tmp_path / "labels.txt").write_text("red\ngreen\nblue\n")
    how = (f"--data={tmp_path / 'data'}", f"--labels={tmp_path / 'labels.txt'}")
    assert call("evaluate", tmp_path / "net.tflite", *how) == 0
    captured = capsys.readouterr()
    assert "100.00%" in captured.out
    assert f"the graph takes pixels from {low} to {'1' if low == '-1' else '255'}, as 'x' shows" in captured.err


def series_of_any_length(path: pathlib.Path) -> None:
    """A model of the pairs of a series, open along it, whose answer is the mean of what it makes of them."""
    weights = np.random.default_rng(5).normal(size=(1, 2, 4, 6)).astype(np.float32)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,?,4])
        rows = ExpandDims(x, axis, T=float)
        found = Conv2D(rows, w, T=float, strides=[1, 1, 1, 1], padding="VALID")
        y = Mean(found, axes, T=float, keep_dims=false)
        axis = Const(int32 1)
        axes = Const(int32 [1, 2])
    """)
    save(Graph([*graph, const("w", weights)]), path)


def test_sizes_that_a_model_leaves_open_can_be_said(tmp_path: pathlib.Path, capsys: Any) -> None:
    """By ``evaluate`` and ``quantize`` as by ``ship`` and ``export``; rows of a table tell no length."""
    series_of_any_length(tmp_path / "net.pb")
    rows = np.random.default_rng(6).normal(size=(30, 12)).astype(np.float32)
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",")
    for shape in ("1,3,4", "x:1,3,4"):
        given = ("--data", tmp_path / "rows.csv", "--input_shape", shape)
        made = tmp_path / "small.tflite"
        assert call("quantize", tmp_path / "net.pb", *given, "-o", made) == 0
        capsys.readouterr()
        _, second = judged(capsys, tmp_path / "net.pb", made, *given)
        assert second["agreement"] > 0.8
    assert call("quantize", tmp_path / "net.pb", "--mode=weights", "-o", made, "--input_shape=1,5,4") == 0
    assert "leaves sizes" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("serie:1,3,4", "the graph has no node 'serie'"),
        ("1,3,5", "=x:1,3,5 does not fit: 'x' is [?,?,4]; numbers can be given only where"),
        ("axis:1", "the model has no input 'axis'"),
        ("a,b", "is not NAME:1,224,224,3"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(tmp_path: pathlib.Path, capsys: Any, said: str, words: str) -> None:
    series_of_any_length(tmp_path / "net.pb")
    np.savetxt(tmp_path / "rows.csv", np.ones((4, 12)), delimiter=",")
    assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "rows.csv", "--input_shape", said) == 2
    assert words in capsys.readouterr().err


def test_files_of_litert_have_their_sizes(tmp_path: pathlib.Path, capsys: Any) -> None:
    series_of_any_length(tmp_path / "net.pb")
    np.savetxt(tmp_path / "rows.csv", np.ones((4, 12)), delimiter=",")
    made = tmp_path / "small.tflite"
    assert call("quantize", tmp_path / "net.pb", "--mode=weights", "-o", made, "--input_shape=1,3,4") == 0
    assert call("evaluate", made, "--data", tmp_path / "rows.csv", "--input_shape=1,3,4") == 2
    assert "--input_shape is for graphs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("order", "told"),
    [
        ((2, 1, 0), "100.0% would be if the labels had another order: score 0 is of red, 2 is of blue, counted from 0"),
        ((1, 2, 0), "another order: score 0 is of green, 1 is of red, 2 is of blue, counted from 0. --labels takes"),
        ((0, 1, 2), ""),
    ],
)
def test_labels_in_another_order_than_the_scores_are_named(
    tmp_path: pathlib.Path, capsys: Any, order: tuple[int, ...], told: str
) -> None:
    """Folders are in the order of the alphabet, and a training may have had another."""
    answers = linear(tmp_path / "net.pb", 3).argmax(axis=1)
    names = np.array(["blue", "green", "red"])
    np.savez(tmp_path / "data.npz", x=ROWS, labels=names[np.array(order)[answers]])
    assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "data.npz") == 0
    said = capsys.readouterr().err
    assert (told in said and "train it longer" not in said) if told else "another order" not in said
    meant = "\n".join(names[list(order)])
    (tmp_path / "labels.txt").write_text(meant)
    assert (
        call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "data.npz", "--labels", tmp_path / "labels.txt") == 0
    )
    printed = capsys.readouterr()
    assert "100.00%" in printed.out
    assert "another order" not in printed.err


def test_two_rare_classes_that_are_mixed_up_once_are_no_other_order(tmp_path: pathlib.Path, capsys: Any) -> None:
    linear(tmp_path / "net.pb", 8, weights=np.eye(8))
    given = np.array([*range(6)] * 10 + [6, 7])
    right = np.array([*range(6)] * 10 + [7, 6])
    np.savez(tmp_path / "data.npz", x=np.eye(8, dtype=np.float32)[given], labels=right)
    assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "data.npz") == 0
    said = capsys.readouterr()
    assert "96.77%" in said.out
    assert "another order" not in said.err


@pytest.mark.parametrize(("right", "is_doubted"), [(4, True), (10, False)])
def test_few_samples_that_guessing_would_get_right_as_often_are_doubted(
    tmp_path: pathlib.Path, capsys: Any, right: int, is_doubted: bool
) -> None:
    """Nineteen samples of four classes: a guesser gets 4.75 of them right."""
    answers = linear(tmp_path / "net.pb", 4)[:19].argmax(axis=1)
    labels = np.where(np.arange(19) < right, answers, (answers + 1) % 4)
    np.savez(tmp_path / "data.npz", x=ROWS[:19], labels=labels)
    assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "data.npz") == 0
    assert ("guessing among 4 classes" in capsys.readouterr().err) is is_doubted
    np.savez(tmp_path / "data.npz", x=ROWS[:4], labels=labels[-4:])  # four say nothing
    assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "data.npz") == 0
    assert "guessing" not in capsys.readouterr().err


def test_pictures_of_another_size_than_trained_on_are_a_reason_for_doubt(tmp_path: pathlib.Path, capsys: Any) -> None:
    rng = np.random.default_rng(3)
    for name in "abc":
        (tmp_path / "photos" / name).mkdir(parents=True)
        for at in range(7):
            Image.fromarray(rng.integers(0, 256, (12, 16, 3), np.uint8)).save(tmp_path / "photos" / name / f"{at}.png")
    text = """
        x = Placeholder(dtype=float, shape=[?,{size},3])
        means = Mean(x, axes, T=float, Tidx=int32, keep_dims=false)
        axes = Const(int32 [1, 2])
        scores = MatMul(means, w, T=float)
        y = Softmax(scores, T=float)
    """
    weights = rng.normal(size=(3, 3)).astype(np.float32)
    for size, is_told in (("?,?", True), ("12,16", False)):
        save(Graph([*parse(text.format(size=size)), const("w", weights)]), tmp_path / "net.pb")
        assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "photos") == 0
        told = capsys.readouterr().err
        assert ("was the model trained on pictures of 16 x 12 (--input_width, --input_height" in told) is is_told, told


def test_labels_do_not_judge_answers_for_each_place(tmp_path: pathlib.Path, capsys: Any) -> None:
    save(parse("x = Placeholder(dtype=float, shape=[1,4,4,3])\ny = Softmax(x, T=float)"), tmp_path / "net.pb")
    np.savez(tmp_path / "data.npz", x=np.zeros((3, 4, 4, 3), np.float32))
    (tmp_path / "labels.txt").write_text("a\nb\nc\n")
    ends = ("--data", tmp_path / "data.npz")
    assert call("evaluate", tmp_path / "net.pb", *ends, "--labels", tmp_path / "labels.txt") == 2
    told = capsys.readouterr().err
    assert "answers for each place of a sample, so labels do not judge them; leave --labels out" in told
    assert call("evaluate", tmp_path / "net.pb", *ends) == 0


def test_a_second_model_with_its_inputs_in_another_order(tmp_path: pathlib.Path, capsys: Any) -> None:
    lines = ["a = Placeholder(dtype=float, shape=[?,1])", "b = Placeholder(dtype=float, shape=[?,1])"]
    steps = [
        "minus = Neg(b, T=float)",
        "shares = ConcatV2(a, minus, axis, N=2, T=float)",
        "p = Softmax(shares, T=float)",
    ]
    for name, order in (("one.pb", lines), ("other.pb", lines[::-1])):
        graph = parse("\n".join([*order, *steps[:1], "axis = Const(int32 1)", *steps[1:]]))
        save(graph, tmp_path / name)
    assert call("export", tmp_path / "other.pb", "-o", tmp_path / "other.tflite") == 0
    capsys.readouterr()
    a, b = np.random.default_rng(3).normal(size=(2, 40, 1)).astype(np.float32)
    np.savez(tmp_path / "data.npz", a=a, b=b, labels=np.where(a > -b, 0, 1).ravel())
    table = np.hstack([b, a, np.where(a > -b, 0, 1)])
    np.savetxt(tmp_path / "data.csv", table, delimiter=",", header="b,a,label", comments="")
    for data in ("data.npz", "data.csv"):
        files = [tmp_path / name for name in ("one.pb", "other.pb", "other.tflite")]
        for row in judged(capsys, *files, "--data", tmp_path / data):
            assert row["top1"] == 1.0, (data, row)


def test_a_class_of_each_sample_does_not_judge_answers_for_its_places(tmp_path: pathlib.Path, capsys: Any) -> None:
    save(parse("x = Placeholder(dtype=float, shape=[?,4,3])\nhidden = Tanh(x, T=float)"), tmp_path / "net.pb")
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(0).normal(size=(30, 4, 3)), labels=np.arange(30) % 2)
    (row,) = judged(capsys, tmp_path / "net.pb", "--data", tmp_path / "data.npz")
    assert row.get("top1") is None
    assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "data.npz") == 0
    assert "answers for each place of a sample, so the classes of" in capsys.readouterr().err


def test_actions_are_numbers_unless_labels_say_that_they_are_classes(tmp_path: pathlib.Path, capsys: Any) -> None:
    for name in ("action", "class_score"):
        save(parse(f"x = Placeholder(dtype=float, shape=[?,3])\n{name} = Tanh(x, T=float)"), tmp_path / f"{name}.pb")
    x = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    np.savez(tmp_path / "seen.npz", x=2 * x + 1)
    np.savez(tmp_path / "labelled.npz", x=2 * x + 1, labels=x.argmax(1))
    for name, has_classes in (("action", False), ("class_score", True)):
        _, row = judged(capsys, *[tmp_path / f"{name}.pb"] * 2, "--data", tmp_path / "seen.npz")
        assert ("agreement" in row and row["agreement"] is not None) == has_classes
        assert row["mean_error"] == 0
    _, row = judged(capsys, *[tmp_path / "action.pb"] * 2, "--data", tmp_path / "labelled.npz")
    assert (row["top1"], row["agreement"]) == (1.0, 1.0)


def test_texts_are_not_judged(tmp_path: pathlib.Path, capsys: Any) -> None:
    save(parse("x = Placeholder(dtype=float, shape=[?,5])\nwords = AsString(x, T=float)"), tmp_path / "texts.pb")
    np.savez(tmp_path / "data.npz", x=np.ones((20, 5), np.float32))
    path = str(tmp_path / "texts.pb")
    assert call("evaluate", path, path, f"--data={tmp_path / 'data.npz'}") == 2
    assert "the output is of texts, and numbers are judged; name the numbers" in capsys.readouterr().err


def test_what_is_missing_is_said_before_a_model_is_read(tmp_path: pathlib.Path, capsys: Any) -> None:
    (tmp_path / "damaged.pb").write_bytes(b"damaged")
    np.save(tmp_path / "rows.npy", ROWS)
    for command in (("evaluate",), ("quantize", "-o", tmp_path / "small.tflite")):
        assert call(*command, tmp_path / "damaged.pb", f"--data={tmp_path / 'none.npz'}") == 1
        assert "none.npz: the data cannot be read" in capsys.readouterr().err
        there = (f"--data={tmp_path / 'rows.npy'}", f"--labels={tmp_path / 'none.txt'}")
        assert call(*command, tmp_path / "damaged.pb", *there) == 1
        assert "none.txt: the labels cannot be read" in capsys.readouterr().err


def test_a_list_names_the_line_of_a_file_that_is_not_there(tmp_path: pathlib.Path, capsys: Any) -> None:
    linear(tmp_path / "model.pb", 3)
    (tmp_path / "labels.txt").write_text("# names\nred\nblue\n")
    assert call("evaluate", tmp_path / "model.pb", f"--data={tmp_path / 'labels.txt'}") == 1
    assert "labels.txt: line 2: there is no file 'red'; a list has the path of" in capsys.readouterr().err
    (tmp_path / "boxes.json").write_text('{"images": []}')
    assert call("evaluate", tmp_path / "model.pb", f"--data={tmp_path / 'boxes.json'}") == 1
    assert "boxes.json: this looks like JSON, and is no list of files; a list of files is" in capsys.readouterr().err


@pytest.mark.parametrize("has_graph", [True, False])
def test_of_several_outputs_the_one_that_the_data_are_of_is_judged(has_graph: bool, tmp_path: pathlib.Path) -> None:
    """Tags that are right in all samples; by the classes, the first output, they would be no answers at all."""
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=(8, size)).astype(np.float32) for name, size in (("a", 3), ("b", 5))}
    nodes = parse("""
        x = Placeholder(dtype=float, shape=[?,8])
        first = MatMul(x, a, T=float)
        classes = Softmax(first, T=float)
        second = MatMul(x, b, T=float)
        tags = Sigmoid(second, T=float)
    """)
    graph = Graph([*nodes, *(const(*item) for item in weights.items())], outputs=["classes", "tags"])
    export(graph, tmp_path / "heads.tflite")
    told: list[str] = []
    models = [graph, tmp_path / "heads.tflite"] if has_graph else [tmp_path / "heads.tflite"]
    for row in evaluate(models, {"x": ROWS, "labels": (ROWS @ weights["b"] > 0) * 1.0}, notify=told.append):
        assert row.tags is not None
        assert row.tags.f1 == 1
    assert told == ["judged by 'tags', which the data are of; outputs chooses another"]
    told.clear()
    for row in evaluate(models, {"x": ROWS, "labels": (ROWS @ weights["a"]).argmax(axis=1)}, notify=told.append):
        assert row.accuracy is not None
        assert row.accuracy.top1 == 1
    assert not told
