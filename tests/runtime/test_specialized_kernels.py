"""Kernels prepared from their constants, and steps written out as code: the same values and the same errors."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketgraph.errors import RunError
from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.dtype import BOOL, FLOAT, HALF, INT32, INT64, UINT8, DType
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.cost_model import WRITTEN_OUT_AFTER
from pocketgraph.runtime.engines import specialized_kernels
from pocketgraph.runtime.engines.kernel_makers import MAKERS
from pocketgraph.runtime.engines.specialized_kernels import prepared
from pocketgraph.runtime.engines.step_calls import bound
from pocketgraph.runtime.session import Session

ROWS = np.arange(24, dtype=np.float32).reshape(4, 6)


def both(node: Node, inputs: list[Any], constants: dict[int, Any]) -> None:
    """The prepared call gives what the kernel gives, or raises what it raises."""
    kernel, _ = bound(node, lambda name: True)
    call = prepared(node, constants, kernel)
    try:
        expected = kernel(*inputs)
    except Exception as error:
        with pytest.raises(type(error), match=re.escape(str(error))):
            call(*inputs)
        return
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = call(*inputs)
    found = found if isinstance(found, tuple) else (found,)
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert isinstance(mine, np.ndarray)
        assert mine.dtype == np.asarray(theirs).dtype
        assert mine.shape == np.asarray(theirs).shape
        np.testing.assert_array_equal(mine, theirs)


def ints(*values: int) -> Any:
    return np.array(values, np.int32)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(-2, 5), max_size=4), st.sampled_from([np.int32, np.int64, np.uint8]), st.sampled_from([0, 1])
)
def test_gather(indices: list[int], kind: Any, axis: int) -> None:
    node = Node("g", "GatherV2", ["a", "b", "c"])
    picked = np.array(indices, np.int64).astype(kind)
    both(node, [ROWS, picked, ints(axis)], {2: ints(axis)})
    both(node, [ROWS[0], picked.reshape(1, -1), np.array(0)], {2: np.array(0)})
    both(node, [ROWS[:0], picked, np.array(0)], {2: np.array(0)})
    both(node, [np.float32(3) * np.ones(()), picked, np.array(0)], {2: np.array(0)})
    both(node, [ROWS, np.array(1, kind), np.array(0)], {2: np.array(0)})


@pytest.mark.parametrize("axis", [0, 1, -1, 2])
def test_concat(axis: int) -> None:
    node = Node("c", "ConcatV2", ["a", "b", "c"])
    both(node, [ROWS, ROWS, np.array(axis)], {2: np.array(axis)})
    both(node, [ROWS, ROWS[:2], np.array(axis)], {2: np.array(axis)})
    both(node, [ROWS, ROWS.astype(np.float64), np.array(axis)], {2: np.array(axis)})
    both(node, [ROWS, ROWS[0], np.array(axis)], {2: np.array(axis)})


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5), st.integers(-2, 2)), min_size=1, max_size=3),
    st.lists(st.integers(0, 7), min_size=5, max_size=5),
)
def test_strided_slice(entries: list[tuple[int, int, int]], masks: list[int]) -> None:
    names = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    node = Node("s", "StridedSlice", ["a", "b", "c", "d"], dict(zip(names, masks, strict=True)))
    spec = [np.array(column, np.int32) for column in zip(*entries, strict=True)]
    both(node, [ROWS, *spec], dict(enumerate(spec, 1)))


@pytest.mark.parametrize("sizes", [(24,), (-1,), (2, -1), (0, -1), (5, -1), (-1, -1), (-2, 3), (), (0,), (3, 8)])
def test_reshape(sizes: tuple[int, ...]) -> None:
    node = Node("r", "Reshape", ["a", "b"])
    for value in (ROWS, ROWS[:0], ROWS[0, :1].reshape(())):
        both(node, [value, np.array(sizes, np.int32)], {1: np.array(sizes, np.int32)})


@pytest.mark.parametrize("dims", [(0,), (1,), (-1,), (3,), (-4,), (0, 1), ()])
def test_squeeze(dims: tuple[int, ...]) -> None:
    node = Node("q", "Squeeze", ["a"], {"squeeze_dims": dims})
    both(node, [ROWS.reshape(1, 4, 6)], {})
    both(node, [ROWS.reshape(4, 6, 1)], {})


@pytest.mark.parametrize(("axis", "count"), [(0, 2), (1, 6), (1, 4), (-1, 3), (2, 2), (0, 4)])
def test_split(axis: int, count: int) -> None:
    node = Node("p", "Split", ["a", "b"], {"num_split": count})
    both(node, [np.array(axis), ROWS], {0: np.array(axis)})
    both(node, [np.array(axis), ROWS[:2]], {0: np.array(axis)})


@pytest.mark.parametrize("source", [FLOAT, INT32, INT64, UINT8, BOOL, HALF])
@pytest.mark.parametrize("target", [FLOAT, INT32, INT64, UINT8, BOOL, HALF])
def test_cast(source: DType, target: DType) -> None:
    values = np.array([0, 1, 100, 250, 65.7]).astype(source.numpy)
    both(Node("k", "Cast", ["a"], {"SrcT": source, "DstT": target}), [values], {})


@pytest.mark.parametrize("target", [INT32, INT64])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 3, 4, 8, 16, 33])
def test_floats_that_fit_into_no_integer(kind: Any, target: DType, count: int) -> None:
    edges = [
        np.nan,
        np.inf,
        -np.inf,
        1e30,
        -1e30,
        2.0**31,
        -(2.0**31),
        2.0**63,
        -(2.0**63),
        2.5,
        -2.5,
        -0.0,
        2147483520.0,
    ]
    values = np.resize(np.array(edges, kind), count)
    source = FLOAT if kind is np.float32 else DType.named("double")
    for start in range(len(edges)):
        x = np.roll(values, start)
        with np.errstate(all="ignore"):
            both(Node("c", "Cast", ["x"], {"SrcT": source, "DstT": target}), [x], {})
            both(
                Node("c", "Cast", ["x"], {"SrcT": source, "DstT": target}),
                [np.roll(np.array(edges, kind), start)[::2]],
                {},
            )


@pytest.mark.parametrize("axes", [(), (0,), (1,), (-1, 0), (0, 1), (0, 0), (2,)])
@pytest.mark.parametrize("keeps", [False, True])
def test_sum(axes: tuple[int, ...], keeps: bool) -> None:
    node = Node("s", "Sum", ["a", "b"], {"keep_dims": keeps})
    axis = np.array(axes, np.int32)
    for values in (
        ROWS * np.float32(0.1),
        ROWS.astype(np.int32),
        ROWS.astype(np.float64),
        ROWS[:0],
        ROWS[0],
        ROWS[0, 0],
    ):
        with np.errstate(all="ignore"):
            both(node, [np.asarray(values), axis], {1: axis})


def test_shape() -> None:
    node = Node("h", "Shape", ["a"], {"out_type": INT64})
    both(node, [ROWS], {})
    call = prepared(node, {}, bound(node, lambda name: True)[0])
    for rows in (*range(100), *range(100)):
        assert call(np.zeros((rows, 2))).tolist()[0] == rows


@pytest.mark.parametrize("begin", [[0, 0], [1, 2], [3, 0], [-1, 0], [0, 9], [0]])
@pytest.mark.parametrize("size", [[1, 1], [-1, 2], [2, -1], [0, 3], [-2, 1], [9, 1]])
def test_slice(begin: list[int], size: list[int]) -> None:
    node = Node("s", "Slice", ["a", "b", "c"])
    constants = {1: np.array(begin, np.int32), 2: np.array(size, np.int64)}
    both(node, [ROWS, constants[1], constants[2]], constants)
    both(node, [ROWS[0], constants[1], constants[2]], constants)


@pytest.mark.parametrize(
    "multiples", [[1, 3], [2, 3], [2, 1], [1, 0], [1, -1], [-1, 2], [1 << 20, 1], [3], [], [1, 1], [[1, 3], [1, 1]], 3]
)
@pytest.mark.parametrize("rows", [ROWS, ROWS[:, :1], ROWS[:1, :1], ROWS[:1], ROWS[:0, :1], ROWS[0], ROWS[0, :1]])
def test_tile(multiples: Any, rows: np.ndarray) -> None:
    both(Node("t", "Tile", ["a", "b"]), [rows, np.array(multiples, np.int32)], {})


@pytest.mark.parametrize("sizes", [[2, 3, 4], [], [0, 5], [-1, 7], [1 << 20, 1 << 20], list(range(1, 20))])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
@pytest.mark.parametrize("keeps", [False, True])
def test_product_of_sizes(sizes: list[int], dtype: type, keeps: bool) -> None:
    axis = np.array([0], np.int32)
    node = Node("p", "Prod", ["a", "b"], {"keep_dims": keeps})
    with np.errstate(all="ignore"):
        both(node, [np.array(sizes, dtype), axis], {1: axis})
        both(node, [np.array([sizes, sizes], dtype), axis], {1: axis})


def test_an_op_without_its_constants_keeps_its_kernel() -> None:
    own = {op for op, maker in MAKERS.items() if maker.__module__ == specialized_kernels.__name__}
    for op in own - {"Squeeze", "Cast", "Shape", "Tile"}:
        node = Node("n", op, ["a", "b", "c", "d"], {"num_split": 2})
        kernel = lambda *_: None  # noqa: E731
        assert prepared(node, {}, kernel) is kernel


CHAIN = "\n".join(["x = Placeholder(dtype=float)", "n0 = Relu(x, T=float)"] + [
    f"n{i} = Add(n{i - 1}, x, T=float)" for i in range(1, 20)
])  # fmt: skip


def test_steps_give_the_same_when_they_are_written_out() -> None:
    with Session(parse(CHAIN), engine="reference") as session:
        for turn in range(2 * WRITTEN_OUT_AFTER):
            value = np.full(3, turn, np.float32)
            np.testing.assert_array_equal(session.run("n19:0", {"x:0": value})[0], value * 20)


def test_errors_name_the_node_after_steps_are_written_out() -> None:
    graph = parse(CHAIN + "\ny = Placeholder(dtype=float)\nz = Mul(n19, y, T=float)\nlast = Relu(z, T=float)")
    with Session(graph, engine="reference") as session:
        fine = {"x:0": np.ones(3, np.float32), "y:0": np.ones(3, np.float32)}
        messages = []
        for turn in range(2 * WRITTEN_OUT_AFTER):
            session.run("last:0", fine)
            if turn in (0, 2 * WRITTEN_OUT_AFTER - 1):
                with pytest.raises(RunError) as caught:
                    session.run("last:0", {**fine, "y:0": np.ones(4, np.float32)})
                messages.append(str(caught.value))
        assert messages[0] == messages[1]
        assert "'z'" in messages[0]
        assert "[3]" in messages[0]
        assert "[4]" in messages[0]
        np.testing.assert_array_equal(session.run("last:0", fine)[0], np.full(3, 20, np.float32))


def test_branches_stay_dead_after_steps_are_written_out() -> None:
    text = f"""{CHAIN}
