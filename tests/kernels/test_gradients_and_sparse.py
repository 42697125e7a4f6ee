"""Gradients, sparse ops, sets, stateless random ops: bad inputs, distributions, shapes, what no golden holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.cases import from_list
from pocketgraph.errors import PocketgraphError, RunError
from pocketgraph.graph import Node, Shape
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels import evaluate
from pocketgraph.kernels.shapes import rules
from pocketgraph.kernels.shapes.algebra import UnknownRankError
from pocketgraph.runtime import Session

F, I, L = np.float32, np.int32, np.int64  # noqa: E741
POOL = {"ksize": (1, 2, 2, 1), "strides": (1, 2, 2, 1), "padding": b"VALID"}
VOLUME = {"ksize": (1, 2, 2, 2, 1), "strides": (1, 2, 2, 2, 1), "padding": b"VALID"}
DILATION = {"strides": (1, 1, 1, 1), "rates": (1, 1, 1, 1), "padding": b"SAME"}


def a(values: Any, dtype: Any = F) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=dtype)


def run(op: str, *inputs: Any, **attrs: Any) -> tuple[Any, ...]:
    return evaluate(Node("it", op, (), attrs), inputs)


PLACES, VALUES, SHAPE = a([[0, 1], [2, 0]], L), a([1, 2]), a([3, 4], L)
OUTSIDE = a([[0, 1], [3, 0]], L)
KEY, COUNTER = a([1], np.uint64), a([0, 0], np.uint64)
SCORES, LABELS = np.zeros((4, 1, 3), F), a([[0, 0], [0, 1]], L)
CROP = np.ones((1, 2, 2, 1), F), np.zeros((1, 4), F)

REFUSED: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = [
    ("where pooling gives", "MaxPoolGradGrad", (np.ones((1, 4, 4, 1), F),) * 2 + (np.ones((1, 2, 2, 1), F),), POOL),
    ("where pooling gives", "MaxPool3DGrad", (np.ones((1, 4, 4, 4, 1), F),) * 3, VOLUME),
    (
        "outside", "MaxPoolGradWithArgmax",
        (np.ones((1, 2, 2, 1), F), np.ones((1, 1, 1, 1), F), np.full((1, 1, 1, 1), 4, L)), POOL,
    ),
    (
        "do not fit", "Dilation2DBackpropInput",
        (np.ones((1, 3, 3, 2), F), np.ones((2, 2, 1), F), np.ones((1, 3, 3, 2), F)), DILATION,
    ),
    ("box_index", "CropAndResizeGradImage", (*CROP, a([1], I), a([1, 3, 3, 1], I)), {"T": FLOAT}),
    ("not 'area'", "CropAndResizeGradBoxes", (CROP[0], CROP[0], CROP[1], a([0], I)), {"method": b"area"}),
    ("do not fit", "CropAndResizeGradBoxes", (CROP[0], CROP[0], np.zeros((2, 4), F), a([0], I)), {}),
    ("would take", "CropAndResizeGradImage", (*CROP, a([0], I), a([1, 1 << 20, 1 << 20, 1], I)), {"T": FLOAT}),
    ("do not fit", "ResizeBicubicGrad", (np.ones((1, 2, 2, 1), F), np.ones((2, 2, 2, 1), F)), {}),
    ("copies", "TileGrad", (np.ones(5, F), a([2], I)), {}),
    (
        "do not fit", "BatchNormWithGlobalNormalizationGrad",
        (np.ones((1, 2, 2, 3), F), *[np.ones(2, F)] * 3, np.ones((1, 2, 2, 3), F)),
        {"variance_epsilon": 0.1, "scale_after_normalization": True},
    ),
    ("out of range|not in", "SparseSegmentSumGrad", (np.ones((2, 1), F), a([5], I), a([0], I), a(3, I)), {}),
    ("same size", "SparseSegmentMeanGradV2", (np.ones((2, 1), F), a([0, 1], I), a([0], I), a(3, I)), {}),
    ("outside the dense shape", "SparseAdd", (OUTSIDE, VALUES, SHAPE, PLACES, VALUES, SHAPE, a(0)), {}),
    ("do not fit", "SparseAdd", (PLACES, VALUES, SHAPE, PLACES, VALUES, a([3, 5], L), a(0)), {}),
    ("do not fit", "SparseAdd", (PLACES, a([1]), SHAPE, PLACES, VALUES, SHAPE, a(0)), {}),
    ("Concat dimension", "SparseConcat", (PLACES, PLACES, VALUES, VALUES, SHAPE, SHAPE), {"N": 2, "concat_dim": 2}),
    ("do not fit", "SparseConcat", (PLACES, PLACES, VALUES, VALUES, SHAPE, a([3, 5], L)), {"N": 2, "concat_dim": 0}),
    ("does not fit", "SparseSlice", (PLACES, VALUES, SHAPE, a([0], L), a([1, 1], L)), {}),
    ("num_split", "SparseSplit", (a(0, L), PLACES, VALUES, SHAPE), {"num_split": 4}),
    ("Invalid reduction", "SparseReduceSum", (PLACES, VALUES, SHAPE, a([2], I)), {}),
    ("would take", "SparseReduceMax", (PLACES, VALUES, a([1 << 40, 4], L), a([1], I)), {}),
    ("rank >= 2", "SparseSoftmax", (a([[0]], L), a([1]), a([3], L)), {}),
    ("dense to sparse", "SparseDenseCwiseMul", (PLACES, VALUES, SHAPE, np.ones((2, 4), F)), {}),
    ("division by zero", "SparseDenseCwiseDiv", (PLACES, a([1, 2], I), SHAPE, a(0, I)), {}),
    ("reverse index", "SparseFillEmptyRowsGrad", (a([5], L), a([1, 2])), {}),
    ("no set operation", "DenseToDenseSetOperation", (np.ones((1, 2), I),) * 2, {"set_operation": b"a+b"}),
    ("rows", "DenseToDenseSetOperation", (np.ones((1, 2), I), np.ones((2, 2), I)), {"set_operation": b"a-b"}),
    ("rank 1", "DenseToDenseSetOperation", (np.ones(2, I),) * 2, {"set_operation": b"union"}),
    ("out of order", "SetSize", (PLACES[::-1].copy(), a([1, 2], I), SHAPE), {}),
    ("follows padding", "CTCLoss", (SCORES, LABELS, a([2, 0], I), a([4], I)), {}),
    ("is negative", "CTCLoss", (SCORES, LABELS, a([0, -1], I), a([4], I)), {}),
    ("Not enough time", "CTCLoss", (SCORES, LABELS, a([0, 1], I), a([1], I)), {}),
    ("required: 2, available: 1", "CTCLoss", (SCORES, LABELS, a([0, 2], I), a([1], I)), {}),
    (
        "required: 2, available: 1", "CTCLoss", (SCORES, LABELS, a([0, 0], I), a([1], I)),
        {"preprocess_collapse_repeated": True},
    ),
    ("required: 2, available: 0", "CTCLoss", (SCORES, LABELS, a([0, 2], I), a([0], I)), {}),
    ("Labels length is zero", "CTCLoss", (SCORES, LABELS[:0], a([], I), a([1], I)), {}),
    ("sequence lengths", "CTCLoss", (SCORES, LABELS, a([0, 1], I), a([5], I)), {}),
    ("outside the dense shape", "CTCLoss", (SCORES, a([[1, 0]], L), a([0], I), a([4], I)), {}),
    ("input encoding", "UnicodeDecode", (a([b"a"], object),), {"input_encoding": b"no-such"}),
    ("Invalid formatting", "UnicodeDecode", (a([b"\xff"], object),), {"input_encoding": b"UTF-8", "errors": b"strict"}),
    ("output encoding", "UnicodeEncode", (a([65], I), a([0, 1], I)), {"output_encoding": b"KOI8-R"}),
    ("out of range", "UnicodeEncode", (a([-1], I), a([0, 1], I)), {"output_encoding": b"UTF-8", "errors": b"strict"}),
    ("do not cut", "UnicodeEncode", (a([65], I), a([0, 2], I)), {"output_encoding": b"UTF-8"}),
    (
        "ngram_widths", "StringNGrams", (a([b"a"], object), a([0, 1], L)),
        {
            "separator": b"", "ngram_widths": (0,), "left_pad": b"", "right_pad": b"", "pad_width": 0,
            "preserve_short_sequences": False,
        },
    ),
    ("Unsupported algorithm id: 2", "StatelessRandomUniformV2", (a([2], I), KEY, COUNTER, a(2, I)), {}),
    ("a key of 1", "StatelessRandomNormalV2", (a([2], I), COUNTER, COUNTER, a(1, I)), {}),
    ("minval < maxval", "StatelessRandomUniformIntV2", (a([2], I), KEY, COUNTER, a(1, I), a(3, I), a(3, I)), {}),
    ("would take", "StatelessRandomUniformFullInt", (a([1 << 30, 9], I), a([1, 2], I)), {}),
    ("do not fit", "StatelessRandomGammaV2", (a([2], I), a([1, 2], I), a([1, 2, 3])), {}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "attrs"), [("MaxPoolGradGrad", POOL), ("MaxPool3DGradGrad", VOLUME)])
def test_second_gradients_of_pools_of_no_images_are_empty(op: str, attrs: dict[str, Any]) -> None:
    images, pooled = ((0, *[size] * (len(attrs["ksize"]) - 2), 3) for size in (4, 2))
    (found,) = run(op, np.ones(images, F), np.ones(pooled, F), np.ones(images, F), **attrs)
    assert found.shape == pooled
    assert found.dtype == F


@pytest.mark.parametrize(("text", "op", "inputs", "attrs"), REFUSED, ids=[f"{n}-{r[1]}" for n, r in enumerate(REFUSED)])
def test_what_does_not_fit_is_refused_in_one_line(
    text: str, op: str, inputs: tuple[Any, ...], attrs: dict[str, Any]
) -> None:
    with pytest.raises(PocketgraphError, match=text) as caught:
        run(op, *inputs, **attrs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shape", [(4, 0), (0, 3), (2, 0, 3), (0, 0)])
def test_the_gradient_of_a_bias_of_nothing_is_zeros(shape: tuple[int, ...]) -> None:
    (found,) = evaluate(Node("y", "BiasAddGrad"), [np.zeros(shape, np.float32)])
    np.testing.assert_array_equal(found, np.zeros(shape[-1:], np.float32), strict=True)


def test_the_gradient_of_copies_is_their_sum() -> None:
    """TensorFlow itself can no longer run this op: its kernels ask for an attribute that the op has not."""
    grad = np.arange(24, dtype=F).reshape(4, 6)
    (found,) = run("TileGrad", grad, a([2, 3], I))
    np.testing.assert_array_equal(found, sum(grad[i : i + 2, j : j + 2] for i in (0, 2) for j in (0, 2, 4)))
    (same,) = run("TileGrad", a(3), np.zeros(0, I))
    assert same == 3


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "mean", "variance"),
    [
        ("StatelessRandomGammaV2", (a([9000], I), a([1, 2], I), a(3)), {}, 3, 3),
        ("StatelessRandomGammaV3", (a([9000], I), KEY, COUNTER, a(1, I), a(3)), {}, 3, 3),
        ("StatelessRandomPoisson", (a([9000], I), a([1, 2], I), a(4)), {"dtype": FLOAT}, 4, 4),
        ("StatelessRandomBinomial", (a([9000], I), a([1, 2], I), a(10), a(0.3)), {"dtype": INT32}, 3, 2.1),
    ],
)
def test_draws_have_the_mean_and_the_variance_of_their_distribution_and_repeat(
    op: str, inputs: tuple[Any, ...], attrs: dict[str, Any], mean: float, variance: float
) -> None:
    (found,) = run(op, *inputs, **attrs)
    (again,) = run(op, *inputs, **attrs)
    np.testing.assert_array_equal(found, again)
    assert abs(found.mean() - mean) < 0.1
    assert abs(found.var() - variance) < 0.3


@pytest.mark.parametrize("source", ["gradients", "sparse_tensors", "stateless", "unicode"])
@pytest.mark.parametrize("values", [True, False], ids=["known", "unknown"])
def test_shape_rules_allow_what_tensorflow_gave(source: str, values: bool) -> None:
    for case in from_list(source):
        rule = rules.SHAPE_RULES.row(case.node.op)
        assert rule is not None, case.node.op
        known = tuple(i if values and i.dtype.kind in "iu" else None for i in case.inputs)
        for shapes in ([Shape(i.shape) for i in case.inputs], [Shape(None)] * len(case.inputs)):
            try:
                found = rule(rules.ShapeCall(case.node, tuple(shapes), known))
            except UnknownRankError:
                assert all(shape.dims is None for shape in shapes)
                continue
            found = [found] if isinstance(found, Shape) else list(found)
            assert len(found) == len(case.expected), case.node.name
            for shape, expected in zip(found, case.expected, strict=True):
                assert shape.fits(Shape(expected.shape)), (case.node.name, shape, expected.shape)


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize("kind", ["variant", "string"])
def test_sparse_tensors_serialized_and_back(kind: str, engine: str | None) -> None:
    """Two batches of two, as TensorFlow's own test has them, and the rows of one."""
    graph = parse(f"""
        indices = Const(int64 [[0, 0], [1, 0], [1, 3]])
        values = Const(int32 [0, 10, 13])
        sizes = Const(int64 [2, 6])
        one = SerializeSparse(indices, values, sizes, T=int32, out_type={kind})
        two = Pack(one, one, N=2, axis=0, T={kind})
        four = Pack(two, two, N=2, axis=0, T={kind})
        back = DeserializeSparse(four, dtype=int32, Tserialized={kind})
        rows = SerializeManySparse(indices, values, sizes, T=int32, out_type={kind})
        again = DeserializeSparse(rows, dtype=int32, Tserialized={kind})
        wrong = DeserializeSparse(rows, dtype=float, Tserialized={kind})
    """)
    with Session(graph, engine=engine) as session:
        places, values, sizes = session.run(["back", "back:1", "back:2"])
        each = [[0, 0], [1, 0], [1, 3]]
        assert places.tolist() == [[a, b, *place] for a in (0, 1) for b in (0, 1) for place in each]
        assert values.tolist() == [0, 10, 13] * 4
        assert sizes.tolist() == [2, 2, 2, 6]
        again = session.run(["again", "again:1", "again:2"])
        assert [value.tolist() for value in again] == [each, [0, 10, 13], [2, 6]]
        with pytest.raises(RunError):
            session.run("wrong")
