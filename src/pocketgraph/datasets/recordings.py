"""Recordings at the rate that a model hears: WAV files are read, and resampled where their rate is another.

A model that was trained on 16,000 samples a second hears a recording of 44,100 nearly three times as slow, and only its
first third, so that its ranges and its answers would mean nothing.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from pocketgraph.errors import FormatError, PocketgraphError, RunError
from pocketgraph.formats.files import opened, unreadable
from pocketgraph.graph.tensor import Array

FEWEST_SAMPLES = 160  # that a model hears; 10 ms, and fewer are numbers made of a recording
USUAL_RATE = 16000
"""Samples a second that networks for speech are trained with, as a rule."""
LEAST_RATE, MOST_RATE = 1000, 192000  # samples a second that a recording can have
CROSSINGS = 24  # zeros of the low-pass filter to either side
PASSED = 0.95  # of the narrower band
BLOCK = 1 << 20  # products at a time


def content_at(path: str, rate: int) -> bytes:
    """A recording as a WAV file of 16-bit samples, ``rate`` a second; the file's own bytes where it is one already.

    Raises:
        FormatError: it cannot be read, is no recording, or holds no samples.
    """
    from pocketgraph.kernels.audio.wav import encode_wav

    content, samples, given = recording(path)
    if given == rate and _has_16_bits(content):
        return content
    made = encode_wav(_at_rate(samples, given, rate).astype(np.float32), np.array(rate))
    return bytes(made.item())


def _has_16_bits(content: bytes) -> bool:
    """Whether DecodeWav takes a recording as it is."""
    from pocketgraph.kernels.audio.wav import read_wav

    try:
        read_wav(content)
    except RunError:
        return False
    return True


def _at_rate(samples: Array, given: int, wanted: int) -> Array:
    return samples if given == wanted else resampled(samples, given, wanted)


def samples_at(path: str, rate: int, count: int) -> Array:
    """The first channel with ``rate`` samples a second, float32 [count] from -1 to 1; cut, or filled with silence.

    Raises:
        FormatError: it cannot be read, is no recording, or holds no samples.
    """
    _, samples, given = recording(path)
    heard = _at_rate(samples[:, :1], given, rate)[:, 0]
    result = np.zeros(count, np.float32)
    result[: len(heard)] = heard[:count]
    return result


def rate_of(path: str) -> int | None:
    """The samples a second that a WAV file's header tells; None where it cannot be read."""
    return next((rate for rate, _ in _heads(path)), None)


def sample_count(path: str, rate: int) -> int | None:
    """How many samples a recording has at ``rate`` a second, as its header tells; None where it cannot be read."""
    header = next(((own, count) for own, count in _heads(path) if own and count is not None), None)
    return None if header is None else math.ceil(header[1] * rate / header[0])


def _heads(path: str) -> Iterator[tuple[int, int | None]]:
    """What a WAV file's chunks tell: its rate, and then, with it, how many samples there are."""
    try:
        with open(path, "rb") as file:
            if file.read(12)[8:] != b"WAVE":
                return
            rate = width = 0
            while len(head := file.read(8)) == 8:
                size, begin = struct.unpack_from("<I", head, 4)[0], file.tell()
                if head[:4] == b"fmt ":
                    rate, width = struct.unpack("<4xI4xH", file.read(14))
                    yield rate, None
                elif head[:4] == b"data" and width:
                    rest = os.path.getsize(path) - begin  # recorders that were interrupted wrote any size
                    yield rate, min(size, rest) // width
                file.seek(begin + size + size % 2)
    except (OSError, struct.error):
        return


def problem(path: str) -> str:
    """What is wrong with a recording; "" for nothing. One whose header tells how many samples it has is not read.

    Raises:
        FormatError: there is no such file.
    """
    if sample_count(path, USUAL_RATE):
        return ""
    try:
        recording(path)
    except FormatError as error:
        if not os.path.lexists(path):
            raise
        return error.what
    return ""


def resampled(samples: Array, given: int, wanted: int) -> Array:
    """What a recording of ``given`` samples a second is with ``wanted`` ones, float64.

    A sinc below both bands under a Hann window, as long as 24 of its zeros to either side (J. O. Smith, "Digital Audio
    Resampling"). Frequencies that the new rate cannot hold are gone.

    Args:
        samples: [samples, channels].
        given, wanted: samples a second.

    Returns:
        [samples x wanted / given, rounded up; channels].
    """
    stream = Resampler(given, wanted)
    return stream(np.pad(samples, ((0, stream.delay), (0, 0))))


