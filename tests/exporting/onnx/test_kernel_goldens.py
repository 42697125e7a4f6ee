"""Single nodes in ONNX Runtime against what TensorFlow gave for them: all ops that have a converter."""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import pytest

from onnx_runs import assert_near, exported, run, single
from pocketgraph.exporting.onnx.converter_table import CONVERTERS
from pocketgraph.exporting.programs import LackingError
from pocketgraph.graph import Shape

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "kernels"))
from cases import FOLDER, Case, cases  # noqa: E402

GROUPS = sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.pb.gz"))
DRAWN = ("Random", "Multinomial", "Stateless")
NO_STATISTICS = "what it keeps for its gradient has no values when it does not train"
LEFT_OUT = {
    "quantized/FakeQuantWithMinMaxArgs_0": "halves between two codes go to the even one, in TensorFlow upwards",
    "quantized/FakeQuantWithMinMaxArgs_1": "halves between two codes go to the even one, in TensorFlow upwards",
    "array/Range_3": "how many steps of a float32 fit is rounded otherwise",
    "array/Range_6": "how many steps of a float32 fit is rounded otherwise",
    "text/StringUpper_1": "other letters than a to z",
    "math/Sum_13": "120,000 values of both signs that nearly cancel",
    "nn/FusedBatchNorm_0": NO_STATISTICS,
    "nn/FusedBatchNormV2_0": NO_STATISTICS,
    "nn/FusedBatchNormV2_1": NO_STATISTICS,
    "nn/FusedBatchNormV2_2": NO_STATISTICS,
    "nn/MaxPoolWithArgmax_10": "whole numbers of more than 53 bits",
    "math/SegmentMean_2": "sums beyond 64 bits",
    "array/UniqueWithCounts_2": "zeros of two signs are one value",
}
"""The cases of which ONNX Runtime makes something else, and why."""


def is_plain(case: Case) -> bool:
    """Whether all values are finite numbers of a type that ONNX Runtime takes from NumPy, and there are some."""
    for value in (*case.inputs, *case.expected):
        array = np.asarray(value)
        if array.size == 0 or array.dtype.kind in "c" or array.dtype.name in ("bfloat16", "int4", "uint4"):
            return False
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return False
        if array.dtype.name.startswith("float8"):
            return False
    return True


def is_exact(case: Case) -> bool:
    """Whether a result is said by the op; a number outside of an integer's range becomes what the processor makes."""
    if case.node.op.startswith(DRAWN) or "Grad" in case.node.op:
        return False
    if case.node.op == "Cast" and case.inputs[0].dtype.kind == "f" and case.expected[0].dtype.kind in "iu":
        limits, values = np.iinfo(case.expected[0].dtype), case.inputs[0].astype(np.float64)
        return bool((values >= limits.min).all() and (values <= limits.max).all())
    return True


@pytest.mark.parametrize("group", GROUPS)
def test_equal_or_refused(group: str) -> None:
    """All inputs fed, and the floats alone; what is left out differs in one way or both, or it need not be left out."""
    wrong: dict[str, str] = {}
    for case in cases(group):
        if CONVERTERS.row(case.node.op) is None or not is_plain(case) or not is_exact(case):
            continue
        floats = [value.dtype.kind == "f" for value in case.inputs]
        is_half = any(np.asarray(value).dtype == np.float16 for value in (*case.inputs, *case.expected))
        for fed in ([True] * len(floats), floats):
            graph, feeds = single(case.node, case.inputs, fed)
            try:
                proto = exported(graph, [f"case:{port}" for port in range(len(case.expected))])
                for actual, expected in zip(run(proto, feeds), case.expected, strict=True):
                    assert_near(actual, np.asarray(expected), 5e-3 if is_half else 1e-4)
            except LackingError:
                continue
            except Exception as error:  # ONNX Runtime's own and the checker's too
                wrong[f"{group}/{case.node.name}"] = str(error)[:300]
    assert wrong.keys() == {name for name in LEFT_OUT if name.startswith(f"{group}/")}, wrong


