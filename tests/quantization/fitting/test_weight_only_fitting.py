"""Codes of weights alone: by what batch norms tell of the training data, and by samples."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import pocketgraph
from pocketgraph import Session
from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program
from pocketgraph.quantization.canonical.canonicalize import canonicalize
from pocketgraph.quantization.core.operator_rules import weights
from pocketgraph.quantization.float_program import lowered_graph
from pocketgraph.quantization.observing.made_up_inputs import made_up_inputs
from pocketgraph.quantization.weight_only import quantize_weights
from quantize_nets import judged

LAYERS = ((3, 3, 3, 16), (1, 1, 16, 96), (1, 1, 96, 96), (1, 1, 96, 64))


def data(count: int, seed: int) -> list[list[np.ndarray[Any, Any]]]:
    """Smooth pictures of bright and dark areas."""
    rng = np.random.default_rng(seed)
    coarse = rng.uniform(-1, 1, (count, 4, 4, 3)).repeat(4, axis=1).repeat(4, axis=2)
    return [[np.clip(one[np.newaxis], -1, 1).astype(np.float32)] for one in coarse]


@cache
def trained() -> Graph:
    """A network whose batch norms know the data, as after training."""
    rng = np.random.default_rng(5)
    nodes = [*parse("x = Placeholder(dtype=float, shape=[1,16,16,3])")]
    source, pictures = "x", [sample[0] for sample in data(40, 1)]
    for at, shape in enumerate(LAYERS):
        nodes += [
            const(f"w{at}", rng.normal(0, 1, shape).astype(np.float32)),
            Node(f"c{at}", "Conv2D", [source, f"w{at}"], {"strides": (1, 1, 1, 1), "padding": b"SAME", "T": FLOAT}),
        ]
        with Session(Graph(nodes)) as session:
            seen = np.concatenate([session.run(f"c{at}", {"x": picture})[0] for picture in pictures])
        for name, values in (
            ("gamma", rng.uniform(0.2, 1.5, shape[3])), ("beta", rng.uniform(0.5, 2.5, shape[3])),
            ("mean", seen.mean((0, 1, 2))), ("variance", seen.var((0, 1, 2))),
        ):  # fmt: skip
            nodes.append(const(f"{name}{at}", values.astype(np.float32)))
        inputs = [f"c{at}", f"gamma{at}", f"beta{at}", f"mean{at}", f"variance{at}"]
        attrs = {"T": FLOAT, "is_training": False, "epsilon": 1e-3, "data_format": b"NHWC"}
        nodes += [Node(f"n{at}", "FusedBatchNorm", inputs, attrs), Node(f"r{at}", "Relu6", [f"n{at}"], {"T": FLOAT})]
        source = f"r{at}"
    nodes += [
        *parse("axes = Const(int32 [1, 2])"), const("last", rng.normal(0, 0.2, (64, 10)).astype(np.float32)),
        Node("m", "Mean", [source, "axes"], {"T": FLOAT, "keep_dims": False}),
        Node("y", "MatMul", ["m", "last"], {"T": FLOAT, "transpose_a": False, "transpose_b": False}),
    ]  # fmt: skip
    return Graph(nodes, inputs=["x"], outputs=["y"])


def program() -> tuple[Program, Graph]:
    lowered, graph = lowered_graph(trained())
    return canonicalize(lowered), graph


@pytest.mark.parametrize("dynamic", [False, True])
def test_batch_norms_make_up_for_samples(dynamic: bool) -> None:
    exact, graph = program()

    def snr(rounding: str, count: int = 0) -> float:
        made = quantize_weights(
            exact, lambda: iter(data(count, 2)), count, dynamic=dynamic, graphs=(trained(), graph), rounding=rounding
        )
        return judged(exact, made.converted.program, data(40, 3)).snr

    nearest, told, shown = snr("nearest"), snr("fitted"), snr("fitted", 40)
    assert told > nearest + 3
    assert shown > nearest + 3


def test_the_float_program_stays_as_it_is_and_the_file_hardly_grows() -> None:
    exact, graph = program()
    before = [weights(o).constant for o in exact.operations if o.code == "CONV_2D"]
    sizes = [
        len(pocketgraph.quantize(trained(), mode="weights", rounding=rounding).to_bytes())
        for rounding in ("nearest", "fitted")
    ]
    quantize_weights(exact, lambda: iter(()), 0, dynamic=True, graphs=(trained(), graph))
    assert [weights(o).constant for o in exact.operations if o.code == "CONV_2D"] == before
    assert sizes[1] < 1.01 * sizes[0]


def test_without_batch_norms_or_pictures_codes_are_the_nearest() -> None:
    rng = np.random.default_rng(0)
    nodes = parse("x = Placeholder(dtype=float, shape=[1,64])\ny = MatMul(x, w, T=float)")
    graph = Graph([*nodes, const("w", rng.normal(0, 1, (64, 64)).astype(np.float32))])
    fitted, nearest = (pocketgraph.quantize(graph, mode="weights", rounding=how) for how in ("fitted", "nearest"))
    assert fitted.to_bytes() == nearest.to_bytes()


def test_made_up_pictures_are_the_same_each_time_and_differ() -> None:
    first, second = made_up_inputs(program()[0]), made_up_inputs(program()[0])
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0][0], first[1][0])
    assert first[0][0].shape == (1, 16, 16, 3)
    assert all(np.abs(sample[0]).max() <= 1 for sample in first)
