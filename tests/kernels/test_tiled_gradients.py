"""Gradients of wide convolutions by their weights in Winograd's tiles are TensorFlow's."""

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.nn import convolution_gradients, tiled_gradients
from pocketgraph.kernels.nn.convolution_gradients import backprop_filter, plain_backprop_filter
from pocketgraph.kernels.nn.tiled_gradients import backprop_filter_in_tiles, best_tile
from pocketgraph.kernels.windows import Window, window

# Images, filter, padding; elements of TensorFlow 2.21's Conv2DBackpropFilter: [0, 0, 0, 0], [-1, -1, -1, -1],
# [1, 1, 2, 3], [-1, 0, 1, 2]; and its largest. Image n is 0.3 + sin(0.7 n²), slope n is 0.2 + cos(0.3 n²).
RECORDED = [
    ((6, 16, 17, 32), (3, 3, 32, 40), "SAME", [76.7281, 118.153, 76.7553, 112.819], 185.874),
    ((9, 14, 11, 48), (5, 5, 48, 33), "VALID", [29.9929, 30.0878, 48.0375, 48.1618], 91.6003),
    ((5, 21, 12, 32), (3, 5, 32, 64), "SAME", [47.5217, 77.2354, 38.6503, 35.9087], 141.062),
    ((24, 9, 10, 36), (2, 4, 36, 36), "SAME", [72.4373, 132.871, 135.22, 61.9817], 213.555),
    ((1, 210, 12, 40), (3, 3, 40, 32), "SAME", [149.163, 155.057, 171.695, 143.963], 238.709),
]
BLOCKS = [1, 1 << 14, 1 << 20]  # a row of tiles, several rows or images with a remainder, all of them


def spans_of(images: tuple[int, ...], filters: tuple[int, ...], padding: str) -> list[Window]:
    return [window(size, taps, 1, padding) for size, taps in zip(images[1:3], filters[:2], strict=True)]


def squares(shape: tuple[int, ...], step: float) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float64).reshape(shape) ** 2 * step


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("tile", [2, 3, 4])
@pytest.mark.parametrize(("images", "filters", "padding", "recorded", "largest"), RECORDED)
def test_tiles_give_what_tensorflow_gives(
    images: tuple[int, ...],
    filters: tuple[int, ...],
    padding: str,
    recorded: list[float],
    largest: float,
    tile: int,
    block: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tiled_gradients, "TOGETHER", block)
    spans = spans_of(images, filters, padding)
    x = (np.sin(squares(images, 0.7)) + 0.3).astype(np.float32)
    shape = (images[0], *(span.output for span in spans), filters[3])
    slopes = (np.cos(squares(shape, 0.3)) + 0.2).astype(np.float32)
    found = backprop_filter_in_tiles(x, filters, slopes, spans, tile)
    picked = [found[0, 0, 0, 0], found[-1, -1, -1, -1], found[1, 1, 2, 3], found[-1, 0, 1, 2]]
    np.testing.assert_allclose(picked, recorded, rtol=0, atol=3e-5 * largest)
    np.testing.assert_allclose(np.abs(found).max(), largest, rtol=3e-5)
    plain = plain_backprop_filter(x, filters, slopes, spans)
    np.testing.assert_allclose(found, plain, rtol=0, atol=3e-5 * largest)


