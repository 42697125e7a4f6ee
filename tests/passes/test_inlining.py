"""Inlining and lowering of functions: every kind of call, and libraries that are made to do harm."""

from typing import Any

import numpy as np
import pytest

from function_text import with_functions
from pocketgraph.errors import FormatError, FreezeError, GraphError, PocketgraphError
from pocketgraph.freezing import freeze
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.passes.control_flow_lowering import with_binary_switches
from pocketgraph.passes.inlining import inlined
from pocketgraph.runtime import Session
from support import assert_text

DOUBLE = """
    double(x: float) -> y: float = sum:z:0
    sum = Add(x, x, T=float)
"""
NEGATE = """
    negate(x: float) -> y: float = n:y:0
    n = Neg(x, T=float)
"""


def graph(nodes: str, functions: str) -> Graph:
    """These nodes behind a placeholder x of floats, and a library."""
    lines = (line.strip() for line in functions.splitlines())
    return with_functions(parse("x = Placeholder(dtype=float)\n" + nodes), filter(None, lines))


def call(function: str, *inputs: str) -> str:
    return f"StatefulPartitionedCall({', '.join(inputs)}, Tin=[float], Tout=[float], f=func({function}))"


def value(graph: Graph, output: str, x: Any) -> Any:
    return Session(graph).run([output], {"x:0": np.array(x, np.float32)})[0].tolist()


def test_calls_of_calls() -> None:
    four = f"""
        four(x: float) -> y: float = twice:output:0
        once = {call("double", "x")}
        twice = {call("double", "once:output:0")}
    """
    before = graph(f"c = {call('four', 'x')}\ny = Neg(c, T=float)", DOUBLE + four)
    after = inlined(before, ["y"])
    assert_text(
        after,
        """
        x = Placeholder(dtype=float)
        c/once/sum = Add(x, x, T=float)
        c/twice/sum = Add(c/once/sum, c/once/sum, T=float)
        y = Neg(c/twice/sum, T=float)
        """,
    )
    assert not after.functions
    assert value(after, "y:0", 3) == -12
    kept = inlined(before, ["c:0"])
    assert (kept["c"].op, kept["c"].inputs) == ("Identity", ("c/twice/sum",))


def test_an_op_that_is_the_name_of_a_function() -> None:
    after = inlined(graph("c = double(x)\ny = Neg(c:0, T=float)", DOUBLE), ["y"])
    assert value(after, "y:0", 3) == -6


def test_attributes_of_the_call_fill_the_body() -> None:
    to = """
        to(x: float) -> y: $U = cast:y:0
        cast = Cast(x, SrcT=float, DstT=$U)
    """
    assert_text(
        inlined(graph("c = to(x, U=int32)", to), ["c"]),
        """
        x = Placeholder(dtype=float)
        c/cast = Cast(x, DstT=int32, SrcT=float)
        c = Identity(c/cast, T=int32)
        """,
    )
    with pytest.raises(FormatError, match="function 'to': the type of result 0 is not known"):
        inlined(graph("c = to(x)", to), ["y"])


def test_a_function_that_gives_its_argument_back() -> None:
    same = "same(x: float) -> y: float = x"
    after = inlined(graph(f"c = {call('same', 'x')}\ny = Neg(c, T=float)", same), ["y"])
    assert_text(after, "x = Placeholder(dtype=float)\ny = Neg(x, T=float)")
    with pytest.raises(GraphError, match="a function's result is its own argument"):
        inlined(graph(f"c = {call('same', 'c')}\ny = Neg(c, T=float)", same), ["y"])


