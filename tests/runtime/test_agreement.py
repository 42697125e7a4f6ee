"""What counts as a compiled part's agreement with the reference engine, and what as an error."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph import parse_ref
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.certificates.agreement import EIGHT_BITS, Agreement, Precision, judged, varied
from pocketgraph.runtime.certificates.part_reference import PartReference, addends


def part(text: str, *outputs: str) -> PartReference:
    """A part that takes ``x``."""
    refs = [parse_ref(name) for name in outputs or ("y",)]
    return PartReference(parse(text), [Endpoint("x", 0)], [Endpoint(ref.name, ref.port) for ref in refs])


def verdict(reference: PartReference, feed: Array, given: list[Array], precision: Precision | None = None) -> Agreement:
    right = reference.run([feed])
    return judged(
        given, right, [feed], lambda s, size: reference.noisy([feed], s, size), precision or reference.precision
    )


DOUBLED = "x = Placeholder(dtype=float, shape=[?])\ny = AddV2(x, x, T=float)"
LARGEST = """
    x = Placeholder(dtype=float, shape=[?])
    a = Const(int32 0)
    y = ArgMax(x, a, T=float, Tidx=int32, output_type=int64)
"""


def test_rounding_is_no_error_and_more_is() -> None:
    reference, x = part(DOUBLED), np.linspace(-1, 1, 9).astype("f4")
    assert verdict(reference, x, [2 * x]) is Agreement.RIGHT
    assert verdict(reference, x, [2 * x + np.float32(1e-4)]) is Agreement.RIGHT
    assert verdict(reference, x, [2 * x + np.float32(1e-3)]) is Agreement.WRONG
    assert verdict(reference, x, [2 * x[:8]]) is Agreement.WRONG
    assert verdict(reference, x, [(2 * x).astype("f8")]) is Agreement.WRONG


def test_the_largest_of_nearly_equal_elements_may_be_another() -> None:
    reference = part(LARGEST)
    near = np.array([1, 0.5, 1 + 1e-7, 0], "f4")
    assert verdict(reference, near, [np.asarray(np.int64(0))]) is Agreement.RIGHT
    assert verdict(reference, near, [np.asarray(np.int64(1))]) is Agreement.RIGHT  # what moves may be anything
    apart = np.array([1, 0.5, 2, 0], "f4")
    assert verdict(reference, apart, [np.asarray(np.int64(0))]) is Agreement.WRONG


def test_differences_that_cancel_and_steps_that_magnify() -> None:
    steps = "\n".join(f"v{i} = Sin(m{i}, T=float)\nm{i + 1} = Mul(v{i}, k, T=float)" for i in range(4))
    chaotic = part(f"x = Placeholder(dtype=float, shape=[?])\nk = Const(float 9.0)\nm0 = Mul(x, k, T=float)\n{steps}\n"
                   "y = Identity(m4, T=float)")  # fmt: skip
    x = np.linspace(0.1, 1, 32).astype("f4")
    (right,) = chaotic.run([x])
    (near,) = chaotic.run([x * np.float32(1 + 1e-7)])
    assert np.abs(near - right).max() > 1e-3  # of 9: far more than rounding at the end
    assert verdict(chaotic, x, [near]) is Agreement.RIGHT
    assert verdict(chaotic, x, [right[::-1].copy()]) is Agreement.WRONG


def test_what_is_not_finite_decides_nothing() -> None:
    reference = part(DOUBLED)
    feed = np.array([1, np.nan, 2], "f4")
    assert verdict(reference, feed, [np.array([2, 0, 4], "f4")]) is Agreement.RIGHT  # LiteRT may lose the NaN itself
    assert verdict(reference, feed, [np.array([2, np.nan, 9], "f4")]) is Agreement.UNCLEAR
    huge = np.array([1e20, 1], "f4")
    assert verdict(reference, huge, [np.array([2e20, 1e19], "f4")]) is Agreement.UNCLEAR
    assert verdict(reference, np.ones(2, "f4"), [np.array([2, np.nan], "f4")]) is Agreement.WRONG


def test_eight_bits_and_short_floats_have_tolerances_of_their_own() -> None:
    reference, x = part(DOUBLED), np.linspace(-1, 1, 9).astype("f4")
    assert verdict(reference, x, [2 * x + np.float32(0.1)], EIGHT_BITS) is Agreement.RIGHT
    assert verdict(reference, x, [-2 * x], EIGHT_BITS) is Agreement.WRONG
    through = """
        x = Placeholder(dtype=float, shape=[?])
        s = Cast(x, SrcT=float, DstT=half)
        y = Cast(s, SrcT=half, DstT=float)
    """
    assert verdict(part(through), x, [x]) is Agreement.RIGHT  # LiteRT may keep the digits
    half = part("x = Placeholder(dtype=half, shape=[?])\ny = AddV2(x, x, T=half)")
    short = x.astype("f2")
    assert verdict(half, short, [(2 * short * np.float16(1.004)).astype("f2")]) is Agreement.RIGHT
    assert verdict(half, short, [(2 * short * np.float16(1.1)).astype("f2")]) is Agreement.WRONG


def test_booleans_and_integers_are_equal() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[?])
        c = Const(float 0.5)
        y = Greater(x, c, T=float)
        z = Cast(x, SrcT=float, DstT=int32)
    """
    reference, x = part(text, "y", "z"), np.array([0.2, 0.7, 3.5], "f4")
    right = [np.array([False, True, True]), np.array([0, 0, 3], np.int32)]
    assert verdict(reference, x, right) is Agreement.RIGHT
    assert verdict(reference, x, [~right[0], right[1]]) is Agreement.WRONG
    assert verdict(reference, x, [right[0], right[1] + np.int32(1)]) is Agreement.WRONG


