"""Batch and Unbatch; TensorFlow 2.21 gave the values, but for the number that it draws for a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.errors import RunError
from pocketgraph.graph import Node
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels import evaluate

ATTRS = {"num_batch_threads": 1, "max_batch_size": 8, "batch_timeout_micros": 0, "grad_timeout_micros": 0}
ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)


def batch(*tensors: Any, **attrs: Any) -> tuple[Any, ...]:
    return evaluate(Node("b", "Batch", (), {**ATTRS, **attrs}), [np.asarray(tensor) for tensor in tensors])


def unbatch(rows: int, index: list[Any], run: int) -> list[Any]:
    tensor = np.arange(rows * 2.0).reshape(rows, 2)
    places = np.array(index, np.int64).reshape(-1, 3)
    (rows_of,) = evaluate(Node("u", "Unbatch", (), {"timeout_micros": 1}), [tensor, places, np.int64(run)])
    found: list[Any] = rows_of.tolist()
    return found


def test_a_run_is_a_batch_of_its_own() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[?, 2])
        b = Batch(x, num_batch_threads=1, max_batch_size=8, batch_timeout_micros=0, grad_timeout_micros=0, T=[float],
            allowed_batch_sizes=[2, 5, 8])
        twice = AddV2(b, b, T=float)
        y = Unbatch(twice, b:1, b:2, timeout_micros=1000, T=float)
    """
    with Session(parse(text)) as session:
        inside, outside, index = session.run(["b:0", "y:0", "b:1"], {"x:0": ROWS})
    assert inside.tolist() == [[0, 1], [2, 3], [4, 5], [0, 1], [0, 1]]
    assert outside.tolist() == (2 * ROWS).tolist()
    assert index[:, 1:].tolist() == [[0, 3]]


def test_a_batch_is_not_filled_up_without_sizes_to_fill_it_up_to() -> None:
    first, second, index, run = batch(ROWS, [1, 2, 3])
    assert first.tolist() == ROWS.tolist()
    assert second.tolist() == [1, 2, 3]
    assert index.tolist() == [[run, 0, 3]]


def test_the_rows_of_runs_lie_one_behind_the_other() -> None:
    assert unbatch(5, [[7, 0, 3]], 7) == [[0, 1], [2, 3], [4, 5]]
    assert unbatch(3, [[7, 0, 1], [9, 1, 3]], 9) == [[2, 3], [4, 5]]
    assert unbatch(5, [[7, 2, 4]], 7) == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("said", "tensors", "attrs"),
    [
        ("Task size 9 is larger", [np.zeros((9, 1))], {}),
        ("equal 0th-dimension size", [np.zeros((3, 1)), np.zeros((2, 1))], {}),
        ("at least one dimension", [np.float32(1)], {}),
        ("final entry in allowed_batch_sizes", [np.zeros((2, 1))], {"allowed_batch_sizes": (2, 4)}),
    ],
)
def test_what_is_no_batch_is_refused(said: str, tensors: list[Any], attrs: dict[str, Any]) -> None:
    with pytest.raises(RunError, match=said):
        batch(*tensors, **attrs)


def test_rows_of_another_run_or_of_too_many_are_refused() -> None:
    with pytest.raises(RunError, match="no rows of the run 8"):
        unbatch(3, [[7, 0, 3]], 8)
    with pytest.raises(RunError, match="must not exceed"):
        unbatch(3, [[7, 0, 5]], 7)
