"""Boosted trees are frozen with their ensemble: the file alone predicts what TensorFlow predicts."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from pocketgraph import Session, Tensor, freeze, load, save
from pocketgraph.errors import FreezeError
from pocketgraph.graph.text_format import parse

FOLDER = pathlib.Path(__file__).parents[1] / "fixtures" / "boosted_trees"


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_frozen_estimator_predicts_by_itself(kind: str, tmp_path: pathlib.Path) -> None:
    golden = np.load(FOLDER / kind / "golden.npz")
    tensors = {name[4:]: str(golden[f"tensor_{name[4:]}"]) for name in golden.files if name.startswith("out_")}
    save(freeze(FOLDER / kind, list(tensors.values())), tmp_path / "trees.pb")
    feeds = {"x1": golden["x1"], "x2": golden["x2"], "c": golden["c"].astype(object)}
    graph = load(tmp_path / "trees.pb")
    with Session(graph) as session:
        fed = {name: value for name, value in feeds.items() if name in graph}
        found = session.run(list(tensors.values()), fed)
    for name, value in zip(tensors, found, strict=True):
        np.testing.assert_allclose(value, golden[f"out_{name}"], rtol=3e-7, atol=1e-7, err_msg=name)


def test_trees_without_a_checkpoint_are_refused() -> None:
    graph = parse("""
        x = Placeholder(dtype=int32, shape=[?])
        w = VariableV2(dtype=float, shape=[])
        trees = BoostedTreesEnsembleResourceHandleOp(shared_name="trees")
        sums = BoostedTreesPredict(trees, x, num_bucketized_features=1, logits_dimension=1)
        y = Mul(sums, w, T=float)
    """)
    with pytest.raises(FreezeError, match="in no checkpoint"):
        freeze(graph, "y", {"w": Tensor.from_numpy(np.float32(2))})
