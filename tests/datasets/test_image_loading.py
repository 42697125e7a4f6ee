"""Pictures come out as TensorFlow decodes and resizes them; damaged ones are refused in one line."""

import io
import pathlib
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from pocketgraph.datasets import file_lists, image_loading
from pocketgraph.errors import FormatError, UsageError

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


def test_what_a_gif_does_not_draw_is_black_as_in_tensorflow(tmp_path: pathlib.Path) -> None:
    picture = Image.fromarray(np.uint8([[0, 1]]), "P")
    picture.putpalette([200, 100, 50, 9, 8, 7])
    picture.save(tmp_path / "half.gif", transparency=1)
    assert image_loading.read(tmp_path / "half.gif").tolist() == [[[200, 100, 50], [0, 0, 0]]]
    assert image_loading.read(tmp_path / "half.gif", channels=1).tolist() == [[[124], [0]]]  # BT.601


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


@pytest.mark.parametrize("data", [b"daisy\ndandelion\n", b"RIFF\x24\0\0\0WAVEfmt ", bytes(64)])
def test_other_files_are_refused(data: bytes, tmp_path: pathlib.Path) -> None:
    assert "not a JPEG, PNG, BMP, GIF or WebP picture" in refused(data, tmp_path)


def test_a_corrupt_png_is_refused(tmp_path: pathlib.Path) -> None:
    data = bytearray(encoded("PNG"))
    data[len(data) // 2] ^= 0xFF
    refused(bytes(data), tmp_path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FormatError, match="No such file"):
        image_loading.read(tmp_path / "none.jpg")
    with pytest.raises(FormatError, match="directory"):
        image_loading.read(tmp_path)


def png_of(size: tuple[int, int]) -> bytes:
    """A file that claims a size, and has next to no pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", *size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("size", "said"), [((12_000, 9_000), "has 12000 x 9000"), ((100_000, 100_000), "claims more")])
def test_what_is_wrong_with_a_picture_that_is_too_large(
    size: tuple[int, int], said: str, tmp_path: pathlib.Path, recwarn: pytest.WarningsRecorder
) -> None:
    """Also where a file begins and ends as a whole one does; the decoder's own warning is not shown."""
    (tmp_path / "x.png").write_bytes(png_of(size))
    assert said in image_loading.problem(str(tmp_path / "x.png"))
    with pytest.raises(FormatError, match=said):
        image_loading.read(tmp_path / "x.png")
    assert not recwarn.list


def test_a_link_that_leads_nowhere_is_the_matter_of_one_picture(tmp_path: pathlib.Path) -> None:
    (tmp_path / "x.png").symlink_to(tmp_path / "gone.png")
    assert "No such file" in image_loading.problem(str(tmp_path / "x.png"))
    with pytest.raises(FormatError, match="No such file"):
        image_loading.problem(str(tmp_path / "gone.png"))


def test_an_empty_file_is_called_that(tmp_path: pathlib.Path) -> None:
    (tmp_path / "x.jpg").touch()
    with pytest.raises(FormatError, match="the file is empty"):
        image_loading.read(tmp_path / "x.jpg")


def test_photos_that_are_to_be_turned_are_told_of(tmp_path: pathlib.Path) -> None:
    """TensorFlow does not turn them either: its decode_jpeg gives the pixels as they are stored."""
    mark = Image.Exif()
    mark[image_loading.ORIENTATION] = 6
    Image.new("RGB", (8, 6)).save(tmp_path / "turned.jpg", exif=mark)
    Image.new("RGB", (8, 6)).save(tmp_path / "upright.jpg")
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    assert image_loading.is_turned(str(tmp_path / "turned.jpg"))
    assert image_loading.read(tmp_path / "turned.jpg").shape == (6, 8, 3)
    assert not any(image_loading.is_turned(str(tmp_path / name)) for name in ("upright.jpg", "broken.jpg", "none.jpg"))


def test_no_png_is_decoded_to_see_whether_it_is_to_be_turned(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for one that has chunks behind its pixels, where its mark may be, too."""
    mark = Image.Exif()
    mark[image_loading.ORIENTATION] = 6
    Image.new("RGB", (8, 6)).save(tmp_path / "before.png", exif=mark)
    Image.new("RGB", (8, 6)).save(tmp_path / "upright.png")
    before, upright = ((tmp_path / name).read_bytes() for name in ("before.png", "upright.png"))
    start = before.index(b"eXIf") - 4
    chunk = before[start : start + 12 + int.from_bytes(before[start : start + 4], "big")]
    (tmp_path / "behind.png").write_bytes(upright[:-12] + chunk + upright[-12:])
    decoded, load = [], PngImagePlugin.PngImageFile.load
    monkeypatch.setattr(
        PngImagePlugin.PngImageFile, "load", lambda self: decoded.append(pathlib.Path(self.fp.name).name) or load(self)
    )
    turned = [name for name in ("before", "upright", "behind") if image_loading.is_turned(f"{tmp_path}/{name}.png")]
    assert (turned, decoded) == (["before", "behind"], ["behind.png"])


def test_photos_of_kinds_that_are_not_read_are_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "IMG_1.HEIC").write_bytes(b"x")
    with pytest.raises(UsageError, match=r"IMG_1\.HEIC are of kinds that are not read; make JPEG files"):
        file_lists.of_folder(str(tmp_path))
