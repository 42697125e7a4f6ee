"""The outputs of a LiteRT file are those of the graph, whatever their order in the file."""

from __future__ import annotations

import pathlib

import numpy as np

import pocketgraph
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse


def test_results_of_one_node_are_told_apart_by_their_numbers(tmp_path: pathlib.Path) -> None:
    """'call' in the file is 'call:0' of the graph, and no output whose name only begins like it."""
    rng = np.random.default_rng(0)
    graph = Graph([
        *parse("""
            x = Placeholder(dtype=float, shape=[1, 4])
            state = MatMul(x, wide, T=float)
            scores = MatMul(x, narrow, T=float)
            call = IdentityN(state, scores, T=[float, float])
        """),
        const("wide", rng.normal(size=(4, 6)).astype(np.float32)),
        const("narrow", rng.normal(size=(4, 3)).astype(np.float32)),
    ])  # fmt: skip
    samples = {"x": rng.normal(size=(12, 4)).astype(np.float32)}
    model = pocketgraph.quantize(graph, samples, outputs=["call:0", "call:1"])
    model.save(tmp_path / "model.tflite")
    for outputs in (["call:0", "call:1"], ["call:1", "call:0"], ["call"]):
        found = pocketgraph.evaluate([graph, tmp_path / "model.tflite"], samples, outputs=outputs)
        assert found[1].comparison is not None
        assert found[1].comparison.snr > 20