def test_they_are_taken_where_they_are_quicker() -> None:
    def tile(images: tuple[int, ...], filters: tuple[int, ...]) -> int | None:
        return best_tile(images[0], filters, spans_of(images, filters, "SAME"))

    assert tile((128, 12, 12, 64), (5, 5, 64, 64)) == 4
    assert tile((32, 16, 16, 64), (3, 3, 64, 64)) == 4
    assert tile((32, 16, 16, 16), (3, 3, 16, 64)) is None  # few channels
    assert tile((1, 4, 4, 64), (3, 3, 64, 64)) is None  # few places
    assert tile((32, 16, 16, 64), (1, 1, 64, 64)) is None
    assert tile((32, 16, 16, 64), (9, 9, 64, 64)) is None  # tiles of more points than are known
    strided = [window(32, 3, 2, "SAME")] * 2
    assert best_tile(32, (3, 3, 64, 64), strided) is None
    assert best_tile(32, (3, 3, 64, 64), [window(32, 3, 1, "SAME", 2)] * 2) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_reaches_the_weights_that_saw_it(bad: float) -> None:
    x, slopes = np.ones((8, 16, 16, 64), np.float32), np.ones((8, 16, 16, 64), np.float32)
    spans = spans_of(x.shape, (3, 3), "SAME")
    assert best_tile(8, (3, 3, 64, 64), spans)
    x[0, 0, 0, 2] = bad
    found = backprop_filter(x, (3, 3, 64, 64), slopes, spans)
    expected = np.zeros((3, 3, 64), bool)
    expected[:2, :2, 2] = True
    np.testing.assert_array_equal(~np.isfinite(found), np.repeat(expected[..., np.newaxis], 64, axis=3))


SINGLE = "dw = Conv2DBackpropFilter(x, sizes, g, T=float, strides=list[1,1,1,1], padding='SAME')"
RECTIFIED = """
    c = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding='SAME')
    y = BiasAdd(c, b, T=float)
    r = Relu(y, T=float)
    m = ReluGrad(g, r, T=float)
    db = BiasAddGrad(m, T=float)
    dw = Conv2DBackpropFilter(x, sizes, m, T=float, strides=list[1,1,1,1], padding='SAME')
"""
POOLED = """
    c = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding='SAME')
    y = BiasAdd(c, b, T=float)
    r = Relu(y, T=float)
    p = MaxPool(r, T=float, ksize=list[1,2,2,1], strides=list[1,2,2,1], padding='VALID')
    dp = MaxPoolGrad(r, p, g, T=float, ksize=list[1,2,2,1], strides=list[1,2,2,1], padding='VALID')
    m = ReluGrad(dp, r, T=float)
    db = BiasAddGrad(m, T=float)
    dw = Conv2DBackpropFilter(x, sizes, m, T=float, strides=list[1,1,1,1], padding='SAME')
"""


@pytest.mark.parametrize(("layer", "size"), [(SINGLE, 16), (RECTIFIED, 16), (POOLED, 8)])
def test_a_session_takes_tiles_unless_the_pass_is_off(layer: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"""
        x = Placeholder(dtype=float, shape=[16,16,16,48])
        w = Placeholder(dtype=float, shape=[5,5,48,64])
        b = Placeholder(dtype=float, shape=[64])
        g = Placeholder(dtype=float, shape=[16,{size},{size},64])
        {layer}
    """.replace("'", '"')
    model = Graph([const("sizes", np.array([5, 5, 48, 64], np.int32)), *parse(text)])
    random = np.random.default_rng(3)
    drawn = {"x": (16, 16, 16, 48), "w": (5, 5, 48, 64), "b": (64,), "g": (16, size, size, 64)}
    feeds = {f"{name}:0": random.normal(size=shape).astype(np.float32) for name, shape in drawn.items()}
    taken: list[int] = []
    real = convolution_gradients.backprop_filter_in_tiles

    def counted(*arguments: object) -> np.ndarray:
        taken.append(1)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(convolution_gradients, "backprop_filter_in_tiles", counted)
    fetches = ["dw:0", "p:0"] if layer is POOLED else ["dw:0"]
    given = {name: feeds[name] for name in (("x:0", "g:0") if layer is SINGLE else feeds)}
    found = []
    for options in ({}, {"without": ["tiled_gradients"]}, {"engine": "reference"}):
        taken.clear()
        with Session(model, threads=1, **options) as session:
            found.append((session.run(fetches, given)[0], bool(taken)))
    (tiled, was_tiled), *others = found
    assert was_tiled
    for plain, is_tiled in others:
        assert not is_tiled
        np.testing.assert_allclose(tiled, plain, rtol=0, atol=3e-5 * np.abs(plain).max())
