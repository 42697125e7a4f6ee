"""Weights that are infinite, or become so: planning does not warn, and what is finite is as NumPy computes it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.graph import Graph, Node, Tensor
from pocketgraph.graph.text_format import parse


@pytest.mark.parametrize("weight", [np.inf, -np.inf, np.nan, 3e38])
@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative"])
def test_no_warning_of_weights_that_are_not_finite(op: str, weight: float) -> None:
    weights = np.full((1, 1, 3, 3 if op == "Conv2D" else 1), 0.5, np.float32)
    weights[0, 0, 1, 0] = weight
    factors = np.float32([0, 4, -4])
    constants = {"w": weights, "m": factors, "b": np.float32([weight, 0, 1])}
    tensors = {name: Tensor.from_numpy(values) for name, values in constants.items()}
    nodes = [Node(name, "Const", (), {"dtype": t.dtype, "value": t}) for name, t in tensors.items()]
    text = f"""
        x = Placeholder(dtype=float, shape=[1, 4, 4, 3])
        c = {op}(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
        s = BiasAdd(c, b, T=float)
        y = Mul(s, m, T=float)
    """
    graph = Graph([*nodes, *parse(text).nodes.values()])
    image = np.random.default_rng(3).uniform(-1, 1, (1, 4, 4, 3)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with Session(graph) as session, Session(graph, engine="reference") as plain:
            [found], [wanted] = session.run(["y"], {"x": image}), plain.run(["y"], {"x": image})
    lost = np.abs(weights) > 1e38  # times its factor such a weight is infinite
    told = np.isfinite(wanted) & ~lost.reshape(-1, 3).any(axis=0)
    np.testing.assert_allclose(found[told], wanted[told], rtol=1e-5, atol=1e-6)
    assert told.any()
