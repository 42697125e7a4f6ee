"""Sizes of what layers make that are sizes of what is fed: causal masks, as Keras 3 makes them of the scores' shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import Graph
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.shapes.infer import postorder
from pocketgraph.runtime import Session
from pocketgraph.runtime.certificates import check_schedule
from pocketgraph.runtime.planning.rewriting.sizes_of_feeds import with_sizes_of_feeds
from pocketgraph.runtime.planning.sizes import opened_parts
from pocketgraph.runtime.planning.sizes.sized_executables import SizedExecutables

WEIGHTS = np.random.default_rng(5).standard_normal((3, 8, 8)).astype(np.float32).round(3) / 4
CAUSAL = """
    x = Placeholder(dtype=float, shape=[1, ?, 8])
    wq = Const(float[8, 8] {})
    wk = Const(float[8, 8] {})
    wv = Const(float[8, 8] {})
    q = Einsum(x, wq, T=float, N=2, equation="abc,cd->abd")
    k = Einsum(x, wk, T=float, N=2, equation="abc,cd->abd")
    v = Einsum(x, wv, T=float, N=2, equation="abc,cd->abd")
    scores = BatchMatMulV2(q, k, T=float, adj_x=false, adj_y=true)
    s = Shape(scores, T=float, out_type=int32)
    one = Const(int32[1] [1])
    two = Const(int32[1] [2])
    three = Const(int32[1] [3])
    rows = StridedSlice(s, one, two, one, T=int32, Index=int32, shrink_axis_mask=1)
    columns = StridedSlice(s, two, three, one, T=int32, Index=int32, shrink_axis_mask=1)
    sizes = Pack(rows, columns, T=int32, N=2, axis=0)
    true = Const(bool true)
    all = Fill(sizes, true, T=bool, index_type=int32)
    lower = Const(int32 -1)
    upper = Const(int32 0)
    seen = MatrixBandPart(all, lower, upper, T=bool, Tindex=int32)
    never = Const(float -1e9)
    known = SelectV2(seen, scores, never, T=float)
    shares = Softmax(known, T=float)
    y = BatchMatMulV2(shares, v, T=float, adj_x=false, adj_y=false)
""".format(*WEIGHTS.tolist())


def computed(x: Array) -> Array:
    """In doubles."""
    q, k, v = (x[0].astype(np.float64) @ weights for weights in WEIGHTS)
    scores = np.where(np.tril(np.ones((len(q), len(q)), bool)), q @ k.T, -1e9)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray((shares / shares.sum(axis=1, keepdims=True) @ v)[None])


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    check_schedule.finish()
    monkeypatch.setattr(check_schedule, "LOOK", 3600.0)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The programs for all sizes."""
    found: list[Any] = []
    opening = opened_parts.with_open_sizes

    def noted(*args: Any) -> Any:
        found.append(opening(*args))
        return found[-1]

    monkeypatch.setattr(opened_parts, "with_open_sizes", noted)
    return found


def numbers(length: int) -> Array:
    return np.random.default_rng(length).standard_normal((1, length, 8)).astype(np.float32)


@pytest.mark.parametrize("is_idle", [False, True])
def test_a_causal_mask_is_made_before_the_scores(is_idle: bool, opened: list[Any]) -> None:
    with Session(parse(CAUSAL), cache_dir="") as session:
        for length in (6, 9, 12, 5, 50, 9, 70):
            (found,) = session.run(["y"], {"x": numbers(length)})
            np.testing.assert_allclose(found, computed(numbers(length)), rtol=1e-4, atol=1e-5)
            if is_idle:
                check_schedule.finish()
        used = [each for plan in session._calls.plans.values() for each in plan.executables]
    assert any(isinstance(each, SizedExecutables) for each in used)
    (serving,) = (program for program in opened if program is not None)
    assert any(operation.code == "SELECT_V2" for operation in serving.program.operations)
    assert sum(operation.code == "SOFTMAX" for operation in serving.program.operations) == 1


