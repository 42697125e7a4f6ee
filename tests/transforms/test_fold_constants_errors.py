"""fold_constants: calls, graphs and parameters that are wrong."""

from __future__ import annotations

import pytest

from folding import SUM, fold
from pocketgraph import transform
from pocketgraph.errors import PocketgraphError, TransformError, UsageError
from pocketgraph.graph import Function
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ("nope", "y", "no node 'nope'"),
        ("x", "why", "no node 'why'"),
        ("x:1", "y", "the input 'x:1' is not there"),
        ("x", "y:2", "the output 'y:2' is not there"),
        ("x", "x", "'x' is both an input and an output"),
        ("x,x", "y", "given more than once"),
        ("x", "", "at least one output"),
        ("", "y", "You must feed a value for placeholder tensor 'x'"),
        ("c", "y", "You must feed a value for placeholder tensor 'x'"),
        ("x,c", "y", "Input 'c' was expected to be a Placeholder or PlaceholderWithDefault op, but was Add"),
    ],
)
def test_inputs_and_outputs_that_are_wrong(inputs: str, outputs: str, message: str) -> None:
    with pytest.raises(PocketgraphError, match=message) as caught:
        fold(SUM, inputs, outputs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = Placeholder(dtype=float)\ny = Add(x, gone, T=float)", "unknown input node 'gone'"),
        ("x = Placeholder(dtype=float)\ny = Add(x, z, T=float)\nz = Neg(y, T=float)", "2 nodes are in a cycle"),
        (
            "x = Placeholder(dtype=int32)\ny = Neg(x, T=float)",
            "was passed int32 from x:0 incompatible with expected float",
        ),
        ('x = Placeholder(dtype=float)\ny = Neg(x, T=float, _class=["loc:@w"])', "colocated with unknown node 'w'"),
        ("x = Placeholder(dtype=float)\ny = Neg(x, x, T=float)", "the Neg takes 1 inputs, not 2"),
        ("x = Placeholder(dtype=float)\ny = Neg(x:3, T=float)", "output 3 of 'x', which has 1 outputs"),
        (
            "x = Placeholder(dtype=float)\na = Const(float [1, 2])\nb = Const(float [1, 2, 3])\n"
            "c = Add(a, b, T=float)\ny = Add(x, c, T=float)",
            "node 'c'",
        ),
    ],
)
def test_graphs_that_are_wrong(text: str, message: str) -> None:
    with pytest.raises(PocketgraphError, match=message) as caught:
        fold(text, "x", "y")
    assert "\n" not in str(caught.value)
    assert fold(text, "x", "y", "(ignore_errors=true)") if "gone" not in text else True


def test_an_unknown_op_is_left_alone_and_what_lies_around_it_is_folded() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[2])
        a = Const(float [1, 2])
        b = AddV2(a, a, T=float)
        own = AcmeMadd(x, b, T=float)
        y = Neg(own, T=float)
    """
    folded = transform(parse(text), "mobile", inputs=["x"], outputs=["y"])
    own = folded["own"]
    assert (own.op, {**own.attrs}) == ("AcmeMadd", {"T": FLOAT})
    assert folded.constant(own.inputs[1]).numpy().tolist() == [2, 4]
    with pytest.raises(TransformError, match="Op type not registered 'AcmeMadd'"):
        transform(parse(text), "fold_constants", inputs=["x"], outputs=["y"], compat="original")


@pytest.mark.parametrize("dtype", ["float_ref", "INVALID"])
def test_an_attribute_is_no_reference_type(dtype: str) -> None:
    """A variable that became a Placeholder: "AttrValue must not have reference type value of float_ref"."""
    graph = parse(f"x = Placeholder(dtype={dtype})\ny = Neg(x, T=float)")
    with pytest.raises(TransformError, match="node 'x': the attribute 'dtype' is a reference or no type"):
        transform(graph, "fold_constants", inputs=["x"], outputs=["y"], compat="original")


def test_a_function_is_not_called_as_an_op() -> None:
    graph = parse("x = Placeholder(dtype=float)\ny = Neg(x, T=float)").replace(functions={"Relu": Function("Relu")})
    assert transform(graph, "fold_constants", inputs=["x"], outputs=["y"])
    with pytest.raises(TransformError, match="Cannot add function 'Relu' because an op with the same name"):
        transform(graph, "fold_constants", inputs=["x"], outputs=["y"], compat="original")


@pytest.mark.parametrize("parameters", ["(max_constant_size_in_bytes=-1)", "(max_constant_size_in_bytes=many)"])
def test_bad_parameters(parameters: str) -> None:
    with pytest.raises((TransformError, UsageError)):
        fold(SUM, "x", "y", parameters)
