"""Wide convolutions in Winograd's tiles compute what they did, and are taken where they are quicker."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from litert.test_optimize_for_latency import check, convolution, floats, graph
from pocketgraph import Session
from pocketgraph.formats import save
from pocketgraph.kernels.nn.tile_transforms import BIAS_POINT, Tiling, tile_transform
from pocketgraph.litert.program import Operation
from pocketgraph.litert.rewriting import winograd

pytestmark = pytest.mark.usefixtures("wide_kernels")

random = np.random.default_rng(11)


@pytest.mark.parametrize(("results", "taps"), [(2, 3), (4, 3), (2, 5), (4, 5), (2, 7), (3, 4), (4, 1)])
def test_a_tile_has_the_sums_of_products(results: int, taps: int) -> None:
    transform = tile_transform(results, taps)
    results = len(transform.result)
    tile, weights = random.normal(size=results + taps - 1), random.normal(size=taps)
    made = transform.result @ ((transform.filter @ weights) * (transform.data @ tile))
    np.testing.assert_allclose(made, np.correlate(tile, weights, "valid"), atol=1e-12)


def test_a_bias_at_its_point_is_in_every_result_once() -> None:
    for results, taps in ((2, 3), (4, 3), (4, 5), (2, 7)):
        np.testing.assert_array_equal(tile_transform(results, taps).result[:, BIAS_POINT], 1)


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

    def seen(operation: Operation, *, by_several: bool = False) -> Tiling | None:
        tiled.append(tiling_of(operation, by_several=by_several))
        return tiled[-1]

    tiling_of = winograd.tiling_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(winograd, "tiling_of", seen)
        model = graph(convolution("y", "x", "w", 1), shape, w=floats(window, window, shape[3], 128))
        check(model, *shape, relative=3e-5)
    assert {(found.rows, found.columns) for found in tiled if found is not None} == {(tile, tile)}


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


@pytest.mark.parametrize(
    ("shape", "count", "files"),
    [
        ((1, 32, 40, 64), 32, 2),  # with two threads its tiles take 1.35 times as long as the plain convolution
        ((1, 14, 14, 256), 256, 1),  # and these 0.70
    ],
)
def test_what_several_threads_are_slower_at_is_another_program_for_them(
    shape: tuple[int, ...], count: int, files: int, tmp_path: pathlib.Path
) -> None:
    weights = floats(3, 3, shape[3], count) / np.float32(np.sqrt(9 * shape[3]))
    path = tmp_path / "model.pb"
    save(graph(convolution("y", "x", "w", 1), shape, w=weights), path)
    feeds = {"x:0": floats(*shape)}
    with Session(path, engine="reference") as session:
        right = session.run("y:0", feeds)
    operations, results, compiled = {}, {}, []
    for threads in (1, 2, 4, 2, 1):
        with Session(path, threads=threads, cache_dir=tmp_path / "cache") as session:
            results[threads] = session.run("y:0", feeds)
            np.testing.assert_allclose(results[threads], right, atol=3e-5 * np.abs(right).max())
            plans = session._calls.plans.values()
            (part,) = [each for plan in plans for each in plan.executables]
            operations[threads] = part.about["operations"]  # type: ignore[attr-defined]
            compiled.append(part.program is not None)  # type: ignore[attr-defined]
    assert compiled == [True, files == 2, False, False, False]
    assert len(list((tmp_path / "cache").glob("*.tflite"))) == files
    assert operations[1] > 10  # in tiles
    assert operations[2] == operations[4] == (1 if files == 2 else operations[1])
    np.testing.assert_array_equal(results[2], results[4])
    assert np.array_equal(results[1], results[2]) == (files == 1)


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
