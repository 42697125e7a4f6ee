"""Reshapes behind what follows them by channel: the same numbers, biases and activations inside convolutions."""

from __future__ import annotations

import numpy as np
import pytest

from litert.parts import lowered
from pocketgraph.graph import Graph
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.rewriting.optimize import optimize_for_latency
from pocketgraph.litert.rewriting.reshape_sinking import reshape_later
from pocketgraph.runtime import Session
from support import assert_close

X = np.random.default_rng(0).normal(size=(1, 1, 6, 2)).astype(np.float32)

ALONG_ONE_AXIS = """
    x = Placeholder(dtype=float, shape=[1, 1, 6, 2])
    w = Const(float [[[[1, 2, -1], [0.5, -2, 3]], [[2, 1, 1], [-1, 1, 0.25]]]])
    c = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
    s = Squeeze(c, T=float, squeeze_dims=[1])
    b = Const(float [1, -2, 0.5])
"""


def hastened(graph: Graph, shape: tuple[int, ...], output: str) -> Program:
    program = lowered(graph, list(graph.nodes.values()), ["x:0"], [output], {"x:0": (FLOAT, shape)})
    optimize_for_latency(program)
    return program


@pytest.mark.parametrize(
    ("ending", "codes", "activation"),
    [
        ("y = BiasAdd(s, b, T=float)", ["CONV_2D", "RESHAPE"], ""),
        ("a = BiasAdd(s, b, T=float); y = Relu(a, T=float)", ["CONV_2D", "RESHAPE"], "RELU"),
        ("m = Mul(s, b, T=float); a = AddV2(m, b, T=float); y = Relu6(a, T=float)", ["CONV_2D", "RESHAPE"], "RELU6"),
        ("a = Sub(b, s, T=float); y = Tanh(a, T=float)", ["CONV_2D", "RESHAPE", "TANH"], ""),
    ],
)
def test_biases_and_activations_behind_a_reshape_join_the_convolution(
    ending: str, codes: list[str], activation: str
) -> None:
    graph = parse(ALONG_ONE_AXIS + "\n".join(ending.split("; ")))
    operations = hastened(graph, X.shape, "y:0").operations
    assert [operation.code for operation in operations] == codes
    assert operations[0].options["activation"] == activation
    same_on_both_engines(graph)


@pytest.mark.parametrize(
    "ending",
    [
        "r = Const(float [[[1, 2, 3], [4, 5, 6], [7, 8, 9], [1, 1, 1], [2, 2, 2], [3, 3, 3]]]); y = Add(s, r, T=float)",
        "z = Relu(s, T=float); y = AddV2(s, z, T=float)",
        "k = Const(int32 [9, 2]); f = Reshape(s, k, T=float); v = Const(float [1, -1]); y = Mul(f, v, T=float)",
    ],
)
def test_what_does_not_go_over_channels_or_is_read_twice_stays_where_it_is(ending: str) -> None:
    same_on_both_engines(parse(ALONG_ONE_AXIS + "\n".join(ending.split("; "))))


def same_on_both_engines(graph: Graph) -> None:
    with Session(graph, engine="litert", cache_dir="") as ours, Session(graph, engine="reference") as exact:
        for wanted in ("y", ["s", "y"]):
            for found, expected in zip(ours.run(wanted, {"x": X}), exact.run(wanted, {"x": X}), strict=True):
                assert_close(found, expected, 1e-6)


def test_each_of_many_layers_has_its_reshape_behind_its_bias() -> None:
    weights, bias, to_three, to_two = (
        Value("constant", dtype, array.shape, Constant.of(array))
        for dtype, array in (
            (FLOAT, np.eye(2, dtype=np.float32)),
            (FLOAT, np.ones(2, np.float32)),
            (INT32, np.array([1, 1, 2], np.int32)),
            (INT32, np.array([1, 2], np.int32)),
        )
    )
    x = last = Value("x", FLOAT, (1, 2))
    operations: list[Operation] = []
    for _ in range(500):
        before, product, last = last, Value("p", FLOAT, (1, 2)), Value("l", FLOAT, (1, 2))
        row, moved = Value("r", FLOAT, (1, 1, 2)), Value("m", FLOAT, (1, 1, 2))
        operations += [
            Operation("FULLY_CONNECTED", [before, weights, None], [product], {"activation": ""}, ()),
            Operation("RESHAPE", [product, to_three], [row], {}, ()),
            Operation("ADD", [row, bias], [moved], {"activation": ""}, ()),
            Operation("RESHAPE", [moved, to_two], [last], {}, ()),
        ]
    program = Program([x], [last], operations)
    reshape_later(program)
    layer = ["FULLY_CONNECTED", "ADD", "RESHAPE", "RESHAPE"]
    assert [operation.code for operation in program.operations] == 500 * layer
    made = {x}
    for operation in program.operations:
        assert all(value in made or value.constant is not None for value in operation.inputs if value is not None)
        made.update(operation.outputs)
