"""Corners of single ops that random graphs found; what they give and refuse is TensorFlow 2.21's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, Shape
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels import evaluate
from pocketgraph.runtime import Session

NGRAMS: dict[str, Any] = {
    "separator": b"-", "ngram_widths": (2,), "left_pad": b"L", "right_pad": b"R", "pad_width": 1,
    "preserve_short_sequences": False,
}  # fmt: skip


def run(op: str, *inputs: Any, **attrs: Any) -> tuple[Any, ...]:
    return evaluate(Node("node", op, (), attrs), [np.asarray(v) if np.isscalar(v) else v for v in inputs])


def texts(*items: bytes) -> np.ndarray[Any, Any]:
    return np.array(items, object)


def test_numbers_as_far_apart_as_the_tolerance_are_approximately_equal() -> None:
    x, y = np.array([1, 1, np.inf, np.nan, 1], "f4"), np.array([1.5, 2, np.inf, np.nan, 1], "f4")
    np.testing.assert_array_equal(run("ApproximateEqual", x, y, tolerance=0.5)[0], [True, False, False, False, True])
    np.testing.assert_array_equal(run("ApproximateEqual", x, y, tolerance=0.0)[0], [False] * 4 + [True])
    np.testing.assert_array_equal(
        run("ApproximateEqual", np.float32(-np.inf), np.float32(np.inf), tolerance=np.inf)[0], True
    )


@pytest.mark.parametrize("op", ["RealDiv", "Pow", "Xlogy", "BesselY0"])
def test_a_node_by_itself_warns_of_nothing(op: str) -> None:
    x = np.array([0, np.inf, np.nan, -3e38], np.float32)
    with warnings.catch_warnings(), np.errstate(all="warn"):
        warnings.simplefilter("error")
        run(op, *[x] * (1 if op == "BesselY0" else 2))


def test_the_parts_of_complex_numbers_are_clipped_each_by_itself() -> None:
    t = np.array([1 + 2j, -3 - 1j, 0.5 + 0.2j, 9j], "c8")
    found = run("ClipByValue", t, np.complex64(-1 + 1j), np.complex64(1 + 5j))[0]
    np.testing.assert_array_equal(found, np.array([1 + 2j, -1 + 1j, 0.5 + 1j, 5j], "c8"))
    low, high = np.array([-1 + 1j, 0, 0, 0], "c8"), np.array([1 + 5j, 1, 1, 1], "c8")
    np.testing.assert_array_equal(run("ClipByValue", t, low, high)[0], np.array([1 + 2j, 0, 0.5, 0], "c8"))


def test_an_update_without_a_place_changes_nothing() -> None:
    x, one = np.arange(4, dtype="f4").reshape(2, 2), np.array([1], "i4")
    two = np.array([2], "i4")
    np.testing.assert_array_equal(run("TensorStridedSliceUpdate", x, two, two, one, x + 7)[0], x)
    with pytest.raises(RunError, match="broadcast"):
        run("TensorStridedSliceUpdate", x, one - 1, one, one, x)


def test_gradients_of_nearest_neighbours_take_both_ways_of_placing_pixels_at_once() -> None:
    flags = {"align_corners": True, "half_pixel_centers": True}
    for length, size, right in (
        (4, [2, 2], [[0, 6], [24, 90]]),
        (4, [3, 5], [[0, 0, 1, 2, 3], [0, 4, 5, 6, 7], [0, 20, 22, 24, 26]]),
        (3, [2, 4], [[0, 0, 1, 2], [0, 9, 11, 13]]),
    ):
        grads = np.arange(length**2, dtype="f4").reshape(1, length, length, 1)
        found = run("ResizeNearestNeighborGrad", grads, np.array(size, "i4"), **flags)[0]
        np.testing.assert_array_equal(found[0, :, :, 0], right)
    with pytest.raises(RunError, match="align_corners must be False"):
        run("ResizeBilinearGrad", grads, np.zeros((1, 3, 5, 1), "f4"), **flags)


def test_indices_below_0_are_divided_as_in_c() -> None:
    found = run("UnravelIndex", np.array([-1, -6, -7, -4, 5], "i4"), np.array([2, 3], "i4"))[0]
    np.testing.assert_array_equal(found, [[0, 0, 0, -1, 1], [-1, 0, -1, -1, 2]])
    with pytest.raises(RunError, match="out of bounds"):
        run("UnravelIndex", np.array([6], "i4"), np.array([2, 3], "i4"))


def test_n_grams_of_texts_of_any_rank() -> None:
    four, right = texts(b"a", b"b", b"c", b"d"), [b"L-a", b"a-b", b"b-c", b"c-d", b"d-R"]
    grams, splits = run("StringNGrams", four.reshape(2, 2), np.array([[0, 4]], "i4"), **NGRAMS)
    assert (grams.tolist(), splits.tolist()) == (right, [[0, 5]])
    grams, splits = run("StringNGrams", np.array(b"q", object), np.array([0, 1]), **NGRAMS)
    assert (grams.tolist(), splits.tolist()) == ([b"L-q", b"q-R"], [0, 2])
    grams, splits = run("StringNGrams", four[:2], np.zeros(0, "i4"), **NGRAMS)
    assert (grams.tolist(), splits.tolist()) == ([b"", b""], [])


ONES = np.ones((1, 2, 2, 2), "f4")
TWO = np.ones(2, "f4")
SAME = {"strides": (1, 1, 1, 1), "padding": b"SAME"}


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "says"),
    [
        ("ParallelConcat", [np.ones((2, 2))], {"shape": Shape((2, 2))}, "first size of each must be 1"),
        ("ParallelConcat", [np.ones((1, 3))] * 2, {"shape": Shape((5, 2, 3))}, r"do not make \[5,2,3\]"),
        ("ComplexAbs", [np.ones(1, "c8")], {"Tout": DType.named("double")}, "is float32, not double"),
        ("Eig", [np.eye(2, dtype="f4")], {"Tout": DType.named("complex128")}, "it is complex64, not complex128"),
        ("Eig", [np.eye(2, dtype="c16")], {"Tout": DType.named("complex64")}, "it is complex128, not complex64"),
        ("StringUpper", [texts(b"a")], {"encoding": b"UTF-8"}, "received UTF-8"),
        ("FusedBatchNormGradV3", [ONES, ONES, TWO[None], TWO, TWO, TWO], {}, "scale"),
        ("FusedBatchNormGradV2", [ONES, ONES, TWO, TWO[None], TWO], {}, "reserve_space_1"),
        ("FusedBatchNormGradV3", [ONES, ONES, TWO, np.ones(3, "f4"), TWO, TWO], {}, "each of 2 channels"),
        ("Conv2DBackpropFilter", [np.ones((1, 2, 2, 3), "f4"), np.array([1, 1, 2, 2]), ONES], SAME, "do not fit"),
        ("Conv2DBackpropFilter", [np.ones((1, 2, 2, 6), "f4"), np.array([1, 1, 2, 2]), ONES], SAME, "do not fit"),
        ("Dequantize", [np.ones(2, "i1"), *TWO[:, None]], {"mode": b"SCALED", "dtype": DType.named("bfloat16")},
         "must be MIN_COMBINED"),
    ],
)  # fmt: skip
def test_what_tensorflow_refuses(op: str, inputs: list[Any], attrs: dict[str, Any], says: str) -> None:
    with pytest.raises(RunError, match=says):
        run(op, *inputs, **attrs)


def test_axes_of_a_format_count_on_in_a_circle() -> None:
    found = run("DataFormatDimMap", np.array([0, 3, 4, 7, 100, -1, -5, -9]), src_format="NHWC", dst_format="NCHW")[0]
    np.testing.assert_array_equal(found, [0, 1, 0, 1, 0, 1, 1, 1])
    five = {"src_format": "NDHWC", "dst_format": "NCDHW"}
    np.testing.assert_array_equal(run("DataFormatDimMap", np.array([4, 5, -5, -6], "i4"), **five)[0], [1, 0, 0, 1])
    far = np.array([-7, -6, -(2**31), 2**31 - 1], "i4")
    np.testing.assert_array_equal(run("DataFormatDimMap", far)[0], [1, 1, 0, 1])
    with pytest.raises(RunError, match="do not name the same axes"):
        run("DataFormatDimMap", np.array([1]), src_format="NHWC", dst_format="NCDHW")


def test_gradients_of_the_incomplete_gamma_function_at_its_ends() -> None:
    inf, nan = np.inf, np.nan
    a = np.array([-1, 0, nan, inf, 1, 0.5, inf, inf, 2, 50, inf, 0, -1, nan, -inf])
    x = np.array([0, 0, 0, 0, inf, inf, inf, 1, 2000, 1e-8, nan, inf, inf, inf, 1])
    right = [0.0] * 10 + [nan] * 5
    np.testing.assert_array_equal(run("IgammaGradA", a, x)[0], right)
    np.testing.assert_array_equal(run("RandomGammaGrad", a.astype("f4"), x.astype("f4"))[0], right)


@pytest.mark.parametrize("engine", [None, "reference"])
@pytest.mark.parametrize("node", ["Reshape(x, s, T=float, Tshape=int32)", "Fill(s, one, T=float, index_type=int32)"])
def test_a_shape_of_unknown_rank_may_be_one_number(node: str, engine: str | None) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[2,2])
        s = Placeholder(dtype=int32)
        one = Const(float 1)
        y = {node}
    """)
    with Session(graph, engine=engine) as session:
        for shape in (4, [4], [2, 2]):
            found = session.run(["y"], {"x": np.ones((2, 2), "f4"), "s": np.array(shape, "i4")})[0]
            np.testing.assert_array_equal(found, np.ones(shape))
        with pytest.raises(RunError, match="must be a scalar or a vector"):
            session.run(["y"], {"x": np.ones((2, 2), "f4"), "s": np.array([[4]], "i4")})


