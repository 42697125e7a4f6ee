"""Wide convolutions in Winograd's tiles compute what they did, and are taken where they are quicker."""

from __future__ import annotations

import numpy as np
import pytest

from litert.test_optimize_for_latency import check, convolution, floats, graph
from pocketgraph import Session
from pocketgraph.litert.program import Operation
from pocketgraph.litert.rewriting import winograd
from pocketgraph.litert.rewriting.tile_transforms import tile_transform

random = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def wide_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a processor with AVX-512, wherever the tests run."""
    monkeypatch.setattr(winograd, "has_wide_kernels", lambda: True)


@pytest.mark.parametrize(("results", "taps"), [(2, 3), (4, 3), (2, 5), (4, 5), (2, 7), (3, 4), (4, 1)])
def test_a_tile_has_the_sums_of_products(results: int, taps: int) -> None:
    transform = tile_transform(results, taps)
    results = len(transform.result)
    tile, weights = random.normal(size=results + taps - 1), random.normal(size=taps)
    made = transform.result @ ((transform.filter @ weights) * (transform.data @ tile))
    np.testing.assert_allclose(made, np.correlate(tile, weights, "valid"), atol=1e-12)


def test_a_bias_at_its_point_is_in_every_result_once() -> None:
    for results, taps in ((2, 3), (4, 3), (4, 5), (2, 7)):
        np.testing.assert_array_equal(tile_transform(results, taps).result[:, winograd.BIAS_POINT], 1)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    ("shape", "window", "count"),
    [
        ((1, 14, 14, 256), (3, 3), 256),  # tiles of 2
        ((1, 56, 56, 128), (3, 3), 128),  # tiles of 4
        ((2, 21, 31, 128), (3, 3), 65),  # no whole tiles
        ((1, 35, 35, 64), (5, 5), 64),  # tiles of 4
        ((1, 14, 14, 256), (5, 5), 128),  # tiles of 2
        ((1, 17, 17, 192), (1, 7), 192),
        ((1, 17, 17, 192), (7, 1), 192),
        ((1, 24, 25, 384), (1, 3), 128),
        ((1, 25, 24, 384), (3, 1), 128),
        ((1, 23, 27, 128), (7, 7), 128),
    ],
)
def test_tiles_compute_what_the_convolution_does(
    shape: tuple[int, ...], window: tuple[int, int], count: int, padding: str
) -> None:
    model = graph(
        convolution("c", "x", "w", 1, padding) + "b = BiasAdd(c, bias, T=float)\ny = Relu6(b, T=float)\n",
        shape,
        w=floats(*window, shape[3], count) / np.float32(np.sqrt(shape[3] * window[0] * window[1])),
        bias=floats(count),
    )
    codes = check(model, *shape, relative=3e-5)
    assert codes.count("CONV_2D") > 1
    assert set(codes) <= {
        "PAD",
        "DEPTHWISE_CONV_2D",
        "CONV_2D",
        "ADD",
        "SUB",
        "MUL",
        "CONCATENATION",
        "RESHAPE",
        "SLICE",
    }


@pytest.mark.parametrize(
    ("shape", "window", "tile"),
    [((1, 56, 56, 128), 3, 4), ((1, 28, 28, 96), 5, 4), ((1, 14, 14, 256), 5, 2), ((1, 24, 24, 128), 7, 2)],
)
def test_larger_tiles_where_they_are_quicker(shape: tuple[int, ...], window: int, tile: int) -> None:
    tiled = []

    def seen(operation: Operation) -> winograd.Tiling | None:
        tiled.append(tiling_of(operation))
        return tiled[-1]

    tiling_of = winograd.tiling_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(winograd, "tiling_of", seen)
        model = graph(convolution("y", "x", "w", 1), shape, w=floats(window, window, shape[3], 128))
        check(model, *shape, relative=3e-5)
    (found,) = [each for each in tiled if each is not None]
    assert (found.rows, found.columns) == (tile, tile)


@pytest.mark.parametrize(
    ("shape", "window", "count", "stride"),
    [
        ((1, 28, 28, 128), (3, 3), 128, 2),
        ((1, 28, 28, 128), (1, 1), 128, 1),
        ((1, 28, 28, 128), (4, 4), 128, 1),
        ((1, 96, 96, 16), (3, 3), 128, 1),
        ((1, 7, 7, 64), (3, 3), 64, 1),  # more calls than multiplications are saved
    ],
)
def test_what_would_gain_nothing_stays(
    shape: tuple[int, ...], window: tuple[int, int], count: int, stride: int
) -> None:
    model = graph(convolution("y", "x", "w", stride), shape, w=floats(*window, shape[3], count))
    assert check(model, *shape).count("CONV_2D") == 1


def test_it_stays_on_other_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd, "has_wide_kernels", lambda: False)
    shape = (1, 14, 14, 256)
    model = graph(convolution("y", "x", "w", 1), shape, w=floats(3, 3, 256, 256))
    assert check(model, *shape) == ["CONV_2D"]


def test_it_is_switched_off_by_name_and_in_strict_sessions() -> None:
    shape = (1, 14, 14, 256)
    model = graph(convolution("y", "x", "w", 1), shape, w=floats(3, 3, 256, 256) / np.float32(48))
    given = floats(*shape)
    infinite = given.copy()
    infinite[0, 5, 5, 0] = np.inf
    results = []
    for options in ({}, {"without": ["winograd_convolutions"]}, {"strict": True}):
        with Session(model, **options) as session:  # type: ignore[arg-type]
            results.append(session.run("y:0", {"x:0": given})[0])
            if "strict" in options:
                far = session.run("y:0", {"x:0": infinite})[0]
                np.testing.assert_array_equal(np.isfinite(far).all(axis=(0, 3))[:4], True)
    tiled, plain, strict = results
    np.testing.assert_allclose(tiled, plain, atol=1e-5 * np.abs(plain).max())
    assert not np.array_equal(tiled, plain), "the pass has changed nothing"
    np.testing.assert_allclose(strict, plain, atol=1e-5 * np.abs(plain).max())
