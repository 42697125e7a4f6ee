"""Pictures decoded: exact where the file is, near where JPEG leaves the rounding free; damaged files refused."""

from __future__ import annotations

import base64
import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node
from pocketgraph.kernels import evaluate

RAMP = (np.arange(5 * 7 * 3).reshape(5, 7, 3) * 2).astype(np.uint8)

TRANSPARENT_GIF = (
    "R0lGODlhAwACAIEAAP8AAAD/AAAA/wkIByH5BAkFAAMALAAAAAADAAIAAAgJAAEMCDBAwICAACH5BAkFAAMALAAAAAADAAIAgf8AAAD/AAAA/wkI"
    "BwgIAAcMEBBAYEAAIfkECQUAAwAsAQAAAAEAAQCB/wAAAP8AAAD/CQgHCAQAAQQEADs="
)


def saved(array: np.ndarray, kind: str, **options: object) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(array).save(file, kind, **options)
    return np.array(file.getvalue(), dtype=object)


def decoded(op: str, contents: np.ndarray, **attrs: object) -> np.ndarray:
    return evaluate(Node("n", op, (), attrs), (contents,))[0]  # type: ignore[arg-type]


@pytest.mark.parametrize("op", ["DecodePng", "DecodeImage", "DecodeJpeg"])
def test_png(op: str) -> None:
    np.testing.assert_array_equal(decoded(op, saved(RAMP, "PNG")), RAMP)
    np.testing.assert_array_equal(decoded(op, saved(RAMP[..., 0], "PNG")), RAMP[..., :1])
    np.testing.assert_array_equal(decoded(op, saved(RAMP[..., 0], "PNG"), channels=3), RAMP[..., [0, 0, 0]])
    assert decoded(op, saved(RAMP, "PNG"), channels=4)[..., 3].min() == 255


def test_bmp_and_types() -> None:
    np.testing.assert_array_equal(decoded("DecodeBmp", saved(RAMP, "BMP")), RAMP)
    floats = decoded("DecodeImage", saved(RAMP, "PNG"), dtype=DType.named("float"))
    np.testing.assert_allclose(floats, RAMP / 255, rtol=1e-6)
    wide = decoded("DecodePng", saved(RAMP, "PNG"), dtype=DType.named("uint16"))
    np.testing.assert_array_equal(wide, RAMP.astype(np.uint16) * 257)


def test_bmp_of_a_byte_a_pixel_is_grey() -> None:
    """As TensorFlow 2.21 reads it: the palette is not looked at."""
    codes = np.arange(15, dtype=np.uint8).reshape(3, 5) * 17
    picture = Image.fromarray(codes, "P")
    picture.putpalette(np.random.default_rng(0).integers(0, 256, 768).astype(np.uint8).tobytes())
    file = io.BytesIO()
    picture.save(file, "BMP")
    contents = np.array(file.getvalue(), object)
    for op in ("DecodeBmp", "DecodeImage"):
        np.testing.assert_array_equal(decoded(op, contents), codes[..., None])
        np.testing.assert_array_equal(decoded(op, contents, channels=3), np.repeat(codes[..., None], 3, 2))
        assert decoded(op, contents, channels=4)[..., 3].min() == 255
    data = file.getvalue()
    turned = data[:22] + (-3).to_bytes(4, "little", signed=True) + data[26:]  # the first line comes first
    np.testing.assert_array_equal(decoded("DecodeBmp", np.array(turned, object)), codes[::-1, :, None])
    with pytest.raises(RunError, match="Invalid image data"):
        decoded("DecodeBmp", np.array(data[:-8], object))


def test_bmp_of_four_bytes_a_pixel_has_alpha() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (3, 5, 4)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "BMP")
    contents = np.array(file.getvalue(), object)
    for op in ("DecodeBmp", "DecodeImage"):
        np.testing.assert_array_equal(decoded(op, contents), pixels)
        np.testing.assert_array_equal(decoded(op, contents, channels=3), pixels[..., :3])


