"""Named entry points: which one runs, and what is said of wrong keys."""

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import Graph
from pocketgraph.graph.graph import Signature
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session, StepTrace

GRAPH = parse("""
    x = Placeholder(dtype=float, shape=[2])
    twice = Add(x, x, T=float)
    square = Mul(x, x, T=float)
""")
DOUBLE = Signature({"value": "x:0"}, {"doubled": "twice:0", "same": "x:0"})
SQUARE = Signature({"value": "x:0"}, {"squared": "square:0"})


def session(**signatures: Signature) -> Session:
    return Session(GRAPH.replace(signatures=signatures))


def test_arrays_go_in_and_come_out_by_key() -> None:
    trace = StepTrace()
    found = session(serving_default=DOUBLE, other=SQUARE).run_signature({"value": [1.0, 2.0]}, trace=trace)
    assert {key: value.tolist() for key, value in found.items()} == {"doubled": [2, 4], "same": [1, 2]}
    assert "twice" in [node.name for node in trace.nodes]
    found = session(serving_default=DOUBLE, other=SQUARE).run_signature({"value": np.float32([3, 4])}, "other")
    assert found["squared"].tolist() == [9, 16]
    assert set(session(only=SQUARE).run_signature({"value": [1.0, 2.0]})) == {"squared"}


@pytest.mark.parametrize(
    ("signatures", "inputs", "name", "problem"),
    [
        ({}, {}, None, "has no signature; load a SavedModel"),
        ({"a": DOUBLE, "b": SQUARE}, {}, None, "which signature: 'a', 'b'"),
        ({"double": DOUBLE}, {}, "doubel", "no signature 'doubel'; did you mean 'double'"),
        ({"a": DOUBLE}, {"value": [1.0, 2.0], "z": 1}, None, "no input 'z'; its inputs: 'value'"),
        ({"a": DOUBLE}, {}, None, "input 'value' is missing"),
        ({"a": DOUBLE}, {"value": [1.0]}, None, r"Cannot feed value of shape \(1,\)"),
    ],
)
def test_wrong_calls(
    signatures: dict[str, Signature], inputs: dict[str, object], name: str | None, problem: str
) -> None:
    with pytest.raises(RunError, match=problem):
        session(**signatures).run_signature(inputs, name)


def test_a_closed_session() -> None:
    closed = Session(Graph())
    closed.close()
    with pytest.raises(RunError, match="closed Session"):
        closed.run_signature({})
