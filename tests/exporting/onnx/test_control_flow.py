"""Loops and branches become Loop and If; loops of known length are unrolled."""

from __future__ import annotations

import numpy as np
import pytest

from function_text import with_functions
from loop_text import counted_loop
from onnx_runs import assert_same, exported, operators, run
from pocketgraph.errors import UsageError
from pocketgraph.graph.text_format import parse

DOUBLING = """
    x = Placeholder(dtype=float, shape=[2])
    limit = Placeholder(dtype=float, shape=[])
    enter = Enter(x, T=float, frame_name="loop", is_constant=false, parallel_iterations=10)
    most = Enter(limit, T=float, frame_name="loop", is_constant=true, parallel_iterations=10)
    head = Merge(enter, next, T=float, N=2)
    axis = Const(int32 [0], ^head)
    total = Sum(head, axis, T=float, Tidx=int32)
    less = Less(total, most, T=float)
    cond = LoopCond(less)
    switch = Switch(head, cond, T=float)
    inside = Identity(switch:1, T=float)
    twice = AddV2(inside, inside, T=float)
    next = NextIteration(twice, T=float)
    y = Exit(switch, T=float)
"""


@pytest.mark.parametrize("limit", [0.0, 100.0])
def test_a_loop_whose_end_only_the_run_tells(limit: float) -> None:
    proto = assert_same(DOUBLING, {"x": np.array([1.0, 2.5], np.float32), "limit": np.array(limit, np.float32)})
    assert operators(proto)["Loop"] == 1


def test_a_loop_of_known_length_is_unrolled() -> None:
    text = "x = Placeholder(dtype=float, shape=[2])\nthree = Const(int32 3)\n" + counted_loop(
        "three", "next = Sin(v, T=float)"
    )
    proto = assert_same(text, {"x": np.array([1.0, 2.5], np.float32)})
    assert operators(proto) == {"Sin": 3}


def test_a_loop_that_fills_an_array() -> None:
    """map_fn: what is written in each round is an output of the Loop."""
    text = """
        x = Placeholder(dtype=float, shape=[?,3])
        shape = Shape(x, T=float, out_type=int32)
        zero = Const(int32 0)
        one = Const(int32 1)
        ones = Const(int32 [1])
        zeros = Const(int32 [0])
        n = StridedSlice(shape, zeros, ones, ones, T=int32, Index=int32, shrink_axis_mask=1)
        given = TensorArrayV3(n, dtype=float, dynamic_size=false, clear_after_read=true)
        places = Range(zero, n, one, Tidx=int32)
        filled = TensorArrayScatterV3(given, places, x, given:1, T=float)
        made = TensorArrayV3(n, dtype=float, dynamic_size=false, clear_after_read=true)
        i0 = Enter(zero, T=int32, frame_name="map", is_constant=false, parallel_iterations=10)
        flow0 = Enter(made:1, T=float, frame_name="map", is_constant=false, parallel_iterations=10)
        i = Merge(i0, i_next, T=int32, N=2)
        flow = Merge(flow0, flow_next, T=float, N=2)
        most = Enter(n, T=int32, frame_name="map", is_constant=true, parallel_iterations=10)
        source = Enter(given, T=resource, frame_name="map", is_constant=true, parallel_iterations=10)
        source_flow = Enter(filled, T=float, frame_name="map", is_constant=true, parallel_iterations=10)
        goal = Enter(made, T=resource, frame_name="map", is_constant=true, parallel_iterations=10)
        less = Less(i, most, T=int32)
        cond = LoopCond(less)
        i_switch = Switch(i, cond, T=int32)
        flow_switch = Switch(flow, cond, T=float)
        i_in = Identity(i_switch:1, T=int32)
        step = Const(int32 1, ^i_in)
        row = TensorArrayReadV3(source, i_in, source_flow, dtype=float)
        power = Mul(row, row, T=float)
        written = TensorArrayWriteV3(goal, i_in, power, flow_switch:1, T=float)
        i_more = AddV2(i_in, step, T=int32)
        i_next = NextIteration(i_more, T=int32)
        flow_next = NextIteration(written, T=float)
        flow_end = Exit(flow_switch, T=float)
        all = Range(zero, n, one, Tidx=int32)
        y = TensorArrayGatherV3(made, all, flow_end, dtype=float, element_shape=[3])
    """
    for rows in (1, 4):
        proto = assert_same(text, {"x": np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)})
        assert operators(proto)["Loop"] == 1
        assert operators(proto)["ScatterND"] == 0


BRANCH = """
    x = Placeholder(dtype=float, shape=[?])
    p = Placeholder(dtype=bool, shape=[])
    two = Const(float 2.0)
    switch = Switch(x, p, T=float)
    pivot = Switch(p, p, T=bool)
    true_side = Identity(pivot:1, T=bool)
    five = Const(float 5.0, ^true_side)
    up = Mul(switch:1, five, T=float)
    down = Sub(switch, two, T=float)
    merge = Merge(down, up, T=float, N=2)
    again = Switch(two, p, T=float)
    other = Merge(again, again:1, T=float, N=2)
    y = Add(merge, other, T=float)
    which = Identity(merge:1, T=int32)
"""


@pytest.mark.parametrize("chosen", [True, False])
def test_branches(chosen: bool) -> None:
    feeds = {"x": np.array([1.0, -3.0], np.float32), "p": np.array(chosen)}
    proto = assert_same(BRANCH, feeds, ["y", "which"])
    assert operators(proto)["If"] == 1  # both Merges in one


