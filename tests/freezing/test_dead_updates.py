"""Assignments that no answer of a served model depends on are dropped; others stay."""

import sys

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.freezing import freeze, freeze_with_report
from pocketgraph.freezing.assigned_values import with_assigned_values
from pocketgraph.freezing.dead_updates import without_dead_updates
from pocketgraph.freezing.written_loops import LoopOrder
from pocketgraph.graph import Graph, Tensor
from pocketgraph.graph.order import on_branches
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from support import assert_text

COUNTED = """
    x = Placeholder(dtype=float)
    steps = VarHandleOp(dtype=int32, shape=[])
    one = Const(int32 1)
    count = AssignAddVariableOp(steps, one, dtype=int32)
    weight = VarHandleOp(dtype=float, shape=[])
    value = ReadVariableOp(weight, dtype=float)
    scaled = Mul(x, value, T=float)
    y = Identity(scaled, ^count, T=float)
"""


def test_a_count_of_steps_is_dropped() -> None:
    graph, lines = without_dead_updates(parse(COUNTED), ["y:0"])
    assert lines == {"count": "'count' (AssignAddVariableOp to 'steps') is dropped"}
    assert_text(
        graph,
        """
        x = Placeholder(dtype=float)
        weight = VarHandleOp(dtype=float, shape=[])
        value = ReadVariableOp(weight, dtype=float)
        scaled = Mul(x, value, T=float)
        y = Identity(scaled, T=float)
        """,
    )


@pytest.mark.parametrize(
    "read",
    [
        "value = ReadVariableOp(weight, ^count, dtype=float)",  # what was assigned is read
        "first = NoOp(^count)\nvalue = ReadVariableOp(weight, ^first, dtype=float)",
    ],
)
def test_an_assignment_whose_variable_is_read_afterwards_stays(read: str) -> None:
    text = COUNTED.replace("value = ReadVariableOp(weight, dtype=float)", read)
    text = text.replace("AssignAddVariableOp(steps, one, dtype=int32)", "AssignVariableOp(weight, x, dtype=float)")
    graph, lines = without_dead_updates(parse(text), ["y"])
    assert lines == {}
    assert "count" in graph


SEEDED = """
    x = Placeholder(dtype=float)
    seed = VarHandleOp(dtype=float, shape=[])
    one = Const(float 1.0)
    first = ReadVariableOp(seed, dtype=float)
    second_seed = Add(first, one, T=float)
    step_1 = AssignVariableOp(seed, second_seed, dtype=float)
    second = ReadVariableOp(seed, ^step_1, dtype=float)
    third_seed = Add(second, one, T=float)
    step_2 = AssignVariableOp(seed, third_seed, ^step_1, dtype=float)
    third = ReadVariableOp(seed, ^step_2, dtype=float)
    done = NoOp(^step_1, ^step_2)
    y = Identity(x, ^done, T=float)
    z = Add(x, third, ^done, T=float)
"""


def test_assignments_that_only_each_other_read_are_dropped() -> None:
    graph, lines = without_dead_updates(parse(SEEDED), ["y"])
    assert list(lines.values()) == [
        f"'{name}' (AssignVariableOp to 'seed') is dropped" for name in ("step_1", "step_2")
    ]
    assert {node.op for node in graph} == {"Placeholder", "NoOp", "Identity"}
    graph, lines = without_dead_updates(parse(SEEDED), ["z"])
    assert lines == {}
    assert {"step_1", "step_2"} <= {*graph.nodes}


def test_an_assignment_whose_result_is_an_answer_stays() -> None:
    text = "v = VariableV2(dtype=float, shape=[])\none = Const(float 1.0)\ny = AssignAdd(v, one, T=float)"
    assert "y" in without_dead_updates(parse(text), ["y"])[0]


CHANGED = """
    x = Placeholder(dtype=float)
    mean = Const(float 1.0)
    change = Const(float 2.0)
    average = AssignSub(mean, change, T=float)
    group = NoOp(^average)
    waiting = Relu(x, ^group, T=float)
    behind = Add(x, mean, ^group, T=float)
    after = Identity(mean, ^group, T=float)
    reading = Add(x, after, T=float)
    taking = Add(x, average, T=float)
"""


@pytest.mark.parametrize("engine", [None, "reference"])
@pytest.mark.parametrize("update", ["AssignSub", "AssignSubVariableOp"])
def test_what_only_waits_for_an_assignment_to_a_constant_runs(engine: str | None, update: str) -> None:
    attribute = "T" if update == "AssignSub" else "dtype"
    text = CHANGED.replace("AssignSub(mean, change, T=", f"{update}(mean, change, {attribute}=")
    with Session(parse(text), engine=engine) as session:
        for size in (1, 2, 3):  # the second and third call are of other sizes
            (waiting,) = session.run(["waiting"], {"x": np.full(size, 4, np.float32)})
            np.testing.assert_array_equal(waiting, np.full(size, 4, np.float32))


@pytest.mark.parametrize("engine", [None, "reference"])
@pytest.mark.parametrize("asked", ["behind", "reading", "taking", "group"])
def test_what_needs_an_assignment_to_a_constant_is_refused(engine: str | None, asked: str) -> None:
    with (
        Session(parse(CHANGED), engine=engine) as session,
        pytest.raises(
            RunError,
            match=r"'average'.*would change a variable that is a constant.*freeze_graph with repair=updates drops it",
        ),
    ):
        session.run(asked, {} if asked == "group" else {"x": np.float32(1)})


WINDOW = """
    x = Placeholder(dtype=float, shape=[1])
    window = VarHandleOp(dtype=float, shape=[2])
    earlier = ReadVariableOp(window, dtype=float)
    first = Const(int32 [1])
    one = Const(int32 [1])
    kept = Slice(earlier, first, one, T=float, Index=int32)
    zero = Const(int32 0)
    frames = ConcatV2(kept, x, zero, N=2, T=float, Tidx=int32)
    write = AssignVariableOp(window, frames, dtype=float)
    now = ReadVariableOp(window, ^write, dtype=float)
    y = Square(now, T=float)
"""


def test_what_is_read_after_an_assignment_of_the_run_is_what_was_assigned() -> None:
    graph = with_assigned_values(parse(WINDOW), ["y"], ["window"])[0]
    assert (graph["now"].op, graph["now"].inputs) == ("Identity", ("frames", "^write"))
    frozen = freeze(parse(WINDOW), "y", {"window": Tensor.from_numpy(np.float32([5, 2]))}, control_flow="lower")
    with Session(frozen) as session:
        assert session.run(["y"], {"x": np.float32([3])})[0].tolist() == [4, 9]  # TensorFlow's first answer


COUNTS = """
    x = Placeholder(dtype=float, shape=[2])
    c = VarHandleOp(dtype=float, shape=[2])
    early = ReadVariableOp(c, dtype=float)
    add = AssignAddVariableOp(c, x, ^early, dtype=float)
    added = ReadVariableOp(c, ^add, dtype=float)
    square = Mul(added, added, T=float)
    write = AssignVariableOp(c, square, ^add, dtype=float)
    sub = AssignSubVariableOp(c, x, ^write, dtype=float)
    first = Const(int32 [[0]])
    second = Const(int32 [[1]])
    seven = Const(float [7])
    zero = Const(int32 [0])
    one = Const(int32 [1])
    head = Slice(x, zero, one, T=float, Index=int32)
    tail = Slice(x, one, one, T=float, Index=int32)
    put = ResourceScatterNdUpdate(c, second, seven, ^sub, T=float, Tindices=int32)
    more = ResourceScatterNdAdd(c, first, tail, ^put, T=float, Tindices=int32)
    less = ResourceScatterNdSub(c, second, head, ^more, T=float, Tindices=int32)
    last = ReadVariableOp(c, ^less, dtype=float)
    given = Identity(c, ^last, T=resource)
    two = Const(int32 [2])
    slice = ResourceStridedSliceAssign(given, one, two, one, head, T=float, Index=int32)
    again = Identity(c, ^slice, T=resource)
    end = ReadVariableOp(again, dtype=float)
    y = Pack(early, added, last, end, N=4, T=float, axis=0)
"""


