"""A long recording of known words over noise, to judge by test_streaming_accuracy what a model hears in it.

Which recordings are taken, and where they stand, is as in generate_streaming_test_wav.py and input_data.py
of TensorFlow 1.15 (tensorflow/examples/speech_commands), for the same numbers drawn by NumPy.
"""

from __future__ import annotations

import glob
import math
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pocketgraph.apps.live.word_recognition import SILENCE
from pocketgraph.apps.retraining.example_lists import category_of
from pocketgraph.datasets.file_lists import BACKGROUND_NOISE
from pocketgraph.datasets.recordings import sample_count, samples_at
from pocketgraph.datasets.sample_reading import Notify, unheard
from pocketgraph.errors import FormatError, UsageError, option
from pocketgraph.formats.files import near
from pocketgraph.kernels.arrays import Array, reserve

UNKNOWN = "_unknown_"
UNKNOWN_SHARE = 10  # per cent of the recordings of wanted words
SHUFFLED_BY = 59185  # input_data.RANDOM_SEED
SETS = ("validation", "testing", "training")
CROSSING_MS = 500  # in which one stretch of noise gives way to the next
WORD_RAMP = 500  # samples in which a word gets loud, and in which it fades


@dataclass(frozen=True)
class StreamingRecording:
    """What is made.

    Attributes:
        samples: float32 [count].
        words: each with the milliseconds at which its clip begins.
    """

    samples: Array
    words: list[tuple[str, float]]


