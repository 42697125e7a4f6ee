"""Copies of a value in a larger shape: by TILE, or by a product where single numbers are repeated."""

from __future__ import annotations

import numpy as np
import pytest

from litert.single_ops import run_node
from pocketgraph.graph import DType, Graph, Node, const
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.runtime import Session
from quantize_nets import float_program


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "bool"])
@pytest.mark.parametrize(
    ("own", "shape"),
    [
        ((4, 1, 1, 6), (4, 3, 5, 6)),
        ((2, 3, 1), (2, 3, 7)),
        ((1, 3, 1), (2, 3, 7)),
        ((), (3, 4)),
        ((5,), (2, 3, 5)),
        ((2, 1, 3, 1, 2), (2, 4, 3, 2, 2)),
    ],
)
def test_broadcasting_is_numpys(own: tuple[int, ...], shape: tuple[int, ...], dtype: str) -> None:
    values = np.random.default_rng(1).integers(-3, 4, own).astype(dtype)
    if dtype == "float32" and values.size > 3:
        values.reshape(-1)[:3] = (np.nan, np.inf, -0.0)
    node = Node("b", "BroadcastTo", [], {"T": DType.of_numpy(values.dtype), "Tidx": DType.named("int32")})
    outcome = run_node(node, (values, np.array(shape, np.int32)), 1)
    assert outcome.reason == ""
    np.testing.assert_array_equal(outcome.outputs[0], np.broadcast_to(values, shape))
    if dtype == "float32":
        expected = np.broadcast_to(values, shape)
        np.testing.assert_array_equal(np.signbit(outcome.outputs[0]), np.signbit(expected))


@pytest.mark.parametrize(("shape", "multiples"), [((2, 1, 3, 1), (1, 4, 1, 5)), ((2, 3), (2, 2)), ((3, 1), (1, 6))])
def test_tiles_are_numpys(shape: tuple[int, ...], multiples: tuple[int, ...]) -> None:
    values = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    node = Node("t", "Tile", [], {"T": DType.named("float"), "Tmultiples": DType.named("int32")})
    outcome = run_node(node, (values, np.array(multiples, np.int32)), 1)
    assert outcome.reason == ""
    np.testing.assert_array_equal(outcome.outputs[0], np.tile(values, multiples))


def test_a_shape_that_does_not_fit_is_refused() -> None:
    node = Node("b", "BroadcastTo", [], {"T": DType.named("float"), "Tidx": DType.named("int32")})
    outcome = run_node(node, (np.zeros((2, 3), np.float32), np.array([2, 6], np.int32)), 1)
    assert outcome.reason


@pytest.mark.parametrize(("own", "shape"), [((3, 1), (0, 3, 1)), ((3, 1), (3, 0)), ((), (0, 2))])
def test_nothing_is_left_to_the_reference_engine(own: tuple[int, ...], shape: tuple[int, ...]) -> None:
    node = Node("b", "BroadcastTo", [], {"T": DType.named("float"), "Tidx": DType.named("int32")})
    outcome = run_node(node, (np.ones(own, np.float32), np.array(shape, np.int32)), 1)
    assert "empty tensors" in outcome.reason


@pytest.mark.parametrize(("op", "fill"), [("Greater", 0.5), ("Maximum", 0.25), ("Mul", -0.0), ("Mul", np.nan)])
def test_a_constant_of_one_number_throughout_takes_the_room_of_one(op: str, fill: float) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,4,4,3])
        size = Shape(x, T=float, out_type=int32)
        number = Const(float 1)
        ones = Fill(size, number, T=float, index_type=int32)
        filled = Mul(ones, half, T=float)
        y = {op}(x, filled, T=float)
    """)
    graph = Graph([*graph, const("half", np.float32(fill))])
    x = np.random.default_rng(3).uniform(-1, 1, (2, 4, 4, 3)).astype(np.float32)
    program = float_program(graph, ["y"], {"x": x.shape})
    assert max(v.size for o in program.operations for v in o.operands if v.constant is not None) == 1
    with Session(graph, exact=True) as session:
        (wanted,) = session.run(["y"], {"x": x})
    (given,) = ProgramRunner(program)([x])
    np.testing.assert_array_equal(given, wanted)
    np.testing.assert_array_equal(np.signbit(given), np.signbit(wanted))