def test_what_is_read_after_a_sum_or_a_scatter_of_the_run_is_what_they_leave() -> None:
    stored = {"c": Tensor.from_numpy(np.float32([3, 4]))}
    report = freeze_with_report(parse(COUNTS), "y", stored, control_flow="lower")
    assert report.forgets == ("c",)
    graph = without_dead_updates(report.graph, ["y"])[0]
    with Session(graph) as session:
        (y,) = session.run(["y"], {"x": np.float32([1, 0.5])})
    assert y.tolist() == [[3, 4], [4, 4.5], [15.5, 6], [15.5, 1]]  # TensorFlow 2.21's


@pytest.mark.parametrize("op", ["FakeQuantWithMinMaxVars(x, low, now)", "FusedBatchNorm(x, one, one, now, one)"])
def test_statistics_that_training_averages_stay_the_stored_ones(op: str) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float)
        average = VarHandleOp(dtype=float, shape=[])
        step = Const(float 0.5)
        one = Const(float [1])
        low = Const(float 0)
        update = AssignSubVariableOp(average, step, dtype=float)
        now = ReadVariableOp(average, ^update, dtype=float)
        y = {op}
    """)
    assert with_assigned_values(graph, ["y"], ["average"])[0] is graph


def test_a_variable_that_stays_one_keeps_its_assignments_and_what_reads_it() -> None:
    x = Tensor.from_numpy(np.float32([3, 4]))
    graph = freeze(parse(COUNTS), "y", {"c": x}, variable_names_blacklist=["c"], control_flow="lower")
    assert graph["added"].inputs == ("c", "^add")
    assert graph["last"].op == "ReadVariableOp"


@pytest.mark.parametrize(
    "other",
    [
        "other = AssignVariableOp(window, x, dtype=float)",  # in no order with the read
        "other = ResourceApplyGradientDescent(window, rate, x, ^write, T=float)",  # what no op computes
        "other = NoSuchOp(window, x, ^write)",  # which an app may bring along
        "other = Pack(window, ^write, N=1)",  # that does not say its type
        "other = StatefulPartitionedCall(window, ^write, Tin=[resource], Tout=[], f=func(change))",
    ],
)
def test_what_is_read_after_other_changes_stays(other: str) -> None:
    waits = "^write, ^other" if "^write" in other else "^write"
    text = WINDOW.replace(
        "    now = ReadVariableOp(window, ^write",
        f"    rate = Const(float 1)\n    {other}\n    now = ReadVariableOp(window, {waits}",
    )
    graph = parse(text)
    assert with_assigned_values(graph, ["y"], ["window"])[0] is graph


def test_whether_a_frozen_variable_has_a_value_is_known() -> None:
    graph = parse("""
        v = VarHandleOp(dtype=float, shape=[])
        w = VariableV2(dtype=float, shape=[])
        has = VarIsInitializedOp(v)
        holds = IsVariableInitialized(w, dtype=float)
        y = LogicalAnd(has, holds)
    """)
    one = Tensor.from_numpy(np.float32(1))
    frozen = freeze(graph, "y", {"v": one, "w": one})
    assert (frozen["has"].op, frozen["holds"].op) == ("Const", "IsVariableInitialized")  # as TensorFlow 1.15 leaves it
    with Session(frozen) as session:
        assert session.run(["y"], {})[0]


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ("now = AssignAdd(v, x, T=float)", 5),
        ("now = AssignSub(write, x, T=float)", 0),
        ("now = Identity(write, T=float)", 2),
    ],
)
def test_what_a_reference_gives_after_an_assignment_is_what_was_assigned(read: str, expected: float) -> None:
    """The values are those of TensorFlow 1.15's session."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[])
        v = VariableV2(dtype=float, shape=[])
        write = Assign(v, x, T=float)
        {read}

    """)
    frozen = freeze(graph, "now", {"v": Tensor.from_numpy(np.float32(3))}, control_flow="lower")
    with Session(without_dead_updates(frozen, ["now"])[0]) as session:
        assert session.run(["now"], {"x": np.float32(2)})[0] == expected


@pytest.mark.parametrize("variable", ["VarHandleOp", "VariableV2"])
def test_what_a_branch_of_tensorflow_1_reads_after_an_assignment_is_what_was_assigned(variable: str) -> None:
    """As ``tf.cond`` of TensorFlow 1.15 reads; the values are those of its session."""
    text = """
        x = Placeholder(dtype=float, shape=[])
        v = VarHandleOp(dtype=float, shape=[])
        zero = Const(float 0)
        p = Greater(x, zero, T=float)
        add = AssignAddVariableOp(v, x, dtype=float)
        way = Switch(v, p, ^add, T=resource, _output_shapes=[[], []])
        read = ReadVariableOp(way:1, dtype=float)
        other = Switch(x, p, ^add, T=float)
        merge = Merge(other, read, N=2, T=float)
        write = AssignVariableOp(v, merge, ^merge, dtype=float)
        last = ReadVariableOp(v, ^write, dtype=float)
        y = Add(merge, last, T=float)
    """
    if variable == "VariableV2":
        for resource, reference in (
            ("VarHandleOp(", "VariableV2("),
            ("AssignAddVariableOp(v, x, dtype", "AssignAdd(v, x, T"),
            ("Switch(v, p, ^add, T=resource", "RefSwitch(v, p, ^add, T=float"),
            ("ReadVariableOp(way:1, dtype", "Identity(way:1, T"),
            ("AssignVariableOp(v, merge, ^merge, dtype", "Assign(v, merge, ^merge, T"),
            ("ReadVariableOp(v, ^write, dtype", "Identity(v, ^write, T"),
        ):
            text = text.replace(resource, reference)
    frozen = freeze(parse(text), "y", {"v": Tensor.from_numpy(np.float32(3))}, control_flow="lower")
    graph = without_dead_updates(frozen, ["y"])[0]
    assert "_output_shapes" not in graph["way/value"].attrs  # TensorFlow loads no graph with those of the handle
    for x, expected in ((2, 10), (-1, -2)):
        with Session(graph) as session:
            assert session.run(["y"], {"x": np.float32(x)})[0] == expected


@pytest.mark.parametrize(("op", "waits"), [("Enter", ("^i",)), ("Identity", ())])
def test_the_axis_of_a_gather_in_a_loop_is_made_in_the_loop(op: str, waits: tuple[str, ...]) -> None:
    """TensorFlow loads no node that takes a constant from outside of its loop."""
    attrs = ', frame_name="loop", is_constant=true, parallel_iterations=10' if op == "Enter" else ""
    graph = parse(f"""
        x = Placeholder(dtype=int32, shape=[])
        v = VarHandleOp(dtype=float, shape=[2])
        h = {op}(v, T=resource{attrs})
        i = {op}(x, T=int32{attrs})
        y = ResourceGather(h, i, dtype=float, Tindices=int32)
    """)
    frozen = freeze(graph, "y", {"v": Tensor.from_numpy(np.float32([3, 4]))})
    assert frozen["y/axis"].inputs == waits


def conditional(variable: str) -> str:
    """What ``tf.cond`` of TensorFlow 1.15 makes of these branches, and a read behind it:

    p: x[0] > 0: v += x, else nothing        not p: v = -x
    """
    text = """
        x = Placeholder(dtype=float, shape=[2])
        p = Placeholder(dtype=bool, shape=[])
        v = VarHandleOp(dtype=float, shape=[2])
        outer = Switch(p, p, T=bool)
        yes = Identity(outer:1, T=bool)
        no = Identity(outer, T=bool)
        id = Identity(p, T=bool)
        x_way = Switch(x, id, T=float)
        zero = Const(float [0, 0], ^yes)
        more = Greater(x_way:1, zero, T=float)
        axes = Const(int32 [0], ^yes)
        q = All(more, axes, Tidx=int32, keep_dims=false)
        inner = Switch(q, q, T=bool)
        inner_yes = Identity(inner:1, T=bool)
        inner_no = Identity(inner, T=bool)
        v_way = Switch(v, id, T=resource)
        v_inner = Switch(v_way:1, q, T=resource)
        x_inner = Switch(x_way:1, q, T=float)
        add = AssignAddVariableOp(v_inner:1, x_inner:1, dtype=float)
        added = ReadVariableOp(v_inner:1, ^add, dtype=float)
        done = Identity(inner_yes, ^add, T=bool)
        inside = Merge(inner_no, done, N=2, T=bool)
        negative = Neg(x_way, T=float)
        v_no = Switch(v, id, T=resource)
        write = AssignVariableOp(v_no, negative, dtype=float)
        done_yes = Identity(yes, ^inside, T=bool)
        done_no = Identity(no, ^write, T=bool)
        merge = Merge(done_no, done_yes, N=2, T=bool)
        y = ReadVariableOp(v, ^merge, dtype=float)
    """
    if variable == "VariableV2":
        for resource, reference in (
            ("VarHandleOp(", "VariableV2("),
            ("AssignAddVariableOp(v_inner:1, x_inner:1, d", "AssignAdd(v_inner:1, x_inner:1, "),
            ("ReadVariableOp(v_inner:1, ^add, d", "Identity(v_inner:1, ^add, "),
            ("AssignVariableOp(v_no, negative, d", "Assign(v_no, negative, "),
            ("ReadVariableOp(v, ^merge, d", "Identity(v, ^merge, "),
            (" Switch(v, id, T=resource", " RefSwitch(v, id, T=float"),
            (" Switch(v_way:1, q, T=resource", " RefSwitch(v_way:1, q, T=float"),
        ):  # fmt: skip
            text = text.replace(resource, reference)
        text = text.replace("type=float)", "T=float)").replace("(dT=", "(dtype=")
    return text


@pytest.mark.parametrize("variable", ["VarHandleOp", "VariableV2"])
def test_what_a_branch_of_tensorflow_1_assigns_is_what_is_read_behind_it(variable: str) -> None:
    """The values are those of TensorFlow 1.15's session."""
    stored = {"v": Tensor.from_numpy(np.float32([10, 20]))}
    report = freeze_with_report(parse(conditional(variable)), "y", stored, control_flow="lower")
    graph = without_dead_updates(report.graph, ["y"])[0]
    assert not any(node.op.startswith(("Assign", "RefSwitch")) for node in graph)
    for x, p, expected in (([1, 2], True, [11, 22]), ([-1, 2], True, [10, 20]), ([1, 2], False, [-1, -2])):
        with Session(graph) as session:
            assert session.run(["y"], {"x": np.float32(x), "p": np.bool_(p)})[0].tolist() == expected


