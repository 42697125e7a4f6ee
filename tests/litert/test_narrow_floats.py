"""Graphs of 16-bit floats run on LiteRT: float32 inside, rounded where they leave, where they convert and jump."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

RANDOM = np.random.default_rng(5)
TYPES = {"half": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def layer(dtype: str) -> Session:
    return Session(
        parse(f"""
            x = Placeholder(dtype=float, shape=[2, 4])
            short = Cast(x, SrcT=float, DstT={dtype})
            w = Const({dtype} [[0.5, -1.5], [0.25, 3], [1, -0.125], [-2, 0.75]])
            product = MatMul(short, w, T={dtype})
            active = Relu(product, T={dtype})
            y = Cast(active, SrcT={dtype}, DstT=float)
        """),
        engine="litert",
        cache_dir="",
    )


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    return values.astype(TYPES[dtype]).astype(np.float32)


@pytest.mark.parametrize("dtype", TYPES)
def test_what_enters_and_what_leaves_is_rounded(dtype: str) -> None:
    x = RANDOM.normal(size=(2, 4)).astype(np.float32)
    weights = np.array([[0.5, -1.5], [0.25, 3], [1, -0.125], [-2, 0.75]], np.float32)
    expected = rounded(np.maximum(rounded(x, dtype) @ weights, 0), dtype)
    with layer(dtype) as session:
        (y,) = session.run("y", {"x": x})
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("dtype", TYPES)
def test_arrays_of_the_type_itself_go_in_and_out(dtype: str) -> None:
    short = RANDOM.normal(size=(2, 4)).astype(TYPES[dtype])
    weights = np.array([[0.5, -1.5], [0.25, 3], [1, -0.125], [-2, 0.75]], np.float32)
    with layer(dtype) as session:
        for _ in range(4):  # the first runs, and the quick ones after them
            (product,) = session.run("product", {"short": short})
            assert product.dtype == TYPES[dtype]
            np.testing.assert_array_equal(product, (short.astype(np.float32) @ weights).astype(TYPES[dtype]))


def test_values_are_rounded_before_they_are_compared() -> None:
    """2048 + 1 is 2048 in half, so that it is not more than that, and the first of both is the largest."""
    session = Session(
        parse("""
            x = Placeholder(dtype=half, shape=[2])
            one = Const(half [0, 1])
            sum = AddV2(x, one, T=half)
            bound = Const(half 2048)
            more = Greater(sum, bound, T=half)
            axis = Const(int32 0)
            best = ArgMax(sum, axis, T=half, Tidx=int32, output_type=int32)
            quarter = Const(half 0.25)
            scaled = Mul(sum, quarter, T=half)
            down = Floor(scaled, T=half)
        """),
        engine="litert",
        cache_dir="",
    )
    with session:
        x = np.array([2048, 2048], np.float16)
        more, best, down = session.run(["more", "best", "down"], {"x": x})
    assert more.tolist() == [False, False]
    assert best == 0
    assert down.dtype == np.float16
    assert down.tolist() == [512, 512]


def test_what_is_too_large_where_it_leaves_is_infinite() -> None:
    session = Session(
        parse("""
            x = Placeholder(dtype=half, shape=[2])
            y = Mul(x, x, T=half)
        """),
        engine="litert",
        cache_dir="",
    )
    with session:
        (y,) = session.run("y", {"x": np.array([300, 3], np.float16)})
    assert y.tolist() == [np.inf, 9]


@pytest.mark.parametrize("dtype", TYPES)
def test_a_later_session_finds_the_program(dtype: str, tmp_path: Path) -> None:
    graph = parse(f"""
        x = Placeholder(dtype={dtype}, shape=[8])
        y = Tanh(x, T={dtype})
        z = Sigmoid(y, T={dtype})
    """)
    x = RANDOM.normal(size=8).astype(TYPES[dtype])
    found = []
    for _ in range(2):
        with Session(graph, engine="litert", cache_dir=str(tmp_path)) as session:
            found.append(session.run("z", {"x": x})[0])
    assert found[0].dtype == found[1].dtype == TYPES[dtype]
    np.testing.assert_array_equal(found[0], found[1])
    expected = 1 / (1 + np.exp(-np.tanh(x.astype("f8"))))
    np.testing.assert_allclose(found[0].astype("f8"), expected, atol=2.0**-8 if dtype == "bfloat16" else 2.0**-11)


DOUBLED = """
    x = Placeholder(dtype=float, shape=[40, 50])
    weights = Const(float 0.3333333432674408)
    product = Mul(x, weights, T=float)
    short = Cast(product, SrcT=float, DstT={dtype})
    twice = AddV2(short, short, T={dtype})
    large = Cast(twice, SrcT={dtype}, DstT=float)
    back = Cast(short, SrcT={dtype}, DstT=float)
    begin = Const(int32 [0, 0])
    size = Const(int32 [1, 50])
    row = Slice(twice, begin, size, T={dtype}, Index=int32)
    small = Cast(row, SrcT={dtype}, DstT=float)
