"""remove_control_dependencies: what only orders goes; what holds a node in its branch or loop stays."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.transforms import transform
from pocketgraph.transforms.compat import Compat

BRANCHES = """
    x = Placeholder(dtype=float, shape=[])
    wanted = Placeholder(dtype=bool, shape=[])
    first = Identity(x, T=float)
    gate = Switch(wanted, wanted, T=bool)
    no = Identity(gate, T=bool)
    yes = Identity(gate:1, T=bool)
    low = Const(float 1.0)
    high = Const(float 2.0)
    one = Identity(low, ^no, T=float)
    two = Identity(high, ^yes, T=float)
    either = Merge(one, two, T=float, N=2)
    y = Add(either, x, ^first, T=float)
"""

LOOP = """
    x = Placeholder(dtype=float, shape=[])
    begin = Const(int32 0)
    enter = Enter(begin, T=int32, frame_name="loop")
    enter_x = Enter(x, T=float, frame_name="loop")
    i = Merge(enter, next, T=int32, N=2)
    a = Merge(enter_x, next_x, T=float, N=2)
    limit = Const(int32 3)
    more = Less(i, limit, T=int32)
    go = LoopCond(more)
    at = Switch(i, go, T=int32)
    at_x = Switch(a, go, T=float)
    round = Identity(at:1, T=int32)
    half = Const(float 0.5)
    step = Identity(half, ^round, T=float)
    unit = Const(int32 1)
    next_i = Add(round, unit, T=int32)
    sum = Add(at_x:1, step, ^next_i, T=float)
    next = NextIteration(next_i, T=int32)
    next_x = NextIteration(sum, T=float)
    left = Exit(at_x, T=float)
    y = Neg(left, ^begin, T=float)
"""


@pytest.mark.parametrize(
    ("wanted", "expected"), [(True, 5.0), (False, 4.0)]
)  # as TensorFlow 1.15.5 gives before the rule
def test_constants_of_branches_stay_in_their_branches(wanted: bool, expected: float) -> None:
    made = transform(parse(BRANCHES), "remove_control_dependencies", "x,wanted", "y")
    assert {node.name: node.control_inputs for node in made if node.control_inputs} == {
        "one": ("^no",),
        "two": ("^yes",),
    }
    for engine in ("reference", None):
        with Session(made, engine=engine) as session:
            assert session.run("y", {"x": np.float32(3), "wanted": wanted}) == np.float32(expected)


def test_what_a_loop_makes_of_constants_stays_in_the_loop() -> None:
    made = transform(parse(LOOP), "remove_control_dependencies", "x", "y")
    assert {node.name: node.control_inputs for node in made if node.control_inputs} == {"step": ("^round",)}
    merged = transform(made, "merge_duplicate_nodes", "x", "y")
    for graph in (made, merged):
        with Session(graph, engine="reference") as session:
            assert session.run("y", {"x": np.float32(3)}) == np.float32(-4.5)


def test_the_original_removes_all() -> None:
    made = transform(parse(LOOP), "remove_control_dependencies", "x", "y", compat=Compat.ORIGINAL)
    assert not any(node.control_inputs for node in made)
