"""Which node takes the picture, and in which form, is read off the graph."""

import pathlib

import numpy as np
import pytest
from PIL import Image

from pocketgraph.datasets.picture_input import describe, find_input
from pocketgraph.errors import GraphError, UsageError
from pocketgraph.graph import Graph
from pocketgraph.graph.dtype import UINT8
from pocketgraph.graph.text_format import parse


def described(text: str, width: int | None = None, height: int | None = None, fallback: int | None = None) -> tuple:
    graph = parse(text)
    found = describe(graph, find_input(graph), width, height, fallback)
    return found.layout, found.height, found.width, found.channels, found.batch


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = Placeholder(dtype=float, shape=[1,224,160,3])", ("NHWC", 224, 160, 3, 1)),
        ("x = Placeholder(dtype=float, shape=[?,28,28,1])", ("NHWC", 28, 28, 1, 1)),
        ("x = PlaceholderWithDefault(q, dtype=float, shape=[?,8,8,1])", ("NHWC", 8, 8, 1, 1)),
        ("x = Placeholder(dtype=float, shape=[1,3,224,160])", ("NCHW", 224, 160, 3, 1)),
        ("x = Placeholder(dtype=float, shape=[4,32,32,3])", ("NHWC", 32, 32, 3, 4)),
        ("x = Placeholder(dtype=uint8, shape=[32,48,3])", ("HWC", 32, 48, 3, 1)),
        ("x = Placeholder(dtype=float, shape=[?,784])", ("N*", 28, 28, 1, 1)),
        ("x = Placeholder(dtype=float, shape=[?,3072])", ("N*", 32, 32, 3, 1)),
    ],
)
def test_forms(text: str, expected: tuple) -> None:
    assert described(text) == expected


def test_a_picture_takes_the_place_of_what_the_graph_would_decode() -> None:
    graph = parse("""
        contents = Placeholder(dtype=string, shape=[])
        decoded = DecodeJpeg(contents, channels=1)
    """)
    found = describe(graph, find_input(graph), None, None, None)
    assert (found.tensor, found.layout, found.channels, found.dtype) == ("decoded:0", "decoded", 1, UINT8)


