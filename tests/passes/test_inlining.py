"""Inlining and lowering of functions: every kind of call, and libraries that are made to do harm."""

import pathlib
from typing import Any

import numpy as np
import pytest

from pocketgraph import formats
from pocketgraph.errors import FormatError, FreezeError, GraphError
from pocketgraph.freezing import freeze
from pocketgraph.graph import Graph
from pocketgraph.passes.inlining import inlined
from pocketgraph.runtime import Session

T = 'attr { key: "T" value { type: DT_FLOAT } }'
TYPES = """attr { key: "Tin" value { list { type: DT_FLOAT } } }
    attr { key: "Tout" value { list { type: DT_FLOAT } } }"""


def func(key: str, name: str) -> str:
    return f'attr {{ key: "{key}" value {{ func {{ name: "{name}" }} }} }}'


def call(name: str, function: str, argument: str, op: str = "StatefulPartitionedCall") -> str:
    return f'name: "{name}" op: "{op}" input: "{argument}" {TYPES} {func("f", function)}'


def function(name: str, *nodes: str, result: str, effects: str = "") -> str:
    """A function of one float x that gives one float y."""
    body = "\n".join(f"node_def {{ {node} }}" for node in nodes)
    done = f'control_ret {{ key: "done" value: "{effects}" }}' if effects else ""
    return f"""function {{
        signature {{ name: "{name}"
            input_arg {{ name: "x" type: DT_FLOAT }} output_arg {{ name: "y" type: DT_FLOAT }} }}
        {body}
        ret {{ key: "y" value: "{result}" }} {done} }}"""


def graph(tmp_path: pathlib.Path, nodes: list[str], functions: list[str]) -> Graph:
    text = 'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }\n'
    text += "\n".join(f"node {{ {node} }}" for node in nodes)
    text += f"\nlibrary {{ {' '.join(functions)} }}\n"
    (tmp_path / "graph.pbtxt").write_text(text)
    return formats.load(tmp_path / "graph.pbtxt")


def value(graph: Graph, output: str, x: Any) -> Any:
    return Session(graph).run([output], {"x:0": np.array(x, np.float32)})[0].tolist()


DOUBLE = function("double", f'name: "sum" op: "Add" input: "x" input: "x" {T}', result="sum:z:0")


def test_calls_of_calls(tmp_path: pathlib.Path) -> None:
    four = function(
        "four", call("once", "double", "x"), call("twice", "double", "once:output:0"), result="twice:output:0"
    )
    before = graph(tmp_path, [call("c", "four", "x"), f'name: "y" op: "Neg" input: "c" {T}'], [DOUBLE, four])
    after = inlined(before, ["y"])
    assert [node.name for node in after] == ["x", "c/once/sum", "c/twice/sum", "y"]
    assert not after.functions
    assert value(after, "y:0", 3) == -12
    kept = inlined(before, ["c:0"])
    assert (kept["c"].op, kept["c"].inputs) == ("Identity", ("c/twice/sum",))


def test_an_op_that_is_the_name_of_a_function(tmp_path: pathlib.Path) -> None:
    legacy = 'name: "c" op: "double" input: "x"'
    after = inlined(graph(tmp_path, [legacy, f'name: "y" op: "Neg" input: "c:0" {T}'], [DOUBLE]), ["y"])
    assert value(after, "y:0", 3) == -6


def test_attributes_of_the_call_fill_the_body(tmp_path: pathlib.Path) -> None:
    cast = (
        'name: "cast" op: "Cast" input: "x" attr { key: "SrcT" value { type: DT_FLOAT } } '
        'attr { key: "DstT" value { placeholder: "U" } }'
    )
    text = function("to", cast, result="cast:y:0").replace('name: "y" type: DT_FLOAT', 'name: "y" type_attr: "U"')
    legacy = 'name: "c" op: "to" input: "x" attr { key: "U" value { type: DT_INT32 } }'
    after = inlined(graph(tmp_path, [legacy], [text]), ["c"])
    assert (after["c"].op, after["c"].dtype().name) == ("Identity", "int32")
    assert after["c/cast"].dtype("DstT").name == "int32"
    with pytest.raises(FormatError, match="function 'to': the type of result 0 is not known"):
        inlined(graph(tmp_path, ['name: "c" op: "to" input: "x"'], [text]), ["y"])


def test_a_function_that_gives_its_argument_back(tmp_path: pathlib.Path) -> None:
    same = function("same", result="x")
    after = inlined(graph(tmp_path, [call("c", "same", "x"), f'name: "y" op: "Neg" input: "c" {T}'], [same]), ["y"])
    assert after["y"].inputs == ("x",)
    circle = graph(tmp_path, [call("c", "same", "c")], [same])
    with pytest.raises(GraphError, match="a function's result is its own argument"):
        inlined(graph(tmp_path, [call("c", "same", "c"), f'name: "y" op: "Neg" input: "c" {T}'], [same]), ["y"])
    assert "c" in circle