def test_colocations_follow_into_the_copy_or_are_dropped() -> None:
    """Keras writes ``table/18021`` for the argument ``table_18021``; TensorFlow loads no graph with it."""
    placed = """
        placed(x: float) -> y: float = b:y:0
        a = Neg(x, T=float)
        b = Neg(x, T=float, _class=["loc:@a", "loc:@x/18021", "loc:@x"])
        c = Neg(x, T=float, _class=["loc:@x/18021"])
    """
    after = inlined(graph(f"c = {call('placed', 'x')}\ny = Neg(c, T=float)", placed), ["y"])
    assert after["c/b"].attrs["_class"] == (b"loc:@c/a",)
    assert all("_class" not in node.attrs for node in after if node.name == "c/c")
    assert value(after, "y", 3) == 3


def test_effects_run_for_those_who_wait() -> None:
    checked = """
        checked(x: float) -> y: float = z:y:0, ^done = assert
        ok = Const(bool true)
        assert = Assert(ok:output:0, x, T=[float])
        z = Neg(x, T=float)
    """
    after = inlined(graph(f"c = {call('checked', 'x')}\ny = Neg(x, ^c, T=float)", checked), ["y"])
    assert after["y"].inputs == ("x", "^c/done")
    assert after["c/done"].inputs == ("^c/assert", "^c/z")


def test_what_a_call_waits_for_its_copy_waits_for() -> None:
    after = inlined(graph(f"first = NoOp()\nc = {call('double', 'x', '^first')}", DOUBLE), ["c"])
    assert after["c/input_0"].inputs == ("x", "^first")
    assert after["c/sum"].inputs == ("c/input_0", "c/input_0")


def test_names_that_are_taken() -> None:
    nodes = f"""
        c = {call("double", "x")}
        c/sum = Neg(x, T=float)
        y = Add(c, c/sum, T=float)
    """
    after = inlined(graph(nodes, DOUBLE), ["y"])
    assert "c_1/sum" in after
    assert value(after, "y:0", 3) == 3


def test_functions_that_call_themselves() -> None:
    circle = f"""
        again(x: float) -> y: float = c:output:0
        c = {call("other", "x")}
        other(x: float) -> y: float = d:output:0
        d = {call("again", "x")}
    """
    before = graph(f"y = {call('again', 'x')}", circle)
    with pytest.raises(FreezeError, match=r"node 'y/c/d': the function 'again' calls itself \(again → other → again\)"):
        inlined(before, ["y"])
    with pytest.raises(FreezeError, match="calls itself"):
        freeze(before, "y", {}, control_flow="lower", bind={"x": 1.0})


def test_functions_that_double_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = [
        f"f{i}(x: float) -> y: float = b:output:0\na = {call(f'f{i + 1}', 'x')}\nb = {call(f'f{i + 1}', 'a:output:0')}"
        for i in range(40)
    ]
    monkeypatch.setattr("pocketgraph.passes.inlining.MOST_NODES", 5000)
    with pytest.raises(FreezeError, match="its functions make more than 5,000 nodes"):
        inlined(graph(f"y = {call('f0', 'x')}", "\n".join(bomb) + NEGATE.replace("negate", "f40")), ["y"])


@pytest.mark.parametrize(
    ("functions", "called", "error", "problem"),
    [
        (DOUBLE, call("doubl", "x"), FreezeError, "no function 'doubl'; did you mean 'double'"),
        (DOUBLE, call("double", "x", "x"), GraphError, "takes 1 values and is called with 2"),
        (NEGATE.replace("Neg(x", "Neg(nobody:output:0"), "", GraphError, "its input 'nobody:output:0' is not in it"),
        (NEGATE.replace("n = ", "x = "), "", GraphError, "two of its nodes or arguments have one name"),
        (NEGATE.replace("n:y:0", "n:nothing:0"), "", GraphError, "a Neg has no output 'nothing'"),
    ],
)
def test_libraries_that_lie(functions: str, called: str, error: type[PocketgraphError], problem: str) -> None:
    with pytest.raises(error, match=problem):
        inlined(graph(f"y = {called or call('negate', 'x')}", functions), ["y"])


CHOICE = """
    p = Placeholder(dtype=float)
    c = StatelessIf(p, x, Tcond=float, Tin=[float], Tout=[float], then_branch=func(double), else_branch=func(negate))
"""


