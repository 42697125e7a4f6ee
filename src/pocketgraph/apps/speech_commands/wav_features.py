"""What a network of spoken words is given of a recording, as C: the numbers to test a device's own code with.

The features and the file are those of wav_to_features.py and input_data.py of TensorFlow 1.15
(tensorflow/examples/speech_commands).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pocketgraph.errors import FormatError, RunError, UsageError, option
from pocketgraph.formats.files import opened, unreadable
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.kernels.arrays import Array

RANGES = {"mfcc": (-247.0, 30.0), "average": (0.0, 127.5), "micro": (0.0, 26.0)}
"""The kinds of features, and of each the range that eight bits stand for."""
MICRO_SCALE = np.float32(10.0 / 256.0)
BANDS, LIMITS = 40, (20.0, 4000.0)
"""Of Mfcc: mel bands, and the hertz between which they are."""
IN_A_ROW = 10  # numbers


@dataclass(frozen=True)
class FeatureSettings:
    """How features are made, by the names of wav_to_features.py.

    Raises:
        UsageError: settings of which no features can be made.
    """

    sample_rate: int = 16000
    clip_duration_ms: int = 1000
    window_size_ms: float = 30.0
    window_stride_ms: float = 10.0
    feature_bin_count: int = 40
    preprocess: str = "mfcc"

    def __post_init__(self) -> None:
        if self.preprocess not in RANGES:
            raise UsageError(f"{option('preprocess')} is {', '.join(RANGES)}, not '{self.preprocess}'")
        if self.window < 2 or self.stride < 1 or self.feature_bin_count < 1:
            raise UsageError(
                f"no features: windows of {self.window} samples every {self.stride}, {self.feature_bin_count} a window",
                hint=f"pass larger {option('window_size_ms')}, {option('window_stride_ms')} "
                f"or {option('feature_bin_count')}",
            )
        most = {"mfcc": BANDS, "average": self.bins}.get(self.preprocess, self.feature_bin_count)
        if self.feature_bin_count > most:
            raise UsageError(
                f"there are {most} features of a window at most ({self.preprocess}), not {self.feature_bin_count}",
                hint=f"pass {option('feature_bin_count')}={most} or less",
            )

    @property
    def samples(self) -> int:
        """Of a clip."""
        return int(self.sample_rate * self.clip_duration_ms / 1000)

    @property
    def window(self) -> int:
        """Samples."""
        return int(self.sample_rate * self.window_size_ms / 1000)

    @property
    def stride(self) -> int:
        """Samples."""
        return int(self.sample_rate * self.window_stride_ms / 1000)

    @property
    def bins(self) -> int:
        """Frequencies of a window's spectrum."""
        return 1 + (1 << (self.window - 1).bit_length()) // 2

    @property
    def averaged(self) -> int:
        """Frequencies that an average is made of."""
        return self.bins // self.feature_bin_count

    @property
    def width(self) -> int:
        """Features of a window."""
        return math.ceil(self.bins / self.averaged) if self.preprocess == "average" else self.feature_bin_count

    @property
    def height(self) -> int:
        """Windows of a clip."""
        return 0 if self.samples < self.window else 1 + (self.samples - self.window) // self.stride