def test_variations_keep_types_shapes_and_integers() -> None:
    feeds = [np.ones((2, 3), "f4"), np.arange(4), np.asarray(np.float32(2)), np.ones(2, "f2")]
    for factor in (5.0, -5.0):
        others = varied(feeds, factor)
        assert [(a.shape, a.dtype) for a in others] == [(a.shape, a.dtype) for a in feeds]
        assert others[1] is feeds[1]
        assert np.all(others[0] * factor > 0)
        assert np.abs(others[0]).max() > 2.5


def test_what_is_smaller_than_the_smallest_normal_number_is_nothing() -> None:
    reference, x = part(DOUBLED), np.float32([3e-42, 0, 1e-41])
    assert verdict(reference, x, [np.zeros(3, "f4")]) is Agreement.RIGHT


LONG = """
    x = Placeholder(dtype=float, shape=[?, 128, 128, 3])
    w = Const(float[128, 128, 3, 2] 0.5)
    conv = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="VALID")
    y = Squeeze(conv, T=float, squeeze_dims=[1, 2])
"""


def added_one_by_one(numbers: Array) -> np.float32:
    """The sum as a loop in float32 computes it; NumPy's own adds pairs."""
    return np.float32(np.add.accumulate(numbers.ravel(), dtype=np.float32)[-1])


def test_long_sums_may_be_added_in_any_order() -> None:
    reference = part(LONG)
    picture = np.broadcast_to(np.float32([0.98, 0.392, 0.0118]), (1, 128, 128, 3)).copy()
    one = added_one_by_one(picture * np.float32(0.5))
    right = np.sum(picture.astype("f8")) / 2
    assert abs(one - right) > 1.5e-4 * right  # beyond the tolerance, and yet right
    assert verdict(reference, picture, [np.full((1, 2), one, "f4")]) is Agreement.RIGHT
    for wrong in (picture[:, :127], picture[..., :2], picture * np.float32(1.01)):
        given = np.full((1, 2), added_one_by_one(wrong * np.float32(0.5)), "f4")
        assert verdict(reference, picture, [given]) is Agreement.WRONG


def test_the_length_of_a_sum_counts_the_numbers_that_are_added() -> None:
    assert addends("Conv2D", [(1, 9, 9, 3), (5, 4, 3, 7)], (1, 9, 9, 7)) == 60
    assert addends("DepthwiseConv2dNative", [(1, 9, 9, 3), (5, 4, 3, 2)], (1, 9, 9, 6)) == 20
    assert addends("Conv2DBackpropInput", [(4,), (5, 4, 3, 7), (1, 9, 9, 7)], (1, 9, 9, 3)) == 140
    assert addends("MatMul", [(6, 50), (50, 4)], (6, 4)) == 50
    assert addends("BatchMatMulV2", [(3, 6, 50), (3, 50, 4)], (3, 6, 4)) == 50
    assert addends("Mean", [(2, 30, 5), (1,)], (2, 5)) == 30
    assert addends("Sum", [(0, 5), (1,)], (5,)) == 0
    assert addends("GatherV2", [(100, 4), (1,), ()], (1, 4)) == 1


@pytest.mark.parametrize("op", ["Softplus", "Log1p"])
def test_logarithms_of_what_is_near_one_have_few_digits(op: str) -> None:
    """LiteRT 2.3's logarithm is 1.2e-7 off near 1, where a Softplus or Log1p is near 0 (docs/exactness.md)."""
    reference = part(f"x = Placeholder(dtype=float, shape=[?])\ny = {op}(x, T=float)")
    small = np.array([1e-5, 3e-6, 1e-6, 2e-9], "f4")
    x = np.log(np.expm1(small.astype("f8"))).astype("f4") if op == "Softplus" else small
    assert verdict(reference, x, [small - np.float32(1e-7)]) is not Agreement.WRONG
    assert verdict(reference, x, [small + np.float32(1e-6)]) is Agreement.WRONG
    assert verdict(reference, x, [small * 0]) is Agreement.WRONG


def test_a_softplus_of_one_row_is_certified(recwarn: pytest.WarningsRecorder) -> None:
    """Other feeds, which are tried besides, have sums down to -15."""
    weights, x = np.array([[1], [-2], [0.5], [1]], "f4"), np.array([[0.2, -0.9, -0.1, 1.1]], "f4")
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?, 4])
        w = Const(float[4, 1] {weights.tolist()})
        h = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
        y = Softplus(h, T=float)
    """)
    with Session(graph, cache_dir="") as session:
        (found,) = session.run(["y"], {"x": x})
    np.testing.assert_allclose(found, np.log1p(np.exp(x.astype("f8") @ weights)), rtol=1e-5)
    assert not recwarn.list
