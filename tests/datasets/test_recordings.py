"""Recordings of other rates become what they would be at the model's rate."""

from __future__ import annotations

import pathlib
import struct

import numpy as np
import pytest

from pocketgraph.datasets.recordings import content_at, rate_of, resampled, samples_at
from pocketgraph.errors import FormatError
from pocketgraph.kernels.audio.wav import encode_wav, read_wav

RATES = [(44100, 16000), (22050, 16000), (8000, 16000), (48000, 16000), (16000, 44100), (11025, 8000)]


def tone(hertz: float, rate: int, seconds: float = 0.5) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(round(rate * seconds)) / rate)[:, None]


def wav(path: pathlib.Path, samples: np.ndarray, rate: int) -> pathlib.Path:
    path.write_bytes(bytes(np.asarray(encode_wav(samples.astype(np.float32), np.int32(rate))).item()))
    return path


@pytest.mark.parametrize(("given", "wanted"), RATES)
@pytest.mark.parametrize("hertz", [50, 440, 2500])
def test_a_tone_stays_the_tone_that_it_is(given: int, wanted: int, hertz: float) -> None:
    heard = resampled(tone(hertz, given), given, wanted)
    expected = tone(hertz, wanted)
    assert abs(len(heard) - len(expected)) <= 1
    inside = slice(wanted // 20, wanted * 2 // 5)  # the ends have silence beside them
    np.testing.assert_allclose(heard[inside], expected[inside], atol=2e-3)


@pytest.mark.parametrize(
    ("given", "wanted", "hertz"), [(44100, 16000, 9000), (48000, 16000, 15000), (16000, 8000, 4500)]
)
def test_what_the_new_rate_cannot_hold_is_gone(given: int, wanted: int, hertz: float) -> None:
    heard = resampled(tone(hertz, given), given, wanted)
    assert np.abs(heard[wanted // 20 : wanted * 2 // 5]).max() < 2e-3


def test_channels_are_kept_apart_and_long_recordings_are_one() -> None:
    left, right = tone(300, 44100, 3.0), tone(1200, 44100, 3.0)
    both = resampled(np.hstack([left, right]), 44100, 16000)
    np.testing.assert_array_equal(both[:, :1], resampled(left, 44100, 16000))
    np.testing.assert_array_equal(both[:, 1:], resampled(right, 44100, 16000))
    np.testing.assert_allclose(both[2000:-2000, 0], tone(300, 16000, 3.0)[2000:-2000, 0], atol=2e-3)


def test_a_file_at_the_models_rate_is_its_own_content(tmp_path: pathlib.Path) -> None:
    path = wav(tmp_path / "a.wav", tone(440, 16000), 16000)
    assert content_at(str(path), 16000) == path.read_bytes()
    samples, rate = read_wav(content_at(str(path), 8000))
    assert (samples.shape, rate) == ((4000, 1), 8000)
    heard = samples_at(str(path), 16000, 10000)
    assert heard.shape == (10000,)
    assert not heard[8000:].any()
    assert rate_of(str(path)) == 16000


def test_a_header_is_read_past_other_chunks(tmp_path: pathlib.Path) -> None:
    content = wav(tmp_path / "a.wav", tone(440, 44100), 44100).read_bytes()
    (tmp_path / "b.wav").write_bytes(content[:12] + b"LIST" + struct.pack("<I", 3) + b"abc\0" + content[12:])
    assert rate_of(str(tmp_path / "b.wav")) == 44100
    for broken in (b"", b"RIFF", content[:20], content[:12], b"no recording at all"):
        (tmp_path / "c.wav").write_bytes(broken)
        assert rate_of(str(tmp_path / "c.wav")) is None


def test_recordings_that_are_none_are_refused(tmp_path: pathlib.Path) -> None:
    empty = wav(tmp_path / "empty.wav", np.zeros((0, 1)), 16000)
    with pytest.raises(FormatError, match=r"empty\.wav: the recording is empty; take it out"):
        content_at(str(empty), 16000)
    content = wav(tmp_path / "a.wav", tone(440, 16000), 16000).read_bytes()
    for rate in (0, 7, 1 << 31):
        (tmp_path / "a.wav").write_bytes(content[:24] + struct.pack("<I", rate) + content[28:])
        with pytest.raises(FormatError, match=f"says that it has {rate} samples a second"):
            samples_at(str(tmp_path / "a.wav"), 16000, 100)
    with pytest.raises(FormatError, match="cannot be read: No such file"):
        samples_at(str(tmp_path / "none.wav"), 16000, 100)
    (tmp_path / "a.wav").write_bytes(b"hello")
    with pytest.raises(FormatError, match="this is no recording"):
        samples_at(str(tmp_path / "a.wav"), 16000, 100)