def streaming_recording(
    folder: str,
    words: Sequence[str],
    *,
    noise_folder: str = "",
    background_volume: float = 0.1,
    silence_percentage: float = 10,
    testing_percentage: float = 10,
    validation_percentage: float = 10,
    sample_rate: int = 16000,
    clip_duration_ms: int = 1000,
    test_duration_seconds: int = 600,
    word_gap_ms: int = 2000,
    unknown_percentage: int = 30,
    seed: int | None = None,
    warn: Notify = unheard,
) -> StreamingRecording:
    """Mixes recordings of a data set's testing part, and stretches of its noises, into one long recording.

    Args:
        folder: has a folder of recordings a word.
        words: those that a model knows; recordings of others are ``_unknown_``.
        noise_folder: of long recordings of noise; by default ``_background_noise_`` in ``folder``.
        background_volume: the most that noise is multiplied with.
        testing_percentage, validation_percentage: of the recordings, by a hash of their names, as train.py splits them.
        silence_percentage: as for train.py; it decides in which order recordings are shuffled.
        sample_rate: samples a second; recordings of other rates are resampled.
        clip_duration_ms: how long a word's recording is.
        word_gap_ms: in which a word begins, at random, within each clip_duration_ms + word_gap_ms.
        unknown_percentage: of the words that are heard.
        seed: of what is drawn; None for another recording each time.
        warn: told that there is no noise.

    Raises:
        FormatError: there are no recordings, or one cannot be read, or a noise is shorter than a clip.
        UsageError: no recording of a word is in the testing part, or clips or gaps have no samples.
    """
    examples = _testing_part(folder, words, silence_percentage, testing_percentage, validation_percentage)
    draw = np.random.RandomState(seed)
    total, clip = sample_rate * test_duration_seconds, clip_duration_ms * sample_rate // 1000
    gap = word_gap_ms * sample_rate // 1000
    if clip < 1 or gap < 1:
        raise UsageError(
            f"at {sample_rate} samples a second clips have {clip} samples, and gaps {gap}",
            hint=f"pass larger {option('clip_duration_ms')} and {option('word_gap_ms')}",
        )
    track = np.zeros(reserve((total,), np.dtype(np.float32)), np.float32)
    noises = _noises(noise_folder or os.path.join(folder, BACKGROUND_NOISE), bool(noise_folder), sample_rate, clip)
    if not noises:
        warn(f"there is no folder {BACKGROUND_NOISE} in {folder}: the words stand in silence")
    length, ramp = (clip_duration_ms + CROSSING_MS) * sample_rate // 1000, CROSSING_MS * sample_rate // 2000
    for begin in range(0, total, clip) if noises else ():
        noise = noises[draw.randint(len(noises))]
        start = draw.randint(0, len(noise) - clip)
        _mix(track, begin, noise[start:], length, draw.uniform(0, background_volume), ramp)
    stride, said = (clip_duration_ms + word_gap_ms) * sample_rate // 1000, []
    for turn in range(total // stride):
        begin = turn * stride + draw.randint(gap)
        word = UNKNOWN if draw.randint(100) < unknown_percentage else words[draw.randint(len(words))]
        start, order = draw.randint(len(examples)), np.arange(len(examples), dtype=np.int32)
        draw.shuffle(order)
        path = next((path for label, path in (examples[at] for at in np.roll(order, -start)) if label == word), None)
        if path is None:
            raise UsageError(
                f"no recording of '{word}' is in the testing part", where=folder,
                hint=f"pass a larger {option('testing_percentage')}, or {option('unknown_percentage')}=0 "
                "where all words are wanted",
            )  # fmt: skip
        _mix(track, begin, samples_at(path, sample_rate, clip), clip, 1.0, WORD_RAMP)
        said.append((word, begin * 1000 / sample_rate))
    return StreamingRecording(track, said)


def _testing_part(
    folder: str, words: Sequence[str], silence: float, testing: float, validation: float
) -> list[tuple[str, str]]:
    """(word, path) of each recording of the testing part, in the order into which input_data.py shuffles them."""
    known: dict[str, list[tuple[str, str]]] = {part: [] for part in SETS}
    unknown: dict[str, list[tuple[str, str]]] = {part: [] for part in SETS}
    seen = set()
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*", "*.wav"))):
        word = os.path.basename(os.path.dirname(path)).lower()
        if word == BACKGROUND_NOISE:
            continue
        seen.add(word)
        part = category_of(path, testing, validation)
        (known if word in words else unknown)[part].append((word if word in words else UNKNOWN, path))
    if not seen:
        hint = f"pass {option('data_dir')}=FOLDER that has a folder a word, with recordings that end in .wav"
        raise FormatError("there are no recordings in folders here", where=folder, hint=hint)
    if missing := [word for word in words if word not in seen]:
        raise UsageError(
            f"there is no folder of '{missing[0]}', only of {', '.join(sorted(seen))}", where=folder,
            hint=f"pass {option('wanted_words')}=A,B",
        )  # fmt: skip
    shuffler = random.Random(SHUFFLED_BY)
    for part in SETS:
        count = len(known[part])
        known[part] += [(SILENCE, "")] * math.ceil(count * silence / 100)
        shuffler.shuffle(unknown[part])
        known[part] += unknown[part][: math.ceil(count * UNKNOWN_SHARE / 100)]
    for part in SETS:
        shuffler.shuffle(known[part])
        if part == "testing" and not known[part]:
            raise UsageError(
                "no recording of the wanted words is in the testing part, which their names decide", where=folder,
                hint=f"pass a larger {option('testing_percentage')}",
            )  # fmt: skip
    return known["testing"]


def _noises(folder: str, is_told: bool, rate: int, clip: int) -> list[Array]:
    """The recordings of a folder of noises, float32 [samples]; none where the folder is not there."""
    if not os.path.isdir(folder) and not is_told:
        return []
    paths = sorted(glob.glob(os.path.join(glob.escape(folder), "*.wav")))
    if not paths:
        raise FormatError("there are no .wav files of noise in this folder", where=folder, hint=near(folder))
    found = []
    for path in paths:
        noise = samples_at(path, rate, sample_count(path, rate) or 0)
        if len(noise) <= clip:
            raise FormatError(
                f"Background sample is too short! Need more than {clip} samples but only {len(noise)} were found",
                where=path, hint="take it out, or take a longer one",
            )  # fmt: skip
        found.append(noise)
    return found


def _mix(track: Array, begin: int, sound: Array, length: int, volume: float, ramp: int) -> None:
    """Adds ``length`` samples of a sound, or what there is of them, from a place of the track on."""
    count = min(length, len(track) - begin, len(sound))
    place = np.arange(count)
    envelope = np.ones(count)
    fades, rises = place > length - ramp, place < ramp
    envelope[fades] = (length - place[fades]) / ramp
    envelope[rises] = place[rises] / ramp
    part = track[begin : begin + count]
    part[:] = part + sound[:count].astype(np.float64) * envelope * volume