def test_a_branch_on_a_number() -> None:
    before = graph(CHOICE, DOUBLE + NEGATE)
    after = inlined(before, ["c"], "lower")
    session = Session(after)
    for number, expected in ((0.0, -3), (0.5, 6)):
        feeds = {"x:0": np.float32(3), "p:0": np.float32(number)}
        assert session.run(["c:0"], feeds)[0].tolist() == expected
    assert inlined(before, ["c"], "keep")["c"].op == "StatelessIf"


def test_a_branch_that_is_decided() -> None:
    before = graph(CHOICE, DOUBLE + NEGATE)
    for number, expected in ((0.0, -3), (0.5, 6)):
        after = freeze(before, "c", {}, bind={"p": number})
        assert not after.functions
        assert value(after, "c:0", 3) == expected


def test_a_loop_whose_value_does_not_hang_on_the_turn() -> None:
    nodes = """
        k = Placeholder(dtype=float)
        w = StatelessWhile(x, k, T=[float,float], cond=func(cond), body=func(body))
    """
    functions = """
        body(i: float, k: float) -> a: float = n:y:0, b: float = k
        n = Neg(k, T=float)
        cond(i: float, k: float) -> go: bool = g:z:0
        g = Greater(i, k, T=float)
    """
    after = inlined(graph(nodes, functions), ["w"], "lower")
    got = Session(after).run(["w:0", "w:1"], {"x:0": np.float32(9), "k:0": np.float32(2)})
    assert [item.tolist() for item in got] == [-2, 2]


def test_calls_and_branches_in_a_loop_stay_in_it() -> None:
    """Constants of functions that a loop's body calls must belong to the loop, or TensorFlow refuses the graph."""
    functions = f"""
        cond(x: float) -> y: bool = g:z:0
        l = Const(float 5.0)
        g = Less(x, l:output:0, T=float)
        add(x: float) -> y: float = s:z:0
        one = Const(float 1.0)
        s = Add(x, one:output:0, T=float)
        body(x: float) -> y: float = c:output:0
        i = Cast(x, SrcT=float, DstT=int32)
        a = {call("add", "x")}
        c = Case(i:y:0, a:output:0, Tin=[float], Tout=[float], branches=[func(add),func(add)])
    """
    before = graph("w = While(x, T=[float], cond=func(cond), body=func(body))", functions)
    after = inlined(before, ["w"], "lower")
    assert value(after, "w:0", 0) == value(before, "w:0", 0) == 6
    for node in after:
        if node.op == "Const":
            assert node.control_inputs, node


@pytest.mark.parametrize("output", ["y", "z:1"])
def test_a_switch_of_many_ways_in_a_graph_that_has_the_names_of_its_chain(output: str) -> None:
    taken = ("i/0/is_0", "i/0/is_0/number", "way/way_0", "way/way_1", "z/rest_1")
    names = "".join(f"{name} = Const(float 0.5)\n" for name in taken)
    text = f"""
        x = Placeholder(dtype=float, shape=[])
        i = Placeholder(dtype=int32, shape=[])
        way = _SwitchN(x, i, T=float, num_outs=3)
        squared = Square(way, T=float)
        doubled = Add(way:1, way:1, T=float)
        turned = Neg(way:2, T=float)
        z = Merge(squared, doubled, turned, N=3, T=float)
        noise = AddN({", ".join(taken)}, N={len(taken)}, T=float)
        y = Add(z, noise, T=float)
    """
    graph = with_binary_switches(parse(names + text), [output])
    assert not any(node.op == "_SwitchN" for node in graph)
    for way, expected in enumerate((9 + 2.5, 6 + 2.5, -3 + 2.5)):
        with Session(graph) as session:
            found = session.run([output], {"x": np.float32(3), "i": np.int32(way)})[0]
        assert found == (expected if output == "y" else way)