"""


def test_large_values_keep_their_digits_between_conversions_small_ones_and_deliberate_rounding_do_not() -> None:
    x = RANDOM.normal(size=(40, 50)).astype(np.float32)
    product = x * np.float32(1 / 3)
    with Session(parse(DOUBLED.format(dtype="half")), engine="litert", cache_dir="") as session:
        large, back, small = session.run(["large", "back", "small"], {"x": x})
    np.testing.assert_array_equal(back, rounded(product, "half"))
    np.testing.assert_array_equal(small, rounded(2 * product[:1], "half"))
    np.testing.assert_allclose(large, 2 * product, rtol=2.0**-10)
    assert not np.array_equal(large, rounded(large, "half"))


def test_to_bfloat16_large_values_are_rounded() -> None:
    x = RANDOM.normal(size=(40, 50)).astype(np.float32)
    with Session(parse(DOUBLED.format(dtype="bfloat16")), engine="litert", cache_dir="") as session:
        (large,) = session.run("large", {"x": x})
    np.testing.assert_array_equal(large, rounded(2 * rounded(x * np.float32(1 / 3), "bfloat16"), "bfloat16"))


@pytest.mark.parametrize("dtype", TYPES)
def test_parts_that_are_planned_when_they_run(dtype: str) -> None:
    """How many rows there are follows from values, so that the convolution is compiled in the run."""
    session = Session(
        parse(f"""
            x = Placeholder(dtype=float, shape=[?, 4])
            short = Cast(x, SrcT=float, DstT={dtype})
            keep = Placeholder(dtype=bool, shape=[?])
            places = Where(keep, T=bool)
            axis = Const(int32 0)
            flat = Squeeze(places, T=int64, squeeze_dims=[1])
            rows = GatherV2(short, flat, axis, Tparams={dtype}, Tindices=int64, Taxis=int32)
            sizes = Const(int32 [-1, 1, 1, 4])
            pictures = Reshape(rows, sizes, T={dtype}, Tshape=int32)
            w = Const({dtype} [[[[0.5, -1.5], [0.25, 3], [1, -0.125], [-2, 0.75]]]])
            y = Conv2D(pictures, w, T={dtype}, strides=[1, 1, 1, 1], padding="VALID")
        """),
        cache_dir="",
    )
    weights = np.array([[0.5, -1.5], [0.25, 3], [1, -0.125], [-2, 0.75]], np.float32)
    x = RANDOM.normal(size=(6, 4)).astype(np.float32)
    with session:
        for keep in ([1, 0, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1], [1, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0]):
            (y,) = session.run("y", {"x": x, "keep": np.array(keep, bool)})
            expected = (rounded(x, dtype)[np.array(keep, bool)] @ weights).astype(TYPES[dtype]).reshape(-1, 1, 1, 2)
            assert y.dtype == TYPES[dtype]
            np.testing.assert_array_equal(y, expected)
        ran = {node.name: node.runs_on for node in session.profile("y", {"x": x, "keep": np.ones(6, bool)}).nodes}
    assert ran["y"] == "litert"
