"""Pooling that tells places, and un-pooling, on LiteRT: equal to the reference kernels, however it is spelled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litert.parts import lowered
from litert.single_ops import run_node
from pocketgraph import Session
from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Graph, Node, Shape, const
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.registry import evaluate

FLOAT, INT32, INT64 = (DType.named(name) for name in ("float", "int32", "int64"))


def pooling(window: tuple[int, int], padding: str, **attrs: Any) -> Node:
    size = (1, *window, 1)
    return Node(
        "pool", "MaxPoolWithArgmax", ["x"],
        {"T": FLOAT, "ksize": size, "strides": size, "padding": padding.encode(), "Targmax": INT64, **attrs},
    )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(*(st.integers(1, top) for top in (2, 7, 7, 3))),
    window=st.sampled_from([(2, 2), (1, 2), (2, 1), (3, 3), (3, 2), (1, 1)]),
    padding=st.sampled_from(["SAME", "VALID"]),
    batched=st.booleans(),
    wide=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_places_are_those_of_the_first_largest(
    shape: tuple[int, int, int, int], window: tuple[int, int], padding: str, batched: bool, wide: bool, seed: int
) -> None:
    numbers = np.random.default_rng(seed)
    x = numbers.choice(np.array([-np.inf, -1, 0, 1, np.inf], np.float32), shape)  # many are equal
    node = pooling(window, padding, include_batch_in_index=batched, Targmax=INT64 if wide else INT32)
    try:
        expected = evaluate(node, [x])
    except RunError:
        return
    outcome = run_node(node, (x,), 2)
    if expected[0].size == 0:
        assert outcome.reason
        return
    if "side by side" in outcome.reason:  # a border in front of the first pixel
        assert padding == "SAME"
        assert 3 in window
        return
    assert outcome.reason == ""
    np.testing.assert_array_equal(outcome.outputs[0], expected[0])
    assert outcome.outputs[1].dtype == (np.int64 if wide else np.int32)
    np.testing.assert_array_equal(outcome.outputs[1], expected[1])


@pytest.mark.parametrize("strides", [(1, 1), (2, 1), (3, 3)])
def test_windows_that_overlap_or_lie_apart_stay_on_the_reference_engine(strides: tuple[int, int]) -> None:
    x = np.zeros((1, 6, 6, 1), np.float32)
    outcome = run_node(pooling((2, 2), "VALID", strides=(1, *strides, 1)), (x,), 2)
    assert "side by side" in outcome.reason


def nodes_from(shape: tuple[int, ...], *, padding: str = "SAME", **attrs: Any) -> list[Node]:
    """An image, its pooling by windows of 2 and something to put back: four times what was pooled."""
    return [
        Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape(shape)}),
        pooling((2, 2), padding, **attrs),
        const("four", np.float32(4)),
        Node("values", "Mul", ["pool", "four"], {"T": FLOAT}),
    ]


def arithmetic(name: str, op: str, left: str, right: str, dtype: DType = INT32) -> Node:
    return Node(name, op, [left, right], {"T": dtype})


def stacked(shape: tuple[int, ...], pooled: tuple[int, ...], *, wrong: str = "") -> list[Node]:
    """The usual spelling: rows (image, row, column, channel) out of places, transposed from a stack of the four."""
    batch, _, width, depth = shape
    count = int(np.prod(pooled))
    images = np.broadcast_to(np.arange(batch, dtype=np.int32).reshape(-1, 1, 1, 1), pooled)
    channels = np.broadcast_to(np.arange(depth, dtype=np.int32), pooled)
    return [
        Node("place", "Cast", ["pool:1"], {"SrcT": INT64, "DstT": INT32}),
        const("row_size", np.int32(width * depth + (wrong == "rows"))),
        const("depth", np.int32(depth)),
        const("width", np.int32(width)),
        const("images", np.ascontiguousarray(images)),
        const("channels", np.ascontiguousarray(channels)),
        arithmetic("rows", "FloorDiv", "place", "row_size"),
        arithmetic("pixels", "FloorDiv", "place", "depth"),
        arithmetic("columns", "FloorMod", "pixels", "width"),
        Node("stack", "Pack", ["images", "rows", "columns", "channels"], {"T": INT32, "N": 4, "axis": 0}),
        const("flat", np.array([4, count], np.int32)),
        Node("matrix", "Reshape", ["stack", "flat"], {"T": INT32, "Tshape": INT32}),
        const("order", np.array([1, 0], np.int32)),
        Node("indices", "Transpose", ["matrix", "order"], {"T": INT32, "Tperm": INT32}),
        const("all", np.array([count], np.int32)),
        Node("updates", "Reshape", ["values", "all"], {"T": FLOAT, "Tshape": INT32}),
        const("shape", np.array(shape, np.int32)),
        Node("y", "ScatterNd", ["indices", "updates", "shape"], {"T": FLOAT, "Tindices": INT32}),
    ]


def flat(shape: tuple[int, ...], count: int) -> list[Node]:
    """The short spelling, for places that count the images as well: flat positions in a flat image."""
    return [
        Node("place", "Cast", ["pool:1"], {"SrcT": INT64, "DstT": INT32}),
        const("column", np.array([count, 1], np.int32)),
        Node("indices", "Reshape", ["place", "column"], {"T": INT32, "Tshape": INT32}),
        const("all", np.array([count], np.int32)),
        Node("updates", "Reshape", ["values", "all"], {"T": FLOAT, "Tshape": INT32}),
        const("size", np.array([int(np.prod(shape))], np.int32)),
        Node("scattered", "ScatterNd", ["indices", "updates", "size"], {"T": FLOAT, "Tindices": INT32}),
        const("shape", np.array(shape, np.int32)),
        Node("y", "Reshape", ["scattered", "shape"], {"T": FLOAT, "Tshape": INT32}),
    ]


def image(shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(3).integers(-2, 3, shape).astype(np.float32)


def codes_and_result(graph: Graph, x: Array, fetch: str = "y:0") -> tuple[list[str], Array]:
    """The operators that the graph becomes, and what the session makes of it."""
    dtype = DType.of_numpy(x.dtype)
    nodes = [node for node in graph if node.op not in ("Const", "Placeholder")]
    program = lowered(graph, nodes, ["x:0"], [fetch], {"x:0": (dtype, x.shape)})
    with Session(graph, engine="litert", cache_dir="") as session:
        return [operation.code for operation in program.operations], session.run(fetch, {"x": x})[0]


def on_reference(graph: Graph, x: Array) -> Array:
    with Session(graph, engine="reference") as session:
        return session.run("y", {"x": x})[0]


def codes_of_what_is_right(graph: Graph, shape: tuple[int, ...]) -> list[str]:
    """The operators of a graph whose results are the reference engine's."""
    x = image(shape)
    codes, result = codes_and_result(graph, x)
    np.testing.assert_array_equal(result, on_reference(graph, x))
    return codes


