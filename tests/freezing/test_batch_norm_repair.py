"""Batch norms of a training graph become those of use: with the moving averages that training kept."""

from __future__ import annotations

import numpy as np
import pytest

import pocketgraph
from pocketgraph.errors import FreezeError
from pocketgraph.graph import Graph, Tensor, const
from pocketgraph.graph.text_format import parse

UPDATES = """
    rate = Const(float 0.1)
    d = Sub({mean}, {batch_mean}, T=float)
    change = Mul(d, rate, T=float)
    update = AssignSub(m, change, T=float)
    d_1 = Sub({variance}, {batch_variance}, T=float)
    change_1 = Mul(d_1, rate, T=float)
    update_1 = AssignSub(v, change_1, T=float)
"""
WEIGHTED = """
    decay = Const(float 0.9)
    rest = Const(float 0.1)
    old = Mul({mean}, decay, T=float)
    new = Mul({batch_mean}, rest, T=float)
    next = AddV2(old, new, T=float)
    update = Assign(m, next, T=float)
    old_1 = Mul({variance}, decay, T=float)
    new_1 = Mul({batch_variance}, rest, T=float)
    next_1 = AddV2(new_1, old_1, T=float)
    update_1 = Assign(v, next_1, T=float)
"""
PARAMETERS = """
    x = Placeholder(dtype=float, shape=[?,4,4,2])
    g = VariableV2(dtype=float, shape=[2])
    b = VariableV2(dtype=float, shape=[2])
    m = VariableV2(dtype=float, shape=[2])
    v = VariableV2(dtype=float, shape=[2])
    g/read = Identity(g, T=float)
    b/read = Identity(b, T=float)
    m/read = Identity(m, T=float)
    v/read = Identity(v, T=float)
"""
FUSED = """
    n = FusedBatchNormV3(x, g/read, b/read, none, none, T=float, U=float, epsilon=0.001, is_training=true)
    y = Relu(n, T=float)
"""
SPELLED_OUT = """
    axes = Const(int32 [0, 1, 2])
    mean = Mean(x, axes, T=float, Tidx=int32, keep_dims=true)
    still = StopGradient(mean, T=float)
    squares = SquaredDifference(x, still, T=float)
    variance = Mean(squares, axes, T=float, Tidx=int32, keep_dims=true)
    batch_mean = Squeeze(mean, T=float, squeeze_dims=[0,1,2])
    batch_variance = Squeeze(variance, T=float, squeeze_dims=[0,1,2])
    epsilon = Const(float 0.001)
    total = Add(batch_variance, epsilon, T=float)
    root = Rsqrt(total, T=float)
    scale = Mul(root, g/read, T=float)
    scaled = Mul(x, scale, T=float)
    shift = Mul(batch_mean, scale, T=float)
    offset = Sub(b/read, shift, T=float)
    n = Add(scaled, offset, T=float)
    y = Relu(n, T=float)
"""
VALUES = {
    name: np.array(value, np.float32)
    for name, value in {"g": [1.5, 0.5], "b": [0.2, 0.1], "m": [0.3, -0.7], "v": [2, 0.5]}.items()
}


def training_graph(kind: str) -> Graph:
    if kind == "fused":
        refs = {"mean": "m/read", "variance": "v/read", "batch_mean": "n:1", "batch_variance": "n:2"}
        return Graph([*parse(PARAMETERS + FUSED + UPDATES.format(**refs)), const("none", np.zeros(0, np.float32))])
    refs = {"mean": "m/read", "variance": "v/read", "batch_mean": "batch_mean", "batch_variance": "batch_variance"}
    updates = WEIGHTED if kind == "as Keras 3 writes it" else UPDATES
    return parse(PARAMETERS + SPELLED_OUT + updates.format(**refs))


@pytest.mark.parametrize("kind", ["fused", "spelled out", "as Keras 3 writes it"])
def test_the_moving_averages_take_the_batchs_place(kind: str) -> None:
    """As in the evaluation graph that TensorFlow 1.15 builds, whose formula this is."""
    graph = training_graph(kind)
    values = {name: Tensor.from_numpy(value) for name, value in VALUES.items()}
    with pytest.raises(FreezeError, match="depends on the other examples") as refused:
        pocketgraph.freeze(graph, "y", values)
    assert "--repair" in str(refused.value.hint) or "repair" in str(refused.value.hint)
    frozen = pocketgraph.freeze(graph, "y", values, repair="batch_norms")
    x = np.random.default_rng(0).normal(size=(3, 4, 4, 2)).astype(np.float32)
    g, b, m, v = (value.astype(np.float64) for value in VALUES.values())
    expected = np.maximum(g * (x - m) / np.sqrt(v + 0.001) + b, 0)
    session = pocketgraph.Session(frozen)
    np.testing.assert_allclose(session.run("y", {"x": x})[0], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(session.run("y", {"x": x[:1]})[0], expected[:1], rtol=1e-5, atol=1e-6)  # each by itself


def test_what_is_repaired_is_told() -> None:
    from pocketgraph.freezing import freeze_with_report

    values = {name: Tensor.from_numpy(value) for name, value in VALUES.items()}
    made = freeze_with_report(training_graph("fused"), "y", values, repair=True)
    assert "'n' takes its moving averages 'm/read' and 'v/read'" in made.repaired


def test_other_arithmetic_with_the_statistics_is_left_alone() -> None:
    """Only what normalizes takes the averages; a statistic that is an output stays one."""
    graph = training_graph("spelled out")
    values = {name: Tensor.from_numpy(value) for name, value in VALUES.items()}
    frozen = pocketgraph.freeze(graph, ["y", "batch_mean"], values, repair="batch_norms")
    x = np.random.default_rng(1).normal(size=(3, 4, 4, 2)).astype(np.float32)
    found = pocketgraph.Session(frozen).run(["batch_mean"], {"x": x})[0]
    np.testing.assert_allclose(found, x.mean(axis=(0, 1, 2)), rtol=1e-5, atol=1e-6)