def test_what_is_assigned_in_a_branch_for_another_reason_than_its_handle_stays() -> None:
    text = conditional("VarHandleOp").replace("AssignVariableOp(v_no, negative", "AssignVariableOp(v, negative")
    graph = parse(text)
    assert with_assigned_values(graph, ["y"], ["v"])[0] is graph


SHARED = """
    x = Placeholder(dtype=float, shape=[2])
    v = VariableV2(dtype=float, shape=[2])
    read = Identity(v, T=float)
    first = Mul(read, x, T=float)
    add = AssignAdd(v, x, ^first, T=float)
    again = Identity(read, ^add, T=float)
    y = Mul(read, x, ^add, T=float)
    z = AddN(first, y, again, N=3, T=float)
"""


def test_what_was_read_of_a_reference_changes_with_its_variable() -> None:
    """As in TensorFlow 1.15, whose Identity hands on the variable's memory: ``tf.gather(v, …)`` reads so."""
    stored = {"v": Tensor.from_numpy(np.float32([10, 20]))}
    report = freeze_with_report(parse(SHARED), "z", stored, control_flow="lower")
    with Session(without_dead_updates(report.graph, ["z"])[0]) as session:
        assert session.run(["z"], {"x": np.float32([1, 2])})[0].tolist() == [10 + 11 + 11, 40 + 44 + 22]
    assert not any("no edge says" in line for line in report.warnings)


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("AssignAdd(v, read, ^write, T=float)", [20, 40]),
        ("AssignSub(v, read, ^write, T=float)", [0, 0]),
        ("AssignAdd(v, v, ^write, T=float)", [20, 40]),
        ("AssignAdd(v, flat, ^write, T=float)", [20, 40]),
        ("Assign(v, read, ^write, T=float)", [10, 20]),
        ("ScatterAdd(v, rows, read, ^write, T=float, Tindices=int32)", [20, 40]),
        ("AssignAdd(v, negative, ^write, T=float)", [9, 18]),
    ],
)
def test_an_assignment_that_is_given_what_was_read_takes_what_its_variable_holds_then(
    second: str, expected: list[float]
) -> None:
    """The values are those of TensorFlow 1.15's session."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[2])
        v = VariableV2(dtype=float, shape=[2])
        rows = Const(int32 [0, 1])
        read = Identity(v, T=float)
        negative = Neg(read, T=float)
        size = Const(int32 [-1])
        flat = Reshape(read, size, T=float, Tshape=int32)
        write = Assign(v, x, ^negative, T=float)
        second = {second}
        one = Const(float 1)
        y = Mul(second, one, T=float)
    """)
    stored = {"v": Tensor.from_numpy(np.float32([1, 2]))}
    for output in ("y", "second"):
        report = freeze_with_report(graph, output, stored, control_flow="lower", repair=["updates", "references"])
        assert not [line for line in report.warnings if "no edge" in line]
        with Session(report.graph) as session:
            assert session.run([output], {"x": np.float32([10, 20])})[0].tolist() == expected


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("Reshape(read, sizes, T=float, Tshape=int32)", [[10], [20]]),
        ("Reshape(v, sizes, T=float, Tshape=int32)", [[10], [20]]),
        ("ExpandDims(read, one, T=float, Tdim=int32)", [[10], [20]]),
        ("Squeeze(read, T=float, squeeze_dims=[])", [10, 20]),
        ("Bitcast(read, T=float, type=float)", [10, 20]),
        ("Snapshot(read, T=float)", [1, 2]),
        ("Slice(read, nought, rest, T=float, Index=int32)", [10, 20]),
        ("StridedSlice(v, nought, nought, ones, T=float, Index=int32, begin_mask=1, end_mask=1)", [10, 20]),
        ("StridedSlice(v, nought, nought, rest, T=float, Index=int32, begin_mask=1, end_mask=1)", [2, 1]),
        ("Slice(read, nought, two, T=float, Index=int32)", [10, 20]),
        ("Slice(read, nought, ones, T=float, Index=int32)", [1]),
        ("StridedSlice(read, nought, two, ones, T=float, Index=int32)", [10, 20]),
        ("StridedSlice(read, nought, ones, ones, T=float, Index=int32)", [1]),
        ("StridedSlice(read, nought, two, filled, T=float, Index=int32)", [10, 20]),
        ("StridedSlice(read, noughts, sizes, both, T=float, Index=int32, new_axis_mask=1, end_mask=2)", [[10, 20]]),
        ("StridedSlice(read, noughts, sizes, both, T=float, Index=int32, new_axis_mask=2)", [[10], [20]]),
        ("StridedSlice(read, noughts, both, both, T=float, Index=int32, new_axis_mask=2)", [[1]]),
        (
            "StridedSlice(read, noughts, sizes, both, T=float, Index=int32, ellipsis_mask=1, new_axis_mask=2)",
            [[10], [20]],
        ),
        ("Pad(read, none, T=float, Tpaddings=int32)", [10, 20]),
        ("Tile(read, ones, T=float, Tmultiples=int32)", [10, 20]),
        ("Tile(read, two, T=float, Tmultiples=int32)", [1, 2, 1, 2]),
        ("Transpose(read, nought, T=float, Tperm=int32)", [10, 20]),
        ("Split(zero, read, T=float, num_split=1)", [10, 20]),
        ("SplitV(read, two, zero, T=float, Tlen=int32, num_split=1)", [10, 20]),
        ("Pack(read, T=float, N=1, axis=1)", [[10], [20]]),
        ("AddN(read, T=float, N=1)", [10, 20]),
        ("AccumulateNV2(read, T=float, N=1, shape=[2])", [1, 2]),
        ("Sum(read, empty, T=float, Tidx=int32)", [10, 20]),
        ("Max(read, nought, T=float, Tidx=int32)", 2),
        ("ReverseV2(read, empty, T=float, Tidx=int32)", [10, 20]),
        ("ReverseV2(read, nought, T=float, Tidx=int32)", [2, 1]),
        ("BroadcastTo(read, two, T=float, Tidx=int32)", [10, 20]),
        ("PadV2(read, none, scale, T=float, Tpaddings=int32)", [10, 20]),
        ('MirrorPad(read, none, T=float, Tpaddings=int32, mode="REFLECT")', [10, 20]),
        ("Cast(read, SrcT=float, DstT=float)", [10, 20]),
        ('CheckNumerics(read, T=float, message="")', [10, 20]),
        ("EnsureShape(read, T=float, shape=[2])", [10, 20]),
        ("Relu(read, T=float)", [1, 2]),
    ],
)
def test_what_was_read_changes_with_its_variable_in_another_shape(view: str, expected: list[object]) -> None:
    """The values are those of TensorFlow 1.15's session."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[2])
        v = VariableV2(dtype=float, shape=[2])
        sizes = Const(int32 [2, 1])
        one = Const(int32 1)
        zero = Const(int32 0)
        empty = Const(int32 [], shape=[0])
        nought = Const(int32 [0])
        noughts = Const(int32 [0, 0])
        both = Const(int32 [1, 1])
        ones = Const(int32 [1])
        filled = Fill(ones, one, T=int32, index_type=int32)
        two = Const(int32 [2])
        rest = Const(int32 [-1])
        none = Const(int32 [[0, 0]])
        read = Identity(v, T=float)
        view = {view}
        write = Assign(v, x, ^view, T=float)
        scale = Const(float 1)
        y = Mul(view, scale, ^write, T=float)
    """)
    stored = {"v": Tensor.from_numpy(np.float32([1, 2]))}
    report = freeze_with_report(graph, ["y", "x"], stored, control_flow="lower", repair=["updates", "references"])
    assert not [line for line in report.warnings if "no edge" in line]
    with Session(report.graph) as session:
        assert session.run(["y"], {"x": np.float32([10, 20])})[0].tolist() == expected


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("Transpose(read, turned, T=float, Tperm=int32)", [[10], [20]]),
        ("Sum(read, zero, T=float, Tidx=int32)", [10, 20]),
        ("Min(v, zero, T=float, Tidx=int32, keep_dims=true)", [[10, 20]]),
        ("Prod(read, one, T=float, Tidx=int32)", [2]),
        ("ReverseV2(read, noughts, T=float, Tidx=int32)", [[10, 20]]),
        ("StridedSlice(v, noughts, ones, ones, T=float, Index=int32, shrink_axis_mask=1)", [10, 20]),
        ("Cumsum(read, zero, T=float, Tidx=int32)", [[1, 2]]),
    ],
)
def test_what_was_read_changes_with_its_variable_without_axes_of_one(view: str, expected: list[object]) -> None:
    """The values are those of TensorFlow 1.15's session."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1, 2])
        v = VariableV2(dtype=float, shape=[1, 2])
        zero = Const(int32 0)
        one = Const(int32 1)
        noughts = Const(int32 [0])
        ones = Const(int32 [1])
        turned = Const(int32 [1, 0])
        read = Identity(v, T=float)
        view = {view}
        write = Assign(v, x, ^view, T=float)
        scale = Const(float 1)
        y = Mul(view, scale, ^write, T=float)
    """)
    report = freeze_with_report(
        graph, ["y", "x"], {"v": Tensor.from_numpy(np.float32([[1, 2]]))}, control_flow="lower",
        repair=["updates", "references"],
    )  # fmt: skip
    with Session(report.graph) as session:
        assert session.run(["y"], {"x": np.float32([[10, 20]])})[0].tolist() == expected


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        ("Mul(way:1, scale, ^add, T=float)", [11, 22]),
        ("Mul(add, scale, T=float)", [11, 22]),
        ("AssignAdd(v_way:1, way:1, ^add, T=float)", [22, 44]),
    ],
)
def test_what_was_read_into_a_branch_changes_with_its_variable(then: str, expected: list[float]) -> None:
    """The values are those of TensorFlow 1.15's session."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[2])
        p = Placeholder(dtype=bool, shape=[])
        v = VariableV2(dtype=float, shape=[2])
        read = Identity(v, T=float)
        way = Switch(read, p, T=float)
        v_way = RefSwitch(v, p, T=float)
        x_way = Switch(x, p, T=float)
        add = AssignAdd(v_way:1, x_way:1, T=float)
        scale = Const(float 1)
        then = {then}
        y = Merge(way, then, N=2, T=float)
    """)
    stored = {"v": Tensor.from_numpy(np.float32([1, 2]))}
    report = freeze_with_report(graph, "y", stored, control_flow="lower", repair=["updates", "references"])
    assert not [line for line in report.warnings if "no edge" in line]
    for p, values in ((True, expected), (False, [1, 2])):
        with Session(report.graph) as session:
            assert session.run(["y"], {"x": np.float32([10, 20]), "p": np.bool_(p)})[0].tolist() == values


