"""The outputs of a LiteRT file are those of the graph, whatever their order in the file."""

from __future__ import annotations

import pathlib

import numpy as np

import pocketgraph
from pocketgraph.graph import Graph, const, node_name
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


def test_an_input_that_is_handed_on_is_an_output_of_its_own_name(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(0)
    graph = Graph([
        *parse("""
            x = Placeholder(dtype=float, shape=[1, 4])
            length = Placeholder(dtype=float, shape=[1, 2])
            scores = MatMul(x, w, T=float)
            call = IdentityN(length, scores, T=[float, float])
            again = Identity(length, T=float)
        """),
        const("w", rng.normal(size=(4, 3)).astype(np.float32)),
    ])  # fmt: skip
    samples = {name: rng.normal(size=(12, size)).astype(np.float32) for name, size in (("x", 4), ("length", 2))}
    names = ["call:1", "call:0", "again:0"]
    pocketgraph.quantize(graph, samples, mode="dynamic", outputs=names).save(tmp_path / "model.tflite")
    told = {node_name(name) for name in pocketgraph.load(tmp_path / "model.tflite").outputs}
    assert told == {"call", "call_1", "again"}
    for outputs in (["call:0", "call:1", "again"], ["call:1", "again", "call:0"], ["again", "call:1", "call:0"]):
        found = pocketgraph.evaluate([graph, tmp_path / "model.tflite"], samples, outputs=outputs)
        assert found[1].comparison is not None
        assert found[1].comparison.snr > 20
