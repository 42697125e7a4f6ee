"""Answers written without a browser: annotated pictures in a folder, one animated GIF, or JSON lines."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections import Counter
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from pocketgraph.apps.live.answers import SPECTROGRAM, Answer, Frame, Sound
from pocketgraph.apps.live.drawing import annotated
from pocketgraph.apps.live.geometry import resized_nearest
from pocketgraph.errors import UsageError, option
from pocketgraph.formats.files import check_place, write_atomically
from pocketgraph.graph.tensor import Array
from pocketgraph.pages.quantities import counted

GIF_SIDE = 480
"""Pixels of the longer side of an animated picture."""
MOST_GIF_FRAMES = 2000  # frames of a GIF, which keeps all in memory


class Writer(Protocol):
    """What takes answers."""

    def __call__(self, given: Frame | Sound, answer: Answer) -> None:
        """Takes one."""

    def close(self) -> str:
        """Ends; what was written, in words."""


def writer(output: str) -> Writer:
    """What writes to ``output``: ``-`` and .jsonl JSON lines, .gif an animation, .png one picture, else a folder.

    Raises:
        UsageError: it is none of these, or cannot be written.
    """
    if output in ("-", "/dev/stdout") or output.lower().endswith((".jsonl", ".ndjson")):
        return _JsonLines(output)
    if output.lower().endswith(".gif"):
        return _Animation(output)
    if output.lower().endswith(".png") and not os.path.isdir(output):
        return _PictureFile(output)
    if os.path.isdir(output) or not os.path.splitext(output)[1] or output.endswith(os.sep):
        return Folder(output)
    raise UsageError(
        f"{option('output')}={output} is none of what can be written", hint="give a folder, x.png, x.gif, x.jsonl or -"
    )


def json_line(given: Frame | Sound, answer: Answer) -> dict[str, Any]:
    """One line of JSON lines, without what is there to be seen: pixels, and spectrograms."""
    told = answer.as_json()
    told.get("values", {}).pop(SPECTROGRAM, None)
    return {"time": round(given.time, 3), **({"name": given.name} if given.name else {}), **told}


class _JsonLines:
    """One line an answer; a file is there as soon as the first line is."""

    def __init__(self, output: str) -> None:
        self._output, self._count = output, 0
        if output in ("-", "/dev/stdout"):
            self._file = sys.stdout
            return
        check_place(output)
        try:
            self._file = open(output, "w", encoding="utf-8")  # noqa: SIM115 (closed by close)
        except OSError as error:
            raise UsageError(f"'{output}' cannot be written: {error.strerror}") from None

    def __call__(self, given: Frame | Sound, answer: Answer) -> None:
        """Writes a line at once, so that a program behind a pipe can use it."""
        print(json.dumps(json_line(given, answer), ensure_ascii=False), file=self._file, flush=True)
        self._count += 1

    def close(self) -> str:
        """Ends."""
        if self._file is not sys.stdout:
            self._file.close()
        return f"{self._output}: {counted(self._count, 'line')}"


class Folder:
    """One annotated picture a frame, as PNG."""

    def __init__(self, output: str) -> None:
        try:
            os.makedirs(output, exist_ok=True)
        except OSError as error:
            raise UsageError(f"the folder '{output}' cannot be made: {error.strerror}") from None
        self._output, self._count = output, 0
        self._stems: Counter[str] = Counter()

    def __call__(self, given: Frame | Sound, answer: Answer) -> None:
        """Writes a picture; a sound has none. Photos of one name, from several folders, are counted in it."""
        frame = _frame(given)
        stem = re.sub(r"[^\w.#-]+", "_", os.path.splitext(os.path.basename(frame.name))[0]) or "frame"
        self._stems[stem] += 1
        again = f"-{self._stems[stem]}" if self._stems[stem] > 1 else ""
        name = f"{self._count:06d}-{stem}.png" if not frame.alone else f"{stem}{again}.png"
        write_atomically(os.path.join(self._output, name), _png(annotated(frame.pixels, answer)))
        self._count += 1

    def close(self) -> str:
        """Ends."""
        return f"{self._output}: {counted(self._count, 'picture')}"


class _PictureFile:
    """The one annotated picture of a photo, as PNG."""

    def __init__(self, output: str) -> None:
        self._output = check_place(output)
        self._is_there = False

    def __call__(self, given: Frame | Sound, answer: Answer) -> None:
        """Writes it; there is but one."""
        frame = _frame(given)
        if self._is_there:
            raise UsageError(
                f"there are several frames, and {self._output} is one picture", hint="give a folder or x.gif"
            )
        write_atomically(self._output, _png(annotated(frame.pixels, answer)))
        self._is_there = True

    def close(self) -> str:
        """Ends."""
        return f"{self._output}: {'one picture' if self._is_there else 'nothing was written, as there was no frame'}"


class _Animation:
    """All frames as one animated GIF."""

    def __init__(self, output: str) -> None:
        self._output = check_place(output)
        self._frames: list[Array] = []
        self._times: list[float] = []
        self._left_out = 0

    def __call__(self, given: Frame | Sound, answer: Answer) -> None:
        """Keeps a frame, made smaller."""
        frame = _frame(given)
        if len(self._frames) == MOST_GIF_FRAMES:
            self._left_out += 1
            return
        drawn = annotated(frame.pixels, answer)
        factor = min(1.0, GIF_SIDE / max(drawn.shape[:2]))
        size = max(1, round(drawn.shape[0] * factor)), max(1, round(drawn.shape[1] * factor))
        self._frames.append(resized_nearest(drawn, *size))
        self._times.append(frame.time)

    def close(self) -> str:
        """Writes the file."""
        from PIL import Image

        if not self._frames:
            return f"{self._output}: nothing was written, as there were no frames"
        height, width = (max(frame.shape[side] for frame in self._frames) for side in (0, 1))
        pictures = [Image.fromarray(_in_the_middle(frame, height, width)) for frame in self._frames]
        steps = [max(20, round(1000 * (after - before))) for before, after in pairwise(self._times)]
        buffer = io.BytesIO()
        pictures[0].save(
            buffer,
            "GIF",
            save_all=True,
            append_images=pictures[1:],
            duration=[*steps, steps[-1] if steps else 500],
            loop=0,
        )
        write_atomically(self._output, buffer.getvalue())
        left = f"; {self._left_out:,} more were left out" if self._left_out else ""
        return f"{self._output}: {counted(len(pictures), 'frame')}{left}"


def _frame(given: Frame | Sound) -> Frame:
    if isinstance(given, Sound):
        raise UsageError("sounds make no pictures", hint=f"pass {option('output')}=words.jsonl")
    return given


def _in_the_middle(pixels: Array, height: int, width: int) -> Array:
    """A frame in a black one of the animation's size, as all of its frames cover the ones before."""
    if pixels.shape[:2] == (height, width):
        return pixels
    made = np.zeros((height, width, 3), np.uint8)
    top, left = (height - pixels.shape[0]) // 2, (width - pixels.shape[1]) // 2
    made[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
    return made


def _png(pixels: Array) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()