def test_short_and_long_texts_equal_the_reference_engine() -> None:
    with Session(parse(CAUSAL), cache_dir="") as session, Session(parse(CAUSAL), engine="reference") as reference:
        for length in (6, 9, 1, 2, 300):
            (found,), (expected,) = (each.run(["y"], {"x": numbers(length)}) for each in (session, reference))
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def sized(graph: Graph, *sizes: int | None) -> Graph:
    return with_sizes_of_feeds(graph, [(Endpoint("x", 0), FLOAT, sizes)], {}, postorder(graph, ["y"])).graph


def of(body: str) -> Graph:
    return parse(f"""
        x = Placeholder(dtype=float, shape=[?, ?])
        {body}
        y = Shape(h, T=float, out_type=int64)
    """)


def test_a_shape_is_read_off_what_is_fed() -> None:
    graph = of("w = Const(float[3, 4] 0.5)\n h = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)")
    found = sized(graph, None, 3)
    assert found["y"].op == "GatherV2"
    (read,) = Session(found, engine="reference").run(["y"], {"x": np.zeros((7, 3), np.float32)})
    assert read.tolist() == [7, 4]
    assert read.dtype == np.int64
    assert "MatMul" not in {node.op for node in postorder(found, ["y"])}


def test_sizes_that_change_places_do() -> None:
    graph = of("turn = Const(int32[2] [1, 0])\n h = Transpose(x, turn, T=float, Tperm=int32)")
    (read,) = Session(sized(graph, None, None), engine="reference").run(["y"], {"x": np.zeros((7, 3), np.float32)})
    assert read.tolist() == [3, 7]


@pytest.mark.parametrize(
    "body",
    [
        # Half of the length; at most 4 of it; at least 9.
        "h = Squeeze(p, T=float, squeeze_dims=[0, 3])\n"
        "a = Const(int32 0)\n b = Const(int32 -1)\n e = ExpandDims(x, a, T=float, Tdim=int32)\n"
        "f = ExpandDims(e, b, T=float, Tdim=int32)\n"
        'p = MaxPool(f, T=float, ksize=[1, 2, 1, 1], strides=[1, 2, 1, 1], padding="SAME")',
        "a = Const(int32[2] [0, 0])\n b = Const(int32[2] [4, 0])\n c = Const(int32[2] [1, 1])\n"
        "h = StridedSlice(x, a, b, c, T=float, Index=int32, end_mask=2)",
        "s = Shape(x, T=float, out_type=int32)\n n = Const(int32[2] [9, 1])\n m = Maximum(s, n, T=int32)\n"
        "z = Const(float 0.5)\n h = Fill(m, z, T=float, index_type=int32)",
        # One more than the next multiple below; at least 3.
        *(
            "s = Shape(x, T=float, out_type=int32)\n one = Const(int32[2] [1, 1])\n a = Sub(s, one, T=int32)\n"
            f"k = Const(int32[2] [{step}, 1])\n b = FloorDiv(a, k, T=int32)\n c = Mul(b, k, T=int32)\n"
            "m = Add(c, one, T=int32)\n z = Const(float 0.5)\n h = Fill(m, z, T=float, index_type=int32)"
            for step in (2, 3, 4, 8, 10, 16)
        ),
        "s = Shape(x, T=float, out_type=int32)\n n = Const(int32[2] [3, 1])\n m = Maximum(s, n, T=int32)\n"
        "z = Const(float 0.5)\n h = Fill(m, z, T=float, index_type=int32)",
    ],
)
def test_other_numbers_stay(body: str) -> None:
    graph = of(body)
    assert sized(graph, None, 3) is graph


