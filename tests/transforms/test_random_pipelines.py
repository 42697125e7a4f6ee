"""What random pipelines brought to light, in both ways to run rules; the numbers are TensorFlow 1.15.5's."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from pocketgraph.errors import PocketgraphError, RunError, TransformError, UsageError
from pocketgraph.graph import Function, Graph, Node, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels import evaluate
from pocketgraph.runtime import Session
from pocketgraph.transforms import tool, transform

CHAIN = """
    x = Placeholder(dtype=float, shape=[2])
    y = Relu(x, T=float)
    z = Neg(y, T=float)
"""


def zeros(value: float = 0.0) -> Graph:
    weights = const("w", np.full((32, 40), value, np.float32))
    rest = parse("x = Placeholder(dtype=float, shape=[?,40])\ny = Add(x, x, T=float)")
    nodes = [weights, rest["x"], rest["y"].replace(inputs=("x", "w"))]
    return Graph(nodes, inputs=["x"], outputs=["y"])


def test_quantized_zeros_stay_zeros() -> None:
    """The original's range ends at 1.1754944e-38; TensorFlow takes its 255th part as 0, and 0 / 0 ruins the model."""
    after = transform(zeros(), "quantize_weights")
    ends = [float(after[f"w_quantized_{end}"].tensor.numpy()) for end in ("min", "max")]
    assert ends == [0.0, 1.0]
    assert not np.any(after["w_quantized_const"].tensor.numpy())
    fed = np.arange(32 * 40, dtype=np.float32).reshape(32, 40)
    np.testing.assert_array_equal(Session(after).run("y", {"x": fed})[0], fed)
    original = transform(zeros(), "quantize_weights", compat="original")
    assert float(original["w_quantized_max"].tensor.numpy()) == np.finfo(np.float32).tiny


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rule", ["quantize_weights", "quantize_weights(per_channel=true)", "smallest"])
def test_weights_that_are_no_numbers_are_not_quantized(rule: str, value: float) -> None:
    values = np.ones((32, 40), np.float32)
    values[3, 4] = value
    graph = zeros()
    graph = graph.replace([const("w", values) if node.name == "w" else node for node in graph])
    after = transform(graph, rule)
    assert [node.op for node in after if node.op != "Placeholder"] == ["Const", "Add"]


def test_a_negative_size_is_an_error_and_was_taken_as_unsigned() -> None:
    with pytest.raises(TransformError, match="minimum_size must be 0 or more, not -5"):
        transform(zeros(), "quantize_weights(minimum_size=-5)")
    assert len(transform(zeros(), "quantize_weights(minimum_size=-5)", compat="original")) == 3


def test_no_steps_are_an_error_and_were_infinite() -> None:
    weights = np.arange(20, dtype=np.float32)
    graph = Graph([const("w", weights)])
    with pytest.raises(TransformError, match="num_steps must be 1 or more, not 0"):
        transform(graph, "round_weights(num_steps=0)")
    rounded = transform(graph, "round_weights(num_steps=0)", compat="original")["w"].tensor.numpy()
    assert not np.isfinite(rounded).any()


def test_a_node_is_printed_twice_under_two_names() -> None:
    after = transform(parse(CHAIN), "insert_logging(op=Relu, message=a) insert_logging(op=Relu, message=b)")
    assert {name: node.attrs["message"] for name, node in after.nodes.items() if node.op == "Print"} == {
        "y__print__": b"a", "y__print___1": b"b",
    }  # fmt: skip
    assert after["z"].inputs == ("y__print__:0",)
    with pytest.raises(PocketgraphError, match="two nodes have this name"):
        transform(parse(CHAIN), "insert_logging insert_logging", compat="original")


def test_a_node_without_outputs_is_printed_with_the_type_of_the_one_before() -> None:
    graph = parse("""
        x = Placeholder(dtype=half, shape=[2])
        n = NoOp(^x)
        y = Relu(x, ^n, T=half)
        z = Neg(y, T=half)
    """)
    original = transform(graph, "insert_logging", compat="original")
    assert str(original["n__print__"]).startswith("n__print__ = Print(n:0, n:0,")
    assert original["n__print__"].dtype("T").name == "half"
    assert "n__print__" not in transform(graph, "insert_logging")
    assert "n__print__" not in transform(
        graph, "insert_logging(op=NoOp)", compat="original"
    )  # memory's contents, there


@pytest.mark.parametrize("text", ["2147483648", "-2147483649", "x", "", "1.5", "+3", "0x3"])
def test_numbers_of_32_bits(text: str) -> None:
    call = f'insert_logging(first_n="{text}")'
    for compat in ("original", "fixed"):
        with pytest.raises(UsageError, match="couldn't interpret the first_n argument as a number"):
            transform(parse(CHAIN), call, compat=compat)
    assert len(transform(parse(CHAIN), 'insert_logging(first_n=" -2147483648 ")')) == 5
    assert len(transform(parse(CHAIN), "fold_constants(max_constant_size_in_bytes=2147483648)", "x", "z")) == 3
    assert tool.find("round_weights").parameters["num_steps"].bits == 32