def features_of(path: str, settings: FeatureSettings) -> tuple[Array, int]:
    """The features of a recording's first channel, float32 [height, width], and its samples a second.

    The clip is cut, or filled with silence. It is not resampled, as it is not there.

    Raises:
        FormatError: the file is no WAV file of 16-bit samples.
        UsageError: settings of which no features can be made.
    """
    from pocketgraph.kernels.audio.microfrontend import audio_microfrontend
    from pocketgraph.kernels.audio.spectrograms import audio_spectrogram, log_energies
    from pocketgraph.kernels.audio.wav import decode_wav

    try:
        with opened(path) as file:
            content = np.array(file.read(), object)
    except OSError as error:
        raise unreadable("the recording", path, error) from None
    try:
        samples, rate = decode_wav(content, desired_channels=1, desired_samples=settings.samples)
    except RunError as error:
        raise FormatError(f"this is no recording of 16-bit samples: {error.what}", where=path) from None
    try:
        if settings.preprocess == "micro":
            features = MICRO_SCALE * audio_microfrontend(
                (samples[:, 0] * np.float32(32768)).astype(np.int16),
                sample_rate=settings.sample_rate,
                window_size=settings.window * 1000 // settings.sample_rate,
                window_step=settings.stride * 1000 // settings.sample_rate,
                num_channels=settings.width,
                enable_pcan=True,
                out_type=FLOAT,
            )
        else:
            spectrum = audio_spectrogram(
                samples, window_size=settings.window, stride=settings.stride, magnitude_squared=True
            )
            if settings.preprocess == "mfcc":
                features = _coefficients(log_energies(spectrum[0], float(rate), BANDS, *LIMITS), settings.width)
            else:
                features = _averages(spectrum[0], settings.averaged)
    except (RunError, ValueError) as error:
        raise UsageError(f"no features can be made with these settings: {error}") from None
    return features.astype(np.float32, copy=False), int(rate)


def _coefficients(logs: Array, count: int) -> Array:
    """The cosine transform, summed band by band as the original's: of silence it has zeros of the same sign."""
    from pocketgraph.kernels.audio.spectrograms import cosines

    sums = np.zeros((len(logs), count))
    for band, factors in enumerate(cosines(logs.shape[1], count)):
        sums += factors * logs[:, band, None]
    return sums


def _averages(spectrum: Array, width: int) -> Array:
    """The means of ``width`` frequencies each, the last ones centered, as average pooling with SAME padding has it."""
    missing = -spectrum.shape[1] % width
    wide = np.pad(spectrum, ((0, 0), (missing // 2, missing - missing // 2)))
    counts = np.pad(np.ones(spectrum.shape[1], np.float32), (missing // 2, missing - missing // 2))
    sums = np.zeros((len(wide), wide.shape[1] // width), np.float32)
    for place in range(width):  # in the order of the original, float32 each
        sums += wide[:, place::width]
    return np.asarray(sums / counts.reshape(-1, width).sum(axis=1))


def c_source(features: Array, settings: FeatureSettings, *, wav: str, output: str, quantize: bool) -> Iterator[str]:
    """The C file, piece by piece, byte by byte as wav_to_features.py writes it.

    Characters of the recording's name that no name in C has become ``_``.

    Args:
        features: float32 [height, width].
        settings: that they were made with.
        wav, output: paths, for the comment.
        quantize: as ``unsigned char``, 0 and 255 being the ends of what ``RANGES`` says; else as ``float``.
    """
    base = re.sub(r"\W", "_", os.path.splitext(os.path.basename(wav).lower())[0], flags=re.ASCII)
    yield "/* File automatically created by\n * tensorflow/examples/speech_commands/wav_to_features.py \\\n"
    for name in ("sample_rate", "clip_duration_ms", "window_size_ms", "window_stride_ms", "feature_bin_count"):
        yield f" * --{name}={int(getattr(settings, name))} \\\n"
    yield " * --quantize=1 \\\n" * quantize
    yield f' * --preprocess="{settings.preprocess}" \\\n * --input_wav="{wav}" \\\n'
    yield f' * --output_c_file="{output}" \\\n */\n\n'
    yield f"const int g_{base}_width = {settings.width};\nconst int g_{base}_height = {settings.height};\n"
    numbers = features.reshape(-1).astype(np.float64)
    if quantize:
        low, high = RANGES[settings.preprocess]
        numbers = np.clip(np.rint(255 * (numbers - low) / (high - low)), 0, 255) + 0.0  # no -0
    yield f"const {'unsigned char' if quantize else 'float'} g_{base}_data[] = {{" + "\n" * (not quantize)
    spelled = "{:.0f}, " if quantize else "{:f}, "
    for start in range(0, len(numbers), IN_A_ROW):
        yield "\n  " + "".join(map(spelled.format, numbers[start : start + IN_A_ROW]))
    yield "\n};\n"