def test_places_in_a_picture_that_was_halved_and_doubled_follow_its_own_size() -> None:
    """A convolution and a transposed one, with windows of 3 in steps of 2: odd sizes stay, even ones lose a row."""
    kernel = np.random.default_rng(6).standard_normal((3, 1, 2, 2)).astype(np.float32).round(2).tolist()
    body = f"""
        x = Placeholder(dtype=float, shape=[1, ?, 1, 2])
        w = Const(float[3, 1, 2, 2] {kernel})
        half = Conv2D(x, w, T=float, strides=[1, 2, 1, 1], padding="VALID")
        s = Shape(half, T=float, out_type=int32)
        twice = Const(int32[4] [1, 2, 1, 1])
        more = Const(int32[4] [0, 1, 0, 0])
        doubled = Mul(s, twice, T=int32)
        size = AddV2(doubled, more, T=int32)
        whole = Conv2DBackpropInput(size, w, half, T=float, strides=[1, 2, 1, 1], padding="VALID")
        own = Shape(whole, T=float, out_type=int32)
        one = Const(int32[1] [1])
        two = Const(int32[1] [2])
        rows = StridedSlice(own, one, two, one, T=int32, Index=int32, shrink_axis_mask=1)
        first = Const(int32 0)
        step = Const(int32 1)
        places = Range(first, rows, step, Tidx=int32)
        numbers = Cast(places, SrcT=int32, DstT=float)
        shape = Const(int32[4] [1, -1, 1, 1])
        column = Reshape(numbers, shape, T=float, Tshape=int32)
        moved = AddV2(whole, column, T=float)
        y = Conv2D(moved, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
    """
    with Session(parse(body), cache_dir="") as session, Session(parse(body), engine="reference") as reference:
        for length in (11, 17, 13, 12, 30, 8, 21):
            fed = {"x": numbers(length)[:, :, None, :2]}
            (found,), (expected,) = (each.run(["y"], fed) for each in (session, reference))
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


READS = """
    m = Placeholder(dtype=float, shape=[?, ?, 8])
    mixed = BatchMatMulV2(x, m, T=float, adj_x=false, adj_y=true)
    weighed = Softmax(mixed, T=float)
    read = BatchMatMulV2(weighed, m, T=float, adj_x=false, adj_y=false)
    h = AddV2(x, read, T=float)
"""
MASK_OF_EACH = """
    zero = Const(int32[1] [0])
    batch = StridedSlice(s, zero, one, one, T=int32, Index=int32, shrink_axis_mask=1)
    sizes = Pack(batch, rows, columns, T=int32, N=3, axis=0)
"""
TWO_TEXTS = CAUSAL.replace("sizes = Pack(rows, columns, T=int32, N=2, axis=0)", MASK_OF_EACH)
TWO_TEXTS = TWO_TEXTS.replace("Einsum(x,", "Einsum(h,").replace("[1, ?, 8])", f"[?, ?, 8]){READS}", 1)
"""The same of texts that read others first, which have lengths of their own; their batches are equal."""


def of_two_texts(texts: int, length: int, other: int) -> dict[str, Array]:
    random = np.random.default_rng(length)
    return {
        name: random.standard_normal((texts, size, 8)).astype(np.float32)
        for name, size in (("x", length), ("m", other))
    }


def test_batches_that_have_to_be_equal_are_one_size() -> None:
    graph = parse(TWO_TEXTS)
    fed = [(Endpoint(name, 0), FLOAT, (None, None, 8)) for name in ("x", "m")]
    nodes = postorder(graph, ["y"])
    alone = with_sizes_of_feeds(graph, fed, {}, nodes)
    assert alone.graph is graph
    found = with_sizes_of_feeds(graph, fed, {}, nodes, before=[(3, 5, 8), (3, 5, 8)])
    assert found.alike == {(1, 0): (0, 0)}
    (read,) = Session(found.graph, engine="reference").run(["s"], of_two_texts(4, 6, 9))
    assert read.tolist() == [4, 6, 6]
    assert "Softmax" not in {node.op for node in postorder(found.graph, ["s"])}


def test_texts_that_read_others_of_any_length_have_one_program(opened: list[Any]) -> None:
    with Session(parse(TWO_TEXTS), cache_dir="") as session, Session(parse(TWO_TEXTS), engine="reference") as reference:
        for sizes in ((3, 6, 9), (4, 7, 10), (5, 8, 12), (2, 11, 5), (7, 50, 60), (3, 9, 9), (2, 70, 3)):
            (found,), (expected,) = (each.run(["y"], of_two_texts(*sizes)) for each in (session, reference))
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        with pytest.raises(RunError, match="Batch"):  # of unequal batches, as it was before there was a program
            session.run(["y"], {**of_two_texts(4, 20, 30), "m": numbers(30).repeat(5, axis=0)})
        used = [each for plan in session._calls.plans.values() for each in plan.executables]
    assert any(isinstance(each, SizedExecutables) for each in used)
    assert len([program for program in opened if program is not None]) == 1
