"""Assignments that no answer of a served model depends on are dropped; others stay."""

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.freezing import freeze, freeze_with_report
from pocketgraph.freezing.assigned_values import with_assigned_values
from pocketgraph.freezing.dead_updates import without_dead_updates
from pocketgraph.graph import Tensor
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
    graph = with_assigned_values(parse(WINDOW), ["y"], ["window"])
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
    assert with_assigned_values(graph, ["y"], ["average"]) is graph


def test_a_variable_that_stays_one_keeps_its_assignments_and_what_reads_it() -> None:
    x = Tensor.from_numpy(np.float32([3, 4]))
    graph = freeze(parse(COUNTS), "y", {"c": x}, variable_names_blacklist=["c"], control_flow="lower")
    assert graph["added"].inputs == ("c", "^add")
    assert graph["last"].op == "ReadVariableOp"


@pytest.mark.parametrize(
    "other",
    [
        "other = AssignVariableOp(window, x, dtype=float)",  # in no order with the read
        "other = ResourceScatterMul(window, first, x, ^write, dtype=float, Tindices=int32)",  # what no op computes
        "other = StatefulPartitionedCall(window, ^write, Tin=[resource], Tout=[], f=func(change))",
    ],
)
def test_what_is_read_after_other_changes_stays(other: str) -> None:
    waits = "^write, ^other" if "^write" in other else "^write"
    text = WINDOW.replace(
        "    now = ReadVariableOp(window, ^write", f"    {other}\n    now = ReadVariableOp(window, {waits}"
    )
    graph = parse(text)
    assert with_assigned_values(graph, ["y"], ["window"]) is graph


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
        way = Switch(v, p, ^add, T=resource)
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
