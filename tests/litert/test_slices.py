"""Strided slices with every kind of mask, against the reference kernel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litert.parts import lowered
from litert.single_ops import run_node
from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import DType, Graph, Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.registry import evaluate

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@st.composite
def slices(draw: st.DrawFn) -> tuple[tuple[int, ...], list[list[int]], dict[str, int]]:
    """A shape; begin, end and strides; the masks."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    count = draw(st.integers(1, len(shape)))
    numbers = st.lists(st.integers(-6, 6), min_size=count, max_size=count)
    strides = st.lists(st.sampled_from([1, 1, 2, 3, -1, -2, 0]), min_size=count, max_size=count)
    masks = {name: draw(st.integers(0, 2**count - 1)) for name in MASKS if name != "ellipsis_mask"}
    masks["ellipsis_mask"] = draw(st.sampled_from([0, 0, *(1 << i for i in range(count))]))
    return shape, [draw(numbers), draw(numbers), draw(strides)], masks


@settings(max_examples=150, deadline=None)
@given(slices())
def test_strided_slices(case: tuple[tuple[int, ...], list[list[int]], dict[str, int]]) -> None:
    shape, numbers, masks = case
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    inputs = (x, *(np.array(values, np.int32) for values in numbers))
    attrs = {"T": DType.named("float"), "Index": DType.named("int32"), **masks}
    node = Node("s", "StridedSlice", ["x", "begin", "end", "strides"], attrs)
    try:
        (expected,) = evaluate(node, inputs)
    except PocketgraphError:  # as TensorFlow does: LiteRT must not answer what the reference refuses
        assert run_node(node, inputs, 1).reason
        return
    outcome = run_node(node, inputs, 1)
    if expected.size == 0:
        assert "empty" in outcome.reason
    else:
        assert outcome.reason == ""
        np.testing.assert_array_equal(outcome.outputs[0], expected)


@pytest.mark.parametrize(
    ("shape", "shift", "axis"),
    [
        ((4,), [1], [0]),
        ((1, 4, 5, 2), [-2, -2], [1, 2]),
        ((3, 4), [7, 2], [-1, 1]),
        ((2, 1, 3, 1, 2, 2), [1, 1], [2, 5]),
        ((2, 1, 3, 1, 2, 6), [1, -2], [2, 5]),
    ],
)
def test_rolls(shape: tuple[int, ...], shift: list[int], axis: list[int]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    inputs = (x, np.array(shift, np.int32), np.array(axis, np.int32))
    attrs = {"T": FLOAT, "Tshift": DType.named("int32"), "Taxis": DType.named("int32")}
    node = Node("r", "Roll", ["x", "shift", "axis"], attrs)
    outcome = run_node(node, inputs, 1)
    assert outcome.reason == ""
    np.testing.assert_array_equal(outcome.outputs[0], *evaluate(node, inputs))


@pytest.mark.parametrize(
    ("axis", "codes"), [(0, ["SLICE", "SLICE", "CONCATENATION"]), (1, ["GATHER"])], ids=["long", "thin"]
)
def test_what_is_rolled_is_in_two_pieces_or_gathered_along_a_thin_axis(axis: int, codes: list[str]) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[8, 2])
        shift = Const(int32 [1])
        axis = Const(int32 [{axis}])
        y = Roll(x, shift, axis, T=float, Tshift=int32, Taxis=int32)
    """)
    program = lowered(graph, [graph["y"]], ["x"], ["y"], {"x": (FLOAT, (8, 2))})
    assert [operation.code for operation in program.operations] == codes


@pytest.mark.parametrize(
    ("size", "window", "stride", "rate", "padding", "is_table"),
    [
        ((4, 6), (2, 3), (2, 3), 1, "VALID", False),
        ((5, 7), (2, 3), (2, 3), 1, "VALID", False),
        ((4, 6), (2, 3), (2, 3), 1, "SAME", False),
        ((5, 7), (2, 3), (2, 3), 1, "SAME", True),
        ((4, 6), (2, 3), (2, 3), 2, "VALID", True),
        ((5, 7), (2, 3), (1, 1), 1, "SAME", False),
        ((6, 7), (3, 2), (1, 1), 2, "VALID", False),
        ((9, 9), (9, 9), (1, 1), 1, "SAME", True),
    ],
)
def test_patches(
    size: tuple[int, int], window: tuple[int, int], stride: tuple[int, int], rate: int, padding: str, *, is_table: bool
) -> None:
    x = np.arange(2 * size[0] * size[1] * 4, dtype=np.float32).reshape(2, *size, 4)
    attrs = {"T": FLOAT, "ksizes": (1, *window, 1), "strides": (1, *stride, 1), "rates": (1, rate, rate, 1)}
    node = Node("p", "ExtractImagePatches", ["x"], {**attrs, "padding": padding.encode()})
    outcome = run_node(node, (x,), 1)
    assert outcome.reason == ""
    np.testing.assert_array_equal(outcome.outputs[0], *evaluate(node, (x,)))
    picture = parse(f"x = Placeholder(dtype=float, shape={list(x.shape)})")
    program = lowered(Graph([*picture, node]), [node], ["x"], ["p"], {"x": (FLOAT, x.shape)})
    assert ("GATHER" in {operation.code for operation in program.operations}) == is_table