def test_ignore_errors_passes_over_bad_parameters_in_the_original(caplog: pytest.LogCaptureFixture) -> None:
    call = "insert_logging(first_n=x, ignore_errors=true) rename_op(old_op_name=Neg, new_op_name=Abs)"
    with caplog.at_level(logging.WARNING):
        after = transform(parse(CHAIN), call, compat="original")
    assert [node.op for node in after] == ["Placeholder", "Relu", "Abs"]
    assert "insert_logging: Ignoring error" in caplog.text
    with pytest.raises(UsageError, match="first_n"):
        transform(parse(CHAIN), call)


def test_of_some_parameters_the_first_counts_in_the_original() -> None:
    call = "rename_attribute(old_attribute_name=T, new_attribute_name=A, op_name=Neg, op_name=Relu)"
    after = transform(parse(CHAIN), call, compat="original")
    assert [sorted(node.attrs) for node in after] == [["dtype", "shape"], ["T"], ["A"]]
    with pytest.raises(UsageError, match="expected a single 'op_name' parameter but found 2"):
        transform(parse(CHAIN), call)


SHAPES = """
    x = Placeholder(dtype=float, shape=[2,2])
    two = Const(float 2.0)
    four = Mul(two, two, T=float)
    y = {node}
    z = Mul(y, four, T=float)
"""


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ('MaxPool(x, T=float, ksize=[1,1,1,1], strides=[1,1,1,1], padding="SAME")', "should have rank 4"),
        ("BiasAdd(x, x, T=float)", "should have rank 1"),
        ("Relu(x, T=float)", ""),
        ("Relu(x)", "the Relu has no attribute .T."),
        ("Relu(x, T=string)", "the attribute 'T' does not take the value string"),
        ("Square(x, T=int8)", "the attribute 'T' does not take the value int8"),  # newer versions do
        ("Relu(x, T=2)", "the attribute 'T' is of kind int, not type"),
        ("Concat(two, x, N=1, T=float)", "the attribute 'N' is less than 2"),
        ("Cast(x, DstT=float)", "has no attribute 'SrcT'"),
        ("Relu(x, T=float, nonsense=1)", "mentions attr 'nonsense'"),
    ],
)
def test_fold_constants_refuses_what_could_not_be_imported_as_the_original_does(node: str, why: str) -> None:
    graph = parse(SHAPES.format(node=node))
    if why:
        with pytest.raises(TransformError, match=why):
            transform(graph, "fold_constants", "x", "z", compat="original")
        assert transform(graph, "fold_constants(ignore_errors=true)", "x", "z", compat="original") is not None
    else:
        assert "four" not in transform(graph, "fold_constants", "x", "z", compat="original")


def test_a_negative_limit_is_none_in_the_original() -> None:
    graph = parse(SHAPES.format(node="Relu(x, T=float)"))
    call = "fold_constants(max_constant_size_in_bytes=-1)"
    assert "four" not in transform(graph, call, "x", "z", compat="original")
    with pytest.raises(TransformError, match="must not be negative"):
        transform(graph, call, "x", "z")


def test_an_output_that_is_fed_under_another_spelling() -> None:
    for compat in ("original", "fixed"):
        with pytest.raises(TransformError, match="is both an input and an output"):
            transform(parse(CHAIN), "fold_constants", "y", "z,y:0", compat=compat)


def test_fake_quantization_with_ends_in_the_wrong_order() -> None:
    node = parse("f = FakeQuantWithMinMaxVars(x, a, b, num_bits=8, narrow_range=false)\n"
                 "x = Placeholder()\na = Placeholder()\nb = Placeholder()")["f"]  # fmt: skip
    ends = (np.float32(0.08871307), np.float32(-0.20089047))
    values = np.array([1.764, -0.5, 0.0], np.float32)
    (found,) = evaluate(node, (values, *map(np.asarray, ends)))
    np.testing.assert_allclose(found, 0.08858461, rtol=1e-6)  # TensorFlow 1.15.5's, for every value


@pytest.mark.parametrize("name", ["scope>y", "_y", "q\\y", "y y"])
def test_fold_constants_refuses_names_that_1_15_does_not_import(name: str) -> None:
    graph = parse(SHAPES.format(node="Relu(x, T=float)"))
    nodes = [node.replace(name=name) if node.name == "y" else node for node in graph if node.name != "z"]
    graph = graph.replace(nodes)
    with pytest.raises(TransformError, match="Node name contains invalid characters"):
        transform(graph, "fold_constants", "x", "four", compat="original")
    passed_over = transform(graph, "fold_constants(ignore_errors=true)", "x", "four", compat="original")
    assert name in passed_over
    assert len(transform(graph, "fold_constants", "x", "four")) == 3


