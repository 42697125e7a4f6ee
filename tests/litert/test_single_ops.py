"""Every lowering, one node at a time, against what TensorFlow computed."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pytest

from kernels.cases import Case, from_list
from litert.single_ops import run_node
from pocketgraph.graph import Node
from pocketgraph.graph.dtype import FLOAT, INT32, INT64
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.lowering import LOWERINGS
from support import assert_close

LISTS = (
    "arrays",
    "binary",
    "elementwise",
    "images",
    "networks",
    "quantization",
    "reductions",
    "sequences",
    "texts",
    "warps",
    "xla_moves",
)

NOT_HELD_TO = {
    "Cast_144": "floats beyond int32",
    "Cast_145": "floats beyond int64",
    "Exp_0": "NaN",
    "Max_11": "NaN",
    "MaxPool_9": "NaN and infinity in a window",
    "Maximum_11": "NaN",
    "Min_11": "NaN",
    "Minimum_10": "NaN",
    "Sigmoid_0": "1e30",
}
"""Values for which LiteRT answers differently (lowerings/math/elementwise.py); the finite ones are still compared."""

RELATIVE = 1e-5
UNITS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""16-bit types: a result may be the neighbour of TensorFlow's, one unit in the last place of the largest element."""


@lru_cache(maxsize=1)
def lowered_cases() -> dict[str, Case]:
    table = LOWERINGS
    return {case.node.name: case for source in LISTS for case in from_list(source) if case.node.op in table}


@pytest.mark.parametrize("name", lowered_cases())
def test_a_node_gives_what_tensorflow_gives_or_is_refused(name: str) -> None:
    case = lowered_cases()[name]
    outputs = 1 if case.node.op.startswith("FusedBatchNorm") else len(case.expected)
    outcome = run_node(case.node, case.inputs, outputs)
    if outcome.reason:
        assert is_expected_refusal(case, outcome.reason), outcome.reason
        return
    for actual, expected in zip(outcome.outputs, case.expected, strict=False):
        assert actual.dtype == expected.dtype
        assert actual.shape == expected.shape
        if expected.dtype.name in UNITS:
            assert_close(*(array.astype("f4") for array in (actual, expected)), UNITS[expected.dtype.name])
        elif expected.dtype.kind == "f":
            compared = np.isfinite(expected)
            if name not in NOT_HELD_TO:
                np.testing.assert_array_equal(actual[~compared], expected[~compared])
            elif actual.shape == case.inputs[0].shape:
                compared &= np.abs(case.inputs[0]) < 1e20
            else:
                continue
            assert_close(actual[compared], expected[compared], RELATIVE)
        elif name not in NOT_HELD_TO:
            np.testing.assert_array_equal(actual, expected)


def is_expected_refusal(case: Case, reason: str) -> bool:
    """Whether the case has something that LiteRT has no right operator for."""
    odd_types = {a.dtype.name for a in (*case.inputs, *case.expected)} - {"float32", "int32", "int64", "bool"}
    is_empty = any(0 in array.shape for array in (*case.inputs, *case.expected))
    needs_int64 = "does not take int" in reason
    known = (
        "over batch or channels",
        "in training mode with running averages",
        "the top 0 of",
        "of rank 2 with 1 block sizes",
        "do not broadcast",
        "repeats an axis of one operand",
        "do not lie side by side",
        "cut towards 0",
        "rows that no index names",
        "bits other than the sign",
        "does not read the bits of int32 as int64",
    )
    return bool(odd_types) or is_empty or needs_int64 or any(part in reason for part in known)


def test_every_row_of_the_table_is_really_run() -> None:
    """A refusal of everything would pass the test above."""
    run = set()
    for case in lowered_cases().values():
        if case.node.op not in run and not run_node(case.node, case.inputs, 1).reason:
            run.add(case.node.op)
    in_other_files = {"BitwiseAnd", "ConcatV2", "NoOp", "StopGradient"}
    same_function_as_another_row = {
        "DepthwiseConv2d",
        "PreventGradient",
        "Snapshot",
        "TopK",
        "AccumulateNV2",
        "DynamicStitch",
    }
    same_function_as_another_row |= {"XlaClusterOutput"}
    same_function_as_another_row |= {op for op in LOWERINGS if op.startswith("BatchMatrix")}
    same_function_as_another_row |= {"FusedBatchNormGradV2", "FusedBatchNormGradV3"}
    assert set(LOWERINGS) - run <= in_other_files | same_function_as_another_row


def test_squared_differences_of_int64_which_litert_has_no_kernel_for() -> None:
    operands = np.array([[2**31, -3, 7]], np.int64), np.array([[1], [-(2**30)]], np.int64)
    outcome = run_node(Node("y", "SquaredDifference", ["a", "b"], {"T": INT64}), operands, 1)
    assert not outcome.reason
    np.testing.assert_array_equal(outcome.outputs[0], (operands[0] - operands[1]) ** 2)