@pytest.mark.parametrize(
    ("width", "precision", "fill", "right"),
    [
        (3, 3, "", [b"Ab ", b"   ", b"h\xc3\xa4", b"a\0b"]),
        (7, -1, "0", [b"   Ab c", b"       ", b"    h\xc3\xa4", b"  a\0bcd"]),
        (6, 2, "-", [b"Ab    ", b"      ", b"h\xc3    ", b"a\0    "]),
        (0, 2, "-", [b"Ab c", b"", b"h\xc3\xa4", b"a\0bcd"]),
        (-1, 2, "", [b"Ab c", b"", b"h\xc3\xa4", b"a\0bcd"]),
    ],
)
def test_texts_are_cut_and_filled_up_to_a_width(width: int, precision: int, fill: str, right: list[bytes]) -> None:
    given = texts(b"Ab c", b"", b"h\xc3\xa4", b"a\0bcd")
    assert run("AsString", given, width=width, precision=precision, fill=fill)[0].tolist() == right


def test_counts_of_no_values_have_a_column() -> None:
    for minlength, maxlength, width in ((-1, -1, 1), (3, -1, 3), (-1, 4, 4), (2, 5, 5)):
        attrs = {"minlength": minlength, "maxlength": maxlength, "binary_output": False}
        none, weights = np.zeros((2, 0), np.int64), np.zeros(0, "f4")
        assert run("DenseCountSparseOutput", none[0], weights, **attrs)[2].tolist() == [width]
        assert run("DenseCountSparseOutput", none, weights, **attrs)[2].tolist() == [2, width]
        assert run("RaggedCountSparseOutput", np.array([0, 0, 0]), none[0], weights, **attrs)[2].tolist() == [2, width]


