"""What the batch norm folds do beyond the original: each graph is folded, both are run, and the numbers agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pocketgraph
from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.shape import Shape
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.runtime import Session
from pocketgraph.transforms import transform

RNG = np.random.default_rng(7)
SHAPES = {"NHWC": (2, 7, 6, 4), "NCHW": (2, 4, 7, 6)}
FOLDS = "fold_batch_norms fold_old_batch_norms"


def numbers(*shape: int, low: float = -1.0) -> np.ndarray[Any, Any]:
    return RNG.uniform(low, 1.0, shape).astype(np.float32)


def factors(*shape: int) -> np.ndarray[Any, Any]:
    """Of either sign, and none many times as large as another."""
    found = numbers(*shape)
    return found + np.copysign(np.float32(0.1), found)


def op(name: str, kind: str, *inputs: str, **attrs: Any) -> Node:
    return Node(name, kind, inputs, {"T": FLOAT, **attrs})


def image(form: str = "NHWC") -> Node:
    return Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape(SHAPES[form])})


def convolution(kind: str, source: str, form: str = "NHWC", padding: bytes = b"SAME", size: int = 3) -> list[Node]:
    """The nodes of a convolution called ``conv`` with 4 channels in; 5 come out, 8 of a depthwise one."""
    shape = {"Conv2D": (size, size, 4, 5), "DepthwiseConv2dNative": (size, size, 4, 2)}.get(kind, (size, size, 5, 4))
    attrs = {"strides": (1, 1, 1, 1), "padding": padding, "data_format": form.encode()}
    if kind == "Conv2DBackpropInput":
        rows, columns = (7, 6) if padding == b"SAME" else (7 + size - 1, 6 + size - 1)
        sizes = (2, rows, columns, 5) if form == "NHWC" else (2, 5, rows, columns)
        return [
            const("sizes", np.array(sizes, np.int32)),
            const("w", numbers(*shape)),
            op("conv", kind, "sizes", "w", source, **attrs),
        ]
    return [const("w", numbers(*shape)), op("conv", kind, source, "w", **attrs)]


def channels(kind: str) -> int:
    return 8 if kind == "DepthwiseConv2dNative" else 5


def normalization(kind: str, source: str, count: int, form: str = "NHWC", name: str = "norm") -> list[Node]:
    parts = [const(f"{name}/gamma", factors(count))]
    parts += [const(f"{name}/{part}", numbers(count)) for part in ("beta", "mean")]
    parts.append(const(f"{name}/variance", numbers(count, low=0.1)))
    attrs: dict[str, Any] = {"epsilon": 0.001, "is_training": False, "data_format": form.encode()}
    if kind != "FusedBatchNorm":
        attrs["U"] = FLOAT
    return [*parts, op(name, kind, source, *(part.name for part in parts), **attrs)]


def assert_folds(
    nodes: list[Node],
    kept: set[str] | None = None,
    transforms: str = FOLDS,
    output: str = "y",
    engine: str = "reference",
) -> Graph:
    """Folds, checks that only the given ops (of those that compute) are left, and that the numbers agree."""
    before = Graph([*nodes, op(output, "Relu", nodes[-1].name)], inputs=["x"], outputs=[output])
    after = transform(before, transforms)
    if kept is not None:
        left = {node.op for node in after if node.op not in ("Const", "Placeholder", "Relu", "Identity")}
        assert left == kept
    feed = {"x": numbers(*before["x"].attrs["shape"].known)}
    expected, found = (Session(graph, engine=engine).run(output, feed)[0] for graph in (before, after))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)
    assert np.abs(expected).max() > 0.1
    return after


KINDS = ["Conv2D", "DepthwiseConv2dNative", "Conv2DBackpropInput"]
runs_nchw = pytest.mark.parametrize("form", ["NHWC", "NCHW"])


@runs_nchw
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", ["FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"])
def test_a_normalization_behind_a_convolution(kind: str, norm: str, form: str) -> None:
    nodes = [image(form), *convolution(kind, "x", form), *normalization(norm, "conv", channels(kind), form)]
    after = assert_folds(nodes, {kind, "BiasAdd"}, "fold_old_batch_norms")
    assert after["norm"].op == "BiasAdd"


@runs_nchw
@pytest.mark.parametrize("norm", ["FusedBatchNorm", "FusedBatchNormV3"])
def test_a_bias_between(norm: str, form: str) -> None:
    bias = [const("b", numbers(5)), op("biased", "BiasAdd", "conv", "b", data_format=form.encode())]
    nodes = [image(form), *convolution("Conv2D", "x", form), *bias, *normalization(norm, "biased", 5, form)]
    after = assert_folds(nodes, {"Conv2D", "BiasAdd"}, "fold_old_batch_norms")
    assert "biased" not in after
    assert "b" not in after


def spelled(source: str, count: int, form: str = "NHWC") -> list[Node]:
    """tf.nn.batch_normalization as its Python wrote it, parameters not yet folded."""
    shape = (count, 1, 1) if form == "NCHW" else (count,)
    return [
        const("variance", numbers(*shape, low=0.1)),
        const("mean", numbers(*shape)),
        const("beta", numbers(*shape)),
        const("gamma", factors(*shape)),
        const("epsilon", np.float32(0.001)),
        op("bn/add", "Add", "variance", "epsilon"),
        op("bn/Rsqrt", "Rsqrt", "bn/add"),
        op("bn/mul", "Mul", "bn/Rsqrt", "gamma"),
        op("bn/mul_1", "Mul", source, "bn/mul"),
        op("bn/mul_2", "Mul", "mean", "bn/mul"),
        op("bn/sub", "Sub", "beta", "bn/mul_2"),
        op("bn/add_1", "AddV2", "bn/mul_1", "bn/sub"),
    ]


@runs_nchw
@pytest.mark.parametrize("kind", KINDS)
def test_a_spelled_out_normalization(kind: str, form: str) -> None:
    nodes = [image(form), *convolution(kind, "x", form), *spelled("conv", channels(kind), form)]
    after = assert_folds(nodes, {kind, "BiasAdd"}, "fold_batch_norms")
    assert not any(name.startswith("bn/") for name in after.nodes if name != "bn/add_1")


def test_the_same_after_fold_constants() -> None:
    nodes = [image(), *convolution("Conv2D", "x"), *spelled("conv", 5)]
    assert_folds(nodes, {"Conv2D", "Add", "AddV2"} - {"Add"}, "fold_constants fold_batch_norms")


def test_a_normalization_by_sub_and_div() -> None:
    nodes = [
        image(), *convolution("Conv2D", "x"), const("mean", numbers(5)),
        const("deviation", numbers(1, 1, 1, 5, low=0.5)),
        op("centred", "Sub", "conv", "mean"), op("scaled", "RealDiv", "centred", "deviation"),
        const("one", np.float32(1)), op("turned", "Sub", "one", "scaled"),
    ]  # fmt: skip
    assert_folds(nodes, {"Conv2D", "BiasAdd"}, "fold_batch_norms")


@pytest.mark.parametrize("transposed", [False, True])
def test_a_matrix_product(transposed: bool) -> None:
    x = Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape((3, 4))})
    product = op("product", "MatMul", "x", "w", transpose_b=transposed)
    w = const("w", numbers(5, 4) if transposed else numbers(4, 5))
    assert_folds([x, w, product, *spelled("product", 5)], {"MatMul", "BiasAdd"}, "fold_batch_norms")


@pytest.mark.parametrize("transposed", [False, True])
def test_before_a_matrix_product(transposed: bool) -> None:
    x = Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape((3, 4))})
    product = op("product", "MatMul", "bn/add_1", "w", transpose_b=transposed)
    w = const("w", numbers(5, 4) if transposed else numbers(4, 5))
    after = assert_folds([x, *spelled("x", 4), w, product], {"MatMul", "BiasAdd"}, "fold_batch_norms")
    assert after["product"].op == "BiasAdd"


def test_what_brings_inputs_of_many_units_to_one_scale_stays() -> None:
    """Years, degrees and incomes as Keras' Normalization takes them: folded, eight bits left 7 decibels of them."""
    mean = np.float32([1959, 48, 0.009, 24823])
    deviation = np.float32([34, 1, 0.0096, 13832])
    weights, last = numbers(4, 32), numbers(32, 1)
    nodes = [
        Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape((None, 4))}),
        *(const(name, values) for name, values in
          {"mean": mean, "deviation": deviation, "w": weights, "v": last}.items()),
        op("shifted", "Sub", "x", "mean"),
        op("even", "RealDiv", "shifted", "deviation"),
        op("sums", "MatMul", "even", "w"),
        op("units", "Relu", "sums"),
        op("y", "MatMul", "units", "v"),
    ]  # fmt: skip
    graph = Graph(nodes, inputs=["x"], outputs=["y"])
    after = transform(graph, "mobile")
    assert [node.op for node in after if node.op != "Const"][:3] == ["Placeholder", "Sub", "RealDiv"]
    even = RNG.normal(size=(300, 4))
    x = (even * deviation + mean).astype(np.float32)
    model = pocketgraph.quantize(after, {"x": x[:100]}, outputs=["y"])
    found = np.array([ProgramRunner(model.program).numbers([row[np.newaxis]])[0][0] for row in x[100:]])
    exact = np.maximum(even[100:] @ weights, 0) @ last
    assert 10 * np.log10((exact**2).sum() / ((found - exact) ** 2).sum()) > 25


