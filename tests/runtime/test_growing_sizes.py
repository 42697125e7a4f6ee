"""Programs for all sizes whose inputs grow: LiteRT is given room for larger ones, and told numbers quickly."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from graph_files import graph_file
from pocketgraph.graph import Graph, Shape
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.shapes import infer
from pocketgraph.litert import engine
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.litert.sizes import resizable
from pocketgraph.litert.sizes.open_program import OpenProgram
from pocketgraph.litert.sizes.resizable import Resizable, Shapes
from pocketgraph.runtime import Session
from pocketgraph.runtime.planning.sizes import operand_numbers

GRAPHS = pathlib.Path(__file__).parent / "open_size_graphs"
CONVOLUTIONS = parse("""
    x = Placeholder(dtype=float, shape=[1, ?, ?, 3])
    w = Const(float[3, 3, 3, 6] 0.25)
    c = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
    r = Relu(c, T=float)
    v = Const(float[3, 3, 6, 4] 0.1)
    y = Conv2D(r, v, T=float, strides=[1, 1, 1, 1], padding="VALID")
""")


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that LiteRT is told, one after the other."""
    found: list[int] = []
    resize = Resizable._resize

    def noted(self: Resizable, shapes: Shapes) -> None:
        found.append(shapes[0][1])
        resize(self, shapes)

    monkeypatch.setattr(Resizable, "_resize", noted)
    return found


def assert_right_for(sizes: list[int], graph: Graph = CONVOLUTIONS) -> None:
    with (
        Session(graph, cache_dir="", without=["first_on_reference"]) as session,
        Session(graph, engine="reference") as reference,
    ):
        for size in sizes:
            feeds = {"x": np.random.default_rng(size).standard_normal((1, size, size + 1, 3), np.float32)}
            (found,), (expected,) = (each.run(["y"], feeds) for each in (session, reference))
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_where_sizes_grow_again_there_is_room_for_more(given: list[int]) -> None:
    assert_right_for(list(range(8, 60, 2)))
    assert [rows for rows, after in itertools.pairwise(given) if after < rows] == [44, 78]  # 32 more


def test_sizes_that_do_not_grow_a_second_time_need_none(given: list[int]) -> None:
    assert_right_for([30, 40, 39, 20, 40, 12, 38])
    assert {*given} == {40, 39, 20, 12, 38}


def test_inputs_that_keep_their_size_are_not_told_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, ...]] = []
    resize = PlainRunner.resize

    def noted(self: PlainRunner, shapes: Mapping[int, tuple[int, ...]]) -> None:
        told.extend(shapes.values())
        resize(self, shapes)

    monkeypatch.setattr(PlainRunner, "resize", noted)
    monkeypatch.setattr(resizable, "MOST_ROOM", 0)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?, 8])
        w = Placeholder(dtype=float, shape=[8, 4])
        m = MatMul(x, w, T=float)
        y = Softmax(m, T=float)
    """)
    weights = np.random.default_rng(0).standard_normal((8, 4), np.float32)
    with (
        Session(graph, cache_dir="", without=["first_on_reference"]) as session,
        Session(graph, engine="reference") as reference,
    ):
        for rows in (5, 7, 9, 6):
            feeds = {"x": np.random.default_rng(rows).standard_normal((rows, 8), np.float32), "w": weights}
            (found,), (expected,) = (each.run(["y"], feeds) for each in (session, reference))
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert {*told} >= {(9, 8), (6, 8)}
    assert told.count((8, 4)) == 1


def test_large_sizes_are_given_what_they_ask_for(given: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resizable, "MOST_ROOM", 3 * 12 * 13)
    assert_right_for([8, 10, 12, 14, 16, 48, 50])
    assert sorted({*given}) == [10, 12, 14, 16, 44, 48, 50]


def test_sizes_that_a_program_does_not_take_are_no_room(given: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Resizable, "takes", lambda self, shapes, told=(): shapes[0][1] < 40)
    assert_right_for([8, 10, 12, 14, 16])
    assert given == [10, 10, 12, 14, 16] or given == [10, 12, 14, 16]


def test_what_litert_refuses_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes may have to go together in ways that only LiteRT knows."""
    monkeypatch.setattr(Resizable, "takes", lambda *_: True)
    monkeypatch.setattr(resizable, "_with_room", lambda size: -size)
    assert_right_for([8, 10, 12, 14, 16])