@pytest.mark.parametrize(
    ("distances", "right"), [([0, 0], 0), ([0, 1, 0], 1), ([0, 0, 0], 0), ([1, 0, 3, 0], 2), ([0, 0, 5, 5], 3)]
)
def test_a_chain_never_goes_on_to_a_point_without_distance(distances: list[float], right: int) -> None:
    for seed in range(8):
        assert run("KMC2ChainInitialization", np.array(distances, "f4"), np.array(seed))[0] == right


def test_ranges_of_a_reshaped_tensor_are_single_numbers() -> None:
    codes, one = np.zeros((3, 1), np.int32), np.ones(1, "f4")
    found = run("QuantizedReshape", codes, np.array([3], "i4"), one, 2 * one)
    assert [value.shape for value in found] == [(3,), (), ()]
    with pytest.raises(RunError, match="one number each"):
        run("QuantizedReshape", codes, np.array([3], "i4"), one[None], one)


def test_a_gradient_by_a_filter_of_groups_of_channels() -> None:
    x = (np.arange(72) % 7 - 3).reshape(2, 3, 3, 4).astype(np.float32)
    slopes = (np.arange(72) % 5 - 2).reshape(2, 3, 3, 4).astype(np.float32)
    sizes = np.array([2, 1, 2, 4], np.int32)
    (given,) = run("Conv2DBackpropFilter", x, sizes, slopes, strides=(1, 1, 1, 1), padding=b"SAME")
    right = [[[[-4, 4, 10, -1], [4, -4, 0, 6]]], [[[-12, 11, -4, -15], [-15, -4, 11, -12]]]]
    assert given.tolist() == right


