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
from pocketgraph.graph import DType, Graph, Node
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
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


def unpooled(shape: tuple[int, ...], indices: str, *, padding: str = "SAME", by_image: bool = False) -> Graph:
    """An image, its pooling by windows of 2, and what puts four times of that back by these nodes."""
    rows, columns = (-(-size // 2) if padding == "SAME" else size // 2 for size in shape[1:3])
    return parse(f"""
        x = Placeholder(dtype=float, shape={listed(shape)})
        pool = MaxPoolWithArgmax(x, T=float, ksize=[1,2,2,1], strides=[1,2,2,1], padding="{padding}", Targmax=int64,
                                 include_batch_in_index={str(by_image).lower()})
        four = Const(float 4)
        values = Mul(pool, four, T=float)
        all = Const(int32 [{shape[0] * rows * columns * shape[3]}])
        updates = Reshape(values, all, T=float, Tshape=int32)
        shape = Const(int32 {listed(shape)})
        {indices}
    """)


def listed(values: Any) -> str:
    return str(np.asarray(values).tolist())


def stacked(shape: tuple[int, ...], *, wrong: int = 0) -> str:
    """The usual spelling: rows (image, row, column, channel) out of places, transposed from a stack of the four."""
    batch, _, width, depth = shape
    pooled = (batch, -(-shape[1] // 2), -(-width // 2), depth)
    images = np.broadcast_to(np.arange(batch).reshape(-1, 1, 1, 1), pooled)
    channels = np.broadcast_to(np.arange(depth), pooled)
    return f"""
        place = Cast(pool:1, SrcT=int64, DstT=int32)
        row_size = Const(int32 {width * depth + wrong})
        depth = Const(int32 {depth})
        width = Const(int32 {width})
        images = Const(int32 {listed(images)})
        channels = Const(int32 {listed(channels)})
        rows = FloorDiv(place, row_size, T=int32)
        pixels = FloorDiv(place, depth, T=int32)
        columns = FloorMod(pixels, width, T=int32)
        stack = Pack(images, rows, columns, channels, T=int32, N=4, axis=0)
        flat = Const(int32 [4, {images.size}])
        matrix = Reshape(stack, flat, T=int32, Tshape=int32)
        order = Const(int32 [1, 0])
        indices = Transpose(matrix, order, T=int32, Tperm=int32)
        y = ScatterNd(indices, updates, shape, T=float, Tindices=int32)
    """


def flat(shape: tuple[int, ...], place: str = "place = Cast(pool:1, SrcT=int64, DstT=int32)") -> str:
    """The short spelling, for places that count the images as well: flat positions in a flat image."""
    return f"""
        {place}
        column = Const(int32 [-1, 1])
        indices = Reshape(place, column, T=int32, Tshape=int32)
        size = Const(int32 [{np.prod(shape)}])
        scattered = ScatterNd(indices, updates, size, T=float, Tindices=int32)
        y = Reshape(scattered, shape, T=float, Tshape=int32)
    """


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
    graph = unpooled(shape, stacked(shape))
    assert not {"SCATTER_ND", "FLOOR_DIV"} & set(codes_of_what_is_right(graph, shape))


def test_by_hand() -> None:
    """Of equals the first one in a row counts, an upper row before a lower one."""
    graph = unpooled((1, 2, 4, 1), stacked((1, 2, 4, 1)))
    x = np.array([[1, 3, 0, 2], [3, 3, 5, 5]], np.float32).reshape(1, 2, 4, 1)
    _, result = codes_and_result(graph, x)
    np.testing.assert_array_equal(result.reshape(2, 4), [[0, 12, 0, 0], [0, 0, 20, 0]])


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_flat_places_are_put_back_without_indices(padding: str) -> None:
    shape = (2, 5, 5, 2)
    graph = unpooled(shape, flat(shape), padding=padding, by_image=True)
    assert "SCATTER_ND" not in codes_of_what_is_right(graph, shape)


def test_values_that_are_not_finite_stay_in_their_places() -> None:
    shape = (1, 4, 4, 1)
    graph = unpooled(shape, stacked(shape))
    x = image(shape)
    x[0, 0, 1, 0], x[0, 2, 2, 0] = np.inf, np.inf
    x[0, :2, 2:, 0] = -np.inf
    _, result = codes_and_result(graph, x)
    np.testing.assert_array_equal(result, on_reference(graph, x))
    assert np.isfinite(result).sum() == 13


def test_other_arithmetic_is_not_taken_for_it() -> None:
    shape = (1, 4, 6, 3)
    graph = unpooled(shape, stacked(shape, wrong=1))
    assert "SCATTER_ND" in codes_of_what_is_right(graph, shape)


def test_places_in_another_order_are_not_taken_for_it() -> None:
    """Turned around, the indices belong to other values; what lies where is still right."""
    shape = (1, 4, 4, 1)
    turned = """axis = Const(int32 [2])
        turned = ReverseV2(pool:1, axis, T=int64, Tidx=int32)
        place = Cast(turned, SrcT=int64, DstT=int32)"""
    graph = unpooled(shape, flat(shape, turned))
    assert "SCATTER_ND" in codes_of_what_is_right(graph, shape)


def test_an_index_that_rests_on_two_places_is_not_taken_for_it() -> None:
    """x + y - y with y the neighbour's place is x only as long as nothing is added twice."""
    shape = (1, 4, 4, 1)
    mixed = """turn = Const(int32 [0, 2, 1, 3])
        other = Transpose(pool:1, turn, T=int64, Tperm=int32)
        sum = Add(pool:1, other, T=int64)
        same = Sub(sum, other, T=int64)
        place = Cast(same, SrcT=int64, DstT=int32)"""
    graph = unpooled(shape, flat(shape, mixed))
    assert "SCATTER_ND" in codes_of_what_is_right(graph, shape)


def test_the_pooled_image_in_another_part_of_the_graph() -> None:
    """What LiteRT does not see, it cannot compare; the indices do then."""
    shape = (1, 4, 4, 2)
    graph = unpooled(shape, stacked(shape))
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
    graph = parse("""
        i = Placeholder(dtype=int32, shape=[1,1])
        u = Const(float [1])
        s = Const(int32 [4])
        y = ScatterNd(i, u, s, T=float, Tindices=int32)
    """)
    with Session(graph, engine="litert", cache_dir="") as session:
        np.testing.assert_array_equal(session.run("y", {"i": np.array([[3]], np.int32)})[0], [0, 0, 0, 1])
        with pytest.raises(RunError):
            session.run("y", {"i": np.array([[bad]], np.int32)})
