"""Samples of another range than those of training are told by the first batch norm, and right ones are not."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import pocketgraph
from pocketgraph import Session
from pocketgraph.graph import Graph, const
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization.canonical.canonicalize import canonicalize
from pocketgraph.quantization.fitting.batch_norm_reach import told_other_reach
from pocketgraph.quantization.float_program import lowered_graph

KINDS = {
    "picture": ("p = Placeholder(dtype=float, shape=[1,8,8,3])", 8),
    "row": ("p = Placeholder(dtype=float, shape=[1,1,1,3])", 1),
    "pixels": ("b = Placeholder(dtype=uint8, shape=[1,8,8,3])\np = Cast(b, SrcT=uint8, DstT=float)", 8),
}


def data(kind: str, count: int, seed: int = 7) -> Array:
    side = KINDS[kind][1]
    values = np.random.default_rng(seed).uniform(-1, 1, (count, side, side, 3)).astype(np.float32)
    return (127.5 * values + 127.5).astype(np.uint8) if kind == "pixels" else values


@cache
def trained(kind: str, settled: bool = True) -> Graph:
    """A layer whose batch norm knows the data, as after training, or not, and a table beside it."""
    rng = np.random.default_rng(5)
    text = f"""
        {KINDS[kind][0]}
        ids = Placeholder(dtype=int32, shape=[1])
        c = Conv2D(p, w, T=float, strides=[1,1,1,1], padding="SAME", data_format="NHWC")
        axes = Const(int32 [1, 2])
        zero = Const(int32 0)
        e = GatherV2(table, ids, zero, Tparams=float, Tindices=int32, Taxis=int32)
        n = FusedBatchNorm(c, gamma, beta, mean, variance, T=float, epsilon=0.001, is_training=false)
        r = Relu(n, T=float)
        m = Mean(r, axes, T=float, Tidx=int32, keep_dims=false)
        y = AddV2(m, e, T=float)
    """
    graph = Graph([
        *parse(text), const("w", rng.normal(size=(3, 3, 3, 16)).astype(np.float32)),
        const("table", rng.normal(size=(1000, 16)).astype(np.float32)),
    ])  # fmt: skip
    fed = "b" if kind == "pixels" else "p"
    with Session(graph) as session:
        seen = np.concatenate([session.run("c", {fed: one[np.newaxis]})[0] for one in data(kind, 200, 1)])
    norm = {"gamma": np.ones(16), "beta": np.zeros(16), "mean": np.zeros(16), "variance": np.ones(16)}
    if settled:
        norm = {"gamma": rng.uniform(0.2, 1.5, 16), "beta": rng.uniform(0.5, 2.5, 16)}
        norm |= {"mean": seen.mean((0, 1, 2)), "variance": seen.var((0, 1, 2))}
    constants = [const(name, values.astype(np.float32)) for name, values in norm.items()]
    return Graph([*graph, *constants], inputs=[fed, "ids"], outputs=["y"])


def told(kind: str, given: Array, *, settled: bool = True, are_pictures: bool = False) -> str:
    graph = trained(kind, settled)
    lowered, known = lowered_graph(graph)
    samples = [[one[np.newaxis], np.int32([999])] for one in given]
    return told_other_reach(canonicalize(lowered), [graph, known], lambda: iter(samples), are_pictures=are_pictures)


@pytest.mark.parametrize(
    ("factor", "is_other"), [(1, False), (2, False), (1 / 4, False), (127.5, True), (1 / 127.5, True)]
)
@pytest.mark.parametrize("kind", ["picture", "row"])
def test_samples_of_another_range_than_in_training_are_told(kind: str, factor: float, is_other: bool) -> None:
    given = np.float32(factor) * data(kind, 12)
    found = told(kind, given)
    assert found.startswith("warning: 'r:0' is, before any activation, ") == is_other
    if is_other:
        reach = f"{given[0].min():.3g} to {given[0].max():.3g} for 'p:0' in the first"
        assert found.endswith(f"their own range ({reach}) is another than in training; scale them as it did")
    made = pocketgraph.quantize(trained(kind), {"p": given, "ids": np.zeros((12, 1), np.int32)})
    assert any("is another than in training" in note for note in made.notes) == is_other


@pytest.mark.parametrize("kind", ["picture", "row"])
@pytest.mark.parametrize("count", [1, 2, 8])
def test_of_few_rows_that_differ_nothing_is_told_that_more_would_not_tell(kind: str, count: int) -> None:
    """One sample of a layer that has one row has no deviation; neither have alike ones, nor blank pictures."""
    assert told(kind, data(kind, count)) == ""
    assert told(kind, data(kind, 1).repeat(count, axis=0)) == ""
    assert told(kind, np.full_like(data(kind, count), 0.25)) == ""
    assert told(kind, 127.5 * data(kind, count))


def test_pixels_in_bytes_are_right_and_only_pictures_in_files_have_options() -> None:
    assert told("pixels", data("pixels", 4)) == ""
    dark = told("pixels", (data("pixels", 8) > 127).astype(np.uint8), are_pictures=True)
    assert "their own range (0 to 1 for 'b:0' in the first)" in dark
    assert dark.endswith("scale them as it did (input_mean, input_std)")


def test_norms_that_were_not_trained_tell_nothing_of_samples() -> None:
    assert told("picture", np.float32(1e-6) * data("picture", 12), settled=False) == ""