def test_what_was_read_before_an_assignment_of_another_size_is_not_followed() -> None:
    """TensorFlow 1.15 gives [-1, -2]: an assignment of more elements takes other memory."""
    text = """
        x = Placeholder(dtype=float, shape=[3])
        v = VariableV2(dtype=float, shape=[2])
        read = Identity(v, T=float)
        write = Assign(v, x, ^read, T=float, validate_shape=false)
        now = Identity(v, ^write, T=float)
        z = Neg(read, ^write, T=float)
        y = Neg(now, T=float)
    """
    stored = {"v": Tensor.from_numpy(np.float32([1, 2]))}
    told = "what 'z' read of 'v' after 'write' is not followed; the stored value is taken"
    report = freeze_with_report(parse(text), "z", stored, control_flow="lower", repair=["updates", "references"])
    assert told in report.warnings
    with Session(report.graph) as session:
        assert session.run(["z"], {})[0].tolist() == [-1, -2]
    report = freeze_with_report(parse(text), "y", stored, control_flow="lower", repair=["updates", "references"])
    assert not [line for line in report.warnings if "followed" in line]
    with Session(report.graph) as session:
        assert session.run(["y"], {"x": np.float32([10, 20, 30])})[0].tolist() == [-10, -20, -30]
    more = text.replace("y = Neg(now", "more = AssignAdd(v, read, ^now, T=float)\n        y = Neg(more")
    report = freeze_with_report(parse(more), "y", stored, control_flow="lower", repair=["updates", "references"])
    assert "what 'y' read of 'v' after 'write', 'more' is not followed; the stored value is taken" in report.warnings


def test_what_reads_a_variable_beside_an_assignment_is_told() -> None:
    """TensorFlow 1.15 gives both 31 and 32 for 10 and 11, from run to run."""
    text = SHARED.replace("y = Mul(read, x, ^add,", "y = Mul(read, x,").replace("first, y, again", "first, y, add")
    stored = {"v": Tensor.from_numpy(np.float32([10, 20]))}
    report = freeze_with_report(parse(text), "z", stored, control_flow="lower")
    assert [line for line in report.warnings if "'y' read 'v' before or after 'add'" in line]
    ordered = freeze_with_report(parse(text.replace("^first", "^first, ^y")), "z", stored, control_flow="lower")
    assert not [line for line in ordered.warnings if "no edge says" in line]