@runs_nchw
@pytest.mark.parametrize("kind", ["Conv2D", "DepthwiseConv2dNative"])
@pytest.mark.parametrize("norm", ["FusedBatchNormV3", "spelled"])
def test_before_a_convolution_without_padding(kind: str, norm: str, form: str) -> None:
    before = spelled("x", 4, form) if norm == "spelled" else normalization(norm, "x", 4, form)
    nodes = [image(form), *before, *convolution(kind, before[-1].name, form, b"VALID")]
    assert_folds(nodes, {kind, "BiasAdd"})


def test_before_a_convolution_of_one_pixel() -> None:
    before = normalization("FusedBatchNormV3", "x", 4)
    assert_folds([image(), *before, *convolution("Conv2D", "norm", size=1)], {"Conv2D", "BiasAdd"})


@pytest.mark.parametrize("kind", KINDS)
def test_before_a_convolution_with_padding_stays(kind: str) -> None:
    before = normalization("FusedBatchNormV3", "x", 4)
    assert_folds([image(), *before, *convolution(kind, "norm")], {kind, "FusedBatchNormV3"})


@pytest.mark.parametrize("kind", KINDS)
def test_a_mere_factor_before_a_padding_convolution_is_exact(kind: str) -> None:
    factor = [const("factor", numbers(4)), op("scaled", "Mul", "x", "factor")]
    assert_folds([image(), *factor, *convolution(kind, "scaled")], {kind}, "fold_batch_norms")