class Resampler:
    """Resamples sound that comes block by block, as ``resampled`` does all of it at once.

    Attributes:
        given: samples a second of what comes.
        delay: samples that must have come behind one before what is made of it is complete.
    """

    def __init__(self, given: int, wanted: int) -> None:
        self.given = given
        common = math.gcd(given, wanted)
        self._down, self._up = given // common, wanted // common
        self._filters = _filters(self._down, self._up)
        self.delay = self._filters.shape[1] // 2
        self._held: Array | None = None
        self._begin = 1 - self.delay  # where in the stream the samples that are held begin
        self._made = 0

    def __call__(self, samples: Array) -> Array:
        """What can be made of the samples so far, float64 [samples, channels]; takes the next ones, of that shape."""
        before = np.zeros((self.delay - 1, samples.shape[1])) if self._held is None else self._held
        held = np.concatenate([before, samples])
        complete = self._begin + len(held) - self.delay
        end = max(self._made, -(-complete * self._up // self._down))
        result = np.empty((end - self._made, samples.shape[1]))
        rows = BLOCK // (2 * self.delay)
        for start in range(self._made, end, rows):
            at = np.arange(start, min(start + rows, end), dtype=np.int64) * self._down
            first = at // self._up + 1 - self.delay - self._begin
            places, weights = first[:, None] + np.arange(2 * self.delay), self._filters[at % self._up]
            for channel in range(samples.shape[1]):
                made = np.einsum("nt,nt->n", weights, held[places, channel])
                result[start - self._made : start - self._made + len(at), channel] = made
        self._made = end
        needed = end * self._down // self._up + 1 - self.delay
        self._held, self._begin = held[needed - self._begin :], needed
        return result


@lru_cache(maxsize=4)
def _filters(down: int, up: int) -> Array:
    """For each of the ``up`` places between two samples, the weights of the samples around it."""
    band = PASSED * min(1.0, up / down)
    reach = math.ceil(CROSSINGS / band)
    distance = np.arange(1 - reach, reach + 1) - np.arange(up)[:, None] / up
    window = np.where(np.abs(distance) < reach, 0.5 + 0.5 * np.cos(np.pi * distance / reach), 0.0)
    result: Array = band * np.sinc(band * distance) * window
    return result


def recording(path: str) -> tuple[bytes, Array, int]:
    """The content of a WAV file, its samples, float32 [samples, channels] from -1 to 1, and its rate.

    Raises:
        FormatError: it cannot be read, is no recording, or holds no samples.
    """
    try:
        with opened(path) as file:
            content = file.read()
    except OSError as error:
        raise unreadable("the recording", path, error) from None
    return (content, *recorded(content, path, "take it out"))


def recorded(content: bytes, where: str, hint: str = "") -> tuple[Array, int]:
    """The samples of a WAV file's content, float32 [samples, channels] from -1 to 1, and their rate.

    Raises:
        FormatError: it is no recording, or holds no samples.
    """
    from pocketgraph.kernels.audio.wav import read_wav

    try:
        samples, rate = read_wav(content, any_format=True)
    except PocketgraphError as error:
        raise FormatError(f"this is no recording: {error.what}", where=where, hint=_way_to_wav(content)) from error
    if not len(samples):
        raise FormatError("the recording is empty", where=where, hint=hint)
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise FormatError(f"the recording says that it has {rate} samples a second", where=where, hint=hint)
    return samples, rate


def _way_to_wav(content: bytes) -> str:
    """What to do with sound in another form; nothing where it is no sound."""
    begin = content[:12]
    is_other_sound = begin.startswith((b"ID3", b"fLaC", b"OggS", b"\xff\xfb", b"\xff\xf3", b"FORM", b"\x1aE\xdf\xa3"))
    if is_other_sound or begin[4:8] == b"ftyp" or (begin[:4] == b"RIFF" and begin[8:] == b"WAVE" and len(content) > 44):
        return "make a WAV file of it: ffmpeg -i RECORDING -c:a pcm_s16le RECORDING.wav"
    return ""
