"""Transposed convolutions as plain ones, against the definition: each pixel spreads the filter over the result."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litert.parts import lowered
from pocketgraph.graph import Graph, Node, Shape, Tensor
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.litert.program import Program
from pocketgraph.litert.rewriting.optimize import optimize_for_latency
from pocketgraph.runtime import Session

RANDOM = np.random.default_rng(3)


def graph_of(
    source: tuple[int, ...], size: tuple[int, ...], filter_: np.ndarray, strides: tuple[int, int], padding: str
) -> Graph:
    attrs = {"T": FLOAT, "strides": (1, *strides, 1), "padding": padding.encode()}
    bias = RANDOM.normal(size=size[3]).astype(np.float32)
    return Graph((
        Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape(source)}),
        Node("size", "Const", (), {"dtype": INT32, "value": Tensor.from_numpy(np.array(size, np.int32))}),
        Node("filter", "Const", (), {"dtype": FLOAT, "value": Tensor.from_numpy(filter_)}),
        Node("bias", "Const", (), {"dtype": FLOAT, "value": Tensor.from_numpy(bias)}),
        Node("spread", "Conv2DBackpropInput", ("size", "filter", "x"), attrs),
        Node("sum", "BiasAdd", ("spread", "bias"), {"T": FLOAT}),
        Node("y", "Relu", ("sum",), {"T": FLOAT}),
    ))  # fmt: skip


def spread(
    x: np.ndarray, filter_: np.ndarray, size: tuple[int, ...], strides: tuple[int, int], padding: str
) -> np.ndarray:
    batch, rows, columns, _ = x.shape
    height, width, depth, _ = filter_.shape
    whole = np.zeros((batch, (rows - 1) * strides[0] + height, (columns - 1) * strides[1] + width, depth))
    for row in range(rows):
        for column in range(columns):
            part = np.einsum("bi,hwoi->bhwo", x[:, row, column], filter_)
            whole[
                :, row * strides[0] : row * strides[0] + height, column * strides[1] : column * strides[1] + width
            ] += part
    if padding == "SAME":
        cut = [
            max((n - 1) * s + k - o, 0) // 2
            for n, s, k, o in zip(x.shape[1:3], strides, filter_.shape, size[1:3], strict=False)
        ]
        whole = whole[:, cut[0] :, cut[1] :]
    result = np.zeros(size)
    whole = whole[:, : size[1], : size[2]]
    result[:, : whole.shape[1], : whole.shape[2]] = whole
    return result


def check(
    source: tuple[int, ...],
    more: tuple[int, int],
    extent: tuple[int, int],
    depth: int,
    strides: tuple[int, int],
    padding: str,
) -> None:
    """``more`` is by how many pixels the result differs from the smallest or largest that fits."""
    filter_ = RANDOM.normal(size=(*extent, depth, source[3])).astype(np.float32)
    ends = [
        n * s - m % s if padding == "SAME" else (n - 1) * s + k + m % s
        for n, s, k, m in zip(source[1:3], strides, extent, more, strict=True)
    ]
    size = (source[0], *ends, depth)
    graph = graph_of(source, size, filter_, strides, padding)
    x = RANDOM.normal(size=source).astype(np.float32)
    bias = graph["bias"].attrs["value"].numpy()
    expected = np.maximum(spread(x, filter_, size, strides, padding) + bias, 0).astype(np.float32)
    most = max(1.0, expected.max(initial=0))  # what is summed is about 1, of a sum little may be left
    with Session(graph, engine="litert", cache_dir="") as session:
        (found,) = session.run("y", {"x": x})
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * most)


def program_of(
    source: tuple[int, ...],
    size: tuple[int, ...],
    extent: tuple[int, int],
    strides: tuple[int, int],
    padding: str = "SAME",
) -> Program:
    graph = graph_of(
        source, size, RANDOM.normal(size=(*extent, size[3], source[3])).astype(np.float32), strides, padding
    )
    specs = {"x:0": (FLOAT, source)}
    program = lowered(graph, list(graph.nodes.values()), ["x:0"], ["y:0"], specs)
    optimize_for_latency(program)
    return program


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.integers(1, 2), st.integers(1, 6), st.integers(1, 6), st.integers(1, 3)),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.tuples(st.integers(1, 7), st.integers(1, 7)),
    st.integers(1, 4),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.sampled_from(["SAME", "VALID"]),
)
def test_every_size(
    source: tuple[int, ...],
    more: tuple[int, int],
    extent: tuple[int, int],
    depth: int,
    strides: tuple[int, int],
    padding: str,
) -> None:
    check(source, more, extent, depth, strides, padding)


@pytest.mark.parametrize(("extent", "stride"), [(2, 2), (3, 2), (4, 2), (5, 2), (3, 3), (9, 3), (16, 8), (8, 4)])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_the_usual_filters(extent: int, stride: int, padding: str) -> None:
    check((1, 7, 5, 8), (0, 0), (extent, extent), 6, (stride, stride), padding)


def test_a_filter_as_long_as_its_stride_has_no_zeros_and_no_borders() -> None:
    program = program_of((1, 8, 8, 4), (1, 16, 16, 3), (2, 2), (2, 2))
    assert [operation.code for operation in program.operations] == ["CONV_2D", "DEPTH_TO_SPACE"]
    assert program.operations[0].inputs[1].shape == (12, 1, 1, 4)
    assert program.operations[0].options["activation"] == "RELU"


def test_what_padding_cuts_off_is_computed_where_that_saves_zeros() -> None:
    """A 4x4 filter that moves by 2 has two elements for each pixel: no zeros when the result begins a pixel earlier."""
    program = program_of((1, 16, 16, 64), (1, 32, 32, 64), (4, 4), (2, 2))
    assert [operation.code for operation in program.operations] == ["PAD", "CONV_2D", "DEPTH_TO_SPACE", "SLICE"]
    assert program.operations[1].inputs[1].shape == (256, 2, 2, 64)


def test_along_one_axis_nothing_is_moved() -> None:
    codes = [operation.code for operation in program_of((1, 1, 50, 8), (1, 1, 200, 8), (1, 4), (1, 4)).operations]
    assert codes == ["CONV_2D", "RESHAPE"]


def test_a_filter_of_mostly_zeros_stays_a_transposed_convolution() -> None:
    codes = [operation.code for operation in program_of((1, 4, 4, 8), (1, 32, 32, 8), (1, 1), (8, 8)).operations]
    assert "TRANSPOSE_CONV" in codes