@pytest.mark.parametrize(("op", "expected"), [("Mul", [10, -80, 15]), ("Div", [10, -10, 60])])
@pytest.mark.parametrize("kind", ["Scatter", "ResourceScatter"])
def test_rows_that_are_multiplied_and_divided_are_what_is_read(kind: str, op: str, expected: list[float]) -> None:
    """The values are those of TensorFlow 1.15's session; a row may come twice."""
    resource = kind == "ResourceScatter"
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[3])
        v = {"VarHandleOp" if resource else "VariableV2"}(dtype=float, shape=[3])
        rows = Const(int32 [1, 2, 1])
        put = {kind}{op}(v, rows, x, {"dtype" if resource else "T"}=float, Tindices=int32)
        y = {"ReadVariableOp(v, ^put, dtype" if resource else "Identity(put, T"}=float)
    """)
    stored = {"v": Tensor.from_numpy(np.float32([10, 40 if op == "Mul" else 20, 30]))}
    frozen = freeze(graph, "y", stored, control_flow="lower")
    with Session(without_dead_updates(frozen, ["y"])[0]) as session:
        assert session.run(["y"], {"x": np.float32([-1, 0.5, 2])})[0].tolist() == expected


@pytest.mark.parametrize(
    ("op", "expected"), [("Update", [1, 9, 3]), ("Add", [1, 11, 3]), ("Mul", [1, 18, 3]), ("Max", [1, 9, 3])]
)
@pytest.mark.parametrize("kind", ["Scatter", "ResourceScatter"])
def test_one_row_without_an_axis_is_put(kind: str, op: str, expected: list[float]) -> None:
    """TensorFlow 1.15 refuses a TensorScatter op whose updates have no axis: "must be at least rank 1"."""
    resource = kind == "ResourceScatter"
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[])
        v = {"VarHandleOp" if resource else "VariableV2"}(dtype=float, shape=[3])
        row = Const(int32 1)
        put = {kind}{op}(v, row, x, {"dtype" if resource else "T"}=float, Tindices=int32)
        y = {"ReadVariableOp(v, ^put, dtype=float)" if resource else "Identity(v, ^put, T=float)"}
    """)
    stored = {"v": Tensor.from_numpy(np.float32([1, 2, 3]))}
    frozen = without_dead_updates(freeze(graph, "y", stored, control_flow="lower"), ["y"])[0]
    for node in frozen:
        if node.op.startswith("TensorScatter"):
            with Session(frozen) as session:
                assert [session.run([ref], {"x": np.float32(9)})[0].ndim for ref in node.data_inputs[1:]] == [2, 1]
    with Session(frozen) as session:
        assert session.run(["y"], {"x": np.float32(9)})[0].tolist() == expected


@pytest.mark.parametrize("kind", ["Scatter", "ResourceScatter"])
def test_whole_numbers_are_divided_where_no_row_comes_twice(kind: str) -> None:
    """TensorFlow 1.15 gives [1, 0], and [0, 7] for rows 0 and 0; the product of these divisors overflows to 0."""
    resource = kind == "ResourceScatter"
    text = f"""
        x = Placeholder(dtype=int32, shape=[2])
        v = {"VarHandleOp" if resource else "VariableV2"}(dtype=int32, shape=[2])
        rows = Const(int32 [1, 0])
        put = {kind}Div(v, rows, x, {"dtype" if resource else "T"}=int32, Tindices=int32)
        y = {"ReadVariableOp(v, ^put, dtype" if resource else "Identity(put, T"}=int32)
    """
    stored = {"v": Tensor.from_numpy(np.int32([100000, 7]))}
    with Session(without_dead_updates(freeze(parse(text), "y", stored, control_flow="lower"), ["y"])[0]) as session:
        assert session.run(["y"], {"x": np.int32([65536, 65536])})[0].tolist() == [1, 0]
    for rows in ("Const(int32 [0, 0])", "Placeholder(dtype=int32, shape=[2])"):
        graph = parse(text.replace("Const(int32 [1, 0])", rows))
        assert with_assigned_values(graph, ["y"], ["v"])[0] is graph
        report = freeze_with_report(graph, "y", stored, control_flow="lower")
        assert "what 'y' read of 'v' after 'put' is not followed; the stored value is taken" in report.warnings


LOOP = """
    x = Placeholder(dtype=float, shape=[2])
    n = Placeholder(dtype=int32, shape=[])
    v = VarHandleOp(dtype=float, shape=[2])
    zero = Const(int32 0)
    handle = Enter(v, T=resource, frame_name="loop", is_constant=true)
    limit = Enter(n, T=int32, frame_name="loop", is_constant=true)
    given = Enter(x, T=float, frame_name="loop", is_constant=true)
    i = Enter(zero, T=int32, frame_name="loop")
    a = Enter(x, T=float, frame_name="loop")
    at = Merge(i, next, T=int32, N=2)
    sum = Merge(a, next_sum, T=float, N=2)
    less = Less(at, limit, T=int32)
    go = LoopCond(less)
    at_way = Switch(at, go, T=int32)
    sum_way = Switch(sum, go, T=float)
    at_in = Identity(at_way:1, T=int32)
    sum_in = Identity(sum_way:1, T=float)
    write = AssignAddVariableOp(handle, given, ^at_in, dtype=float)
    one = Const(int32 1, ^write)
    more = AddV2(at_in, one, T=int32)
    BODY
    next = NextIteration(more, T=int32)
    next_sum = NextIteration(total, T=float)
    y = Exit(sum_way, T=float)
"""
PLAIN_BODY = "total = AddV2(sum_in, given, T=float)"


def test_a_round_of_a_loop_goes_on_waiting_where_an_assignment_is_dropped() -> None:
    """TensorFlow 1.15 refused the graph whose constant waited for nothing: "has inputs from different frames"."""
    graph = parse(LOOP.replace("BODY", PLAIN_BODY))
    report = freeze_with_report(graph, "y", {"v": Tensor.from_numpy(np.float32([1, 2]))}, control_flow="lower")
    left, lines = without_dead_updates(graph, ["y"])
    assert lines.keys() == {"write"}
    assert left["write"].op == "Identity"
    assert left["write"].inputs == ("given", "^at_in")
    assert left["one"].inputs == ("^write",)
    for one in (left, report.graph):
        with Session(one) as session:
            assert session.run(["y"], {"x": np.float32([1, 3]), "n": np.int32(3)})[0].tolist() == [4, 12]


READ_IN_BODY = "now = ReadVariableOp(handle, ^write, dtype=float)\n    total = AddV2(sum_in, now, T=float)"
READ_BEFORE = """was = ReadVariableOp(handle, ^at_in, dtype=float)
    held = NoOp(^was)
    total = AddV2(sum_in, was, T=float)"""
READ_BEHIND = """total = AddV2(sum_in, given, T=float)
    left = Exit(at_way, T=int32)
    now = ReadVariableOp(v, ^left, dtype=float)"""
ROWS = """row = Const(int32 [1], ^write)
    put = ResourceScatterMul(handle, row, seven, ^write, dtype=float, Tindices=int32)
    axis = Const(int32 0, ^write)
    now = ResourceGather(handle, row, ^put, dtype=float, Tindices=int32)
    total = AddV2(sum_in, now, T=float)"""
BRANCH = """odd = FloorMod(at_in, two, T=int32)
    one_more = Equal(odd, nought, T=int32)
    handle_way = Switch(handle, one_more, ^write, T=resource)
    sum_or = Switch(sum_in, one_more, ^write, T=float)
    set = AssignVariableOp(handle_way:1, sum_or:1, dtype=float)
    done = Identity(sum_or:1, ^set, T=float)
    both = Merge(sum_or, done, T=float, N=2)
    now = ReadVariableOp(handle, ^both, dtype=float)
    total = AddV2(both, now, T=float)"""