@pytest.mark.parametrize("name", ["crops", "crops_again"])
def test_crops_that_are_told_their_sizes_are_copied_by_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[OpenProgram] = []
    loaded = engine.resizable

    def noted(program: OpenProgram, *args: Any, **how: Any) -> Resizable:
        found.append(program)
        return loaded(program, *args, **how)

    monkeypatch.setattr(engine, "resizable", noted)
    with Session(
        graph_file(GRAPHS, name), cache_dir="", without=["first_on_reference", "widen_narrow_convolutions"]
    ) as session:
        for size in (24, 20):
            session.run(["y"], {"x": np.ones((1, size, size, 3), np.float32)})
    operations = found[0].program.operations
    assert all(each.outputs[0].dtype is INT32 for each in operations if each.code == "STRIDED_SLICE")
    assert any(each.code == "SLICE" for each in operations)


@pytest.mark.parametrize("name", ["crops", "crops_again", "odd_transpose", "resizes"])
def test_numbers_are_those_of_the_whole_graph(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    start = operand_numbers.OperandNumbers.__init__

    def noted(self: Any, *args: Any) -> None:
        start(self, *args)
        made.append(self)

    monkeypatch.setattr(operand_numbers.OperandNumbers, "__init__", noted)
    graph = graph_file(GRAPHS, name)
    with Session(graph, cache_dir="", without=["first_on_reference"]) as session:
        for size in (24, 20):
            session.run(["y"], {"x": np.ones((1, size, size, 3), np.float32)})
    numbers = made[0]
    assert not any(node.op == "Relu" for node in numbers._nodes)
    for rows, columns in [(24, 24), (31, 18), (16, 27), (9, 8)]:
        shape = (1, rows, columns, 3)
        whole = infer(graph, {"x:0": (FLOAT, Shape(shape))}, {}, numbers._operands)
        values = [whole.value(ref) for ref in numbers._operands]
        assert numbers([shape]) == tuple(tuple(each.reshape(-1)) for each in values if each is not None)


TILED = parse("""
    x = Placeholder(dtype=float, shape=[1, ?, 4])
    k = Const(int32 1)
    row = ExpandDims(x, k, T=float, Tdim=int32)
    v = Const(float[1, 3, 4, 4] 0.1)
    c = Conv2D(row, v, T=float, strides=[1, 1, 1, 1], padding="SAME")
    h = Squeeze(c, T=float, squeeze_dims=[1])
    s = Shape(h, T=float, out_type=int32)
    one = Const(int32[1] [1])
    two = Const(int32[1] [2])
    steps = StridedSlice(s, one, two, one, T=int32, Index=int32, shrink_axis_mask=1)
    times = Pack(k, steps, k, T=int32, N=3, axis=0)
    mean = Mean(h, one, T=float, Tidx=int32, keep_dims=true)
    all = Tile(mean, times, T=float, Tmultiples=int32)
    y = AddV2(h, all, T=float)
""")


def test_numbers_that_follow_from_what_is_fed_alone_are_computed_and_not_inferred(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []
    start = operand_numbers.OperandNumbers.__init__

    def noted(self: Any, *args: Any) -> None:
        start(self, *args)
        made.append(self)

    monkeypatch.setattr(operand_numbers.OperandNumbers, "__init__", noted)
    with Session(TILED, cache_dir="", without=["first_on_reference"]) as session:
        for length in (9, 6, 30, 31, 2):
            if length == 30:
                monkeypatch.setattr(operand_numbers, "infer_again", lambda *_: pytest.fail("inferred"))
            x = np.random.default_rng(length).standard_normal((1, length, 4)).astype(np.float32)
            (found,) = session.run(["y"], {"x": x})
            sums = np.pad(x.astype(np.float64).sum(-1), [(0, 0), (1, 1)])
            h = 0.1 * (sums[:, :-2] + sums[:, 1:-1] + sums[:, 2:])[..., None]
            np.testing.assert_allclose(
                found, np.broadcast_to(h + h.mean(1, keepdims=True), x.shape), rtol=1e-4, atol=1e-5
            )
    assert made
    assert made[0]([(1, 17, 4)]) == ((1, 17, 1),)
