"""inline_partitionedcall on functions with several results, control inputs, calls inside, and broken ones."""

from __future__ import annotations

import numpy as np
import pytest

from function_text import with_functions
from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.runtime import Session
from pocketgraph.transforms import transform

FUNCTIONS = """
twice(x: float) -> sum:z:0
sum = Add(x, x, T=float)
both(a: float, b: float) -> parts:output:1, a, inner:output:0
axis = Const(int32 0, ^wait)
wait = NoOp()
parts = Split(axis:output:0, b, num_split=2, T=float)
inner = PartitionedCall(parts:output:0, f=func(twice), Tin=[float], Tout=[float])
loop(x: float) -> y:output:0
y = PartitionedCall(x, f=func(loop), Tin=[float], Tout=[float])
"""
GRAPH = """
    x = Placeholder(dtype=float, shape=[4])
    start = NoOp()
    call = PartitionedCall(x, x, ^start, f=func({name}), Tin=[float,float], Tout=[float,float,float])
    y = Add(call, call:2, T=float)
    z = Identity(call:1, ^call, T=float)
"""


def graph(name: str = "both") -> Graph:
    functions = [line for line in FUNCTIONS.splitlines() if line]
    return with_functions(parse(GRAPH.format(name=name)), functions).replace(inputs=["x"], outputs=["y", "z"])


def test_calls_inside_of_calls_are_replaced_and_the_results_stay() -> None:
    changed = transform(graph(), "inline_partitionedcall")
    assert "PartitionedCall" not in {node.op for node in changed}
    assert changed["y"].inputs == ("call/parts:1", "call/inner/sum:0")
    assert changed["call/axis"].inputs == ("^call/wait",)
    assert changed["call/wait"].inputs == ("^start",)  # what has no input of its own waits for what the call waits for
    assert changed["z"].inputs == ("x", "^call/parts", "^x", "^call/inner/sum")
    x = np.array([1, 2, 3, 4], np.float32)
    y, z = Session(changed).run(["y:0", "z:0"], {"x:0": x})
    np.testing.assert_array_equal(y, [5, 8])
    np.testing.assert_array_equal(z, x)


def test_the_original_goes_one_step_at_a_time() -> None:
    once = transform(graph(), "inline_partitionedcall", compat="original")
    assert [node.name for node in once if node.op == "PartitionedCall"] == ["call/inner"]
    twice = transform(once, "inline_partitionedcall", compat="original")
    assert list(twice.nodes) == list(transform(graph(), "inline_partitionedcall").nodes)
    assert set(twice.functions) == {"twice", "both", "loop"}


def test_a_call_that_is_an_output_keeps_its_name() -> None:
    fetched = graph().replace(outputs=["call:1", "y"])
    changed = transform(fetched, "inline_partitionedcall")
    assert print_graph([changed["call"]]).strip() == (
        "call = IdentityN(call/parts:1, x, call/inner/sum:0, T=[float,float,float])"
    )


def test_functions_that_call_themselves_are_an_error() -> None:
    one = "x = Placeholder(dtype=float)\ncall = PartitionedCall(x, f=func(loop), Tin=[float], Tout=[float])"
    recursive = with_functions(parse(one), [line for line in FUNCTIONS.splitlines() if line])
    with pytest.raises(TransformError, match="functions call each other more than 64 times deep, or themselves"):
        transform(recursive, "inline_partitionedcall")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("PartitionedCall(x)", "Node call has no attribute: f"),
        ("PartitionedCall(x, f=3)", "Cannot figure out function name"),
        ("PartitionedCall(x, f=func(tvice))", "function tvice Not found; did you mean 'twice'"),
        ("PartitionedCall(x, x, f=func(twice))", "invalid input signature: it takes 1 values, not 2"),
    ],
)
def test_bad_calls(call: str, message: str) -> None:
    broken = with_functions(
        parse(f"x = Placeholder(dtype=float)\ncall = {call}"), ["twice(x: float) -> x", "unused = NoOp()"]
    )
    with pytest.raises(TransformError, match=message):
        transform(broken, "inline_partitionedcall")


def test_a_graph_without_calls_stays_itself() -> None:
    plain = parse("x = Placeholder(dtype=float)\ny = StatefulPartitionedCall(x, f=func(g), Tin=[float], Tout=[float])")
    assert print_graph(transform(plain, "inline_partitionedcall")) == print_graph(plain)
