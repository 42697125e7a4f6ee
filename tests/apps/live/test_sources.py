"""Frames and sounds of files of every kind, and of damaged ones."""

import importlib
import io
import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image

from colours import COLOURS
from command_line import call
from pocketgraph.apps.live.answers import Frame, Sound
from pocketgraph.apps.live.sources import stream
from pocketgraph.apps.live.stills import pixels_of
from pocketgraph.errors import FormatError
from pocketgraph.formats import save
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.audio.wav import encode_wav


def picture(colour: tuple[int, int, int], form: str = "PNG", size: tuple[int, int] = (8, 6)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, form)
    return buffer.getvalue()


def frames(path: pathlib.Path | str) -> list[Frame]:
    return [entry for entry in stream(str(path)) if isinstance(entry, Frame)]


def test_a_folder_by_name(tmp_path: pathlib.Path) -> None:
    (tmp_path / "b.png").write_bytes(picture((0, 0, 255)))
    (tmp_path / "a.jpg").write_bytes(picture((255, 0, 0), "JPEG"))
    (tmp_path / "notes.txt").write_text("no picture")
    found = frames(tmp_path)
    assert [pathlib.Path(entry.name).name for entry in found] == ["a.jpg", "b.png"]
    assert all(entry.alone for entry in found)
    assert found[1].pixels[0, 0].tolist() == [0, 0, 255]


def test_a_folder_of_folders(tmp_path: pathlib.Path) -> None:
    """Also behind a link, once; not what a system hid among the photos."""
    for place in ("b/2.png", "a/1.png", "a/._1.png", "__MACOSX/a/1.png", ".cache/1.png"):
        (tmp_path / "photos" / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "photos" / place).write_bytes(picture((0, 0, 255)))
    (tmp_path / "photos" / "a" / "back").symlink_to(tmp_path / "photos", target_is_directory=True)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "3.png").write_bytes(picture((0, 0, 255)))
    (tmp_path / "photos" / "c").symlink_to(tmp_path / "more", target_is_directory=True)
    named = [str(pathlib.Path(entry.name).relative_to(tmp_path / "photos")) for entry in frames(tmp_path / "photos")]
    assert named == ["a/1.png", "b/2.png", "c/3.png"]


