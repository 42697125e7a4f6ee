"""fold_batch_norms: what it leaves alone where the original goes wrong."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.errors import TransformError
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.transforms import transform

PRODUCT = """
    x = Placeholder(dtype=float)
    w = Const(float [[1, 2, 3], [4, 5, 6]])
    y = MatMul(x, w, T=float{attrs})
    scale = Const(float [10, 100{third}])
    scaled = Mul(y, scale, T=float)
    {more}
"""


def graph(attrs: str = "", third: str = ", 1000", more: str = "", outputs: str = "scaled"):  # type: ignore[no-untyped-def]
    return parse(PRODUCT.format(attrs=attrs, third=third, more=more), outputs=[outputs])


def test_scales_columns_and_keeps_the_name_of_the_multiplication() -> None:
    result = transform(graph(), "fold_batch_norms")
    assert [node.name for node in result] == ["w", "x", "scaled"]
    assert result["scaled"].op == "MatMul"
    np.testing.assert_array_equal(result["w"].tensor.numpy(), [[10, 200, 3000], [40, 500, 6000]])


def test_scales_rows_of_transposed_weights() -> None:
    result = transform(graph(attrs=", transpose_b=true", third=""), "fold_batch_norms")
    np.testing.assert_array_equal(result["w"].tensor.numpy(), [[10, 20, 30], [400, 500, 600]])


@pytest.mark.parametrize("more", ["z = Relu(y)", "z = Relu(w)", "z = NoOp(^y)"])
def test_what_is_used_elsewhere_is_left_alone(more: str) -> None:
    result = transform(graph(more=more), "fold_batch_norms")
    assert result["scaled"].op == "Mul"
    np.testing.assert_array_equal(result["w"].tensor.numpy(), [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize("output", ["y", "y:0", "w"])
def test_outputs_of_the_graph_are_left_alone(output: str) -> None:
    assert transform(graph(outputs=output), "fold_batch_norms")["scaled"].op == "Mul"


def test_a_factor_that_is_used_elsewhere_is_folded_and_stays() -> None:
    result = transform(graph(more="z = Relu(scale)"), "fold_batch_norms")
    assert result["scaled"].op == "MatMul"
    np.testing.assert_array_equal(result["w"].tensor.numpy(), [[10, 200, 3000], [40, 500, 6000]])
    np.testing.assert_array_equal(result["scale"].tensor.numpy(), [10, 100, 1000])


def test_a_factor_that_the_input_reads_is_folded_and_stays() -> None:
    before = parse("""
        a = Placeholder(dtype=float)
        x = Mul(scale, a, T=float)
        w = Const(float [[1, 2]])
        y = MatMul(x, w, T=float)
        scale = Const(float [10, 100])
        scaled = Mul(y, scale, T=float)
    """)
    result = transform(before, "fold_batch_norms")
    assert (result["scaled"].op, result["x"].inputs) == ("MatMul", ("scale", "a"))
    np.testing.assert_array_equal(result["w"].tensor.numpy(), [[10, 200]])


def test_other_types_and_layouts_are_left_alone() -> None:
    half = parse(PRODUCT.format(attrs="", third=", 1000", more="").replace("float", "half"))
    assert transform(half, "fold_batch_norms")["scaled"].op == "Mul"
    nchw = parse("""
        x = Placeholder(dtype=float)
        w = Const(float [[[[1, 2]]]])
        y = Conv2D(x, w, T=float, data_format="NCHW", strides=[1,1,1,1], padding="SAME")
        scale = Const(float [10, 100])
        scaled = Mul(y, scale, T=float)
    """)
    assert print_graph(sorted(transform(nchw, "fold_batch_norms"), key=str)) == print_graph(sorted(nchw, key=str))


def test_a_multiplier_of_another_size_is_an_error() -> None:
    with pytest.raises(TransformError, match=r"node 'scaled': Mul constant input to batch norm has bad shape: \[2\]"):
        transform(graph(third=""), "fold_batch_norms")


def test_a_multiplier_of_another_size_and_type_is_an_error_in_the_original() -> None:
    """It looks at the size first; where that fits, it takes the values for floats, and aborts."""
    half = parse(PRODUCT.format(attrs="", third="", more="").replace("float", "half"))
    with pytest.raises(TransformError, match=r"bad shape: \[2\]"):
        transform(half, "fold_batch_norms", compat="original")
    assert transform(half, "fold_batch_norms")["scaled"].op == "Mul"


def test_a_factor_that_would_make_weights_infinite_stays() -> None:
    before = parse("""
        x = Placeholder(dtype=float, shape=[1,2])
        w = Const(float [[3e38], [1.0]])
        s = Const(float [4.0])
        m = MatMul(x, w, T=float)
        y = Mul(m, s, T=float)
    """)
    after = transform(before, "fold_batch_norms", inputs=["x"], outputs=["y"])
    assert {node.op for node in after} >= {"Mul", "MatMul"}
    assert "inf" not in print_graph(after)
    assert "inf" in print_graph(transform(before, "fold_batch_norms", inputs=["x"], outputs=["y"], compat="original"))