PRODUCT = """end = Exit(sum_way, T=float)
    y = Mul(end, now, T=float)"""
NUMBERS = """two = Const(int32 2, ^at_in)
    nought = Const(int32 0, ^at_in)
    one = Const"""
CONDITION = """first = Const(int32 [0])
    top = Enter(first, T=int32, frame_name="loop", is_constant=true)
    seen = ResourceGather(handle, top, ^at, dtype=float, Tindices=int32)
    few = Squeeze(seen, T=float)
    limit_of = Const(float 2.5)
    most = Enter(limit_of, T=float, frame_name="loop", is_constant=true)
    small = Less(few, most, T=float)
    both_so = LogicalAnd(less, small)
    go = LoopCond(both_so)"""


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"BODY": READ_IN_BODY}, [10, 27]),
        ({"BODY": READ_BEFORE, "^at_in, dtype=float)\n    one": "^held, ^at_in, dtype=float)\n    one"}, [7, 18]),
        ({"BODY": READ_BEHIND, "y = Exit(sum_way, T=float)": PRODUCT}, [16, 132]),
        ({"BODY": ROWS, "one = Const": "seven = Const(float [7], ^at_in)\n    one = Const"}, [2185, 2187]),
        ({"BODY": BRANCH, "one = Const": NUMBERS}, [8, 24]),
        ({"BODY": PLAIN_BODY, "go = LoopCond(less)": CONDITION}, [3, 9]),
    ],
    ids=["after", "before", "behind", "rows", "branch", "condition"],
)  # fmt: skip
def test_what_is_read_where_a_loop_assigns_is_what_its_rounds_leave(
    changes: dict[str, str], expected: list[float]
) -> None:
    """The values are those of TensorFlow 1.15's session."""
    text = LOOP
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    if "held" not in text:
        text = text.replace('frame_name="loop"', 'frame_name="loop", parallel_iterations=1')
    report = freeze_with_report(parse(text), "y", {"v": Tensor.from_numpy(np.float32([1, 2]))}, control_flow="lower")
    assert not any("not followed" in line for line in report.warnings)
    graph = without_dead_updates(report.graph, ["y"])[0]
    assert not any(node.op.startswith(("Assign", "ResourceScatter")) for node in graph)
    with Session(graph) as session:
        assert session.run(["y"], {"x": np.float32([1, 3]), "n": np.int32(3)})[0].tolist() == expected


@pytest.mark.parametrize(
    "changes",
    [
        {},  # the next round may assign before this one reads: TensorFlow 1.15 gave 13 and 36
        {"go = LoopCond(less)": "go = LoopCond(less, ^write)", "given, ^at_in": "given, ^at"},
    ],
    ids=["rounds in no order", "in the condition"],
)  # fmt: skip
def test_what_a_loop_assigns_otherwise_is_told(changes: dict[str, str]) -> None:
    text = LOOP.replace("BODY", READ_IN_BODY)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    report = freeze_with_report(parse(text), "y", {"v": Tensor.from_numpy(np.float32([1, 2]))}, control_flow="lower")
    told = "what 'now' read of 'v' after 'write' is not followed; the stored value is taken"
    assert told in report.warnings


@pytest.mark.parametrize("variable", ["VarHandleOp", "VariableV2"])
def test_what_a_loop_in_a_branch_assigns_is_told(variable: str) -> None:
    """TensorFlow 1.15 gives 33 for 3 and -2 for -1; it refused the frozen graph whose Switches of the branch were made
    in the loop: "has inputs from different frames"."""
    kind, ref = ("resource", "") if variable == "VarHandleOp" else ("float", "Ref")
    add = "AssignAddVariableOp(handle, given, ^at_in, dtype=float)"
    text = f"""
        x = Placeholder(dtype=float, shape=[])
        v = {variable}(dtype=float, shape=[])
        nought = Const(float 0)
        zero = Const(int32 0)
        n = Const(int32 3)
        is_more = Greater(x, nought, T=float)
        x_way = Switch(x, is_more, T=float)
        v_way = {ref}Switch(v, is_more, T={kind})
        zero_way = Switch(zero, is_more, T=int32)
        n_way = Switch(n, is_more, T=int32)
        handle = {ref}Enter(v_way:1, T={kind}, frame_name="loop", is_constant=true)
        given = Enter(x_way:1, T=float, frame_name="loop", is_constant=true)
        limit = Enter(n_way:1, T=int32, frame_name="loop", is_constant=true)
        i = Enter(zero_way:1, T=int32, frame_name="loop")
        at = Merge(i, next, T=int32, N=2)
        less = Less(at, limit, T=int32)
        go = LoopCond(less)
        at_way = Switch(at, go, T=int32)
        at_in = Identity(at_way:1, T=int32)
        write = {add if not ref else "AssignAdd(handle, given, ^at_in, T=float)"}
        one = Const(int32 1, ^write)
        more = AddV2(at_in, one, T=int32)
        next = NextIteration(more, T=int32)
        end = Exit(at_way, T=int32)
        done = Merge(zero_way, end, T=int32, N=2)
        now = {"ReadVariableOp(v, ^done, dtype=float)" if not ref else "Identity(v, ^done, T=float)"}
        y = Mul(now, x, T=float)
    """
    report = freeze_with_report(parse(text), "y", {"v": Tensor.from_numpy(np.float32(2))}, control_flow="lower")
    assert any(
        "read of 'v' after 'write' is not followed; the stored value is taken" in line for line in report.warnings
    )
    with Session(without_dead_updates(report.graph, ["y"])[0]) as session:
        for number in (-1,) if ref else (3, -1):  # the other one is refused: it would change a constant
            assert session.run(["y"], {"x": np.float32(number)})[0] == 2 * number


def _counting(count: int) -> Graph:
    """A loop that adds to this many variables in turn, and carries as many values."""
    frame = 'frame_name="loop"'
    lines = [
        "x = Placeholder(dtype=float, shape=[])", "n = Const(int32 3)", "zero = Const(int32 0)",
        f"limit = Enter(n, T=int32, {frame}, is_constant=true)",
        f"given = Enter(x, T=float, {frame}, is_constant=true)",
        f"i = Enter(zero, T=int32, {frame})", "at = Merge(i, next, T=int32, N=2)", "less = Less(at, limit, T=int32)",
        "go = LoopCond(less)", "at_way = Switch(at, go, T=int32)", "w = Identity(at_way:1, T=int32)",
    ]  # fmt: skip
    for k in range(count):
        lines += [
            f"v{k} = VarHandleOp(dtype=float, shape=[])", f"h{k} = Enter(v{k}, T=resource, {frame}, is_constant=true)",
            f"w{k} = AssignAddVariableOp(h{k}, given, ^{f'w{k - 1}' if k else 'w'}, dtype=float)",
            f"a{k} = Enter(x, T=float, {frame})", f"s{k} = Merge(a{k}, next{k}, T=float, N=2)",
            f"s_way{k} = Switch(s{k}, go, T=float)", f"b{k} = Add(s_way{k}:1, given, T=float)",
            f"next{k} = NextIteration(b{k}, T=float)", f"y{k} = Exit(s_way{k}, T=float)",
        ]  # fmt: skip
    last = ["one = Const(int32 1, ^w" + f"{count - 1})", "more = Add(w, one, T=int32)"]
    return parse("\n".join([*lines, *last, "next = NextIteration(more, T=int32)", "end = Exit(at_way, T=int32)"]))


def test_what_leaves_a_loop_waits_for_what_it_is_computed_with() -> None:
    order = LoopOrder(_counting(3)).order
    assert order["y1"].control_inputs == ("^next", "^next1")
    assert order["end"].control_inputs == ("^next",)
    assert order["s1"].inputs == ("a1",)


