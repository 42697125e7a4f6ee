"""The tool: rules by name, parameters from signatures, errors passed over, and the Python calls."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from pocketgraph import formats
from pocketgraph.errors import FormatError, TransformError, UsageError
from pocketgraph.graph import Function, Graph, Versions
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.transforms import TransformGraph, tool, transform

GRAPH = """
    x = Placeholder(dtype=float, shape=[2]) @"/gpu:0"
    kept = Identity(x, T=float)
    y = Relu(kept, T=float)
"""


@tool.transform
def example_rule(
    graph: Graph,
    *,
    whole: int = 3,
    real: float = 0.5,
    flag: bool = False,
    text: str | None = None,
    several: tuple[str, ...] = (),
    needed: str = "here",
) -> Graph:
    """Puts its parameters into the graph."""
    seen = f'whole={whole}, real={float(real)}, flag={str(flag).lower()}, text="{text}", several="{"|".join(several)}"'
    return graph.replace([*graph, *parse(f"seen = NoOp({seen})")])


def seen(parameters: str) -> str:
    return print_graph([transform(parse(GRAPH), f"example_rule({parameters})")["seen"]]).strip()


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("", 'whole=3, real=0.5, flag=false, text="None", several=""'),
        ('whole=" -7 "', 'whole=-7, real=0.5, flag=false, text="None", several=""'),
        ("real=-1e3", 'whole=3, real=-1000.0, flag=false, text="None", several=""'),
        ("real=inf, flag=1", 'whole=3, real=inf, flag=true, text="None", several=""'),
        ("real=0x10, flag=true", 'whole=3, real=16.0, flag=true, text="None", several=""'),
        ("flag=0, text=a/b.c", 'whole=3, real=0.5, flag=false, text="a/b.c", several=""'),
        ("several=a, several=b, several=a", 'whole=3, real=0.5, flag=false, text="None", several="a|b|a"'),
    ],
)
def test_values_are_read_by_the_signature(parameters: str, expected: str) -> None:
    assert seen(parameters) == f"seen = NoOp({expected})"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("whole=x", "couldn't interpret the whole argument as a number: 'x'"),
        ("whole=-23.2", "as a number: '-23.2'"),
        ('whole=""', "as a number"),
        ("whole=99999999999999999999", "as a number"),
        ("whole=1_000", "as a number"),
        ("real=x", "couldn't interpret the real argument as a float number: 'x'"),
        ("real=1_0", "as a float number"),
        ("flag=True", r"as a boolean: 'True' \(expected true, false, 0 or 1\)"),
        ("whole=1, whole=2", "expected a single 'whole' parameter but found 2 occurrences"),
        ("text=a, text=a", "expected a single 'text' parameter but found 2 occurrences"),
        ("hole=1", "unknown parameter 'hole'; did you mean 'whole'"),
        ("zzz=1", "unknown parameter 'zzz'; it takes whole, real, flag, text, several, needed, ignore_errors"),
        ("ignore_errors=1", "ignore_errors should be true or false, found '1'"),
    ],
)
def test_bad_parameters_name_rule_parameter_and_value(parameters: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        seen(parameters)
    assert str(caught.value).startswith("example_rule: ")
    assert caught.value.exit_code == 2


def test_a_missing_parameter() -> None:
    with pytest.raises(
        UsageError, match=r"remove_nodes: expects at least one 'op' parameter; write remove_nodes\(op=…\)"
    ):
        transform(parse(GRAPH), "remove_nodes")


def test_an_unknown_transform_suggests_near_ones() -> None:
    with pytest.raises(UsageError, match="Transform 'fold_batchnorms' not recognized; did you mean 'fold_batch_norms'"):
        transform(parse(GRAPH), "fold_batchnorms")
    with pytest.raises(UsageError, match=r"not recognized; the transforms are add_default_attributes, "):
        transform(parse(GRAPH), "zzz")


def test_everything_is_checked_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    rule = tool.Rule("example_ran", lambda graph: ran.append(1) or graph)
    monkeypatch.setitem(tool._rules, "example_ran", rule)
    with pytest.raises(UsageError):
        transform(parse(GRAPH), "example_ran nonsense")
    assert not ran


def test_ignore_errors_goes_on_with_the_graph_before(caplog: pytest.LogCaptureFixture) -> None:
    graph = parse(GRAPH)
    bad = 'strip_unused_nodes(ignore_errors={}, shape="1,x") remove_device'
    with caplog.at_level(logging.INFO, "pocketgraph.transforms"):
        result = transform(graph, bad.format("TRUE"), inputs=["kept"], outputs=["y"])
    assert print_graph(result) == print_graph(transform(graph, "remove_device"))
    assert [record.getMessage().split(";")[0] for record in caplog.records] == [
        "Applying strip_unused_nodes",
        "strip_unused_nodes: Ignoring error Could not parse as shape: '1,x'",
        "Applying remove_device",
    ]
    assert caplog.records[1].getMessage().endswith("; the graph is as it was before this rule")
    with pytest.raises(TransformError, match="strip_unused_nodes: Could not parse as shape"):
        transform(graph, bad.format("false"), inputs=["kept"], outputs=["y"])


def test_a_graph_with_dangling_inputs_is_refused_even_when_errors_are_ignored() -> None:
    graph = parse("y = Relu(nothing:1, ^gone)")
    with pytest.raises(TransformError, match=r"nonexistent nodes: 'nothing' \(read by 'y'\), 'gone' \(read by 'y'\)"):
        transform(graph, "remove_device(ignore_errors=true)")
    of_odd_names = parse('"a:1" = Const(float 1.0)\n"^b" = Const(float 1.0)\ny = Relu(a:1, ^b)')
    for rule in ("remove_device", "obfuscate_names"):
        with pytest.raises(TransformError, match=r"'a' \(read by 'y'\), 'b' \(read by|No node named a for input to y"):
            transform(of_odd_names, rule, compat="original")


def test_the_argument_stays_and_versions_and_functions_are_kept() -> None:
    graph = parse(GRAPH).replace(versions=Versions(134, 12), functions={"f": Function("f")})
    before = print_graph(graph)
    result = transform(graph, "remove_nodes(op=Identity) remove_device", inputs="x", outputs="y")
    assert print_graph(graph) == before
    assert (result.versions, list(result.functions)) == (Versions(134, 12), ["f"])
    assert (result.inputs, result.outputs) == (("x",), ("y",))
    assert print_graph(result) == "x = Placeholder(dtype=float, shape=[2])\ny = Relu(x, T=float)\n"


def test_several_strings_are_one_list() -> None:
    transforms = ["remove_device", "remove_nodes(op=Identity) sort_by_execution_order"]
    assert print_graph(transform(parse(GRAPH), transforms)) == print_graph(
        transform(parse(GRAPH), " ".join(transforms))
    )


def test_an_empty_list_changes_nothing() -> None:
    assert print_graph(transform(parse(GRAPH), "")) == print_graph(parse(GRAPH))


def test_names_come_from_the_files_without_loading_them() -> None:
    code = (
        "import sys; from pocketgraph.transforms import tool; names = tool.names();"
        "print('quantize_weights' in names and not any(n.startswith('_') for n in names) and 'tool' not in names,"
        " [m for m in sys.modules if m.startswith('pocketgraph.transforms.') and m.split('.')[2] in names])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True []"


def test_every_rule_loads_and_has_a_summary() -> None:
    for name in tool.names():
        rule = tool.find(name)
        assert rule.name == name
        assert rule.summary.endswith(".")
        assert all(parameter.kind in (int, float, bool, str) for parameter in rule.parameters.values())


class Message:
    """What TransformGraph needs of a protobuf message."""

    def __init__(self) -> None:
        self.data = b""

    def ParseFromString(self, data: bytes) -> None:  # noqa: N802
        self.data = data

    def SerializeToString(self) -> bytes:  # noqa: N802
        return self.data


def test_transform_graph_gives_back_the_type_it_was_given() -> None:
    graph = parse(GRAPH)
    data = formats.to_bytes(graph)
    message = Message()
    message.ParseFromString(data)
    arguments = (["x"], ["y:0"], ["remove_device", "remove_nodes(op=Identity)"])
    from_graph = TransformGraph(graph, *arguments)
    from_bytes = TransformGraph(data, *arguments)
    from_message = TransformGraph(message, *arguments)
    expected = "x = Placeholder(dtype=float, shape=[2])\ny = Relu(x, T=float)\n"
    assert isinstance(from_graph, Graph)
    assert isinstance(from_bytes, bytes)
    assert isinstance(from_message, Message)
    assert print_graph(from_graph) == print_graph(formats.from_bytes(from_bytes)) == expected
    assert from_message.data == from_bytes
    assert from_message is not message
    assert message.data == data


def test_transform_graph_refuses_other_things() -> None:
    with pytest.raises(TypeError, match="takes a Graph, bytes or a GraphDef message, not int"):
        TransformGraph(3, [], [], ["remove_device"])
    with pytest.raises(FormatError):
        TransformGraph(b"\xff\xff\xff", [], [], ["remove_device"])


def test_no_node_asks_to_be_placed_with_one_that_a_rule_dropped() -> None:
    """TensorFlow: ``Node 'y' expects to be colocated with unknown node 'v'``."""
    before = parse("""
        x = Placeholder(dtype=float)
        v = Neg(x, T=float)
        a = Relu(x, T=float, _class=["loc:@x", "loc:@v"])
        b = Relu(x, T=float, _class=["loc:@x", "loc:@v"])
        c = Abs(x, T=float, _class=["loc:@b"])
        z = Mul(a, b, T=float)
        y = Add(z, c, T=float, _class=["loc:@gone"])
    """).replace(inputs=["x"], outputs=["y"])
    stripped = tool.run(before, "strip_unused_nodes")
    assert [node.attrs.get("_class") for node in stripped] == [
        None, (b"loc:@x",), (b"loc:@x",), (b"loc:@b",), None, (b"loc:@gone",),
    ]  # fmt: skip
    merged = tool.run(before, "merge_duplicate_nodes")
    assert "b" not in merged
    assert "_class" not in merged["c"].attrs
    assert merged["a"] is before["a"]
    original = tool.run(before, "strip_unused_nodes merge_duplicate_nodes", compat="original")
    assert original["c"].attrs["_class"] == (b"loc:@b",)


@pytest.mark.parametrize("compat", ["fixed", "original"])
def test_an_output_that_the_graph_lacks_is_refused_as_by_the_command(compat: str) -> None:
    graph = parse("image = Placeholder(dtype=float, shape=[2])\ny = Neg(image)")
    with pytest.raises(UsageError, match="the graph has no node 'z'"):
        transform(graph, "strip_unused_nodes", inputs=["image"], outputs=["y", "z"], compat=compat)


def test_an_input_that_the_graph_lacks_is_refused_but_where_the_original_ignores_it() -> None:
    graph = parse("image = Placeholder(dtype=float, shape=[2])\ny = Neg(image)")
    with pytest.raises(UsageError, match=r"no node 'imag'; did you mean 'image'\?"):
        transform(graph, "strip_unused_nodes", inputs=["imag"], outputs=["y"])
    assert "y" in transform(graph, "strip_unused_nodes", inputs=["imag"], outputs=["y"], compat="original")
