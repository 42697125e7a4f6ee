"""Pictures come out as TensorFlow decodes and resizes them; damaged ones are refused in one line."""

import io
import pathlib
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from pocketgraph.datasets import image_loading
from pocketgraph.errors import FormatError

GOLDEN = pathlib.Path(__file__).parent / "golden" / "images.npz"
"""Files of each kind and what TensorFlow 2.21 made of them: ``<kind>`` holds the encoded file, ``<kind>_<channels>``
the decoded one (JPEG with INTEGER_ACCURATE); ``resized_<height>_<width>_<align corners>`` resize ``image``."""


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as data:
        return {name: data[name] for name in data.files}


def decoded_names() -> list[str]:
    with np.load(GOLDEN) as data:
        return [name for name in data.files if name[-2:] in ("_1", "_3") and name[:-2] in data.files]


def resized_names() -> list[str]:
    with np.load(GOLDEN) as data:
        return [name for name in data.files if name.startswith("resized")]


@pytest.mark.parametrize("name", decoded_names())
def test_decodes_as_tensorflow_does(golden: dict[str, np.ndarray], name: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "picture.of_no_known_suffix"
    path.write_bytes(golden[name[:-2]].tobytes())
    np.testing.assert_array_equal(image_loading.read(path, channels=int(name[-1])), golden[name])


@pytest.mark.parametrize("name", resized_names())
def test_resizes_as_tensorflow_does(golden: dict[str, np.ndarray], name: str) -> None:
    _, height, width, align = name.split("_")
    resized = image_loading.resize_bilinear(golden["image"], int(height), int(width), align_corners=align == "1")
    assert resized.dtype == np.float32
    np.testing.assert_array_equal(resized, golden[name])


def test_normalises_in_float32() -> None:
    result = image_loading.normalise(np.array([0, 100, 255], np.uint8), 127.5, 127.5)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, [-1, -0.21568628, 1], rtol=1e-7)


def test_an_animated_gif_gives_its_first_picture(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "two.gif"
    frames = [Image.new("RGB", (4, 3), color) for color in ((255, 0, 0), (0, 0, 255))]
    frames[0].save(path, save_all=True, append_images=frames[1:])
    assert image_loading.read(path)[0, 0].tolist() == [255, 0, 0]


def encoded(kind: str, size: tuple[int, int] = (40, 30)) -> bytes:
    noise = np.random.RandomState(1).randint(0, 256, (size[1], size[0], 3)).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).save(buffer, kind)
    return buffer.getvalue()


def refused(data: bytes, tmp_path: pathlib.Path) -> str:
    path = tmp_path / "bad"
    path.write_bytes(data)
    with pytest.raises(FormatError) as caught:
        image_loading.read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP", "GIF"])
@pytest.mark.parametrize("share", [0.6, 0.3, 0.02])
def test_a_file_cut_short_is_refused(kind: str, share: float, tmp_path: pathlib.Path) -> None:
    data = encoded(kind)
    refused(data[: max(4, int(len(data) * share))], tmp_path)


@pytest.mark.parametrize("data", [b"", b"daisy\ndandelion\n", b"RIFF\x24\0\0\0WAVEfmt ", bytes(64)])
def test_other_files_are_refused(data: bytes, tmp_path: pathlib.Path) -> None:
    assert "not a JPEG, PNG, BMP, GIF or WebP picture" in refused(data, tmp_path)


def test_a_corrupt_png_is_refused(tmp_path: pathlib.Path) -> None:
    data = bytearray(encoded("PNG"))
    data[len(data) // 2] ^= 0xFF
    refused(bytes(data), tmp_path)


@pytest.mark.parametrize("side", [60000, 10000])
def test_a_picture_bomb_is_refused_before_it_takes_memory(side: int, tmp_path: pathlib.Path) -> None:
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", len(header)) + b"IHDR" + header + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    idat = struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))
    message = refused(b"\x89PNG\r\n\x1a\n" + chunk + idat, tmp_path)
    assert str(side * side) in message or f"{side} x {side}" in message


def test_a_missing_file_and_a_folder_are_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FormatError, match="No such file"):
        image_loading.read(tmp_path / "none.jpg")
    with pytest.raises(FormatError, match="directory"):
        image_loading.read(tmp_path)