def test_functions_of_tensorflow_2() -> None:
    graph = with_functions(
        parse("""
            x = Placeholder(dtype=float, shape=[3])
            n = Placeholder(dtype=float, shape=[])
            loop = While(n, x, T=[float,float], cond=func(positive), body=func(turn))
            zero = Const(float 0.0)
            p = Greater(n, zero, T=float)
            y = If(p, loop:1, Tcond=bool, Tin=[float], Tout=[float], then_branch=func(up), else_branch=func(down))
        """),
        [
            "positive(n: float, x: float) -> holds:y:0",
            "zero = Const(float 0.0)",
            "less = Less(zero:output:0, n, T=float)",
            "holds = Cast(less:z:0, SrcT=bool, DstT=float)",
            "turn(n: float, x: float) -> fewer:z:0, more:z:0",
            "one = Const(float 1.0)",
            "fewer = Sub(n, one:output:0, T=float)",
            "more = AddV2(x, x, T=float)",
            "up(x: float) -> r:activations:0",
            "r = Relu(x, T=float)",
            "down(x: float) -> r:y:0",
            "r = Neg(x, T=float)",
        ],
    )
    for rounds in (0.0, 3.0):
        feeds = {"x": np.array([1.0, -2.0, 0.5], np.float32), "n": np.array(rounds, np.float32)}
        proto = assert_same(graph, feeds)
        assert operators(proto)["Loop"] == 1
        assert operators(proto)["If"] == 1


GROWING = """
    x = Placeholder(dtype=float, shape=[?,2])
    shape = Shape(x, T=float, out_type=int32)
    zero = Const(int32 0)
    one = Const(int32 1)
    ones = Const(int32 [1])
    zeros = Const(int32 [0])
    n = StridedSlice(shape, zeros, ones, ones, T=int32, Index=int32, shrink_axis_mask=1)
    element = Const(int32 [2])
    list = TensorListReserve(element, zero, element_dtype=float, shape_type=int32)
    loop = StatelessWhile(zero, n, list, x, T=[int32,int32,variant,float], cond=func(goes_on), body=func(round))
    y = TensorListStack(loop:2, element, element_dtype=float, num_elements=-1)
    size = TensorListLength(loop:2)
    none = Const(int64 [])
    joined = TensorListConcatV2(loop:2, element, none, element_dtype=float, shape_type=int32)
"""
ROUND = """
    goes_on(i: int32, n: int32, list: variant, x: float) -> less: bool = less:z:0
    less = Less(i, n, T=int32)

    round(i: int32, n: int32, list: variant, x: float) -> i: int32 = next:z:0, n: int32 = n, list: variant = \
set:output_handle:0, x: float = x
    one = Const(int32 1)
    two = Const(int32 2)
    zero = Const(int32 0)
    next = AddV2(i, one:output:0, T=int32)
    twice = Mul(i, two:output:0, T=int32)
    apart = AddV2(twice:z:0, one:output:0, T=int32)
    end = TensorListLength(list)
    row = GatherV2(x, i, zero:output:0, Tparams=float, Tindices=int32, Taxis=int32)
    set = TensorListSetItem(list, PLACE, row:output:0, element_dtype=float, resize_if_index_out_of_bounds=true)
"""


RESERVED = "TensorListReserve(element, zero,"
GIVEN = "TensorListFromTensor(x, element,"


@pytest.mark.parametrize(("begun", "place", "rows"), [
    (RESERVED, "i", [1, 2]), (RESERVED, "apart:z:0", [0, 1, 0, 2]), (GIVEN, "end:length:0", [1, 2, 1, 2]),
])  # fmt: skip
def test_a_list_that_grows_while_it_is_written(begun: str, place: str, rows: list[int]) -> None:
    """As TensorFlow 2.21 gives it: what no round wrote is zeros. A place in each round makes an output of the Loop."""
    graph = with_functions(parse(GROWING.replace(RESERVED, begun)), ROUND.replace("PLACE", place).strip().splitlines())
    wanted = np.array([[row, -row] for row in rows], np.float32)
    proto = exported(graph, ["y", "size", "joined", "joined:1"])
    y, size, joined, lengths = run(proto, {"x": np.array([[1, -1], [2, -2]], np.float32)})
    assert y.tolist() == wanted.tolist()
    assert size == len(rows)
    assert joined.tolist() == wanted.reshape(-1).tolist()
    assert lengths.tolist() == [2] * len(rows)
    assert operators(proto)["ScatterND"] == (place != "i")


def test_a_list_of_one_element_grows_where_its_elements_have_an_open_size() -> None:
    """As TensorFlow 2.21 gives it: all that is written stays, not the last of it. With an open size nothing is made."""
    begun = GROWING.replace("int32 [2]", "int32 [-1, 2]").replace(RESERVED, "TensorListReserve(element, one,")
    begun = begun[: begun.index("    none =")]
    factor = ["    factor = Cast(next:z:0, SrcT=int32, DstT=float)", "    scaled = Mul(x, factor:y:0, T=float)"]
    written = ROUND.replace("PLACE", "i").replace("row:output:0", "scaled:z:0").strip().splitlines()
    with pytest.raises(UsageError, match="the shape of the array's elements is not known"):
        exported(with_functions(parse(begun), [*written, *factor]), ["y", "size"])
    graph = with_functions(parse(begun.replace("[?,2]", "[3,2]")), [*written, *factor])
    x = np.array([[1, -1], [2, -2], [4, 0]], np.float32)
    y, size = run(exported(graph, ["y", "size"]), {"x": x})
    assert y.tolist() == [x.tolist(), (2 * x).tolist(), (3 * x).tolist()]
    assert size == 3