p = Placeholder(dtype=bool)
s = Switch(n19, p, T=float)
left = Neg(s, T=float)
right = Square(s:1, T=float)
m = Merge(left, right, T=float, N=2)
"""
    with Session(parse(text), engine="reference") as session:
        for turn in range(2 * WRITTEN_OUT_AFTER):
            for taken, expected in ((False, -20.0), (True, 400.0)):
                feeds = {"x:0": np.ones(1, np.float32), "p:0": np.array(taken)}
                assert session.run(["m:0", "m:1"], feeds) == [np.float32(expected), int(taken)], turn


def clipping(bounds: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)) -> Graph:
    """Four sides of boxes cut one by one and put together again."""
    nodes = [
        Node("x", "Placeholder", (), {"dtype": FLOAT}),
        const("axis", np.array(1, np.int32)),
        Node("parts", "Split", ["axis", "x"], {"num_split": 4, "T": FLOAT}),
    ]
    for i, bound_ in enumerate(bounds):
        nodes.append(const(f"most{i}", np.array(bound_, np.float32)))
        nodes.append(const(f"least{i}", np.array(0, np.float32)))
        nodes.append(Node(f"m{i}", "Minimum", [f"parts:{i}", f"most{i}"], {"T": FLOAT}))
        nodes.append(Node(f"w{i}", "Maximum", [f"least{i}", f"m{i}"], {"T": FLOAT}))
    nodes.append(Node("all", "ConcatV2", ["w0", "w1", "w2", "w3", "axis"], {"N": 4, "T": FLOAT, "Tidx": INT32}))
    nodes.append(Node("side", "Sub", ["w2", "w0"], {"T": FLOAT}))
    return Graph(nodes)


@pytest.mark.parametrize("bounds", [(1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 0.5)])
@pytest.mark.parametrize("fetches", [["all:0", "side:0"], ["all:0", "m1:0"], ["parts:2", "side:0"], ["w3:0"]])
@pytest.mark.parametrize("engine", ["reference", None])
def test_parts_that_are_treated_alike(bounds: tuple[float, ...], fetches: list[str], engine: str | None) -> None:
    x = np.random.default_rng(1).uniform(-1, 2, (5, 4)).astype(np.float32)
    x[0, 0] = np.nan
    cut = np.minimum(x, np.array(bounds, np.float32))
    whole = np.maximum(np.float32(0), cut)
    expected = {
        "all:0": whole, "side:0": whole[:, 2:3] - whole[:, :1], "m1:0": cut[:, 1:2], "parts:2": x[:, 2:3],
        "w3:0": whole[:, 3:],
    }  # fmt: skip
    with Session(clipping(bounds), engine=engine) as session:  # type: ignore[arg-type]
        for found, name in zip(session.run(fetches, {"x:0": x}), fetches, strict=True):
            np.testing.assert_array_equal(found, expected[name])


def test_one_operation_does_for_all_parts() -> None:
    with Session(clipping()) as session:
        feeds = {"x:0": np.ones((5, 4), np.float32)}
        plan = session.plan(["all:0", "side:0"], feeds)
        assert sorted(op for op in plan.ops.values() if op in ("Minimum", "Maximum")) == ["Maximum", "Minimum"]
        x, low = np.full((5, 4), 3, np.float32), np.full((5, 1), 2, np.float32)
        assert session.run("side:0", {"x:0": x, "m0:0": low})[0].tolist() == [[-1.0]] * 5  # a part is fed


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-2, 6), max_size=6),
    st.integers(1, 6),
    st.sampled_from([np.int32, np.int64, np.uint8]),
    st.sampled_from([np.float32, np.int64, np.bool_]),
)
def test_one_hot(places: list[int], depth: int, kind: Any, dtype: Any) -> None:
    node = Node("o", "OneHot", ["a", "b", "c", "d"], {"axis": -1})
    on, off = np.array(1, dtype), np.array(0, dtype)
    constants = {1: np.array(depth, np.int32), 2: on, 3: off}
    for shape in ((-1,), (-1, 1)):
        indices = np.array(places, np.int64).astype(kind).reshape(shape)
        both(node, [indices, constants[1], on, off], constants)
    both(node, [np.array(1, kind), constants[1], on, off], constants)