def test_colocations_follow_into_the_copy_or_are_dropped(tmp_path: pathlib.Path) -> None:
    """Keras writes ``table/18021`` for the argument ``table_18021``; TensorFlow loads no graph with it."""

    def placed(name: str, *at: str) -> str:
        values = " ".join(f's: "loc:@{one}"' for one in at)
        return f'name: "{name}" op: "Neg" input: "x" {T} attr {{ key: "_class" value {{ list {{ {values} }} }} }}'

    body = function("placed", placed("a"), placed("b", "a", "x/18021", "x"), placed("c", "x/18021"), result="b:y:0")
    after = inlined(graph(tmp_path, [call("c", "placed", "x"), f'name: "y" op: "Neg" input: "c" {T}'], [body]), ["y"])
    assert after["c/b"].attrs["_class"] == (b"loc:@c/a",)
    assert all("_class" not in node.attrs for node in after if node.name == "c/c")
    assert value(after, "y", 3) == 3


def test_effects_run_for_those_who_wait(tmp_path: pathlib.Path) -> None:
    body = function(
        "checked",
        'name: "ok" op: "Const" attr { key: "dtype" value { type: DT_BOOL } } '
        'attr { key: "value" value { tensor { dtype: DT_BOOL tensor_shape { } bool_val: true } } }',
        'name: "assert" op: "Assert" input: "ok:output:0" input: "x" '
        'attr { key: "T" value { list { type: DT_FLOAT } } }',
        f'name: "z" op: "Neg" input: "x" {T}',
        result="z:y:0",
        effects="assert",
    )
    nodes = [call("c", "checked", "x"), f'name: "y" op: "Neg" input: "x" input: "^c" {T}']
    after = inlined(graph(tmp_path, nodes, [body]), ["y"])
    assert after["y"].inputs == ("x", "^c/done")
    assert after["c/done"].inputs == ("^c/assert", "^c/z")


def test_what_a_call_waits_for_its_copy_waits_for(tmp_path: pathlib.Path) -> None:
    nodes = ['name: "first" op: "NoOp"', call("c", "double", "x") + ' input: "^first"']
    after = inlined(graph(tmp_path, nodes, [DOUBLE]), ["c"])
    assert after["c/input_0"].inputs == ("x", "^first")
    assert after["c/sum"].inputs == ("c/input_0", "c/input_0")


def test_names_that_are_taken(tmp_path: pathlib.Path) -> None:
    nodes = [
        call("c", "double", "x"),
        f'name: "c/sum" op: "Neg" input: "x" {T}',
        f'name: "y" op: "Add" input: "c" input: "c/sum" {T}',
    ]
    after = inlined(graph(tmp_path, nodes, [DOUBLE]), ["y"])
    assert "c_1/sum" in after
    assert value(after, "y:0", 3) == 3


def test_functions_that_call_themselves(tmp_path: pathlib.Path) -> None:
    again = function("again", call("c", "other", "x"), result="c:output:0")
    other = function("other", call("d", "again", "x"), result="d:output:0")
    before = graph(tmp_path, [call("y", "again", "x")], [again, other])
    with pytest.raises(FreezeError, match=r"node 'y/c/d': the function 'again' calls itself \(again → other → again\)"):
        inlined(before, ["y"])
    with pytest.raises(FreezeError, match="calls itself"):
        freeze(before, "y", {}, control_flow="lower", bind={"x": 1.0})