def test_the_order_in_loops_takes_steps_by_their_size() -> None:
    """Each value that left a loop was followed through all that the loop's condition waits for."""

    def calls(count: int) -> int:
        graph, found = _counting(count), 0
        assert graph.consumers

        def note(frame: object, event: str, arg: object) -> None:
            nonlocal found
            found += event == "call"

        sys.setprofile(note)
        try:
            LoopOrder(graph)
        finally:
            sys.setprofile(None)
        return found

    assert calls(200) < 2.5 * calls(100)


def test_what_is_assigned_after_a_loop_is_followed() -> None:
    """TensorFlow 1.15 gives three times what the loop summed up."""
    text = LOOP.replace("BODY", PLAIN_BODY).replace("    y = Exit(", "    left = Exit(").replace(", ^write)", ")")
    text = "\n".join(line for line in text.splitlines() if "write =" not in line)
    graph = parse(
        text + "\n    handle_in = ReadVariableOp(v, dtype=float)"
        "\n    set = AssignVariableOp(v, left, dtype=float)\n    now = ReadVariableOp(v, ^set, dtype=float)"
        "\n    three = Const(float 3)\n    y = Mul(now, three, T=float)"
    )
    graph = graph.replace(
        [node.replace(inputs=[*node.inputs, "^at_in"]) if node.name == "one" else node for node in graph]
    )
    report = freeze_with_report(graph, "y", {"v": Tensor.from_numpy(np.float32([1, 2]))}, control_flow="lower")
    with Session(without_dead_updates(report.graph, ["y"])[0]) as session:
        assert session.run(["y"], {"x": np.float32([1, 3]), "n": np.int32(3)})[0].tolist() == [12, 36]


def test_a_branch_goes_on_waiting_where_an_assignment_is_dropped() -> None:
    """``tf.cond`` of TensorFlow 1 has a constant wait for the assignment, which runs on one branch alone."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[])
        p = Placeholder(dtype=bool, shape=[])
        v = VarHandleOp(dtype=float, shape=[])
        v_way = Switch(v, p, T=resource)
        x_way = Switch(x, p, T=float)
        write = AssignAddVariableOp(v_way:1, x_way:1, dtype=float)
        yes = Const(float 5, ^write)
        pivot = Switch(p, p, T=bool)
        otherwise = Identity(pivot, T=bool)
        no = Const(float 7, ^otherwise)
        y = Merge(no, yes, T=float, N=2)
    """)
    left, lines = without_dead_updates(graph, ["y"])
    assert lines == {"write": "'write' (AssignAddVariableOp to 'v') is dropped"}
    assert left["yes"].inputs == ("^write",)
    assert left["write"].inputs == ("x_way:1",)
    for p, expected in ((True, 5), (False, 7)):
        with Session(left) as session:
            assert session.run(["y"], {"x": np.float32(1), "p": np.bool_(p)})[0] == expected


def test_a_loop_in_a_branch_goes_on_turning_where_an_assignment_is_dropped() -> None:
    """A pivot for the branch would stand outside of the loop, whose nodes TensorFlow 1.15 lets wait for none there."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[])
        p = Placeholder(dtype=bool, shape=[])
        same = Identity(p, T=bool)
        v = VariableV2(dtype=float, shape=[])
        read = Identity(v, T=float)
        v_way = RefSwitch(v, same, T=float)
        v_in = RefEnter(v_way:1, T=float, frame_name="loop", is_constant=true)
        pivot = Switch(p, p, T=bool)
        taken = Identity(pivot:1, T=bool)
        zero = Const(int32 0, ^taken)
        at_in = Enter(zero, T=int32, frame_name="loop")
        at = Merge(at_in, next, T=int32, N=2)
        x_way = Switch(x, same, T=float)
        sum_in = Enter(x_way:1, T=float, frame_name="loop")
        sum = Merge(sum_in, next_sum, T=float, N=2)
        three = Const(int32 3, ^at)
        less = Less(at, three, T=int32)
        go = LoopCond(less)
        at_way = Switch(at, go, T=int32)
        sum_way = Switch(sum, go, T=float)
        sum_here = Identity(sum_way:1, T=float)
        at_here = Identity(at_way:1, T=int32)
        one = Const(int32 1, ^at_here)
        more = AddV2(at_here, one, T=int32)
        next = NextIteration(more, T=int32)
        write = AssignAdd(v_in, sum_here, T=float)
        next_sum = RefNextIteration(write, T=float)
        end = Exit(sum_way, T=float)
        done = Merge(x_way, end, T=float, N=2)
        half = Const(float 0.5, ^done)
        y = AddV2(read, half, T=float)
    """)
    stored = {"v": Tensor.from_numpy(np.float32(2))}
    report = freeze_with_report(graph, "y", stored, control_flow="lower", repair=["updates", "references"])
    for p in (True, False):
        with Session(report.graph) as session:
            assert session.run(["y"], {"x": np.float32(1), "p": np.bool_(p)})[0] == 2.5


PASSED_ON = """
    x = Placeholder(dtype=float, shape=[])
    v = VariableV2(dtype=float, shape=[])
    c = VariableV2(dtype=int32, shape=[])
    v_in = RefEnter(v, T=float, frame_name="loop", is_constant=true)
    c_in = RefEnter(c, T=int32, frame_name="loop", is_constant=true)
    zero = Const(int32 0)
    at_in = Enter(zero, T=int32, frame_name="loop")
    at = Merge(at_in, next, T=int32, N=2)
    sum_in = Enter(x, T=float, frame_name="loop")
    sum = Merge(sum_in, next_sum, T=float, N=2)
    three = Const(int32 3, ^at)
    less = Less(at, three, T=int32)
    go = LoopCond(less)
    at_way = Switch(at, go, T=int32)
    sum_way = Switch(sum, go, T=float)
    sum_here = Identity(sum_way:1, T=float)
    at_here = Identity(at_way:1, T=int32)
    one = Const(int32 1, ^at_here)
    more = AddV2(at_here, one, T=int32)
    next = NextIteration(more, T=int32)
    BODY
    y = Exit(sum_way, T=float)
"""


def test_a_variable_in_place_of_an_assignment_that_a_loop_hands_on_is_there_once_a_round() -> None:
    """``tf.while_loop(…, lambda i, q: (i + 1, tf.assign_add(v, q)))``: what is constant in a loop goes to the next
    round whether there is one, and TensorFlow 1.15 ran without end."""
    body = "write = AssignAdd(v_in, sum_here, T=float)\n    next_sum = RefNextIteration(write, T=float)"
    stored = {"v": Tensor.from_numpy(np.float32(2)), "c": Tensor.from_numpy(np.int32(0))}
    report = freeze_with_report(
        parse(PASSED_ON.replace("BODY", body)), "y", stored, control_flow="lower", repair=["updates", "references"]
    )
    assert report.graph["write"].inputs == ("v_in", "^sum_here")
    with Session(report.graph) as session:
        assert session.run(["y"], {"x": np.float32(1)})[0] == 2


def test_a_counter_on_a_branch_of_a_loop_stays_there_without_its_count() -> None:
    body = """p = Less(at_here, one, T=int32)
    c_way = RefSwitch(c_in, p, T=int32)
    count = CountUpTo(c_way:1, limit=9, T=int32)
    five = Const(float 5.0, ^count)
    other = Switch(sum_here, p, T=float)
    picked = Merge(other, five, T=float, N=2)
    next_sum = NextIteration(picked, T=float)"""
    stored = {"c": Tensor.from_numpy(np.int32(0))}
    graph = freeze_with_report(
        parse(PASSED_ON.replace("BODY", body)), "y", stored, control_flow="lower", repair=["updates", "references"]
    ).graph
    assert (graph["count"].op, graph["count"].inputs) == ("Identity", ("c_way:1",))
    with Session(graph) as session:
        assert session.run(["y"], {"x": np.float32(1)})[0] == 5


