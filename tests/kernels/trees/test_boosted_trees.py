"""Boosted trees: exported estimators predict what TensorFlow predicts; damaged ensembles are refused."""

from __future__ import annotations

import pathlib
import struct
from typing import Any

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.errors import RunError
from pocketgraph.graph import Node
from pocketgraph.kernels import Context, evaluate

FOLDER = pathlib.Path(__file__).parents[2] / "fixtures" / "boosted_trees"


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_exported_estimators_predict_the_same(kind: str) -> None:
    golden = np.load(FOLDER / kind / "golden.npz")
    feeds = {"x1": golden["x1"], "x2": golden["x2"], "c": golden["c"].astype(object)}
    names = [name[4:] for name in golden.files if name.startswith("out_")]
    with Session(str(FOLDER / kind)) as session:
        found = session.run([str(golden[f"tensor_{name}"]) for name in names], feeds)
    for name, value in zip(names, found, strict=True):
        expected = golden[f"out_{name}"]
        assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(value, expected, rtol=3e-7, atol=1e-7, err_msg=name)


def field(number: int, payload: bytes) -> bytes:
    return bytes([number << 3 | 2, len(payload)]) + payload


def numbers(**fields: int) -> bytes:
    order = {"feature": 1, "threshold": 2, "left": 3, "right": 4, "dimension": 5}
    return b"".join(bytes([order[name] << 3, value]) for name, value in fields.items())


def leaf(*values: float) -> bytes:
    if len(values) == 1:
        return field(1, b"\x1d" + struct.pack("<f", values[0]))
    return field(1, field(1, field(1, struct.pack(f"<{len(values)}f", *values))))


def ensemble(*nodes: bytes, weight: float = 0.5) -> bytes:
    tree = b"".join(field(1, node) for node in nodes)
    return field(1, tree) + b"\x15" + struct.pack("<f", weight)


def predicted(data: bytes, *features: Any, logits: int = 1) -> Any:
    state: dict[str, Any] = {}
    node = Node("trees", "BoostedTreesEnsembleResourceHandleOp", (), {})
    handle = evaluate(node, [], Context(node, state))[0]
    evaluate(Node("fill", "BoostedTreesCreateEnsemble"), [handle, np.int64(0), np.array(data, object)])
    attrs = {"num_bucketized_features": len(features), "logits_dimension": logits}
    return evaluate(Node("predict", "BoostedTreesPredict", (), attrs), [handle, *features])[0]


SPLIT = field(2, numbers(feature=1, threshold=2, left=1, right=2))


def test_thresholds_go_left_when_reached() -> None:
    values = np.array([1, 2, 3, 0], np.int32)
    found = predicted(ensemble(SPLIT, leaf(1.0), leaf(-3.0)), np.zeros(4, np.int32), values)
    assert found.tolist() == [[0.5], [0.5], [-1.5], [0.5]]


def test_categories_and_vectors() -> None:
    split = field(3, numbers(feature=0, threshold=2, left=1, right=2, dimension=1))
    features = np.array([[2, 0], [0, 2]], np.int32)
    found = predicted(ensemble(split, leaf(1, 2), leaf(3, 4), weight=2.0), features, logits=2)
    assert found.tolist() == [[6, 8], [2, 4]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x0a\xff", "Unable to parse"),
        (ensemble(field(2, numbers(feature=0, threshold=0, left=0, right=1)), leaf(1.0)), "leads to"),
        (ensemble(field(2, numbers(feature=0, threshold=0, left=1, right=9)), leaf(1.0)), "leads to"),
        (field(1, field(1, leaf(1.0))), "0 weights"),
        (ensemble(b""), "neither a leaf nor a split"),
    ],
)
def test_damaged_ensembles(data: bytes, message: str) -> None:
    with pytest.raises(RunError, match=message):
        predicted(data, np.zeros(1, np.int32))


def test_what_does_not_fit() -> None:
    with pytest.raises(RunError, match="feature 1"):
        predicted(ensemble(SPLIT, leaf(1.0), leaf(2.0)), np.zeros(3, np.int32))
    with pytest.raises(RunError, match="unlike batches"):
        predicted(ensemble(SPLIT, leaf(1.0), leaf(2.0)), np.zeros(3, np.int32), np.zeros(2, np.int32))
    with pytest.raises(RunError, match="2 numbers"):
        predicted(ensemble(SPLIT, leaf(1, 2), leaf(2.0)), *[np.zeros(3, np.int32)] * 2, logits=3)
    node = Node("trees", "BoostedTreesEnsembleResourceHandleOp", (), {})
    handle = evaluate(node, [], Context(node))[0]
    with pytest.raises(RunError, match="not initialized"):
        evaluate(Node("predict", "BoostedTreesPredict", (), {"logits_dimension": 1}), [handle, np.zeros(1, np.int32)])
    assert not evaluate(Node("known", "IsBoostedTreesEnsembleInitialized"), [handle])[0]


def test_buckets_end_at_the_last_boundary() -> None:
    values, boundaries = np.float32([-1, 0, 0.5, 1, 9]), np.float32([0, 1, 2])
    found = evaluate(Node("b", "BoostedTreesBucketize", (), {"num_features": 1}), [values, boundaries])
    assert [v.tolist() for v in found] == [[0, 0, 1, 1, 2]]