@pytest.mark.parametrize("shape", [(1, 4, 6, 3), (2, 4, 4, 2), (1, 5, 7, 1)])
def test_stacked_places_are_put_back_without_indices(shape: tuple[int, ...]) -> None:
    pooled = (shape[0], -(-shape[1] // 2), -(-shape[2] // 2), shape[3])
    graph = Graph([*nodes_from(shape), *stacked(shape, pooled)])
    assert not {"SCATTER_ND", "FLOOR_DIV"} & set(codes_of_what_is_right(graph, shape))


def test_by_hand() -> None:
    """Of equals the first one in a row counts, an upper row before a lower one."""
    graph = Graph([*nodes_from((1, 2, 4, 1)), *stacked((1, 2, 4, 1), (1, 1, 2, 1))])
    x = np.array([[1, 3, 0, 2], [3, 3, 5, 5]], np.float32).reshape(1, 2, 4, 1)
    _, result = codes_and_result(graph, x)
    np.testing.assert_array_equal(result.reshape(2, 4), [[0, 12, 0, 0], [0, 0, 20, 0]])


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_flat_places_are_put_back_without_indices(padding: str) -> None:
    shape = (2, 5, 5, 2)
    count = 2 * (9 if padding == "SAME" else 4) * 2
    graph = Graph([*nodes_from(shape, padding=padding, include_batch_in_index=True), *flat(shape, count)])
    assert "SCATTER_ND" not in codes_of_what_is_right(graph, shape)


def test_values_that_are_not_finite_stay_in_their_places() -> None:
    shape = (1, 4, 4, 1)
    graph = Graph([*nodes_from(shape), *stacked(shape, (1, 2, 2, 1))])
    x = image(shape)
    x[0, 0, 1, 0], x[0, 2, 2, 0] = np.inf, np.inf
    x[0, :2, 2:, 0] = -np.inf
    _, result = codes_and_result(graph, x)
    np.testing.assert_array_equal(result, on_reference(graph, x))
    assert np.isfinite(result).sum() == 13


def test_other_arithmetic_is_not_taken_for_it() -> None:
    shape = (1, 4, 6, 3)
    graph = Graph([*nodes_from(shape), *stacked(shape, (1, 2, 3, 3), wrong="rows")])
    assert "SCATTER_ND" in codes_of_what_is_right(graph, shape)


def test_places_in_another_order_are_not_taken_for_it() -> None:
    """Turned around, the indices belong to other values; what lies where is still right."""
    shape = (1, 4, 4, 1)
    nodes = flat(shape, 4)
    turned = [
        const("axis", np.array([2], np.int32)),
        Node("turned", "ReverseV2", ["pool:1", "axis"], {"T": INT64, "Tidx": INT32}),
        nodes[0].replace(inputs=["turned"]),
    ]
    graph = Graph([*nodes_from(shape), *turned, *nodes[1:]])
    assert "SCATTER_ND" in codes_of_what_is_right(graph, shape)


def test_an_index_that_rests_on_two_places_is_not_taken_for_it() -> None:
    """x + y - y with y the neighbour's place is x only as long as nothing is added twice."""
    shape = (1, 4, 4, 1)
    nodes = flat(shape, 4)
    mixed = [
        const("turn", np.array([0, 2, 1, 3], np.int32)),
        Node("other", "Transpose", ["pool:1", "turn"], {"T": INT64, "Tperm": INT32}),
        arithmetic("sum", "Add", "pool:1", "other", INT64),
        arithmetic("same", "Sub", "sum", "other", INT64),
        nodes[0].replace(inputs=["same"]),
    ]
    graph = Graph([*nodes_from(shape), *mixed, *nodes[1:]])
    assert "SCATTER_ND" in codes_of_what_is_right(graph, shape)


def test_the_pooled_image_in_another_part_of_the_graph() -> None:
    """What LiteRT does not see, it cannot compare; the indices do then."""
    shape = (1, 4, 4, 2)
    graph = Graph([*nodes_from(shape), *stacked(shape, (1, 2, 2, 2))])
    x = image(shape)
    inside = {"place", "rows", "pixels", "columns", "stack", "matrix", "indices", "y"}
    pooled, places = evaluate(graph["pool"], [x])
    specs = {"pool:1": (INT64, places.shape), "updates:0": (FLOAT, (pooled.size,))}
    program = lowered(graph, [n for n in graph if n.name in inside], list(specs), ["y:0"], specs)
    assert "SCATTER_ND" in [operation.code for operation in program.operations]


def scattering(indices: Array, updates: Array, shape: list[int]) -> Any:
    node = Node("y", "ScatterNd", ["i", "u", "s"], {"T": DType.of_numpy(updates.dtype), "Tindices": INT32})
    operands = (indices, updates, np.array(shape, np.int32))
    return run_node(node, operands, 1), evaluate(node, operands)[0]


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.uint8])
def test_scattering_adds_what_meets(dtype: Any) -> None:
    indices = np.array([[0], [2], [0]], np.int32)
    outcome, expected = scattering(indices, np.array([[1, 2], [3, 4], [10, 20]]).astype(dtype), [4, 2])
    assert outcome.reason == ""
    np.testing.assert_array_equal(outcome.outputs[0], expected)
    np.testing.assert_array_equal(expected, np.array([[11, 22], [0, 0], [3, 4], [0, 0]]))


def test_scattering_of_single_elements() -> None:
    indices = np.array([[[0, 1], [2, 0]]], np.int32)
    outcome, expected = scattering(indices, np.array([[5, 7]], np.float32), [3, 2])
    assert outcome.reason == ""
    np.testing.assert_array_equal(outcome.outputs[0], expected)


@pytest.mark.parametrize("bad", [4, -1, 2**30])
def test_indices_outside_are_an_error(bad: int) -> None:
    nodes = [
        Node("i", "Placeholder", (), {"dtype": INT32, "shape": Shape((1, 1))}),
        const("u", np.array([1], np.float32)),
        const("s", np.array([4], np.int32)),
        Node("y", "ScatterNd", ["i", "u", "s"], {"T": FLOAT, "Tindices": INT32}),
    ]
    with Session(Graph(nodes), engine="litert", cache_dir="") as session:
        np.testing.assert_array_equal(session.run("y", {"i": np.array([[3]], np.int32)})[0], [0, 0, 0, 1])
        with pytest.raises(RunError):
            session.run("y", {"i": np.array([[bad]], np.int32)})