@pytest.mark.parametrize("size", ["known", "fed", "open"])
def test_pictures_are_resized_by_the_weights_of_the_table(size: str) -> None:
    found = [case for group in GROUPS for case in cases(group) if case.node.op == "ResizeBicubic" and is_plain(case)]
    assert len(found) > 4
    for case in found:
        graph, feeds = single(case.node, case.inputs, [True, size != "known"])
        if size == "open":
            graph = graph.map_nodes(
                lambda node: (
                    node.replace(attrs={**node.attrs, "shape": Shape([None] * 4)}) if node.name == "in0" else node
                )
            )
        for actual, expected in zip(run(exported(graph, ["case:0"]), feeds), case.expected, strict=True):
            assert_near(actual, np.asarray(expected), 1e-5)


def test_batch_norms_in_training_move_their_averages_by_the_factor() -> None:
    norms = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
    found = [case for case in cases("nn") if case.node.op in norms and case.node.attrs["is_training"]]
    found = [case for case in found if is_plain(case) and case.inputs[0].dtype == np.float32]
    assert {case.node.attrs.get("exponential_avg_factor", 1.0) for case in found} >= {0.0, 0.25}
    for case in found:
        graph, feeds = single(case.node, case.inputs, [True] * 5)
        given = run(exported(graph, [f"case:{port}" for port in range(5)]), feeds)
        for actual, expected in zip(given, case.expected[:5], strict=True):
            assert_near(actual, expected, 1e-5)


LAYERS = (
    "Abs", "Add", "AddV2", "AvgPool", "BiasAdd", "ConcatV2", "Conv2D", "DepthwiseConv2dNative", "Div", "Elu", "Exp",
    "ExpandDims", "GatherV2", "LeakyRelu", "LogSoftmax", "MatMul", "Max", "MaxPool", "Maximum", "Mean", "Minimum",
    "Mul", "Neg", "Pack", "Pad", "Prod", "RealDiv", "Relu", "Relu6", "Reshape", "Rsqrt", "Sigmoid", "Softmax",
    "Softplus", "Split", "Sqrt", "Square", "Squeeze", "StridedSlice", "Sub", "Sum", "Tanh", "Tile", "Transpose",
)  # fmt: skip
"""Ops of which networks are made; a list of the test's own, as no trait says which ONNX must have."""


def test_what_networks_are_made_of_is_there() -> None:
    """Nearly no golden case of these ops is refused."""
    refused = []
    total = 0
    for group in GROUPS:
        for case in cases(group):
            if case.node.op not in LAYERS or not is_plain(case) or not is_exact(case):
                continue
            graph, _ = single(case.node, case.inputs, [value.dtype.kind == "f" for value in case.inputs])
            total += 1
            try:
                exported(graph, ["case:0"])
            except LackingError:
                refused.append(case.node.name)
    assert total > 250
    assert len(refused) < 0.05 * total, refused


def test_whole_numbers_at_the_ends_of_their_type_are_divided() -> None:
    numbers = np.array([0, 1, -1, 7, -7, 3, -3, 40_000, 2**31 - 1, -(2**31)], np.int32)
    a, b = (each.reshape(-1) for each in np.meshgrid(numbers, numbers))
    kept = (b != 0) & ~((a == -(2**31)) & (b == -1))
    a, b = a[kept], b[kept]
    size = len(a)
    proto = exported(
        f"""
        a = Placeholder(dtype=int32, shape=[{size}])
        b = Placeholder(dtype=int32, shape=[{size}])
        y = FloorDiv(a, b, T=int32)
        """,
        ["y"],
    )
    wanted = [int(one) // int(other) for one, other in zip(a, b, strict=True)]
    assert run(proto, {"a": a, "b": b})[0].tolist() == wanted