@pytest.mark.parametrize("op", ["DecodePng", "DecodeImage", "DecodeJpeg"])
def test_png_with_a_colour_that_is_transparent(op: str) -> None:
    """As TensorFlow 2.21 reads them: a palette's alpha is a channel by default, another only where it is asked for."""
    codes = np.arange(15, dtype=np.uint8).reshape(3, 5)
    colours = np.random.default_rng(2).integers(0, 256, (256, 3)).astype(np.uint8)
    picture = Image.fromarray(codes, "P")
    picture.putpalette(colours.tobytes())
    file = io.BytesIO()
    picture.save(file, "PNG", transparency=bytes(range(15)))
    contents = np.array(file.getvalue(), object)
    whole = np.concatenate([colours[codes], codes[..., None]], 2)
    np.testing.assert_array_equal(decoded(op, contents), whole)
    np.testing.assert_array_equal(decoded(op, contents, channels=4), whole)
    np.testing.assert_array_equal(decoded(op, contents, channels=3), whole[..., :3])
    contents = saved(codes, "PNG", transparency=7)
    np.testing.assert_array_equal(decoded(op, contents), codes[..., None])
    np.testing.assert_array_equal(decoded(op, contents, channels=4)[..., 3], np.where(codes == 7, 0, 255))


def test_png_of_a_bit_a_pixel_has_an_alpha_of_a_bit() -> None:
    contents = saved(np.eye(3) > 0, "PNG")
    np.testing.assert_array_equal(decoded("DecodePng", contents, channels=4)[..., 3], np.ones((3, 3)))  # TensorFlow's
    np.testing.assert_array_equal(decoded("DecodePng", contents)[..., 0], np.eye(3) * 255)


def png_file(width: int, depth: int, colour: int, line: bytes, *parts: tuple[bytes, bytes]) -> np.ndarray:
    """A PNG of one line, with parts between its header and its pixels."""
    header = struct.pack(">IIBBBBB", width, 1, depth, colour, 0, 0, 0)
    whole = ((b"IHDR", header), *parts, (b"IDAT", zlib.compress(b"\0" + line)), (b"IEND", b""))
    made = (struct.pack(">I", len(c)) + kind + c + struct.pack(">I", zlib.crc32(kind + c)) for kind, c in whole)
    return np.array(b"\x89PNG\r\n\x1a\n" + b"".join(made), object)


def gamma(value: int) -> tuple[bytes, bytes]:
    return b"gAMA", struct.pack(">I", value)


PLAIN = [130, 86, 128, 76]
BRIGHT = [159, 149, 128, 92]
SRGB = (b"sRGB", b"\0")


@pytest.mark.parametrize(
    ("depth", "parts", "eight", "sixteen"),
    [
        (8, [], PLAIN, [33410, 22102, 32896, 19532]),
        (8, [gamma(45455)], BRIGHT, [40863, 38293, 32896, 23644]),
        (8, [SRGB, gamma(30000)], BRIGHT, [40863, 38293, 32896, 23644]),
        (8, [gamma(96000)], PLAIN, [33410, 22102, 32896, 19532]),
        (8, [gamma(3)], PLAIN, [33410, 22102, 32896, 19532]),
        (16, [gamma(45455)], [26, 84, 144, 204], [6906, 21696, 37001, 52373]),
        (16, [gamma(45455), (b"sBIT", b"\x09\x03\x02")], [24, 83, 144, 204], [6342, 21498, 36967, 52370]),
    ],
    ids=["no gamma", "gamma", "sRGB", "near 1", "none that counts", "16 bits", "9 of 16 bits"],
)
def test_grey_of_colours_is_by_brightness_where_the_file_says_its_gamma(
    depth: int, parts: list[tuple[bytes, bytes]], eight: list[int], sixteen: list[int]
) -> None:
    """As TensorFlow 1.15 gives them."""
    line = bytes([10, 200, 90, 255, 3, 77, 128, 128, 128, 60, 61, 200]) if depth == 8 else bytes(range(7, 247, 10))
    contents = png_file(4, depth, 2, line, *parts)
    assert decoded("DecodePng", contents, channels=1).ravel().tolist() == eight
    assert decoded("DecodePng", contents, channels=1, dtype=DType.named("uint16")).ravel().tolist() == sixteen


