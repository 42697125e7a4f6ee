"""The outputs of a LiteRT file are those of the graph, whatever their order in the file."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import pocketgraph
from pocketgraph.errors import UsageError
from pocketgraph.graph import Graph, const, node_name
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization.evaluation.runnable_models import open_model
from pocketgraph.quantization.stated_sizes import with_sizes


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


def test_samples_of_other_sizes_than_a_files_are_refused_by_name(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(0)
    nodes = parse("""
        series = Placeholder(dtype=float, shape=[?,?,4])
        length = Placeholder(dtype=float, shape=[?])
        one = Const(int32 1)
        mean = Mean(series, one, T=float)
        scores = MatMul(mean, weights, T=float)
        column = ExpandDims(length, one, T=float)
        y = AddV2(scores, column, T=float)
    """)
    graph = Graph([*nodes, const("weights", rng.normal(size=(4, 3)).astype(np.float32))])
    short, long = (
        {"series": rng.normal(size=(12, steps, 4)).astype(np.float32), "length": np.ones(12, np.float32)}
        for steps in (5, 7)
    )
    pocketgraph.export(
        with_sizes(graph, ["y"], {"series": (1, 5, 4), "length": (1,)}), tmp_path / "m.tflite", outputs=["y"]
    )
    file = open_model(tmp_path / "m.tflite")
    assert file.run([short["series"][:1], short["length"][:1]])[0].shape == (1, 3)
    said = r"m\.tflite: the input 'series' takes .1, 5, 4. and gets .1, 7, 4.; cut or fill .*={\"series\": \(1, 7, 4\)}"
    with pytest.raises(UsageError, match=said):
        file.run([long["series"][:1], long["length"][:1]])
    with pytest.raises(
        UsageError, match=r"the model takes \[1, 5, 4\]; cut or fill .* shapes={\"series\": \(1, 7, 4\)}"
    ):
        pocketgraph.evaluate(tmp_path / "m.tflite", long)


def test_arrays_with_their_axes_in_another_order_are_refused() -> None:
    """TensorFlow refuses them too: numbers that are only as many would be others' pixels."""
    rng = np.random.default_rng(0)
    nodes = parse("""
        x = Placeholder(dtype=float, shape=[?,6,5,3])
        shape = Const(int32 [-1, 90])
        flat = Reshape(x, shape, T=float, Tshape=int32)
        y = MatMul(flat, weights, T=float)
    """)
    graph = Graph([*nodes, const("weights", rng.normal(size=(90, 2)).astype(np.float32))])
    pictures = rng.normal(size=(12, 6, 5, 3)).astype(np.float32)
    for fits in (pictures, pictures.reshape(12, 90), pictures.reshape(12, 1, 6, 15)):
        pocketgraph.quantize(graph, {"x": fits}, outputs=["y"])
    for turned in (pictures.transpose(0, 3, 1, 2), pictures.transpose(0, 2, 1, 3)):
        for call in (pocketgraph.quantize, pocketgraph.evaluate):
            with pytest.raises(UsageError, match=r"'x' is \[12, .*takes \[1, 6, 5, 3\]: axes are in another order"):
                call(graph, {"x": turned}, outputs=["y"])
