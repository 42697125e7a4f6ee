"""Trees of a TensorForest: what TensorFlow 1.15 predicts with them, and trees that are damaged."""

from __future__ import annotations

import json
import pathlib
import struct
from typing import Any

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.errors import RunError
from pocketgraph.graph.text_format import parse

CASES = json.loads((pathlib.Path(__file__).parents[2] / "fixtures" / "forest_trees.json").read_text())
GRAPH = """
    message = Placeholder(dtype=string, shape=[])
    rows = Placeholder(dtype=float, shape=[-1, -1])
    tree = TensorForestTreeResourceHandleOp(shared_name="t")
    known = TensorForestTreeIsInitializedOp(tree)
    make = TensorForestCreateTreeVariable(tree, message)
    logits = TensorForestTreePredict(tree, rows, logits_dimension={dimension})
    size = TensorForestTreeSize(tree)
    written = TensorForestTreeSerialize(tree)
"""


def session(message: bytes, dimension: int = 1) -> Session:
    made = Session(parse(GRAPH.format(dimension=dimension)))
    made.run([], {"message": np.array(message, object)}, targets=["make"])
    return made


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['size']}-nodes-{case['dimension']}")
def test_logits_are_tensorflows(case: dict[str, Any]) -> None:
    message = bytes.fromhex(case["tree"])
    rows = np.array(case["rows"] or np.zeros((0, 2)), np.float32)
    with session(message, case["dimension"]) as made:
        logits, size, known = made.run(["logits", "size", "known"], {"rows": rows})
        (written,) = made.run(["written"], {})
    expected = np.array(case["logits"], np.float32).reshape(len(rows), case["dimension"])
    np.testing.assert_array_equal(logits, expected)
    assert (int(size), bool(known), written.item()) == (case["size"], True, message)


def field(number: int, payload: bytes) -> bytes:
    return bytes([number << 3 | 2, len(payload)]) + payload


def split(feature: int, left: int, right: int) -> bytes:
    threshold = b"\x15" + struct.pack("<f", 0.5)
    return field(1, field(4, bytes([8, feature]) + threshold + bytes([24, left, 32, right])))


LEAF = field(1, field(1, field(1, field(1, struct.pack("<f", 0.5)))))


def test_a_missing_number_goes_right() -> None:
    other = LEAF.replace(struct.pack("<f", 0.5), struct.pack("<f", 2))
    rows = np.array([[np.nan], [0.5], [np.inf], [-np.inf]], np.float32)
    with session(split(0, 1, 2) + LEAF + other) as made:
        assert made.run(["logits"], {"rows": rows})[0].tolist() == [[2], [0.5], [2], [0.5]]


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (b"\xff", "Unable to parse tree config"),
        (field(1, b""), "neither a leaf nor a split"),
        (split(0, 0, 1) + LEAF, "node 0 of 2 leads to"),
        (split(0, 1, 7) + LEAF, "node 0 of 2 leads to 1 and 7"),
        (LEAF + split(0, 0, 1) + LEAF, "node 1 of 3 leads to 0 and 1"),
    ],
)
def test_damaged_trees(message: bytes, problem: str) -> None:
    with pytest.raises(RunError, match=problem):
        session(message)


def test_features_that_do_not_fit_the_tree() -> None:
    with session(split(3, 1, 2) + LEAF + LEAF) as made, pytest.raises(RunError, match="looks at the feature 3"):
        made.run("logits", {"rows": np.zeros((2, 2), np.float32)})
    with session(LEAF, 2) as made, pytest.raises(RunError, match="a leaf has 1 numbers, 2 are wanted"):
        made.run("logits", {"rows": np.zeros((2, 2), np.float32)})