def test_the_first_convolution_tells_the_channels_of_an_unknown_shape() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[])
        keep_prob = Placeholder(dtype=float, shape=<unknown>)
        half = Const(float 0.5)
        centred = Sub(x, half, T=float)
        w = Const(float[3,3,1,2] 0.5)
        w/read = Identity(w, T=float)
        conv = Conv2D(centred, w/read, T=float)
        dropped = Mul(conv, keep_prob, T=float)
    """
    assert described(text, width=64, height=48) == ("NHWC", 48, 64, 1, 1)
    assert described(text, fallback=64) == ("NHWC", 64, 64, 1, 1)
    with pytest.raises(UsageError, match=r"does not say how large.*input_width"):
        described(text)


def test_a_picture_is_preferred_to_other_placeholders() -> None:
    graph = parse("""
        phase_train = Placeholder(dtype=bool, shape=[])
        bottleneck = PlaceholderWithDefault(pool, dtype=float, shape=[?,2048])
        image = Placeholder(dtype=float, shape=[?,?,?,3])
        pool = Mean(image, image, T=float)
    """)
    assert find_input(graph) == "image"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = Placeholder(dtype=float, shape=[?,8])", "no placeholder of this graph looks like a picture's.*x"),
        ("x = Const(float 1.0)", "none at all"),
        ("wav_data = Placeholder(dtype=string, shape=[])\nd = DecodeWav(wav_data)", "no placeholder"),
        (
            "a = Placeholder(dtype=float, shape=[1,8,8,3])\nb = Placeholder(dtype=float, shape=[1,8,8,1])",
            "2 placeholders may take the picture.*input_layer",
        ),
    ],
)
def test_no_single_picture_input(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_input(parse(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = Placeholder(dtype=float, shape=[1,8,8,16])", "16 channels"),
        ("x = Placeholder(dtype=float, shape=[1,2,8,8,3])", "no picture"),
        ("x = Placeholder(dtype=float, shape=[?,100,9])", "9 channels"),
        ("x = Placeholder(dtype=bool, shape=[1,8,8,3])", "takes bool"),
        ("x = Placeholder(dtype=string, shape=[])", "takes text"),
        ("x = Placeholder(dtype=float, shape=[?,13])", "rows of 13"),
    ],
)
def test_an_input_that_takes_no_picture_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        describe(parse(text), "x", None, None, None)


def test_a_size_that_the_graph_does_not_take_is_refused() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[1,128,96,3])")
    with pytest.raises(UsageError, match=r"takes 96 here, not input_width=224.*leave input_width out"):
        describe(graph, "x", 224, None, None)
    assert describe(graph, "x", 96, 128, 299).width == 96


def test_an_unknown_layer_suggests_a_near_one() -> None:
    with pytest.raises(GraphError, match="did you mean 'input'"):
        describe(parse("input = Placeholder(dtype=float, shape=[1,8,8,3])"), "inptu", None, None, None)


@pytest.fixture
def picture(tmp_path: pathlib.Path) -> str:
    """Two rows of three pixels: red, green, blue; black, white, gray."""
    pixels = [[(255, 0, 0), (0, 255, 0), (0, 0, 255)], [(0, 0, 0), (255, 255, 255), (51, 51, 51)]]
    Image.fromarray(np.array(pixels, np.uint8)).save(tmp_path / "six.png")
    return str(tmp_path / "six.png")


def fed(graph: Graph, picture: str, mean: float = 0, std: float = 255) -> np.ndarray:
    return describe(graph, "x", None, None, None).feed(picture, mean, std)


def test_feeds(picture: str) -> None:
    nhwc = fed(parse("x = Placeholder(dtype=float, shape=[?,2,3,3])"), picture)
    assert nhwc.dtype == np.float32
    np.testing.assert_allclose(nhwc[0, 0], np.eye(3))
    np.testing.assert_allclose(nhwc[0, 1, 2], [0.2, 0.2, 0.2])

    wide = fed(parse("x = Placeholder(dtype=float, shape=[1,2,6,3])"), picture)
    nchw = fed(parse("x = Placeholder(dtype=float, shape=[1,3,2,6])"), picture)
    np.testing.assert_array_equal(nchw, wide.transpose(0, 3, 1, 2))

    thrice = fed(parse("x = Placeholder(dtype=float, shape=[3,2,3,3])"), picture)
    np.testing.assert_array_equal(thrice, np.repeat(nhwc, 3, axis=0))

    half = fed(parse("x = Placeholder(dtype=half, shape=[1,2,3,3])"), picture, mean=127.5, std=127.5)
    assert half.dtype == np.float16
    np.testing.assert_array_equal(half[0, 0], np.eye(3) * 2 - 1)


def test_an_input_of_bytes_gets_the_pixels(picture: str) -> None:
    pixels = fed(parse("x = Placeholder(dtype=uint8, shape=[2,3,3])"), picture, mean=127.5, std=127.5)
    assert pixels.dtype == np.uint8
    assert pixels[1].tolist() == [[0, 0, 0], [255, 255, 255], [51, 51, 51]]


def test_a_flat_input_gets_the_rows_one_after_another(tmp_path: pathlib.Path) -> None:
    pixels = np.arange(64, dtype=np.uint8).reshape(8, 8)
    Image.fromarray(pixels).save(tmp_path / "gray.png")
    flat = fed(parse("x = Placeholder(dtype=float, shape=[?,64])"), str(tmp_path / "gray.png"), std=1)
    np.testing.assert_array_equal(flat, np.arange(64, dtype=np.float32)[np.newaxis])


@pytest.mark.parametrize("shape", ["[1,100000,100000,3]", "[100000,224,224,3]", "[1,1000000000000]"])
def test_a_size_beyond_reason_is_refused_before_it_takes_memory(shape: str) -> None:
    graph = parse(f"x = Placeholder(dtype=float, shape={shape})")
    with pytest.raises(UsageError, match="too much to feed"):
        describe(graph, "x", None, None, None)


def test_a_first_convolution_on_codes_tells_the_channels_too() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[])
        low = Const(float -1.0)
        high = Const(float 1.0)
        codes = QuantizeV2(x, low, high, T=quint8, mode="MIN_FIRST")
        w = Const(quint8[3,3,3,8] 1)
        conv = QuantizedConv2D(codes:0, w, codes:1, codes:2, low, high)
        real = Dequantize(conv:0, conv:1, conv:2, T=qint32)
        w2 = Const(float[3,3,8,2] 0.5)
        later = Conv2D(real, w2, T=float)
    """
    assert described(text, fallback=64) == ("NHWC", 64, 64, 3, 1)


def test_a_square_of_numbers_alone_is_a_gray_picture(picture: str) -> None:
    """As in TensorFlow's first tutorial, whose layers begin with Flatten."""
    graph = parse("x = Placeholder(dtype=float, shape=[?,28,28])\ntraining = Placeholder(dtype=bool, shape=[])")
    assert find_input(graph) == "x"
    form = describe(graph, "x", None, None, None)
    assert (form.layout, form.height, form.width, form.channels, form.batch) == ("NHW", 28, 28, 1, 1)
    channel = describe(parse("x = Placeholder(dtype=float, shape=[?,28,28,1])"), "x", None, None, None)
    np.testing.assert_array_equal(form.feed(picture, 0, 255), channel.feed(picture, 0, 255)[..., 0])


@pytest.mark.parametrize(
    "text",
    [
        "x = Placeholder(dtype=float, shape=[?,28,20])",
        "x = Placeholder(dtype=float, shape=[?,8,8])",
        "x = Placeholder(dtype=float, shape=[?,28,28])\nids = Placeholder(dtype=int32, shape=[?,28])",
    ],
)
def test_other_rows_of_numbers_are_no_gray_picture(text: str) -> None:
    with pytest.raises(UsageError, match="no placeholder of this graph looks like a picture's"):
        find_input(parse(text))