def test_what_reads_a_dropped_assignments_reference_reads_its_variable() -> None:
    """The values are those of TensorFlow 1.15's session; the view was refused, as its input was gone."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        v = VariableV2(dtype=float, shape=[2])
        two = Const(float 2)
        twice = Mul(x, two, T=float)
        sizes = Const(int32 [2, 1])
        set = Assign(v, twice, T=float)
        column = Reshape(set, sizes, T=float, Tshape=int32)
        add = AssignAdd(set, x, T=float)
        row = Squeeze(column, ^add, T=float, squeeze_dims=[])
        one = Const(float 1, ^add, ^column)
        y = Mul(row, one, T=float)
    """)
    report = freeze_with_report(graph, "y", {"v": Tensor.from_numpy(np.float32([1, 2]))}, control_flow="lower")
    with Session(without_dead_updates(report.graph, ["y"])[0]) as session:
        assert session.run(["y"], {"x": np.float32([1, 3])})[0].tolist() == [3, 9]


@pytest.mark.parametrize(
    ("both", "expected"),
    [("IdentityN(v, x, T=[float, float])", [10, 20]), ("Merge(v_yes, x_no, T=float, N=2)", [10, 20])],
)
def test_what_one_of_several_inputs_was_read_of_changes_with_its_variable(both: str, expected: list[float]) -> None:
    """The values are those of TensorFlow 1.15's session: both ops hand on the memory of the input that they give."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[2])
        p = Placeholder(dtype=bool, shape=[])
        v = VariableV2(dtype=float, shape=[2])
        read = Identity(v, T=float)
        v_way = Switch(read, p, T=float)
        x_way = Switch(x, p, T=float)
        v_yes = Identity(v_way:1, T=float)
        x_no = Neg(x_way, T=float)
        both = {both}
        write = Assign(v, x, ^both, T=float)
        one = Const(float 1)
        y = Mul(both, one, ^write, T=float)
    """)
    stored = {"v": Tensor.from_numpy(np.float32([1, 2]))}
    report = freeze_with_report(graph, "y", stored, control_flow="lower", repair=["updates", "references"])
    with Session(report.graph) as session:
        feeds = {"x": np.float32([10, 20]), "p": np.bool_(True)}
        assert (
            session.run(["y"], {key: held for key, held in feeds.items() if key in report.graph})[0].tolist()
            == expected
        )
        if "Merge" in both:
            assert session.run(["y"], {"x": np.float32([10, 20]), "p": np.bool_(False)})[0].tolist() == [-10, -20]


def _in_turn(count: int) -> str:
    """So many conditionals of TensorFlow 1 on what was read of a variable before it is assigned."""
    lines = ["x = Placeholder(dtype=float, shape=[2])", "p = Placeholder(dtype=bool, shape=[])", "one = Const(float 1)"]
    lines += ["v = VariableV2(dtype=float, shape=[2])", "m0 = Identity(v, T=float)"]
    for at in range(count):
        lines += [f"s{at} = Switch(m{at}, p, T=float)", f"i{at} = Identity(s{at}:1, T=float)"]
        lines.append(f"m{at + 1} = Merge(s{at}, i{at}, T=float, N=2)")
    lines += [f"write = Assign(v, x, ^m{count}, T=float)", f"y = Mul(m{count}, one, ^write, T=float)"]
    return "\n".join(lines)


@pytest.mark.parametrize("count", [1, 10, 500])
def test_conditionals_in_turn_are_copied_once_each(count: int) -> None:
    """TensorFlow 1.15 gives what was assigned; with a way of its own for each input of a Merge there were 2 to the
    power of their number."""
    stored = {"v": Tensor.from_numpy(np.float32([1, 2]))}
    graph = parse(_in_turn(count))
    graph, lines = with_assigned_values(graph, ["y"], ["v"])
    assert lines == []
    assert len(graph) <= 7 + 3 * count + 4 * count
    frozen = freeze(graph, "y", stored, control_flow="lower", repair=["updates", "references"])
    for p in (True, False):
        with Session(frozen) as session:
            assert session.run(["y"], {"x": np.float32([10, 20]), "p": np.bool_(p)})[0].tolist() == [10, 20]


BRANCHES = """
    x = Placeholder(dtype=float, shape=[])
    p = Placeholder(dtype=bool, shape=[])
    one = Const(float 1)
    count = Const(int32 1)
    v = VariableV2(dtype=float, shape=[])
    c = VariableV2(dtype=int32, shape=[])
    init = Assign(v, one, T=float)
    init_c = Assign(c, count, T=int32)
    way = Switch(x, p, T=float)
    no = Neg(way, T=float)
"""


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        ("set = AssignAdd(v, way:1, T=float)\n yes = Const(float 5, ^set)", 5),
        ("v_way = RefSwitch(v, p, T=float)\n set = AssignAdd(v_way:1, one, T=float)\n yes = Const(float 5, ^set)", 5),
        ("set = AssignAdd(v, way:1, T=float)\n yes = Neg(one, ^set, T=float)", -1),
        ("set = AssignAdd(v, way:1, T=float)\n all = NoOp(^set)\n yes = Neg(one, ^all, T=float)", -1),
        (
            "c_way = RefSwitch(c, p, T=int32)\n set = CountUpTo(c_way:1, limit=5, T=int32)\n"
            "yes = Neg(x, ^set, T=float)",
            -2,
        ),
        (
            "v_way = RefSwitch(v, p, T=float)\n first = AssignAdd(v_way:1, one, T=float)\n"
            "set = Assign(v, one, ^first, T=float)\n yes = Const(float 5, ^set)",
            5,
        ),
        (
            "p_in = Switch(p, p, T=bool)\n inner = Switch(way:1, p_in:1, T=float)\n"
            "v_way = RefSwitch(v, p, T=float)\n v_in = RefSwitch(v_way:1, p_in:1, T=float)\n"
            "set = AssignAdd(v_in:1, one, T=float)\n there = Const(float 5, ^set)\n"
            "else = Neg(inner, T=float)\n yes = Merge(else, there, T=float, N=2)",
            5,
        ),
        (
            "set = Assign(v, way:1, T=float)\n taken = Neg(set, T=float)\n yes = Const(float 5, ^taken)",
            5,
        ),
        (
            "p_in = Switch(p, p, T=bool)\n inner = Switch(way:1, p_in:1, T=float)\n minus = Neg(inner, T=float)\n"
            "same = Identity(inner:1, T=float)\n both = Merge(minus, same, T=float, N=2)\n"
            "set = AssignAdd(v, both, T=float)\n yes = Const(float 5, ^set)",
            5,
        ),
    ],
)
def test_what_an_assignment_says_of_branches_stays_without_it(then: str, expected: float) -> None:
    """The values are those of TensorFlow 1.15's session for x = 2; both sides ran, and the wrong one was taken."""
    graph = parse(BRANCHES + then + "\n y = Merge(yes, no, T=float, N=2)")
    initial = ["init", "init_c"] if "CountUpTo" in then else ["init"]
    left, _ = without_dead_updates(graph, ["y"])
    if "VariableV2" in left.ops:
        left = freeze(left, "y", {"v": Tensor.from_numpy(np.float32(1))}, control_flow="lower")
    repaired = freeze(graph, "y", initializer_nodes=initial, repair=["updates", "references"])
    lowered = freeze(graph, "y", initializer_nodes=initial, repair=["updates"], control_flow="lower")
    for one in (left, repaired, lowered):
        assert "Assign" not in " ".join(one.ops)
        assert "p:0 1" in on_branches(one)["there" if "there" in one else "yes"]
        for engine in (None, "reference"):
            with Session(one, engine=engine) as session:
                for p, value in ((False, -2), (True, expected)):
                    assert session.run(["y"], {"x": np.float32(2), "p": np.bool_(p)})[0] == value
