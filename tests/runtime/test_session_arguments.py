"""What a session refuses to be made from, and to be copied into."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError, UsageError
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import InferenceInterface, Session
from pocketgraph.runtime.description import OPEN_SHAPE
from pocketgraph.runtime.signatures import chosen

GRAPH = parse("x = Placeholder(dtype=float, shape=[2])\ny = Neg(x, T=float)")


@pytest.mark.parametrize("make", [Session, InferenceInterface])
@pytest.mark.parametrize("how", [pickle.dumps, copy.copy, copy.deepcopy])
def test_it_is_neither_pickled_nor_copied(how: Callable[[Any], Any], make: type) -> None:
    with make(GRAPH) as session, pytest.raises(TypeError, match=r"cannot be pickled or copied: give its model's path"):
        how(session)


@pytest.mark.parametrize(
    ("argument", "value", "said"),
    [
        ("step_limit", 0, "a step limit is a number of nodes, not 0"),
        ("step_limit", "many", "a step limit is a number of nodes, not 'many'"),
        ("seed", "a", "a seed is an integer of 0 or more, not 'a'"),
        ("seed", -1, "a seed is an integer of 0 or more, not -1"),
        ("allow", 3, "allow is a list of names, not 3"),
        ("threads", "2", "at least 1 thread, not '2'"),
        ("threads", 1_000_000, "at most 1024 threads, not 1000000"),
    ],
)
def test_arguments_that_mean_nothing(argument: str, value: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Session(GRAPH, **{argument: value})


def test_numpy_integers_are_numbers_too() -> None:
    with Session(GRAPH, step_limit=np.int64(10), seed=np.int32(3)) as session:
        assert session.run("y", {"x": [1, 2]})[0].tolist() == [-1, -2]


def test_text_for_numbers_is_called_a_string() -> None:
    with Session(GRAPH) as session:
        for value in (np.array([b"a", b"b"], object), np.array(["a", "b"])):
            with pytest.raises(RunError, match="is string, the graph wants float"):
                session.run("y", {"x": value})


def test_the_loaders_own_step_is_no_signature_to_choose() -> None:
    from pocketgraph.graph.graph import Signature

    init = Signature({}, {"__saved_model_init_op": "NoOp"})
    graph = GRAPH.replace(list(GRAPH))
    graph = type(graph)(
        list(graph), signatures={"__saved_model_init_op": init, "go": Signature({"a": "x:0"}, {"b": "y:0"})}
    )
    assert chosen(graph).outputs == {"b": "y:0"}


def test_a_plan_counts_open_shapes_together() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[4])
        zero = Const(float 0)
        above = Greater(x, zero, T=float)
        places = Where(above, T=bool)
        twice = AddV2(places, places, T=int64)
        more = AddV2(twice, places, T=int64)
    """)
    with Session(graph) as session:
        counted = {op: count for count, op, reason in session.plan("more").grouped() if reason == OPEN_SHAPE}
    assert counted == {"AddV2": 2}