@pytest.mark.parametrize(
    ("dtype", "fill", "width", "text"),
    [
        ("int32", "+", 4, b"  +5"), ("int32", "+", -1, b"+5"), ("int32", " ", -1, b" 5"),
        ("uint8", "+", 4, b"   5"), ("uint8", "+", -1, b"5"), ("uint8", " ", -1, b"5"), ("uint8", "0", 4, b"0005"),
        ("uint64", "+", 4, b"   5"), ("uint64", " ", -1, b"5"),
    ],
)  # fmt: skip
def test_unsigned_numbers_are_spelled_without_a_sign(dtype: str, fill: str, width: int, text: bytes) -> None:
    """TensorFlow 2.21's texts."""
    node = f'y = AsString(x, T={dtype}, width={width}, fill="{fill}")'
    with Session(parse(f"x = Placeholder(dtype={dtype}, shape=[1])\n{node}")) as session:
        assert session.run(["y"], {"x": np.array([5], dtype)})[0].tolist() == [text]


@pytest.mark.parametrize("mode", [b"MIN_COMBINED", b"MIN_FIRST"])
def test_the_range_of_one_slice_is_a_vector_or_a_number(mode: bytes) -> None:
    codes = np.array([[3, 100, 90]], np.uint8)
    for shape in ((), (1,)):
        low, high = np.full(shape, -1, "f4"), np.full(shape, 2, "f4")
        (found,) = run("Dequantize", codes, low, high, mode=mode, axis=0)
        np.testing.assert_allclose(found, [[-0.96470588, 0.17647064, 0.05882359]], rtol=1e-6)


@pytest.mark.parametrize(
    ("scale", "right"),
    [
        (np.nan, [[1, 1, 1], [0.5, 0.5, 0.5], [1, 1, 1]]), (np.inf, [[0, 0.375, 1], [0.5, 0.5, 0.5], [1, 0, 0]]),
        (-np.inf, [[1, 1, 1], [0.5, 0.5, 0.5], [1, 1, 1]]), (-1, [[1, 1, 1], [0.5, 0.5, 0.5], [1, 1, 1]]),
    ],
)  # fmt: skip
def test_a_saturation_that_is_no_number_is_grey(scale: float, right: list[list[float]]) -> None:
    pixels = np.array([[[0.2, 0.5, 1], [0.5, 0.5, 0.5], [1, 0, 0]]], "f4")
    np.testing.assert_allclose(run("AdjustSaturation", pixels, np.float32(scale))[0][0], right, atol=1e-6)


def test_an_empty_placeholder_stands_between_any_two_bytes() -> None:
    one, empty = np.float32(1.5), {"placeholder": b"", "summarize": 3}
    assert run("StringFormat", one, template=b"ab", **empty)[0].tolist() == b"a1.5b"
    assert run("StringFormat", one, template=b"\xff\xfe", **empty)[0].tolist() == b"\xff1.5\xfe"
    for template, count in ((b"ab", 0), (b"", 1), (b"ab", 3)):
        with pytest.raises(RunError, match="num placeholders in template and num inputs must match"):
            run("StringFormat", *[one] * count, template=template, **empty)


@pytest.mark.parametrize("x", [1e-310, 1e-40, 1.0, 30.0])
def test_incomplete_gamma_functions_of_the_smallest_numbers_are_their_limits(x: float) -> None:
    """TensorFlow gives these for a = 1e-300; it takes subnormal numbers for 0, where there is no result."""
    for a in (5e-324, 1e-310, 1e-300):
        assert run("Igamma", np.array([a]), np.array([x]))[0].tolist() == pytest.approx([1], abs=1e-13)
        assert run("Igammac", np.array([a]), np.array([x]))[0].tolist() == pytest.approx([0], abs=1e-13)


@pytest.mark.parametrize(("labels", "loss"), [((0, 2), 2.3853157), ((0, 3), 2.3853157), ((0, 2, 2), 2.3853157)])
@pytest.mark.parametrize("collapse", [False, True])
def test_labels_from_the_blank_on_are_padding(labels: tuple[int, ...], loss: float, collapse: bool) -> None:
    scores = (np.arange(24).reshape(4, 2, 3) % 5 - 1).astype("f4")
    places = np.array([*((0, place) for place in range(len(labels))), (1, 0)])
    given = np.array([*labels, 1], "i4")
    found = run("CTCLoss", scores, places, given, np.array([4, 4], "i4"), preprocess_collapse_repeated=collapse)
    np.testing.assert_allclose(found[0], [loss, 3.750813], rtol=1e-6)
    np.testing.assert_allclose(found[1][0, 0], [0.08132984, 0.24472848, -0.3260584], rtol=1e-5)