def test_functions_that_double_at_every_step(tmp_path: pathlib.Path) -> None:
    bomb = [
        function(f"f{i}", call("a", f"f{i + 1}", "x"), call("b", f"f{i + 1}", "a:output:0"), result="b:output:0")
        for i in range(40)
    ]
    bomb.append(function("f40", f'name: "n" op: "Neg" input: "x" {T}', result="n:y:0"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pocketgraph.passes.inlining.MOST_NODES", 5000)
        with pytest.raises(FreezeError, match="its functions make more than 5,000 nodes"):
            inlined(graph(tmp_path, [call("y", "f0", "x")], bomb), ["y"])


def test_libraries_that_lie(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FreezeError, match="no function 'doubl'; did you mean 'double'"):
        inlined(graph(tmp_path, [call("y", "doubl", "x")], [DOUBLE]), ["y"])
    with pytest.raises(GraphError, match="takes 1 values and is called with 2"):
        inlined(graph(tmp_path, [call("y", "double", "x") + ' input: "x"'], [DOUBLE]), ["y"])
    stray = function("stray", f'name: "n" op: "Neg" input: "nobody:output:0" {T}', result="n:y:0")
    with pytest.raises(GraphError, match="its input 'nobody:output:0' is not in it"):
        inlined(graph(tmp_path, [call("y", "stray", "x")], [stray]), ["y"])
    twice = function(
        "twice", f'name: "n" op: "Neg" input: "x" {T}', f'name: "n" op: "Abs" input: "x" {T}', result="n:y:0"
    )
    with pytest.raises(GraphError, match="two of its nodes or arguments have one name"):
        inlined(graph(tmp_path, [call("y", "twice", "x")], [twice]), ["y"])
    port = function("port", f'name: "n" op: "Neg" input: "x" {T}', result="n:nothing:0")
    with pytest.raises(GraphError, match="a Neg has no output 'nothing'"):
        inlined(graph(tmp_path, [call("y", "port", "x")], [port]), ["y"])


NEGATE = function("negate", f'name: "n" op: "Neg" input: "x" {T}', result="n:y:0")
CHOICE = (
    'name: "c" op: "StatelessIf" input: "p" input: "x" attr { key: "Tcond" value { type: DT_FLOAT } } '
    + TYPES + func("then_branch", "double") + func("else_branch", "negate")
)  # fmt: skip
PREDICATE = 'name: "p" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }'


def test_a_branch_on_a_number(tmp_path: pathlib.Path) -> None:
    before = graph(tmp_path, [PREDICATE, CHOICE], [DOUBLE, NEGATE])
    after = inlined(before, ["c"], "lower")
    session = Session(after)
    for number, expected in ((0.0, -3), (0.5, 6)):
        feeds = {"x:0": np.float32(3), "p:0": np.float32(number)}
        assert session.run(["c:0"], feeds)[0].tolist() == expected
    assert inlined(before, ["c"], "keep")["c"].op == "StatelessIf"


def test_a_branch_that_is_decided(tmp_path: pathlib.Path) -> None:
    before = graph(tmp_path, [PREDICATE, CHOICE], [DOUBLE, NEGATE])
    for number, expected in ((0.0, -3), (0.5, 6)):
        after = freeze(before, "c", {}, bind={"p": number})
        assert not after.functions
        assert value(after, "c:0", 3) == expected


def test_a_loop_whose_value_does_not_hang_on_the_turn(tmp_path: pathlib.Path) -> None:
    args = 'input_arg { name: "i" type: DT_FLOAT } input_arg { name: "k" type: DT_FLOAT }'
    body = f"""function {{ signature {{ name: "body" {args}
            output_arg {{ name: "a" type: DT_FLOAT }} output_arg {{ name: "b" type: DT_FLOAT }} }}
        node_def {{ name: "n" op: "Neg" input: "k" {T} }}
        ret {{ key: "a" value: "n:y:0" }} ret {{ key: "b" value: "k" }} }}"""
    cond = f"""function {{ signature {{ name: "cond" {args} output_arg {{ name: "go" type: DT_BOOL }} }}
        node_def {{ name: "g" op: "Greater" input: "i" input: "k" {T} }} ret {{ key: "go" value: "g:z:0" }} }}"""
    loop = (
        'name: "w" op: "StatelessWhile" input: "x" input: "k" '
        'attr { key: "T" value { list { type: DT_FLOAT type: DT_FLOAT } } }'
        + func("cond", "cond")
        + func("body", "body")
    )
    k = PREDICATE.replace('"p"', '"k"')
    after = inlined(graph(tmp_path, [k, loop], [cond, body]), ["w"], "lower")
    got = Session(after).run(["w:0", "w:1"], {"x:0": np.float32(9), "k:0": np.float32(2)})
    assert [item.tolist() for item in got] == [-2, 2]


def test_calls_and_branches_in_a_loop_stay_in_it(tmp_path: pathlib.Path) -> None:
    """Constants of functions that a loop's body calls must belong to the loop, or TensorFlow refuses the graph."""
    constant = (
        'attr { key: "dtype" value { type: %s } } '
        'attr { key: "value" value { tensor { dtype: %s tensor_shape { } %s } } }'
    )
    one = 'name: "one" op: "Const" ' + constant % ("DT_FLOAT", "DT_FLOAT", "float_val: 1")
    index = (
        'name: "i" op: "Cast" input: "x" attr { key: "SrcT" value { type: DT_FLOAT } } '
        'attr { key: "DstT" value { type: DT_INT32 } }'
    )
    add = function("add", one, f'name: "s" op: "Add" input: "x" input: "one:output:0" {T}', result="s:z:0")
    choose = (
        'name: "c" op: "Case" input: "i:y:0" input: "a:output:0" ' + TYPES
        + 'attr { key: "branches" value { list { func { name: "add" } func { name: "add" } } } }'
    )  # fmt: skip
    body = function("body", index, call("a", "add", "x"), choose, result="c:output:0")
    limit = 'name: "l" op: "Const" ' + constant % ("DT_FLOAT", "DT_FLOAT", "float_val: 5")
    cond = function("cond", limit, f'name: "g" op: "Less" input: "x" input: "l:output:0" {T}', result="g:z:0")
    cond = cond.replace('name: "y" type: DT_FLOAT', 'name: "y" type: DT_BOOL')
    loop = (
        'name: "w" op: "While" input: "x" attr { key: "T" value { list { type: DT_FLOAT } } }'
        + func("cond", "cond") + func("body", "body")
    )  # fmt: skip
    before = graph(tmp_path, [loop], [cond, add, body])
    after = inlined(before, ["w"], "lower")
    assert value(after, "w:0", 0) == value(before, "w:0", 0) == 6
    for node in after:
        if node.op == "Const":
            assert node.control_inputs, node