def test_before_and_behind_become_one_bias() -> None:
    before = normalization("FusedBatchNormV3", "x", 4, name="first")
    behind = normalization("FusedBatchNormV3", "conv", 5, name="second")
    after = assert_folds([image(), *before, *convolution("Conv2D", "first", padding=b"VALID"), *behind])
    assert [node.op for node in after if node.op not in ("Const", "Placeholder")] == ["Conv2D", "BiasAdd", "Relu"]


def test_between_two_convolutions_it_goes_into_the_first() -> None:
    second = [
        const("w2", numbers(1, 1, 5, 4)),
        op("last", "Conv2D", "norm", "w2", strides=(1, 1, 1, 1), padding=b"SAME"),
    ]
    nodes = [image(), *convolution("Conv2D", "x"), *normalization("FusedBatchNormV3", "conv", 5), *second]
    after = assert_folds(nodes, {"Conv2D", "BiasAdd"})
    assert after["norm"].op == "BiasAdd"


def test_weights_behind_an_identity() -> None:
    nodes = [image(), *convolution("Conv2D", "x"), *normalization("FusedBatchNormV3", "conv", 5)]
    nodes[1:3] = [nodes[1], op("w/read", "Identity", "w"), nodes[2].replace(inputs=("x", "w/read"))]
    assert_folds(nodes, {"Conv2D", "FusedBatchNormV3"})  # as in the original, constants have to be folded before
    assert_folds(nodes, {"Conv2D", "BiasAdd"}, f"fold_constants {FOLDS}")


def test_a_factor_that_widens_its_input_stays() -> None:
    x = Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape((2, 7, 6, 1))})
    factor = [const("factor", numbers(4)), op("scaled", "Mul", "x", "factor")]
    assert_folds([x, *factor, *convolution("Conv2D", "scaled")], {"Conv2D", "Mul"})


@pytest.mark.parametrize(
    "more",
    [
        op("other", "Relu", "conv"),
        op("other", "Relu", "w"),
        Node("other", "NoOp", ["^conv"]),
        op("other", "Relu", "norm:1"),
    ],
)
def test_what_is_read_elsewhere_stays(more: Node) -> None:
    nodes = [image(), more, *convolution("Conv2D", "x"), *normalization("FusedBatchNormV3", "conv", 5)]
    assert_folds(nodes, {"Conv2D", "FusedBatchNormV3", more.op} - {"Relu"})


@pytest.mark.parametrize(("inputs", "outputs"), [("x,conv", "y"), ("x", "y,conv"), ("x", "y,w")])
def test_inputs_and_outputs_stay(inputs: str, outputs: str) -> None:
    nodes = [
        image(),
        *convolution("Conv2D", "x"),
        *normalization("FusedBatchNormV3", "conv", 5),
        op("y", "Relu", "norm"),
    ]
    after = transform(Graph(nodes), FOLDS, inputs, outputs)
    assert after["norm"].op == "FusedBatchNormV3"


def test_two_layouts_do_not_mix() -> None:
    nodes = [image("NCHW"), *convolution("Conv2D", "x", "NCHW"), *normalization("FusedBatchNormV3", "conv", 7, "NHWC")]
    nodes[-1] = nodes[-1].with_attrs(data_format=b"NHWC")
    assert transform(Graph(nodes, outputs=["norm"]), FOLDS)["norm"].op == "FusedBatchNormV3"


