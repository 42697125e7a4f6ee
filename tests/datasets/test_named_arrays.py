"""Arrays belong to inputs by the tensors' names and by the signatures' keys, in each function that takes samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pocketgraph
from pocketgraph.datasets.evaluation_dataset import open_dataset
from pocketgraph.datasets.model_input import signature_keys
from pocketgraph.errors import UsageError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.graph import Signature
from pocketgraph.graph.text_format import parse

RNG = np.random.default_rng(0)
LEFT, RIGHT = (RNG.random((32, 6), np.float32) for _ in "lr")
NAMES = [("a", "b"), ("left_ph", "right_ph"), ("left_ph:0", "b")]


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Two inputs, whose second size is open too, and a signature that calls them otherwise."""
    nodes = parse("""
        left_ph = Placeholder(dtype=float, shape=[?,?])
        right_ph = Placeholder(dtype=float, shape=[?,6])
        l = MatMul(left_ph, w, T=float)
        r = MatMul(right_ph, v, T=float)
        sum = AddV2(l, r, T=float)
        y = Softmax(sum, T=float)
    """)
    weights = [const(name, RNG.normal(0, 1, (6, 5)).astype(np.float32)) for name in "wv"]
    signature = Signature({"a": "left_ph:0", "b": "right_ph:0"}, {"scores": "y:0"})
    return Graph([*nodes, *weights], signatures={"serving_default": signature})


def test_keys_of_signatures(graph: Graph) -> None:
    assert signature_keys(graph, "left_ph") == ("a",)
    assert signature_keys(graph, "y:0") == ()


@pytest.mark.parametrize(("left", "right"), NAMES)
def test_arrays_are_called_as_tensors_or_as_the_signature_calls_them(
    graph: Graph, left: str, right: str, tmp_path: Path
) -> None:
    data = str(tmp_path / "data.npz")
    arrays: Any = {left: LEFT, right: RIGHT}
    np.savez(data, **arrays)
    shapes = {"left_ph": (1, 6)}
    pocketgraph.export(graph, str(tmp_path / "m.tflite"), samples=data, shapes=shapes)
    made = pocketgraph.quantize(graph, data)
    made.save(str(tmp_path / "q.tflite"))
    found = pocketgraph.evaluate([graph, str(tmp_path / "q.tflite")], data)
    comparison = found[1].comparison
    assert comparison is not None
    assert comparison.count == 32
    assert comparison.snr > 25
    pocketgraph.save(graph, str(tmp_path / "model"), form="saved_model")
    shipment = pocketgraph.ship(tmp_path / "model", tmp_path / "ship", data, shapes={"left_ph": (1, 6)})
    assert not [one.words for one in shipment.tried if "array" in one.words]


def test_other_names_are_refused(graph: Graph) -> None:
    with pytest.raises(UsageError, match="there is no array for the input 'right_ph:0'; there are a, c"):
        pocketgraph.quantize(graph, {"a": LEFT, "c": RIGHT})


@pytest.mark.parametrize("name", ["samples.npz", "samples.txt"])
def test_a_model_without_inputs_takes_no_samples(name: str, tmp_path: Path) -> None:
    (tmp_path / "some.png").touch()
    (tmp_path / "samples.txt").write_text("some.png\n")
    np.savez(tmp_path / "samples.npz", x=np.zeros((2, 3)), labels=np.zeros(2))
    with pytest.raises(UsageError, match=rf"{name}: the model has no inputs, so it takes no samples"):
        open_dataset(tmp_path / name, ())
