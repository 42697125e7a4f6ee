"""Where frames and sounds come from: a camera, a folder of pictures, a video, a recording, standard input."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from time import monotonic
from typing import IO, Any, BinaryIO

import numpy as np

from pocketgraph.apps.live.answers import Frame, Sound
from pocketgraph.apps.live.geometry import from_yuv
from pocketgraph.datasets import image_loading
from pocketgraph.errors import FormatError, UsageError, option
from pocketgraph.graph.tensor import Array

VIDEO_RATE = 25.0
"""Frames a second of a video that does not tell."""
MOST_FRAME_BYTES = 1 << 26  # bytes of one frame
MOST_SIDE = 1 << 13  # pixels
CHUNK_MS = 100
"""Of a recording that is read as a stream."""


def stream(
    source: str,
    camera_size: tuple[int, int] = (640, 480),
    broken: Callable[[FormatError], None] | None = None,
) -> Iterator[Frame | Sound]:
    """The frames or sounds of a source, as they come.

    Args:
        source: a camera's number, a folder, a picture, a video (Motion JPEG, YUV4MPEG2, GIF; others with OpenCV), a
            WAV file, or ``-``: one of these on standard input.
        camera_size: width and height that a camera is asked for.
        broken: is told of each picture of a folder that does not open, and is then left out; by default it is the end.

    Raises:
        FormatError: it cannot be read, or is none of these.
        UsageError: what it takes is not installed.
    """
    if source.isdecimal():
        return _camera(int(source), camera_size)
    if source == "-":
        return _content(sys.stdin.buffer, "standard input")
    if os.path.isdir(source):
        return _folder(source, broken)
    if not os.path.exists(source):
        raise FormatError("there is no such file or folder", where=source)
    return _opened(source)


def is_endless(source: str) -> bool:
    """Whether a source goes on until somebody stops it."""
    return source.isdecimal()


def _opened(path: str) -> Iterator[Frame | Sound]:
    with open(path, "rb") as file:
        yield from _content(file, path)


def _content(file: BinaryIO | IO[bytes], where: str) -> Iterator[Frame | Sound]:
    """What a file holds, by its first bytes."""
    head = _peek(file, 16)
    reader = _Joined(head, file)
    if head.startswith(b"YUV4MPEG2"):
        yield from _y4m(reader, where)
    elif head.startswith(b"\xff\xd8"):
        yield from _jpegs(reader, where)
    elif head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        yield from _recording(reader.read(1 << 30), where)
    elif head.startswith((b"GIF8", b"\x89PNG", b"BM")) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP"):
        yield from _pictures(reader.read(1 << 30), where)
    elif not head:
        raise FormatError("there is nothing in it", where=where)
    elif os.path.exists(where):
        yield from _video(where)
    else:
        raise FormatError(
            "this is neither a picture, nor a recording, nor a video",
            where=where,
            hint="give Motion JPEG, Y4M, GIF or WAV",
        )


class _Joined:
    """Bytes that were read already, and the rest of a file."""

    def __init__(self, head: bytes, file: BinaryIO | IO[bytes]) -> None:
        self._head, self._file = head, file

    def read(self, size: int) -> bytes:
        """As a file's; less only at the end."""
        parts, left = [self._head[:size]], size - len(self._head[:size])
        self._head = self._head[size:]
        while left > 0:
            part = self._file.read(min(left, 1 << 20))
            if not part:
                break
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def some(self) -> bytes:
        """What is there now, at least a byte unless the file ends."""
        if self._head:
            head, self._head = self._head, b""
            return head
        reader: Any = getattr(self._file, "read1", self._file.read)
        found: bytes = reader(1 << 16)
        return found

    def line(self) -> bytes:
        """Up to the next line's end, which is taken and not given."""
        found = bytearray()
        while len(found) < 4096:
            byte = self.read(1)
            if byte in (b"", b"\n"):
                break
            found += byte
        return bytes(found)


