"""Inputs that do not fit: one clear sentence with the node's name, no crash, no huge memory."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.budgets import limits
from pocketgraph.errors import MissingKernelError, PocketgraphError, RunError
from pocketgraph.graph import DType, Node, Shape
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels import KERNELS, Context, evaluate

F, I, U = np.float32, np.int32, np.uint8  # noqa: E741


def a(values: Any, dtype: Any = F) -> np.ndarray:
    return np.array(values, dtype=dtype)


ONES = np.ones
ALONG = {"strides": (1, 1, 1, 1), "padding": b"SAME"}

CUT_WAV = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0" + struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16) + b"data\x64\0\0\0abcd"
FAST_WAV = CUT_WAV.replace(struct.pack("<II", 8000, 16000), b"\xff\xff\xff\xff\xfe\xff\xff\xff")

REFUSED: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = [
    ("do not fit", "Add", (ONES(3, F), ONES(4, F)), {}),
    ("different types", "Mul", (ONES(3, F), ONES(3, I)), {}),
    ("division by zero", "FloorDiv", (a([1], I), a([0], I)), {}),
    ("division by zero", "FloorMod", (a([1], I), a([0], I)), {}),
    ("negative integer powers", "Pow", (a([2], I), a([-1], I)), {}),
    ("do not fit", "Select", (a([True], bool), ONES(3, F), ONES(2, F)), {}),
    ("does not choose", "Select", (a([True, False], bool), ONES((3, 2), F), ONES((3, 2), F)), {}),
    ("Invalid reduction dimension 2", "Sum", (ONES((2, 2), F), a([2], I)), {}),
    ("contain one twice", "Max", (ONES((2, 2), F), a([0, -2], I)), {}),
    ("outside", "ArgMax", (ONES(3, F), a(1, I)), {}),
    ("Reduction axis 0 is empty", "ArgMax", (ONES((0, 2), F), a(0, I)), {}),
    ("size-incompatible", "MatMul", (ONES((2, 3), F), ONES((2, 3), F)), {}),
    ("a must be a matrix, its shape is", "MatMul", (ONES(3, F), ONES((2, 3), F)), {}),
    ("same batch shape", "BatchMatMul", (ONES((2, 3, 3), F), ONES((1, 3, 3), F)), {}),
    ("requested shape", "Reshape", (ONES(6, F), a([4], I)), {}),
    ("do not divide", "Reshape", (ONES(6, F), a([4, -1], I)), {}),
    ("Only one input size may be -1", "Reshape", (ONES(6, F), a([-1, -1], I)), {}),
    ("Can not squeeze dim", "Squeeze", (ONES((1, 2), F),), {"squeeze_dims": (1,)}),
    ("no order of 2 dimensions", "Transpose", (ONES((1, 2), F), a([0, 0], I)), {}),
    ("no permutation", "InvertPermutation", (a([0, 2], I),), {}),
    ("Expected begin", "Slice", (ONES(4, F), a([2], I), a([3], I)), {}),
    ("out of bounds", "StridedSlice", (ONES(5, F), a([7], I), a([8], I), a([1], I)), {"shrink_axis_mask": 1}),
    ("non-zero", "StridedSlice", (ONES(5, F), a([0], I), a([2], I), a([0], I)), {}),
    ("too many indices", "StridedSlice", (ONES(5, F), a([0, 0], I), a([1, 1], I), a([1, 1], I)), {}),
    ("Multiple ellipses", "StridedSlice", (ONES(5, F), *[a([1, 1], I)] * 3), {"ellipsis_mask": 3}),
    ("do not fit", "ConcatV2", (ONES((2, 2), F), ONES((3, 3), F), a(0, I)), {}),
    ("do not fit", "Pack", (ONES(2, F), ONES(3, F)), {}),
    ("must equal 3", "Unpack", (ONES(2, F),), {"num": 3}),
    ("equal parts", "Split", (a(0, I), ONES(5, F)), {"num_split": 2}),
    ("does not split", "SplitV", (ONES(5, F), a([2, 2], I), a(0, I)), {"num_split": 2}),
    ("multiples", "Tile", (ONES(2, F), a([1, 1], I)), {}),
    ("out of memory", "Tile", (ONES(2, F), a([2**31 - 1], I)), {}),
    ("out of memory", "Fill", (a([2**31 - 1, 2**31 - 1], I), a(0.0)), {}),
    ("cannot have the shape", "Fill", (a([-1], I), a(0.0)), {}),
    ("out of memory", "BroadcastTo", (ONES(1, F), a([2**30, 2**30], I)), {}),
    ("out of memory", "OneHot", (ONES(100, I), a(2**31 - 1, I), a(1.0), a(0.0)), {}),
    ("out of memory", "Range", (a(0, np.int64), a(2**60, np.int64), a(1, np.int64)), {}),
    ("delta != 0", "Range", (a(0, I), a(1, I), a(0, I)), {}),
    ("does not go by", "Range", (a(0, I), a(1, I), a(-1, I)), {}),
    ("Requires num > 0", "LinSpace", (a(0.0), a(1.0), a(0, I)), {}),
    ("out of memory", "LinSpace", (a(0.0), a(1.0), a(2**40, np.int64)), {}),
    (r"indices\[1\] = 5 is not in \[0, 3\)", "GatherV2", (ONES(3, F), a([0, 5], I), a(0, I)), {}),
    (r"= -1 is not in \[0, 3\)", "Gather", (ONES(3, F), a([-1], I)), {}),
    ("is not in", "GatherNd", (ONES((2, 2), F), a([[0, 2]], I)), {}),
    ("do not point into", "GatherNd", (ONES(2, F), a([[0, 1]], I)), {}),
    ("do not point into", "GatherNd", (a(3, F), a([], I)), {}),
    ("do not point into", "ScatterNd", (a([[]], I), a([3], F), a([], I)), {}),
    ("point at no rows", "TensorScatterAdd", (ONES(2, F), a([0], I), a(3, F)), {}),
    ("point at no rows", "TensorScatterUpdate", (ONES(2, F), a([], I), ONES(2, F)), {}),
    ("updates of shape", "ScatterNd", (a([[0]], I), ONES(2, F), a([4], I)), {}),
    ("out of memory", "ScatterNd", (a([[0]], I), ONES(1, F), a([2**31 - 1, 1000], I)), {}),
    ("at least 4 columns", "TopKV2", (ONES(3, F), a(4, I)), {}),
    ("x must be a vector", "Unique", (ONES((2, 2), F),), {}),
    ("Fusion is not implemented", "_FusedConv2D", (ONES((1, 4, 4, 3), F), ONES((2, 2, 3, 1), F), ONES(1, F)),
     {**ALONG, "num_args": 1, "fused_ops": (b"BiasAdd", b"What")}),
    ("takes 4 vectors", "_FusedConv2D", (ONES((1, 4, 4, 3), F), ONES((2, 2, 3, 1), F), ONES(1, F)),
     {**ALONG, "num_args": 1, "fused_ops": (b"FusedBatchNorm",)}),
    ("more paths than the beam width", "CTCBeamSearchDecoder", (ONES((3, 1, 4), F), a([3], I)),
     {"beam_width": 2, "top_paths": 3}),
    ("Less leaves", "CTCBeamSearchDecoder", (ONES((3, 1, 4), F), a([0], I)), {"beam_width": 9, "top_paths": 2}),
    ("do not fit", "CTCBeamSearchDecoder", (ONES((3, 1, 4), F), a([4], I)), {"beam_width": 2, "top_paths": 1}),
    ("do not fit", "Conv2D", (ONES((1, 4, 4, 3), F), ONES((2, 2, 2, 1), F)), ALONG),
    ("input must be 4-dimensional", "Conv2D", (ONES((4, 4, 3), F), ONES((2, 2, 3, 1), F)), ALONG),
    ("no padding is called", "Conv2D", (ONES((1, 4, 4, 3), F), ONES((2, 2, 3, 1), F)), {**ALONG, "padding": b"WHAT"}),
    ("not one of NHWC", "Conv2D", (ONES((1, 4, 4, 3), F), ONES((2, 2, 3, 1), F)), {**ALONG, "data_format": b"HWNC"}),
    ("slides over nothing", "Conv2D", (ONES((1, 4, 4, 3), F), ONES((2, 2, 3, 1), F)),
     {**ALONG, "strides": (1, 0, 1, 1)}),
    ("does not fit", "Conv2D", (ONES((1, 2, 2, 1), F), ONES((5, 5, 1, 1), F)), {**ALONG, "padding": b"VALID"}),
    ("batch or the channels", "Conv2D", (ONES((1, 4, 4, 3), F), ONES((2, 2, 3, 1), F)),
     {**ALONG, "strides": (2, 1, 1, 1)}),
    ("explicit_paddings", "Conv2D", (ONES((1, 4, 4, 3), F), ONES((2, 2, 3, 1), F)), {**ALONG, "padding": b"EXPLICIT"}),
    ("out_backprop", "Conv2DBackpropInput", (a([1, 9, 9, 1], I), ONES((2, 2, 1, 1), F), ONES((1, 4, 4, 1), F)), ALONG),
    ("out_backprop", "Conv2DBackpropInput",
     (a([1, 2**20, 2**20, 1], I), ONES((2, 2, 1, 1), F), ONES((1, 4, 4, 1), F)), ALONG),
    ("batch dimension", "MaxPool", (ONES((2, 4, 4, 1), F),),
     {"ksize": (2, 1, 1, 1), "strides": (1, 1, 1, 1), "padding": b"SAME"}),
    ("do not fit", "BiasAdd", (ONES((2, 3), F), ONES(2, F)), {}),
    ("do not fit", "FusedBatchNorm", (ONES((1, 2, 2, 3), F), *[ONES(2, F)] * 4), {"is_training": False}),
    ("non-negative", "Pad", (ONES(2, F), a([[-1, 0]], I)), {}),
    ("out of memory", "Pad", (ONES((2, 2), F), a([[0, 2**31 - 1], [9, 9]], I)), {}),
    ("too large to mirror", "MirrorPad", (ONES(2, F), a([[2, 0]], I)), {"mode": b"REFLECT"}),
    ("not divisible", "SpaceToBatchND", (ONES((1, 3, 1), F), a([2], I), a([[0, 0]], I)), {}),
    ("do not divide", "SpaceToDepth", (ONES((1, 3, 4, 1), F),), {"block_size": 2}),
    ("do not make blocks", "DepthToSpace", (ONES((1, 3, 4, 3), F),), {"block_size": 2}),
    ("cannot be resized", "ResizeBilinear", (ONES((1, 3, 4, 3), F), a([0, 2], I)), {}),
    ("out of memory", "ResizeBilinear", (ONES((1, 3, 4, 3), F), a([2**20, 2**20], I)), {}),
    ("box_index", "CropAndResize", (ONES((1, 3, 4, 3), F), ONES((1, 4), F), a([1], I), a([2, 2], I)), {}),
    ("must be in", "NonMaxSuppressionV2", (ONES((1, 4), F), ONES(1, F), a(1, I), a(2.0)), {}),
    ("must be larger", "QuantizeV2", (ONES(2, F), a(1.0), a(0.0)), {"T": DType.named("quint8")}),
    ("Mode string must be", "Dequantize", (ONES(2, U), a(0.0), a(1.0)), {"mode": b"X"}),
    ("smaller than max", "FakeQuantWithMinMaxArgs", (ONES(2, F),), {"min": 1.0, "max": 1.0}),
    ("num_bits must be", "FakeQuantWithMinMaxArgs", (ONES(2, F),), {"num_bits": 20}),
    ("Inf and NaN", "CheckNumerics", (a([np.inf, np.nan]),), {"message": b"here"}),
    ("not compatible", "EnsureShape", (ONES(2, F),), {"shape": Shape([3])}),
    ("last dimension must be 2", "Bitcast", (ONES(3, F),), {"type": DType.named("double")}),
    ("neither reads nor makes strings", "Cast", (ONES(2, F),), {"DstT": DType.named("string")}),
    ("not increasing", "SegmentSum", (ONES(3, F), a([1, 0, 0], I)), {}),
    ("is not in", "UnsortedSegmentSum", (ONES(3, F), a([1, 0, 9], I), a(2, I)), {}),
    ("outside the valid range", "SparseSoftmaxCrossEntropyWithLogits", (ONES((1, 2), F), a([2], I)), {}),
    ("equal length strides", "QuantizedConv2D", (ONES((1, 4, 4, 1), U), ONES((1, 1, 1, 1), U), *[a(0.0), a(1.0)] * 2),
     {"strides": (1, 1, 2, 1), "padding": b"SAME"}),
    ("must be a matrix", "QuantizedMatMul", (ONES(4, U), ONES((1, 1), U), *[a(0.0), a(1.0)] * 2), {}),
    ("Header mismatch", "DecodeWav", (np.array(b"RIFX", object),), {}),
    ("No data chunk", "DecodeWav", (np.array(b"RIFF    WAVE", object),), {}),
    ("announces 100 bytes of samples and has 4", "DecodeWav", (np.array(CUT_WAV, object),), {}),
    ("2 a sample and 8589934590 a second, but got 2 and 4294967294", "DecodeWav", (np.array(FAST_WAV, object),), {}),
    ("does not reach", "Mfcc", (ONES((1, 1, 9), F), a(4000, I)), {}),
    ("Need minval < maxval", "RandomUniformInt", (a([2], I), a(3, I), a(3, I)), {}),
    ("out of memory", "RandomUniform", (a([2**31 - 1, 9], I),), {"dtype": DType.named("float")}),
    ("has no attribute 'padding'", "MaxPool", (ONES((1, 1, 1, 1), F),), {"ksize": (1,) * 4, "strides": (1,) * 4}),
]  # fmt: skip


@pytest.mark.parametrize(("said", "op", "inputs", "attrs"), REFUSED, ids=[f"{r[1]}-{r[0][:12]}" for r in REFUSED])
def test_refused(said: str, op: str, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    with limits(memory=1 << 32), pytest.raises(RunError, match=said) as caught:
        evaluate(Node("that/node", op, (), attrs), inputs)
    assert "\n" not in str(caught.value)


def test_the_node_is_named() -> None:
    with pytest.raises(RunError, match=r"node 'that/node': .*float32\[3\].*float32\[4\]"):
        evaluate(Node("that/node", "Add"), (ONES(3, F), ONES(4, F)))


def test_an_op_without_kernel() -> None:
    assert "NobodyKnowsThis" not in KERNELS
    with pytest.raises(MissingKernelError, match="NobodyKnowsThis"):
        evaluate(Node("n", "NobodyKnowsThis"), ())


def test_assert() -> None:
    node = Node("check", "Assert", (), {"summarize": 2})
    assert evaluate(node, (a(True, bool), a([1]))) == ()
    with pytest.raises(PocketgraphError, match=r"node 'check': assertion failed: \[bad\] \[1.0 2.0...\]"):
        evaluate(node, (a(False, bool), np.array([b"bad"], object), a([1, 2, 3])))


def test_abort_ends_the_run() -> None:
    with pytest.raises(RunError, match=r"node 'stop': Abort_op intentional failure; enough"):
        evaluate(Node("stop", "Abort", (), {"error_msg": b"enough"}), ())


def test_ref_select_takes_the_one_that_is_named() -> None:
    assert evaluate(Node("s", "RefSelect"), (a(1, I), "first", "second")) == ("second",)
    with pytest.raises(RunError, match=r"Index must be in the range \[0, 2\) but got 2"):
        evaluate(Node("s", "RefSelect"), (a(2, I), "first", "second"))


def test_random_ops_go_on_within_a_session_and_start_again_in_another() -> None:
    node = Node("r", "RandomUniform", (), {"dtype": DType.named("float"), "seed": 1, "seed2": 2})
    state: dict[str, Any] = {}
    first, second = (evaluate(node, (a([4], I),), Context(node, state))[0] for _ in range(2))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, evaluate(node, (a([4], I),))[0])
    free = Node("r", "RandomUniform", (), {"dtype": DType.named("float")})
    assert not np.array_equal(evaluate(free, (a([4], I),))[0], evaluate(free, (a([4], I),))[0])
    same = [evaluate(free, (a([4], I),), Context(free, {}, {}, np.random.default_rng(5)))[0].tolist() for _ in range(2)]
    assert same[0] == same[1]


@pytest.mark.parametrize(
    ("op", "mean", "deviation"),
    [("RandomUniform", 0.5, 12**-0.5), ("RandomStandardNormal", 0.0, 1.0), ("TruncatedNormal", 0.0, 0.8796)],
)
def test_random_numbers_have_the_right_distribution(op: str, mean: float, deviation: float) -> None:
    node = Node("r", op, (), {"dtype": DType.named("float"), "seed": 7})
    drawn = evaluate(node, (a([20000], I),))[0]
    assert abs(drawn.mean() - mean) < 0.03
    assert abs(drawn.std() - deviation) < 0.02
    assert np.abs(drawn).max() < {"RandomUniform": 1, "TruncatedNormal": 2, "RandomStandardNormal": 6}[op]


@pytest.mark.parametrize("engine", ["reference", None])
def test_a_node_behind_right_ones_of_its_op_that_lacks_an_input(engine: str | None) -> None:
    text = """
        x = Placeholder(dtype=float)
        both = AddN(x, x, T=float, N=2)
        more = AddN(both, x, T=float, N=3)
        y = Relu(more, T=float)
    """
    with Session(parse(text), engine=engine) as session, pytest.raises(RunError) as caught:
        session.run(["y"], {"x": np.float32(3)})
    assert "the AddN takes 3 inputs (inputs: N=3), not 2" in str(caught.value)
    assert "node 'more'" in str(caught.value)


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("Add(x, T=float)", "the Add takes 2 inputs (x, y), not 1"),
        ("Relu(x, x, T=float)", "the Relu takes 1 input (features), not 2"),
        ("MutableDenseHashTableV2(x, key_dtype=float, value_dtype=float)", "2 inputs (empty_key, deleted_key), not 1"),
        ("StatelessRandomUniformV2(n, s, dtype=float)", "takes 4 inputs (shape, key, counter, alg), not 2"),
        ("StatelessRandomUniformV2(n, dtype=float)", "takes 4 inputs (shape, key, counter, alg), not 1"),
        ("AddN(x, x, x, T=float, N=2)", "the AddN takes 2 inputs (inputs: N=2), not 3"),
        ("Pack(x, x, T=float, N=1)", "the Pack takes 1 input (values: N=1), not 2"),
        ("ConcatV2(x, x, n, T=float, N=3)", "the ConcatV2 takes 4 inputs (values: N=3, axis), not 3"),
        ("IdentityN(x, x, T=[float])", "the IdentityN takes 1 input (input: T=1), not 2"),
        (
            "SampleDistortedBoundingBoxV2(n, b, T=int32)",
            "takes 3 inputs (image_size, bounding_boxes, min_object_covered), not 2",
        ),
    ],
)
def test_a_node_that_lacks_an_input(engine: str | None, node: str, said: str) -> None:
    text = f"""
        x = Placeholder(dtype=float)
        n = Const(int32 [4, 4, 3])
        s = Const(int64 [1, 2])
        b = Const(float [[[0.1, 0.1, 0.5, 0.5]]])
        y = {node}
    """
    with Session(parse(text), engine=engine) as session, pytest.raises(RunError) as caught:
        session.run(["y"], {"x": np.float32(3)})
    assert said in str(caught.value)
    assert "node 'y'" in str(caught.value)


@pytest.mark.parametrize(
    "node",
    [
        "AddN(q, r, x, T=float, N=2)",
        "Pack(q, r, T=float, N=1)",
        "ConcatV2(q, r, n, T=float, N=3)",
        "MatMul(q, r, x, T=float)",
        "Identity(q, r, T=float)",
    ],
)
def test_more_inputs_than_the_node_takes_are_refused_in_compiled_parts(node: str) -> None:
    """TensorFlow does not import such a graph."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[2,2])
        w = Const(float [[1,2],[3,4]])
        n = Const(int32 0)
        q = MatMul(x, w, T=float)
        r = Relu(q, T=float)
        y = {node}
    """)
    with Session(graph) as session, pytest.raises(RunError, match=r"node 'y': the .* takes . inputs? \(.*\), not"):
        session.run(["y"], {"x": np.ones((2, 2), np.float32)})