def test_training_normalizations_stay() -> None:
    nodes = [image(), *convolution("Conv2D", "x"), *normalization("FusedBatchNormV3", "conv", 5)]
    empty = const("none", np.zeros(0, np.float32))
    nodes[-1] = nodes[-1].replace(inputs=(*nodes[-1].inputs[:3], "none", "none")).with_attrs(is_training=True)
    assert transform(Graph([empty, *nodes], outputs=["norm"]), FOLDS)["norm"].op == "FusedBatchNormV3"


def test_a_shared_normalization_parameter() -> None:
    nodes = [image(), *convolution("Conv2D", "x"), *normalization("FusedBatchNormV3", "conv", 5)]
    w2 = const("w2", numbers(1, 1, 5, 5))
    second = op("again", "Conv2D", "norm", "w2", strides=(1, 1, 1, 1), padding=b"SAME")
    norm = nodes[-1].replace(name="norm2", inputs=("again", *nodes[-1].inputs[1:]))
    after = assert_folds([*nodes, w2, second, norm], {"Conv2D", "BiasAdd"}, "fold_old_batch_norms")
    assert "norm/gamma" not in after


def test_control_inputs_are_kept() -> None:
    nodes = [image(), Node("first", "NoOp"), *convolution("Conv2D", "x"), *normalization("FusedBatchNormV3", "conv", 5)]
    nodes[-1] = nodes[-1].replace(inputs=(*nodes[-1].inputs, "^first"))
    after = transform(Graph(nodes, outputs=["norm"]), FOLDS)
    assert after["norm"].op == "BiasAdd"
    assert after["norm"].control_inputs == ("^first",)


def test_the_original_leaves_all_this_alone() -> None:
    nodes = [image(), *convolution("Conv2D", "x"), *normalization("FusedBatchNormV3", "conv", 5)]
    graph = Graph(nodes, inputs=["x"], outputs=["norm"])
    assert transform(graph, FOLDS, compat="original")["norm"].op == "FusedBatchNormV3"


def test_a_normalization_that_goes_on_learning_stays() -> None:
    nodes = [image(), *convolution("Conv2D", "x"), *normalization("FusedBatchNormV3", "conv", 5)]
    nodes[-1] = nodes[-1].with_attrs(is_training=True, exponential_avg_factor=0.5)
    assert transform(Graph(nodes, outputs=["norm"]), FOLDS)["norm"].op == "FusedBatchNormV3"


@pytest.mark.parametrize("form", ["NDHWC", "NCDHW"])
@pytest.mark.parametrize("kind", ["Conv3D", "Conv3DBackpropInputV2"])
@pytest.mark.parametrize("norm", ["FusedBatchNormV3", "spelled"])
def test_a_normalization_behind_a_convolution_over_volumes(kind: str, norm: str, form: str) -> None:
    is_last = form == "NDHWC"
    x = Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape((2, 3, 5, 4, 4) if is_last else (2, 4, 3, 5, 4))})
    attrs = {"strides": (1,) * 5, "padding": b"SAME", "data_format": form.encode()}
    inputs, weights = ("x", "w"), numbers(3, 2, 3, 4, 6)
    if kind == "Conv3DBackpropInputV2":
        inputs, weights = ("sizes", "w", "x"), numbers(3, 2, 3, 6, 4)
    sizes = const("sizes", np.array((2, 3, 5, 4, 6) if is_last else (2, 6, 3, 5, 4), np.int32))
    if norm == "spelled":
        behind = spelled("conv", 6)
        if not is_last:
            behind[:4] = [const(node.name, node.tensor.numpy().reshape(6, 1, 1, 1)) for node in behind[:4]]
    else:
        behind = normalization(norm, "conv", 6, form)
    bias = [const("b", numbers(6)), op("biased", "BiasAdd", "conv", "b", data_format=b"NHWC" if is_last else b"NCHW")]
    first = [x, sizes, const("w", weights), op("conv", kind, *inputs, **attrs)]
    assert_folds([*first, *behind], {kind, "BiasAdd"})
    behind = [node.replace(inputs=["biased" if ref == "conv" else ref for ref in node.inputs]) for node in behind]
    assert_folds([*first, *bias, *behind], {kind, "BiasAdd"})


@pytest.mark.parametrize("padding", [b"SAME", b"VALID"])
def test_before_a_convolution_over_volumes(padding: bytes) -> None:
    x = Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape((2, 4, 5, 4, 4))})
    conv = op("conv", "Conv3D", "bn/add_1", "w", strides=(1,) * 5, padding=padding)
    kept = {"Conv3D", "BiasAdd"} if padding == b"VALID" else {"Conv3D", "Mul", "AddV2"}
    nodes = [x, *spelled("x", 4), const("w", numbers(3, 2, 3, 4, 6)), conv]
    assert_folds(nodes, kept, "fold_constants fold_batch_norms")
