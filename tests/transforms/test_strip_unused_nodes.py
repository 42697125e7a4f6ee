"""strip_unused_nodes: what stays, and what an input becomes."""

from __future__ import annotations

import pytest

from pocketgraph.errors import TransformError, UsageError
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.transforms import transform

GRAPH = """
    file = Placeholder(dtype=string, shape=[])
    image = DecodeJpeg(file, ^init) @"/cpu:0"
    second = Relu(image, T=float)
    x = Add(image, second, T=float)
    y = Relu(x, ^init, T=float)
    init = NoOp()
    loss = Sum(y, y)
"""


def stripped(call: str, inputs: str, outputs: str, compat: str = "fixed") -> str:
    return print_graph(transform(parse(GRAPH), call, inputs, outputs, compat=compat))


def text(graph: str) -> str:
    return print_graph(parse(graph))


def test_keeps_what_the_outputs_need_by_data_and_control() -> None:
    assert stripped("strip_unused_nodes", "file", "second:0") == text("""
        file = Placeholder(dtype=string, shape=[])
        image = DecodeJpeg(file, ^init) @"/cpu:0"
        second = Relu(image, T=float)
        init = NoOp()
    """)


def test_an_input_becomes_a_scalar_float_placeholder_in_the_original() -> None:
    assert stripped("strip_unused_nodes", "image", "second", "original") == text("""
        image = Placeholder(dtype=float, shape=[])
        second = Relu(image, T=float)
    """)


def test_an_input_keeps_the_type_and_shape_that_are_known() -> None:
    assert stripped("strip_unused_nodes", "image", "second") == text("""
        image = Placeholder(dtype=uint8, shape=<unknown>)
        second = Relu(image, T=float)
    """)
    given = parse("c = Const(int32 3)\nx = PlaceholderWithDefault(c, dtype=int32, shape=[])\ny = Neg(x, T=int32)")
    assert print_graph(transform(given, "strip_unused_nodes", "x", "y")) == text("""
        x = Placeholder(dtype=int32, shape=[])
        y = Neg(x, T=int32)
    """)


def test_sizes_may_be_unknown() -> None:
    for shape in ("-1, 3", "?,3"):
        assert "x = Placeholder(dtype=float, shape=[?,3])" in stripped(f'strip_unused_nodes(shape="{shape}")', "x", "y")
        with pytest.raises(TransformError, match="Could not parse as shape"):
            stripped(f'strip_unused_nodes(shape="{shape}")', "x", "y", "original")


def test_names_have_types_and_shapes_of_their_own() -> None:
    call = """strip_unused_nodes(type=half, shape="2, 3",
        name=second, type_for_name=quint8, shape_for_name="1,8")"""
    assert stripped(call, "image,second", "x") == text("""
        image = Placeholder(dtype=half, shape=[2,3])
        second = Placeholder(dtype=quint8, shape=[1,8])
        x = Add(image, second, T=float)
    """)


def test_inputs_that_are_not_needed_stay_and_unknown_ones_of_the_graph_are_passed_over() -> None:
    graph = parse(GRAPH).replace(inputs=["file", "nothing", "x"])
    assert print_graph(transform(graph, "strip_unused_nodes", outputs="init")) == text("""
        file = Placeholder(dtype=string, shape=[])
        x = Placeholder(dtype=float, shape=<unknown>)
        init = NoOp()
    """)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("type=floaty", "Couldn't understand type argument 'floaty'"),
        ('shape=""', "shape is empty"),
        ('shape="1,-2"', "Could not parse as shape: '1,-2'"),
        ('shape="1,99999999999999999999"', "Could not parse as shape"),
        ("name=x", "You must pass a 'type_for_name' arg for every 'name'"),
        ("name=x, type_for_name=float", "You must pass a 'shape_for_name' arg for every 'name'"),
        ("type_for_name=float", "You must pass a 'type_for_name' arg for every 'name'"),
    ],
)
def test_bad_parameters_matter_only_when_they_are_needed(parameters: str, message: str) -> None:
    with pytest.raises(TransformError, match=message):
        stripped(f"strip_unused_nodes({parameters})", "x", "y")
    stripped(f"strip_unused_nodes({parameters})", "file", "y")


def test_an_unknown_output_suggests_near_ones() -> None:
    with pytest.raises(UsageError, match="no node 'lss'; did you mean 'loss'"):
        stripped("strip_unused_nodes", "file", "lss")


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        (
            "IteratorGetNext(it, output_types=[float, float], output_shapes=[[?,2],[?,2]])",
            "freeze_graph with repair=inputs makes a",
        ),
        ("Split(axis, it, num_split=2, T=float)", "name what stands in front of it"),
    ],
)
def test_an_input_of_which_two_outputs_are_read_is_refused(source: str, hint: str) -> None:
    graph = parse(f"""
        it = Placeholder(dtype=float)
        axis = Const(int32 0)
        batch = {source}
        y = Add(batch, batch:1, T=float)
        z = Relu(batch, T=float)
    """)
    with pytest.raises(TransformError, match=f"one output, and 'batch:1' is read too; .*{hint}"):
        transform(graph, "strip_unused_nodes", "batch", "y")
    assert [node.op for node in transform(graph, "strip_unused_nodes", "batch", "z")] == ["Placeholder", "Relu"]
    assert len(transform(graph, "strip_unused_nodes", "batch", "y", compat="original")) == 2  # which nothing can load


def test_without_outputs_nothing_would_be_kept() -> None:
    with pytest.raises(TransformError, match=r"no output is named, .*; name it with outputs: loss$"):
        transform(parse(GRAPH), "strip_unused_nodes", "file")
    assert len(transform(parse(GRAPH), "strip_unused_nodes", "file", compat="original")) == 1