@pytest.mark.parametrize(
    ("depth", "line", "hidden", "alpha"),
    [
        (1, 0b10100000, 1, [0, 255, 0, 255]),
        (1, 0b10100000, 0, [255, 0, 255, 0]),
        (2, 0b00011011, 1, [255, 0, 255, 255]),
        (2, 0b00011011, 2, [255, 255, 0, 255]),
        (4, 0x3F, 3, [0, 255]),
    ],
)
def test_grey_of_few_bits_that_is_transparent(depth: int, line: int, hidden: int, alpha: list[int]) -> None:
    """As TensorFlow 1.15 gives them."""
    contents = png_file(len(alpha), depth, 0, bytes([line]), (b"tRNS", struct.pack(">H", hidden)))
    assert decoded("DecodePng", contents, channels=4)[0, :, 3].tolist() == alpha


def test_floats_are_products() -> None:
    """TensorFlow multiplies by 1 / 255, which differs from the quotient in the last place."""
    codes = np.arange(256, dtype=np.uint8).reshape(16, 16)
    found = decoded("DecodeImage", saved(codes, "BMP"), dtype=DType.named("float"))
    np.testing.assert_array_equal(found[..., 0], codes * np.float32(1 / 255))


def test_jpeg() -> None:
    smooth = np.broadcast_to(np.linspace(20, 220, 64)[:, None, None], (64, 48, 3)).astype(np.uint8)
    contents = saved(smooth, "JPEG", quality=95)
    assert np.abs(decoded("DecodeJpeg", contents).astype(int) - smooth).max() <= 4
    assert decoded("DecodeJpeg", contents, channels=1).shape == (64, 48, 1)
    assert decoded("DecodeJpeg", contents, ratio=2).shape == (32, 24, 3)
    for size in (1, 3, 17, 33):
        contents = saved(np.full((size, size + 2, 3), 90, np.uint8), "JPEG")
        for ratio in (2, 4, 8):
            for channels in (1, 3):
                found = decoded("DecodeJpeg", contents, ratio=ratio, channels=channels)
                assert found.shape == (-(-size // ratio), -(-(size + 2) // ratio), channels)
                assert np.abs(found.astype(int) - 90).max() <= 2
    with pytest.raises(RunError, match="ratio"):
        decoded("DecodeJpeg", contents, ratio=3)


def test_gif() -> None:
    frames = [Image.new("RGB", (4, 3), colour) for colour in ("red", "lime")]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    contents = np.array(file.getvalue(), object)
    whole = decoded("DecodeGif", contents)
    assert whole.shape == (2, 3, 4, 3)
    np.testing.assert_array_equal(whole[:, 0, 0], [[255, 0, 0], [0, 255, 0]])
    assert decoded("DecodeImage", contents).shape == (2, 3, 4, 3)
    assert decoded("DecodeImage", contents, expand_animations=False).shape == (3, 4, 3)


def test_webp() -> None:
    contents = saved(RAMP, "WEBP", lossless=True)
    np.testing.assert_array_equal(decoded("DecodeWebP", contents), RAMP[None])
    np.testing.assert_array_equal(decoded("DecodeImage", contents, expand_animations=False), RAMP)
    deep = np.concatenate([RAMP, RAMP[..., :1] + 1], axis=2)
    found = decoded("DecodeWebP", saved(deep, "WEBP", lossless=True, exact=True), channels=4)
    np.testing.assert_array_equal(found, deep[None])


def test_frames_of_a_gif_stay_below_the_next_ones_and_what_none_has_drawn_is_black() -> None:
    """Three frames of red, green, blue and transparency, each of which asks to be taken away again; as TensorFlow 2.21
    decodes them."""
    contents = np.array(base64.b64decode(TRANSPARENT_GIF), object)
    black, red, green, blue = [0, 0, 0], [255, 0, 0], [0, 255, 0], [0, 0, 255]
    frames = [
        [[red, black, green], [black, blue, black]],
        [[red, black, blue], [green, blue, black]],
        [[red, red, blue], [green, blue, black]],
    ]
    np.testing.assert_array_equal(decoded("DecodeGif", contents), frames)
    np.testing.assert_array_equal(decoded("DecodeImage", contents, expand_animations=False), frames[0])


@pytest.mark.parametrize("data", [b"", b"no picture", saved(RAMP, "PNG").item()[:40], saved(RAMP, "JPEG").item()[:200]])
def test_damaged(data: bytes) -> None:
    with pytest.raises(RunError) as caught:
        decoded("DecodeJpeg", np.array(data, object))
    assert "\n" not in str(caught.value)


def test_jpeg_metadata_stands_behind_the_first_segment() -> None:
    image = np.zeros((2, 3, 3), np.uint8)
    plain = encoded_as_jpeg(image).item()
    told = encoded_as_jpeg(image, xmp_metadata=b"abc").item()
    place = told.index(b"\xff\xe1")
    segment = b"\xff\xe1\0\x22http://ns.adobe.com/xap/1.0/\0abc"  # as TensorFlow writes it
    assert told == plain[:place] + segment + plain[place:]
    assert place == 20
    assert told[20:22] != plain[20:22] == b"\xff\xdb"


def encoded_as_jpeg(image: np.ndarray, **attrs: object) -> np.ndarray:
    return evaluate(Node("jpeg", "EncodeJpeg", (), attrs), [image])[0]


def test_gif_takes_stills_and_says_where_a_file_ends() -> None:
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    png = evaluate(Node("png", "EncodePng", (), {}), [image])[0]
    assert np.array_equal(evaluate(Node("gif", "DecodeGif", (), {}), [png])[0], image[None])  # as TensorFlow does
    frames = [Image.fromarray(image + 40 * number) for number in range(3)]
    written = io.BytesIO()
    frames[0].save(written, "GIF", save_all=True, append_images=frames[1:])
    data = written.getvalue()
    said = set()
    for end in range(20, len(data) - 1):
        try:
            found = evaluate(Node("gif", "DecodeGif", (), {}), [np.array(data[:end], object)])[0]
            assert found.shape[1:] == image.shape
        except RunError as error:
            said.add(error.what.partition(":")[0])
    assert said <= {"Invalid image data", "Unknown image file format. One of GIF, PNG, JPEG required"}


def png(width: int, depth: int, colour: int, row: bytes, *parts: bytes) -> np.ndarray:
    """A picture of one row, with parts, kind and content, in front of its pixels."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, 1, depth, colour, 0, 0, 0)
    made = (head, *parts, b"IDAT" + zlib.compress(b"\0" + row), b"IEND")
    chunks = (struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part)) for part in made)
    return np.array(b"\x89PNG\r\n\x1a\n" + b"".join(chunks), dtype=object)


@pytest.mark.parametrize(
    ("picture", "deep", "shown"),
    [
        (png(3, 1, 0, b"\x60", b"tRNS\x00\xd4"), False, [[0, 0], [255, 255], [255, 255]]),
        (png(3, 2, 0, b"\x48", b"tRNS\x00\x05"), False, [[85, 0], [0, 255], [170, 255]]),
        (png(2, 4, 0, b"\xed", b"tRNS\x01\x9d"), True, [[61166, 65535], [56797, 0]]),
        (png(2, 8, 0, b"\x55\xfc", b"tRNS\xfc\x55"), True, [[21845, 0], [64764, 65535]]),
        (png(2, 16, 0, b"\x5b\x00\xf8\xf8", b"tRNS\xf8\xf8"), False, [[91, 255], [248, 0]]),
    ],
)
def test_the_value_that_shows_nothing_is_of_the_files_depth(picture: np.ndarray, deep: bool, shown: list) -> None:
    """TensorFlow 2.21's results: bits beyond the depth do not count, and 16 bits have such a value, too."""
    result = decoded("DecodePng", picture, channels=4, dtype=DType.named("uint16" if deep else "uint8"))
    assert result[0, :, [0, 3]].T.tolist() == shown


@pytest.mark.parametrize("first", ["PLTE", "gAMA"])
def test_a_gamma_behind_the_palette_does_not_count(first: str) -> None:
    parts = [b"PLTE" + bytes.fromhex("b6cc5da2b943dde3608902e0"), b"gAMA" + struct.pack(">I", 45_455)]
    picture = png(1, 2, 3, b"\x00", *(parts if first == "PLTE" else reversed(parts)))
    expected = 184 if first == "PLTE" else 188  # TensorFlow 2.21's
    assert decoded("DecodePng", picture, channels=1).tolist() == [[[expected]]]