def test_a_broken_picture_is_named_and_left_out(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.png").write_bytes(picture((0, 0, 255))[:40])
    (tmp_path / "b.png").write_bytes(picture((0, 0, 255)))
    told: list[FormatError] = []
    assert len(list(stream(str(tmp_path), broken=told.append))) == 1
    assert "a.png" in str(told[0])
    with pytest.raises(FormatError, match=r"a\.png"):
        frames(tmp_path)


def test_gray_pictures_of_sixteen_bits_keep_the_upper_eight(tmp_path: pathlib.Path) -> None:
    """As TensorFlow 1.15's decode_png gives them; also from a page."""
    Image.fromarray(np.arange(0, 64000, 8000, dtype=np.uint16).reshape(2, 4)).save(tmp_path / "deep.png")
    wanted = np.repeat([[[0], [31], [62], [93]], [[125], [156], [187], [218]]], 3, axis=2)
    [frame] = frames(tmp_path / "deep.png")
    np.testing.assert_array_equal(frame.pixels, wanted)
    np.testing.assert_array_equal(pixels_of((tmp_path / "deep.png").read_bytes()), wanted)


def test_motion_jpeg(tmp_path: pathlib.Path) -> None:
    colours = [(250, 0, 0), (0, 250, 0), (0, 0, 250)]
    (tmp_path / "x.mjpeg").write_bytes(b"--edge\r\n".join(picture(colour, "JPEG") for colour in colours))
    found = frames(tmp_path / "x.mjpeg")
    assert [int(entry.pixels[3, 4].argmax()) for entry in found] == [0, 1, 2]
    assert [entry.time for entry in found] == [0, 1 / 25, 2 / 25]
    assert not found[0].alone
    (tmp_path / "one.jpg").write_bytes(picture(colours[0], "JPEG"))
    assert frames(tmp_path / "one.jpg")[0].alone


def test_motion_jpeg_that_is_cut(tmp_path: pathlib.Path) -> None:
    whole = picture((250, 0, 0), "JPEG")
    (tmp_path / "x.mjpeg").write_bytes(whole + whole[: len(whole) // 2])
    with pytest.raises(FormatError, match="damaged or cut short"):
        frames(tmp_path / "x.mjpeg")


@pytest.mark.parametrize(("space", "planes"), [("C420jpeg", 2), ("C444", 1), ("Cmono", 0)])
def test_y4m(tmp_path: pathlib.Path, space: str, planes: int) -> None:
    light = np.full((6, 8), 235, np.uint8).tobytes()
    gray = bytes([128]) * ((6 // planes) * (8 // planes) * 2 if planes else 0)
    (tmp_path / "x.y4m").write_bytes(f"YUV4MPEG2 W8 H6 F10:1 {space}\n".encode() + 2 * (b"FRAME\n" + light + gray))
    found = frames(tmp_path / "x.y4m")
    assert [entry.time for entry in found] == [0, 0.1]
    assert found[0].pixels.shape == (6, 8, 3)
    assert (found[0].pixels >= 254).all()  # 1192 * 219 >> 10


@pytest.mark.parametrize(
    "content",
    [
        b"YUV4MPEG2 H6 F10:1\nFRAME\n",
        b"YUV4MPEG2 W99999999 H6 F10:1\nFRAME\n",
        b"YUV4MPEG2 W8 H6 F10:1\nFRAME\n123",
        b"YUV4MPEG2 W8 H6 F10:1\nno frame",
        b"YUV4MPEG2 W8 H6 F10:1 C420p10\nFRAME\n" + bytes(200),
        b"GIF89a123",
        b"RIFF\x04\0\0\0WAVE",
        b"",
    ],
)
def test_damaged_files(tmp_path: pathlib.Path, content: bytes) -> None:
    (tmp_path / "x.y4m").write_bytes(content)
    with pytest.raises(FormatError):
        frames(tmp_path / "x.y4m")


def test_an_animated_picture(tmp_path: pathlib.Path) -> None:
    pictures = [Image.new("RGB", (8, 6), colour) for colour in ("red", "lime", "blue")]
    pictures[0].save(tmp_path / "x.gif", save_all=True, append_images=pictures[1:], duration=40)
    found = frames(tmp_path / "x.gif")
    assert [int(entry.pixels[0, 0].argmax()) for entry in found] == [0, 1, 2]
    assert found[2].time == pytest.approx(0.08)


def test_a_recording_comes_in_pieces(tmp_path: pathlib.Path) -> None:
    samples = np.linspace(-1, 0.9, 4000, dtype=np.float32)[:, None]
    (tmp_path / "x.wav").write_bytes(encode_wav(samples, np.array(16000)).item())
    found = [entry for entry in stream(str(tmp_path / "x.wav")) if isinstance(entry, Sound)]
    assert [len(entry.samples) for entry in found] == [1600, 1600, 800]
    assert [entry.time for entry in found] == [0, 0.1, 0.2]
    np.testing.assert_allclose(np.concatenate([entry.samples for entry in found]), samples[:, 0], atol=1e-4)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Standard:
        buffer = io.BytesIO(picture((250, 0, 0), "JPEG") * 2)

    monkeypatch.setattr(sys, "stdin", Standard())
    assert len(frames("-")) == 2


def test_there_is_no_such_file(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FormatError, match="no such file"):
        stream(str(tmp_path / "none.mjpeg"))
    with pytest.raises(FormatError, match="no picture in this folder"):
        list(stream(str(tmp_path)))


def test_another_kind_names_the_extra(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + bytes(100))
    hidden: dict[str, Any] = {"cv2": None}
    monkeypatch.setitem(sys.modules, "cv2", hidden["cv2"])
    with pytest.raises(Exception, match=r"pocketgraph\[camera\]"):
        frames(tmp_path / "x.mp4")


PICAMERA = """
import numpy as np

told = []
patience = 1000


class Picamera2:
    def __init__(self, camera_num=0):
        if camera_num > 1:
            raise IndexError("list index out of range")
        if camera_num == 1:
            raise RuntimeError("Failed to acquire camera: Device or resource busy")
        told.append("opened")

    def create_video_configuration(self, main=None, lores=None, raw=None):
        return {"main": {"size": (1280, 720), "format": "XBGR8888", **main}}

    def configure(self, configuration):
        self.main = configuration["main"]

    def start(self):
        told.append("started")

    def capture_array(self, name="main"):
        global patience
        patience -= 1
        if patience < 0:
            raise KeyboardInterrupt  # as Ctrl-C ends a camera, which has no end of its own
        width, height = self.main["size"]
        assert self.main["format"] == "BGR888"
        picture = np.zeros((height, width, 3), np.uint8)
        picture[..., 0] = 200
        return picture

    def stop(self):
        told.append("stopped")

    def close(self):
        told.append("closed")
"""
"""The interface of picamera2 that is used, with its errors; a camera that sees red."""


@pytest.fixture
def picamera2(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "picamera2.py").write_text(PICAMERA)
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    yield importlib.import_module("picamera2")
    sys.modules.pop("picamera2")


def test_a_raspberry_pis_camera(picamera2: Any) -> None:
    camera = stream("0", camera_size=(320, 240))
    first, second = next(camera), next(camera)
    assert isinstance(first, Frame)
    assert first.pixels.shape == (240, 320, 3)
    assert first.pixels[0, 0].tolist() == [200, 0, 0]
    assert second.time >= first.time
    camera.close()  # type: ignore[attr-defined]
    assert picamera2.told == ["opened", "started", "stopped", "closed"]
    for number, why in (("2", "list index out of range.*list-cameras"), ("1", "busy")):
        with pytest.raises(FormatError, match=f"camera {number} does not open.*{why}"):
            next(stream(number))


def test_a_raspberry_pis_camera_on_the_command_line(picamera2: Any, tmp_path: pathlib.Path) -> None:
    save(parse(COLOURS), tmp_path / "model.pb")
    picamera2.patience = 8
    assert call("live", tmp_path / "model.pb", "--camera=0", "-o", tmp_path / "out.jsonl") == 0
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert 1 <= len(lines) <= 8
    assert {line["classes"][0]["label"] for line in lines} == {"class 0"}
    assert picamera2.told == ["opened", "started", "stopped", "closed"]


@pytest.fixture
def video(tmp_path: pathlib.Path) -> pathlib.Path:
    """Three frames of Motion JPEG in AVI, which OpenCV reads: red, green, blue."""
    cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed (pocketgraph[camera])")
    writer = cv2.VideoWriter(str(tmp_path / "x.avi"), cv2.VideoWriter_fourcc(*"MJPG"), 10.0, (64, 48))
    for colour in ((0, 0, 250), (0, 250, 0), (250, 0, 0)):  # blue first
        writer.write(np.full((48, 64, 3), colour, np.uint8))
    writer.release()
    return tmp_path / "x.avi"


def test_a_video_of_another_kind(video: pathlib.Path) -> None:
    found = frames(video)
    assert [int(entry.pixels[20, 20].argmax()) for entry in found] == [0, 1, 2]
    assert [entry.time for entry in found] == [0, 0.1, 0.2]
    video.write_bytes(b"no video at all" * 20)
    with pytest.raises(FormatError, match="neither a picture"):
        frames(video)


def test_a_camera_by_opencv(video: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import cv2

    opened = cv2.VideoCapture
    monkeypatch.setattr(cv2, "VideoCapture", lambda number: opened(str(video) if number == 0 else "none"))
    found = []
    with pytest.raises(FormatError, match=r"no more pictures.*unplugged"):
        for entry in stream("0"):
            assert isinstance(entry, Frame)
            found.append(int(entry.pixels[20, 20].argmax()))
    assert found == [0, 1, 2]
    with pytest.raises(FormatError, match="camera 3 does not open"):
        next(stream("3"))