def test_fold_constants_imports_a_transposed_convolution_of_another_batch() -> None:
    """TensorFlow compares the batches when it computes; a graph of another batch size is transformed before that."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,6,6,1])
        sizes = Const(int32 [2, 12, 12, 1])
        w = Const(float [[[[1.0]], [[1.0]]], [[[1.0]], [[1.0]]]])
        y = Conv2DBackpropInput(sizes, w, x, T=float, strides=[1,2,2,1], padding="SAME")
    """)
    after = transform(graph, "fold_constants", "x", "y", compat="original")
    assert [node.name for node in after] == ["sizes", "w", "y", "x"]


@pytest.mark.parametrize("pair", ["fallback", "input"])
def test_ends_of_a_range_in_the_wrong_order_go_into_the_graph_in_the_original(pair: str) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2,2])
        y = Mul(x, one, T=float)
        one = Const(float [[1.0, 2.0], [3.0, 4.0]])
        z = Relu(y, T=float)
    """)
    call = f"quantize_nodes({pair}_min=2, {pair}_max=1)"
    after = transform(graph, call, "x", "z", compat="original")
    scope = {"fallback": "y/eightbit/fallback_", "input": "x_eightbit/"}[pair]
    assert [float(after[f"{scope}{end}"].tensor.numpy()) for end in ("min", "max")] == [2.0, 1.0]
    with pytest.raises(TransformError, match=f"{pair}_min must be less than {pair}_max"):
        transform(graph, call, "x", "z")


LOOP = """
    zero = Const(int32 0)
    x = Placeholder(dtype=float, shape=[2])
    i = Enter(zero, T=int32, frame_name="loop")
    enter = Enter(x, T=float, frame_name="loop")
    at = Merge(i, next_i, T=int32, N=2)
    v = Merge(enter, next_v, T=float, N=2)
    three = Const(int32 3, ^at)
    less = Less(at, three, T=int32)
    go = LoopCond(less)
    s_i = Switch(at, go, T=int32)
    s_v = Switch(v, go, T=float)
    one = Const(int32 1, ^at)
    up = Add(s_i:1, one, T=int32)
    double = Add(s_v:1, s_v:1, T=float)
    next_i = NextIteration(up, T=int32)
    next_v = NextIteration(double, T=float)
    left = Exit(s_v, T=float)
    y = Neg(left, T=float)
"""


def test_the_values_of_a_loop_are_printed_where_it_stays_a_loop(capfd: pytest.CaptureFixture[str]) -> None:
    """A Print between a NextIteration and its Merge makes a cycle that TensorFlow does not load."""
    graph = parse(LOOP)
    after = transform(graph, "insert_logging(op=NextIteration, op=LoopCond, op=Add, message=sum)", "x", "y")
    assert {node.name for node in after if node.op == "Print"} == {"up__print__", "double__print__"}
    everything = transform(graph, "insert_logging fold_constants", "x", "y")
    for printing in (after, everything):
        np.testing.assert_array_equal(Session(printing).run("y", {"x": [1.0, -2.0]})[0], [-8.0, 16.0])
    assert capfd.readouterr().err.count("sum") == 6
    original = transform(graph, "insert_logging(op=Enter)", "x", "y", compat="original")
    with pytest.raises(RunError, match="__print__' stands between"):
        Session(original).run("y", {"x": [1.0, -2.0]})


def test_calls_of_the_librarys_functions_are_not_printed() -> None:
    body = (Node("twice", "Add", ["a", "a"], {"T": FLOAT}),)
    graph = parse(CHAIN.replace("Relu(x, T=float)", "Twice(x)"))
    graph = graph.replace(functions={"Twice": Function("Twice", body)})
    assert [node.name for node in transform(graph, "insert_logging", "x", "z") if node.op == "Print"] == ["x__print__"]
    with pytest.raises(TransformError):
        transform(graph, "insert_logging", "x", "z", compat="original")


def test_fold_constants_has_no_functions_for_a_call_of_constants_in_the_original() -> None:
    body = (Node("twice", "Add", ["a", "a"], {"T": FLOAT}),)
    graph = parse("""
        two = Const(float 2.0)
        four = PartitionedCall(two, Tin=[float], Tout=[float], f=func(Twice))
        x = Placeholder(dtype=float, shape=[2])
        y = Mul(x, four, T=float)
    """).replace(functions={"Twice": Function("Twice", body)})
    with pytest.raises(TransformError, match="node 'four': No function library is provided"):
        transform(graph, "fold_constants", "x", "y", compat="original")
    for call, compat in (("fold_constants", "fixed"), ("fold_constants(exclude_op=PartitionedCall)", "original")):
        assert "four" in transform(graph, call, "x", "y", compat=compat)