def _peek(file: BinaryIO | IO[bytes], size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = file.read(size - len(found))
        if not part:
            break
        found += part
    return found


def _folder(path: str, broken: Callable[[FormatError], None] | None) -> Iterator[Frame]:
    """Each picture of a folder and of those inside, by name."""
    from pocketgraph.datasets import file_lists

    places = [place for place in file_lists.files_in(path) if file_lists.is_picture(place)]
    if not places:
        raise FormatError("there is no picture in this folder", where=path)
    for number, place in enumerate(places):
        try:
            pixels = image_loading.read(place)
        except FormatError as error:
            if broken is None:
                raise
            broken(error)
            continue
        yield Frame(pixels, float(number), place, alone=True)


def _pictures(data: bytes, where: str) -> Iterator[Frame]:
    """A picture, or the frames of an animated one at their times."""
    from PIL import Image, ImageSequence

    try:
        with Image.open(io.BytesIO(data)) as picture:
            if picture.width * picture.height > MOST_FRAME_BYTES:
                raise FormatError(f"the picture claims {picture.width} x {picture.height} pixels", where=where)
            count = int(getattr(picture, "n_frames", 1))
            time = 0.0
            for number, entry in enumerate(ImageSequence.Iterator(picture)):
                name = f"{where}#{number}" if count > 1 else where
                yield Frame(image_loading.decoded_pixels(entry), time, name, alone=count == 1)
                time += float(entry.info.get("duration") or 1000 / VIDEO_RATE) / 1000
    except FormatError:
        raise
    except Exception as error:  # decoders answer a damaged file with whatever exception it happens to lead to
        raise FormatError(f"the picture is damaged or cut short ({error})", where=where) from None


def _jpegs(reader: _Joined, where: str) -> Iterator[Frame]:
    """JPEG pictures one after the other; a single one is a photo. What is between them is skipped."""
    waiting = bytearray()
    number, begun = 0, False
    held: Frame | None = None
    while True:
        more = reader.some()
        waiting += more
        while True:
            start = waiting.find(b"\xff\xd8\xff")
            end = waiting.find(b"\xff\xd9", start + 2) if start >= 0 else -1
            following = waiting.find(b"\xff\xd8\xff", end + 2) if end >= 0 else -1
            if following < 0 and (more or end < 0):
                break
            stop = following if following >= 0 else len(waiting)  # a thumbnail inside has an end of its own
            content = bytes(waiting[start:stop])
            frame = _jpeg(content)
            if frame is None and following >= 0:
                later = waiting.find(b"\xff\xd8\xff", following + 2)
                if later >= 0:
                    frame, stop = _jpeg(bytes(waiting[start:later])), later
                elif more:
                    break
            del waiting[:stop]
            if frame is None:
                raise FormatError("a picture is damaged or cut short", where=f"{where}#{number}")
            if held is not None:
                begun = True
                yield held
            held = Frame(frame, number / VIDEO_RATE, f"{where}#{number}")
            number += 1
        if len(waiting) > MOST_FRAME_BYTES:
            raise FormatError(f"a picture takes over {MOST_FRAME_BYTES:,} bytes", where=where)
        if not more:
            break
    if held is None:
        raise FormatError("a picture is damaged or cut short", where=where)
    cut = waiting.find(b"\xff\xd8\xff") >= 0
    yield held if begun or cut else Frame(held.pixels, 0.0, where, alone=True)
    if cut:
        raise FormatError("a picture is damaged or cut short", where=f"{where}#{number}")


def _jpeg(data: bytes) -> Array | None:
    """One JPEG's pixels; None where it is damaged."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=["JPEG"]) as picture:
            if picture.width * picture.height > MOST_FRAME_BYTES:
                return None
            return np.asarray(picture.convert("RGB"))
    except Exception:  # as in _pictures
        return None


def _y4m(reader: _Joined, where: str) -> Iterator[Frame]:
    """YUV4MPEG2: a line of parameters, then frames of planes (4:2:0, 4:2:2, 4:4:4 or gray, 8 bits)."""
    words = reader.line().decode("ascii", "replace").split()
    header = {word[0]: word[1:] for word in words[1:] if word}
    try:
        width, height = int(header["W"]), int(header["H"])
        over, under = (int(part) for part in header.get("F", "25:1").split(":"))
    except (KeyError, ValueError):
        raise FormatError("the video does not tell its size and rate", where=where) from None
    space = header.get("C", "420")
    down = {"420": (2, 2), "422": (1, 2), "444": (1, 1), "mono": (0, 0)}
    kind = next((kind for kind in down if space.startswith(kind) and "p1" not in space.removeprefix(kind)[:3]), None)
    if kind is None:
        raise FormatError(
            f"this video has colours as {space}", where=where, hint="give 4:2:0, 4:2:2 or 4:4:4 in 8 bits"
        )
    if not (0 < width <= MOST_SIDE and 0 < height <= MOST_SIDE):
        raise FormatError(f"the video claims {width} x {height} pixels", where=where)
    rate = over / under if over > 0 and under > 0 else VIDEO_RATE
    rows, columns = (-(-height // (down[kind][0] or 1)), -(-width // (down[kind][1] or 1)))
    number = 0
    while (head := reader.line()).startswith(b"FRAME"):
        light = _plane(reader, height, width, where, number)
        if kind == "mono":
            blue = red = np.full((height, width), 128, np.uint8)
        else:
            blue, red = _plane(reader, rows, columns, where, number), _plane(reader, rows, columns, where, number)
            if kind == "422":
                blue, red = (plane.repeat(2, 1)[:, :width] for plane in (blue, red))
        yield Frame(from_yuv(light, blue, red), number / rate, f"{where}#{number}")
        number += 1
    if head or not number:
        raise FormatError("the video is damaged or has no frame", where=f"{where}#{number}")


def _plane(reader: _Joined, rows: int, columns: int, where: str, number: int) -> Array:
    data = reader.read(rows * columns)
    if len(data) < rows * columns:
        raise FormatError("the video ends within a frame", where=f"{where}#{number}")
    return np.frombuffer(data, np.uint8).reshape(rows, columns)


def _recording(data: bytes, where: str) -> Iterator[Sound]:
    """A WAV file's first channel, in pieces."""
    from pocketgraph.datasets.recordings import recorded

    samples, rate = recorded(data, where)
    step = max(1, rate * CHUNK_MS // 1000)
    for start in range(0, len(samples), step):
        yield Sound(samples[start : start + step, 0], rate, start / rate, where)


def _camera(number: int, size: tuple[int, int]) -> Iterator[Frame]:
    """A Raspberry Pi's camera by picamera2 where that is installed, else any camera by OpenCV."""
    from importlib.util import find_spec

    begun = monotonic()
    if find_spec("picamera2") is not None:
        from picamera2 import Picamera2

        try:
            camera = Picamera2(number)
        except (IndexError, RuntimeError) as error:  # there is none of this number; another program has it
            raise FormatError(
                f"camera {number} does not open: {error}",
                hint="`rpicam-hello --list-cameras` shows those that are there",
            ) from None
        try:
            # Red is first in memory.
            camera.configure(camera.create_video_configuration({"size": size, "format": "BGR888"}))
            camera.start()
            while True:
                yield Frame(np.asarray(camera.capture_array())[..., :3], monotonic() - begun)
        finally:
            camera.stop()
            camera.close()
    cv2 = _opencv("a camera")
    device = cv2.VideoCapture(number)
    try:
        if not device.isOpened():
            raise FormatError(f"camera {number} does not open", hint="is it plugged in, and used by no other program?")
        device.set(cv2.CAP_PROP_FRAME_WIDTH, size[0])
        device.set(cv2.CAP_PROP_FRAME_HEIGHT, size[1])
        device.set(cv2.CAP_PROP_BUFFERSIZE, 1)
        while True:
            there, picture = device.read()
            if not there:
                raise FormatError(f"camera {number} gives no more pictures", hint="was it unplugged?")
            yield Frame(np.ascontiguousarray(picture[..., ::-1]), monotonic() - begun)
    finally:
        device.release()


def _video(path: str) -> Iterator[Frame]:
    """A video of any other kind, by OpenCV."""
    cv2 = _opencv("a video of this kind")
    device = cv2.VideoCapture(path)
    try:
        rate = float(device.get(cv2.CAP_PROP_FPS) or VIDEO_RATE)
        number = 0
        while True:
            there, picture = device.read()
            if not there:
                break
            yield Frame(np.ascontiguousarray(picture[..., ::-1]), number / rate, f"{path}#{number}")
            number += 1
    finally:
        device.release()
    if not number:
        raise FormatError("this is neither a picture, nor a recording, nor a video", where=path)


def _opencv(what: str) -> Any:
    try:
        import cv2
    except ImportError:
        raise UsageError(
            f"{what} is read by OpenCV, which is not installed",
            hint=f"pip install 'pocketgraph[camera]', or give {option('input')} a folder, Motion JPEG, Y4M, GIF or WAV",
        ) from None
    return cv2