@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative", "MatMul"])
def test_weights_may_be_computed(op: str) -> None:
    ran = 0
    for case in lowered_cases().values():
        types = {array.dtype.name for array in case.inputs}
        if case.node.op != op or types != {"float32"} or any(0 in a.shape for a in (*case.inputs, *case.expected)):
            continue
        outcome = run_node(case.node, case.inputs, 1, constant=())
        assert not outcome.reason
        assert_close(outcome.outputs[0], case.expected[0], RELATIVE)
        ran += 1
    assert ran >= 3


@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((1, 8, 2, 8, 2, 32), (0, 2, 4, 1, 3, 5)),  # patches of a picture, of one
        ((3, 4, 2, 5, 2, 7), (0, 2, 4, 1, 3, 5)),
        ((2, 3, 2, 3, 2, 3, 2), (6, 4, 2, 0, 1, 3, 5)),
        ((2, 3, 2, 3, 2, 3, 2, 3), (7, 6, 5, 4, 3, 2, 1, 0)),
        ((2, 3, 4, 2, 3, 4), (3, 4, 5, 0, 1, 2)),
        ((1, 1, 1, 1, 1, 1), (5, 0, 1, 2, 3, 4)),
    ],
)
def test_many_axes_are_permuted(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    node = Node("moved", "Transpose", ("x", "order"), {"T": FLOAT, "Tperm": INT32})
    outcome = run_node(node, (values, np.int32(order)), 1, constant=(1,))
    assert not outcome.reason
    np.testing.assert_array_equal(outcome.outputs[0], values.transpose(order))


@pytest.mark.parametrize("shapes", [((2,) * 6, (2,) * 6, ()), ((2, 1, 1, 3, 1, 2), (2, 4, 2, 3, 1, 2), (1,) * 6)])
def test_choices_of_many_axes(shapes: tuple[tuple[int, ...], ...]) -> None:
    draw = np.random.default_rng(5)
    condition = draw.uniform(size=shapes[0]) < 0.5
    yes, no = (draw.normal(size=shape).astype("f4") for shape in shapes[1:])
    node = Node("chosen", "SelectV2", ("condition", "yes", "no"), {"T": FLOAT})
    outcome = run_node(node, (condition, yes, no), 1)
    assert not outcome.reason
    np.testing.assert_array_equal(outcome.outputs[0], np.where(condition, yes, no))


@pytest.mark.parametrize(
    ("shape", "axes", "keep"),
    [
        ((7, 2, 4, 2, 3, 4, 2, 3), (5, 6, 7), True),
        ((1, 2, 2, 6, 1, 6, 1, 3), (0, 2, 4, 6), False),  # the gradient of a Tile
        ((2, 3, 2, 3, 2, 3, 2, 3), (0, 2, 4, 6), False),
        ((1, 2, 1, 2, 1, 2, 1), (0, 2), False),
        ((1, 4, 5, 3, 1), (1, 2, 4), True),  # an instance norm's
        ((1, 4, 5, 3, 1), (1, 2, 4), False),
        ((2, 3, 1, 1), (1, 2, 3), False),
    ],
)
@pytest.mark.parametrize(("op", "expected"), [("Sum", np.sum), ("Mean", np.mean), ("Max", np.max)])
def test_reductions_of_many_axes(
    shape: tuple[int, ...], axes: tuple[int, ...], keep: bool, op: str, expected: Callable[..., Array]
) -> None:
    values = np.random.default_rng(7).integers(-9, 9, shape).astype("f4")
    node = Node("reduced", op, ("x", "axes"), {"T": FLOAT, "Tidx": INT32, "keep_dims": keep})
    outcome = run_node(node, (values, np.int32(axes)), 1, constant=(1,))
    assert not outcome.reason
    np.testing.assert_allclose(outcome.outputs[0], expected(values, axes, keepdims=keep), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "axis"), [((2, 1), 1), ((2, 1, 3, 2, 2, 2), 2), ((2, 1, 3, 2, 1, 2, 2), 0), ((1, 2, 1, 1, 1, 2, 4), 6)]
)
@pytest.mark.parametrize("reverse", [False, True])
def test_running_products_without_the_element_itself(shape: tuple[int, ...], axis: int, reverse: bool) -> None:
    values = np.random.default_rng(7).integers(1, 4, shape).astype("f4")
    node = Node(
        "products", "Cumprod", ("x", "axis"), {"T": FLOAT, "Tidx": INT32, "exclusive": True, "reverse": reverse}
    )
    outcome = run_node(node, (values, np.int32(axis)), 1, constant=(1,))
    assert not outcome.reason
    turned = np.flip(values, axis) if reverse else values
    expected = np.cumprod(turned, axis) / turned
    np.testing.assert_allclose(outcome.outputs[0], np.flip(expected, axis) if reverse else expected, rtol=1e-6)
