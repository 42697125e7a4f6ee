"""A classifier of the rows of a table: of columns alone, and on a base that takes rows."""

from __future__ import annotations

import csv
import pathlib
import shlex

import numpy as np
import pytest

from command_line import call
from pocketgraph.apps.retraining.fine_tuning import Tuning
from pocketgraph.apps.retraining.tool import retrain
from pocketgraph.errors import FormatError, PocketgraphError, UsageError
from pocketgraph.formats import load, save
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime import Session
from support import with_weights

KINDS = ("crow", "kite", "wren")
CENTERS = np.array([[500.0, 90, 45], [800, 150, 60], [10, 14, 10]])


def birds(count: int = 240, seed: int = 0) -> tuple[Array, list[str]]:
    """Weight, span and length of birds, whose columns are of very different size; and which they are."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, 3, count)
    return CENTERS[which] * rng.normal(1, 0.15, (count, 3)), [KINDS[number] for number in which]


def write_csv(path: pathlib.Path, rows: Array, kinds: list[str], head: str = "g,span,length,class") -> pathlib.Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head.split(","))
        writer.writerows([*map(float, row), kind] for row, kind in zip(rows, kinds, strict=True))
    return path


@pytest.fixture
def table(tmp_path: pathlib.Path) -> pathlib.Path:
    return write_csv(tmp_path / "birds.csv", *birds())


def test_a_table_needs_no_base(table: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "birds.pb"
    assert call("retrain", f"--image_dir={table}", f"--output_graph={out}") == 0
    said = capsys.readouterr().out
    assert "3 classes, " in said
    rows, kinds = birds(60, seed=1)
    labels = (tmp_path / "labels.txt").read_text().split()
    assert labels == sorted(KINDS)
    with Session(load(out)) as session:
        (scores,) = session.run("final_result", {"row": rows.astype(np.float32)})
    right = np.mean([labels[number] == kind for number, kind in zip(scores.argmax(1), kinds, strict=True)])
    assert right > 0.95
    assert "surest mistakes" in (tmp_path / "birds.html").read_text()
    commands = [line.split()[1:] for line in said.splitlines() if line.startswith("  pocketgraph ")]
    assert [words[0] for words in commands] == ["evaluate", "export"]
    for words in commands:
        assert call(*shlex.split(shlex.join(words))) == 0


def test_columns_are_made_alike_by_the_rows_that_train(table: pathlib.Path) -> None:
    made = retrain(None, table, testing=20, validation=0)
    rows, _ = birds()
    with Session(made.graph) as session:
        (alike,) = session.run("columns/alike", {"row": rows.astype(np.float32)})
    scale, mean = (made.graph[f"columns/{name}"].tensor.numpy() for name in ("scale", "mean"))
    np.testing.assert_allclose(alike, (rows - mean) * scale, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean, rows.mean(axis=0), rtol=0.1)
    np.testing.assert_allclose(1 / scale, rows.std(axis=0), rtol=0.15)


def test_arrays_and_tables_give_the_same_bytes_each_time(table: pathlib.Path, tmp_path: pathlib.Path) -> None:
    rows, kinds = birds()
    np.savez(tmp_path / "birds.npz", x=rows, labels=np.array(kinds))
    made = []
    for place in (table, table, tmp_path / "birds.npz"):
        save(retrain(None, place).graph, tmp_path / "out.pb")
        made.append((tmp_path / "out.pb").read_bytes())
    assert made[0] == made[1] == made[2]


def test_equal_rows_stay_on_one_side_wherever_they_stand(tmp_path: pathlib.Path) -> None:
    from pocketgraph.apps.retraining.table_features import examples_of_table, read_table

    rows, kinds = birds()
    sides = []
    for order in (np.arange(240), np.random.default_rng(2).permutation(240)):
        both = np.concatenate([order, order])
        path = write_csv(tmp_path / "t.csv", rows[both], [kinds[number] for number in both])
        data = read_table(str(path), None)
        _, examples = examples_of_table(data, testing=10, validation=10, warn=lambda text: None)
        sides.append(dict(zip(map(tuple, np.round(rows[both], 6)), [one.category for one in examples], strict=True)))
        assert [one.category for one in examples[:240]] == [one.category for one in examples[240:]]
    assert sides[0] == sides[1]
    assert set(sides[0].values()) == {"training", "testing", "validation"}


def rows_base() -> Graph:
    """A net of rows whose second layer gives way to a new one."""
    text = """
        x = Placeholder(dtype=float, shape=[?, 3])
        by = Const(float[3] [0.002, 0.01, 0.02])
        even = Mul(x, by, T=float)
        w1 = Const(float [0.0])
        inner = MatMul(even, w1, T=float, transpose_a=false, transpose_b=false)
        bent = Relu(inner, T=float)
        w2 = Const(float [0.0])
        scores = MatMul(bent, w2, T=float, transpose_a=false, transpose_b=false)
    """
    rng = np.random.default_rng(0)
    made = {"w1": rng.normal(0, 1, (3, 16)), "w2": rng.normal(0, 1, (16, 2))}
    tables = {name: table.astype(np.float32) for name, table in made.items()}
    return with_weights(text, **tables)


@pytest.mark.parametrize("tuning", [None, Tuning(1, steps=60)])
def test_a_base_that_takes_rows(table: pathlib.Path, tuning: Tuning | None) -> None:
    made = retrain(rows_base(), table, tuning=tuning)
    assert made.cut.tensor == "bent:0"
    assert made.accuracy["testing"] > 0.85
    changed = not np.array_equal(made.graph["w1"].tensor.numpy(), rows_base()["w1"].tensor.numpy())
    assert changed == (tuning is not None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n1,x\n2,x\n", "one class alone, 'x'"),
        ("a,b,class\n1,2,x\n1,oops,y\n", "row 2 has 'oops', which is no number"),
        ("a,b,class\n1,2,x\n1,y\n", "row 2 has 2 columns, the first 3"),
        ("", "there are no samples here"),
        ("a,b,class\n", "there are no samples here"),
        ("a,b,class\n1,nan,x\n2,3,y\n4,5,x\n5,6,y\n", "numbers that are not finite"),
    ],
)
def test_bad_tables(text: str, says: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(PocketgraphError, match=says):
        retrain(None, tmp_path / "t.csv", testing=0, validation=0)


def test_what_does_not_go_together(table: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="only a table"):
        retrain(None, tmp_path)
    np.savez(tmp_path / "two.npz", a=np.zeros((4, 2)), b=np.zeros((4, 2)), labels=np.arange(4))
    with pytest.raises(UsageError, match="2 arrays beside the labels"):
        retrain(None, tmp_path / "two.npz")
    np.savez(tmp_path / "bare.npz", a=np.zeros((4, 2)))
    with pytest.raises(UsageError, match="does not say what its rows are"):
        retrain(None, tmp_path / "bare.npz")
    with pytest.raises(UsageError, match="a row has 2 columns, and the model takes 3 numbers"):
        retrain(rows_base(), write_csv(tmp_path / "w.csv", birds()[0][:, :1], birds()[1], "a,class"))
    (tmp_path / "no.npz").write_bytes(b"PK")
    with pytest.raises(FormatError, match="damaged"):
        retrain(None, tmp_path / "no.npz")
    assert call("retrain", f"--image_dir={tmp_path}") == 2
