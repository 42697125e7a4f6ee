"""The text form: what is printed reads back as the same nodes, and what is wrong is said with its place."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketgraph.errors import GraphError
from pocketgraph.graph import Func, Node, Opaque, Parameter, Shape, Tensor, const
from pocketgraph.graph.attr import same_attrs
from pocketgraph.graph.dtype import BFLOAT16, COMPLEX64, FLOAT, QUINT8, STRING, DType
from pocketgraph.graph.text_format import parse, print_graph, print_node


def same_node(a: Node, b: Node) -> bool:
    return (a.name, a.op, a.inputs, a.device) == (b.name, b.op, b.inputs, b.device) and same_attrs(a.attrs, b.attrs)


def test_reads_the_parts_of_a_node() -> None:
    graph = parse("""
        # what a person writes
        x = Placeholder(dtype=float, shape=[?,224,224,3])
        y/conv = Conv2D(x, split:1, ^init, T=float,
                        strides=[1,2,2,1], padding="SAME", eps=0.001, f=func(body, T=$T), flag=true) @"/cpu:0"
    """)
    assert graph["x"].attrs == {"dtype": FLOAT, "shape": Shape([None, 224, 224, 3])}
    conv = graph["y/conv"]
    assert (conv.op, conv.inputs, conv.device) == ("Conv2D", ("x", "split:1", "^init"), "/cpu:0")
    assert conv.attr("strides") == (1, 2, 2, 1)
    assert conv.attr("padding") == b"SAME"
    assert conv.attr("eps") == float(np.float32(0.001))
    assert conv.attr("flag") is True
    assert conv.attr("f") == Func("body", {"T": Parameter("T")})


@pytest.mark.parametrize(
    ("text", "dtype", "values"),
    [
        ("Const(float [0.1, 0.2])", "float", np.array([0.1, 0.2], np.float32)),
        ("Const(int32 3)", "int32", np.array(3, np.int32)),
        ("Const(double [[1, 2], [3, 4]])", "double", np.array([[1, 2], [3, 4]], np.float64)),
        ("Const(bool [true, false])", "bool", np.array([True, False])),
        ("Const(float[2,0] [])", "float", np.zeros((2, 0), np.float32)),
        ("Const(float[2,3] 0.5)", "float", np.full((2, 3), 0.5, np.float32)),
        ("Const(quint8 [7, 255])", "quint8", np.array([7, 255], np.uint8)),
        ("Const(uint64 18446744073709551615)", "uint64", np.array(2**64 - 1, np.uint64)),
        ("Const(complex64 [1+2j])", "complex64", np.array([1 + 2j], np.complex64)),
    ],
)
def test_reads_constants(text: str, dtype: str, values: np.ndarray[Any, Any]) -> None:
    tensor = parse(f"w = {text}")["w"].tensor
    assert tensor.dtype is DType.named(dtype)
    assert tensor.shape == values.shape
    np.testing.assert_array_equal(tensor.numpy(), values)


def test_reads_string_constants() -> None:
    tensor = parse(r'w = Const(string ["a\n\"\\", "\xff"])')["w"].tensor
    assert tensor.numpy().tolist() == [b'a\n"\\', b"\xff"]


def test_prints_one_line_a_node() -> None:
    text = 'w = Const(float [0.1, 0.2])\nrelu = Relu(w, ^init, T=float, _class=["loc:@w"]) @"/gpu:0"\n'
    assert print_graph(parse(text)) == text


def test_a_large_tensor_is_abbreviated_without_reading_it() -> None:
    def read() -> np.ndarray[Any, Any]:
        raise AssertionError("the elements were read")

    node = const("w", Tensor(FLOAT, (3, 3, 64, 128), read=read))
    assert print_node(node) == "w = Const(float[3,3,64,128])"
    with pytest.raises(GraphError, match=r"line 1, column 11: the tensor is abbreviated.*full=True"):
        parse(print_node(node))


def test_full_prints_every_value() -> None:
    node = const("w", np.arange(40, dtype=np.float32).reshape(4, 10))
    assert same_node(parse(print_node(node, full=True))["w"], node)


def test_a_constant_whose_types_disagree_is_spelled_out() -> None:
    node = Node("w", "Const", (), {"dtype": DType.named("int32"), "value": Tensor.from_numpy(np.float32(1))})
    assert print_node(node) == "w = Const(dtype=int32, value=tensor(float 1.0))"
    assert same_node(parse(print_node(node))["w"], node)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", r"line 1, column 2: expected '='"),
        ("\n\nx = A(y", r"line 3, column 8: expected ',' or '\)'"),
        ("x = A(T=flot)", r"column 9: 'flot' is no value.*did you mean 'float'"),
        ("x = A() y = B()", r"column 9: expected the end of the line"),
        ("x = Const(int8 300)", r"does not fit into int8 \(-128 to 127\)"),
        ("x = Const(float [[1], [1, 2]])", "rows of a tensor have different sizes"),
        ("x = Const(float[3] [1, 2])", r"the shape \[2\], not \[3\]"),
        ("x = Const(float[999999999999] 1)", "the shape"),
        ("x = Const(resource 3)", "no text form"),
        ("x = Const(bool 1)", "'1' is not a value of type bool"),
        ('x = A(a="open)', "expected a string between double quotes"),
        (r'x = A(a="\q")', r"unknown escape \\q"),
        ('x = A(a=[1,"b"])', "all of one kind"),
        ("x = A(a=1, a=2)", "given twice"),
        ("x = A(a=1, y)", "inputs come before attributes"),
        ("x = A(a=99999999999999999999)", "64 bits"),
        ("x = A(shape=[-2])", "below -1"),
        ("x = A(a=" + "[" * 5000, "nested too deep"),
        ("x = Const(float " + "[" * 5000, "nested too deep"),
        ("x = A(a=" + "func(f, a=" * 5000, "nested too deep"),
        ("x = A()\nx = B()", "two nodes have this name"),
    ],
)
def test_says_what_is_wrong_and_where(text: str, message: str) -> None:
    with pytest.raises(GraphError, match=message) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8) | st.from_regex(
    r"[a-z][a-z0-9_./-]{0,8}", fullmatch=True
)
float32s = st.floats(width=32).filter(lambda x: x == x)
dtypes = st.sampled_from([d for d in DType._by_number.values() if d.number])
shapes = st.none() | st.lists(st.none() | st.integers(0, 2**40), max_size=4)


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    count = int(np.prod(shape))
    kind = draw(
        st.sampled_from(
            ["float", "half", "double", "int8", "uint64", "bool", "string", "complex64", "bfloat16", "int4"]
        )
    )
    dtype = DType.named(kind)
    if kind == "string":
        strings = np.empty(count, object)
        strings[:] = draw(st.lists(st.binary(max_size=6), min_size=count, max_size=count))
        return Tensor.from_numpy(strings.reshape(shape), STRING)
    if kind == "int4":
        raw = np.array(draw(st.lists(st.integers(-8, 7), min_size=count, max_size=count)), np.int8)
        return Tensor.from_numpy(raw.reshape(shape), dtype)
    data = draw(st.binary(min_size=count * dtype.size, max_size=count * dtype.size))
    raw = np.frombuffer(data, np.uint8).reshape(-1)
    if kind == "bool":
        return Tensor.from_numpy((raw % 2).astype(bool).reshape(shape))
    values = raw.view(dtype.numpy)
    if values.dtype.kind in "fcV":  # the text has one spelling for all NaNs
        values = np.where(np.isfinite(values.astype(np.complex128)), values, values.dtype.type(1))
    return Tensor.from_numpy(values.reshape(shape), dtype)


scalars = (
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | float32s | st.binary(max_size=8) | dtypes
    | st.builds(Shape, shapes) | tensors() | st.builds(Parameter, names) | st.builds(Opaque, st.binary(max_size=4))
)  # fmt: skip
lists = st.one_of(
    *(
        st.lists(member, max_size=3).map(tuple)
        for member in (
            st.booleans(),
            st.integers(-9, 9),
            float32s,
            st.binary(max_size=4),
            dtypes,
            st.builds(Shape, shapes),
        )
    )
)
values = st.recursive(
    scalars | lists, lambda v: st.builds(Func, names, st.dictionaries(names, v, max_size=2)), max_leaves=4
)
keys = names | st.sampled_from(["shape", "element_shape", "value", "dtype", "T"])


@settings(max_examples=150, deadline=None)
@given(
    name=names,
    op=names | st.just("Const"),
    inputs=st.lists(names | names.map(lambda n: "^" + n) | names.map(lambda n: n + ":1"), max_size=3),
    attrs=st.dictionaries(keys, values, max_size=3),
    device=st.text(max_size=5),
)
def test_parse_undoes_print(name: str, op: str, inputs: list[str], attrs: dict[str, Any], device: str) -> None:
    node = Node(name, op, inputs, attrs, device)
    text = print_node(node, full=True)
    assert "\n" not in text
    assert same_node(parse(text)[name], node), text


@settings(max_examples=60, deadline=None)
@given(tensors())
def test_constants_read_back(tensor: Tensor) -> None:
    node = const("c", tensor)
    assert same_node(parse(print_node(node, full=True))["c"], node)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='ax=(),[]"\\ \n#^:?1.-@$<Constfloat', max_size=40))
def test_any_text_parses_or_is_refused(text: str) -> None:
    with contextlib.suppress(GraphError):
        parse(text)


def test_types_with_a_small_numpy_form() -> None:
    for dtype, text in (
        (BFLOAT16, "bfloat16 1.5"),
        (COMPLEX64, "complex64 1-0.5j"),
        (QUINT8, "quint8 9"),
        (DType.named("int4"), "int4 -8"),
    ):
        node = parse(f"c = Const({text})")["c"]
        assert node.tensor.dtype is dtype
        assert same_node(parse(print_node(node))["c"], node)


def test_a_graph_that_states_no_inputs_shows_its_placeholders() -> None:
    graph = parse("x = Placeholder(dtype=float)\nkeep = PlaceholderWithDefault(one)\none = Const(float 1.0)")
    assert repr(graph) == "Graph(3 nodes, inputs=['x', 'keep'], outputs=[])"
    assert repr(graph.replace(inputs=["one"])) == "Graph(3 nodes, inputs=['one'], outputs=[])"
