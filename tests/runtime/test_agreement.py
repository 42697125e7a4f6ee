"""What counts as a compiled part's agreement with the reference engine, and what as an error."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.graph import parse_ref
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.text import parse
from pocketgraph.runtime.certificates.agreement import EIGHT_BITS, Precision, Verdict, judged, varied
from pocketgraph.runtime.certificates.part_reference import PartReference

Array = np.ndarray[Any, Any]


def part(text: str, *outputs: str) -> PartReference:
    """A part that takes ``x``."""
    refs = [parse_ref(name) for name in outputs or ("y",)]
    return PartReference(parse(text), [Endpoint("x", 0)], [Endpoint(ref.name, ref.port) for ref in refs])


def verdict(reference: PartReference, feed: Array, given: list[Array], precision: Precision | None = None) -> Verdict:
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
    assert verdict(reference, x, [2 * x]) is Verdict.RIGHT
    assert verdict(reference, x, [2 * x + np.float32(1e-4)]) is Verdict.RIGHT
    assert verdict(reference, x, [2 * x + np.float32(1e-3)]) is Verdict.WRONG
    assert verdict(reference, x, [2 * x[:8]]) is Verdict.WRONG
    assert verdict(reference, x, [(2 * x).astype("f8")]) is Verdict.WRONG


def test_the_largest_of_nearly_equal_elements_may_be_another() -> None:
    reference = part(LARGEST)
    near = np.array([1, 0.5, 1 + 1e-7, 0], "f4")
    assert verdict(reference, near, [np.asarray(np.int64(0))]) is Verdict.RIGHT
    assert verdict(reference, near, [np.asarray(np.int64(1))]) is Verdict.RIGHT  # what moves may be anything
    apart = np.array([1, 0.5, 2, 0], "f4")
    assert verdict(reference, apart, [np.asarray(np.int64(0))]) is Verdict.WRONG


def test_differences_that_cancel_and_steps_that_magnify() -> None:
    steps = "\n".join(f"v{i} = Sin(m{i}, T=float)\nm{i + 1} = Mul(v{i}, k, T=float)" for i in range(4))
    chaotic = part(f"x = Placeholder(dtype=float, shape=[?])\nk = Const(float 9.0)\nm0 = Mul(x, k, T=float)\n{steps}\n"
                   "y = Identity(m4, T=float)")  # fmt: skip
    x = np.linspace(0.1, 1, 32).astype("f4")
    (right,) = chaotic.run([x])
    (near,) = chaotic.run([x * np.float32(1 + 1e-7)])
    assert np.abs(near - right).max() > 1e-3  # of 9: far more than rounding at the end
    assert verdict(chaotic, x, [near]) is Verdict.RIGHT
    assert verdict(chaotic, x, [right[::-1].copy()]) is Verdict.WRONG


def test_what_is_not_finite_decides_nothing() -> None:
    reference = part(DOUBLED)
    feed = np.array([1, np.nan, 2], "f4")
    assert verdict(reference, feed, [np.array([2, 0, 4], "f4")]) is Verdict.RIGHT  # LiteRT may lose the NaN itself
    assert verdict(reference, feed, [np.array([2, np.nan, 9], "f4")]) is Verdict.UNCLEAR
    huge = np.array([1e20, 1], "f4")
    assert verdict(reference, huge, [np.array([2e20, 1e19], "f4")]) is Verdict.UNCLEAR
    assert verdict(reference, np.ones(2, "f4"), [np.array([2, np.nan], "f4")]) is Verdict.WRONG


def test_eight_bits_and_short_floats_have_tolerances_of_their_own() -> None:
    reference, x = part(DOUBLED), np.linspace(-1, 1, 9).astype("f4")
    assert verdict(reference, x, [2 * x + np.float32(0.1)], EIGHT_BITS) is Verdict.RIGHT
    assert verdict(reference, x, [-2 * x], EIGHT_BITS) is Verdict.WRONG
    through = """
        x = Placeholder(dtype=float, shape=[?])
        s = Cast(x, SrcT=float, DstT=half)
        y = Cast(s, SrcT=half, DstT=float)
    """
    assert verdict(part(through), x, [x]) is Verdict.RIGHT  # LiteRT may keep the digits
    half = part("x = Placeholder(dtype=half, shape=[?])\ny = AddV2(x, x, T=half)")
    short = x.astype("f2")
    assert verdict(half, short, [(2 * short * np.float16(1.004)).astype("f2")]) is Verdict.RIGHT
    assert verdict(half, short, [(2 * short * np.float16(1.1)).astype("f2")]) is Verdict.WRONG


def test_booleans_and_integers_are_equal() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[?])
        c = Const(float 0.5)
        y = Greater(x, c, T=float)
        z = Cast(x, SrcT=float, DstT=int32)
    """
    reference, x = part(text, "y", "z"), np.array([0.2, 0.7, 3.5], "f4")
    right = [np.array([False, True, True]), np.array([0, 0, 3], np.int32)]
    assert verdict(reference, x, right) is Verdict.RIGHT
    assert verdict(reference, x, [~right[0], right[1]]) is Verdict.WRONG
    assert verdict(reference, x, [right[0], right[1] + np.int32(1)]) is Verdict.WRONG


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
    assert verdict(reference, x, [np.zeros(3, "f4")]) is Verdict.RIGHT
