"""Recordings of other rates become what they would be at the model's rate."""

from __future__ import annotations

import itertools
import pathlib
import struct

import numpy as np
import pytest

from pocketgraph.datasets.recordings import Resampler, content_at, problem, rate_of, resampled, samples_at
from pocketgraph.datasets.sample_rate import model_sample_rate
from pocketgraph.errors import FormatError
from pocketgraph.graph.text_format import parse
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


@pytest.mark.parametrize(("given", "wanted"), RATES)
def test_blocks_are_resampled_as_the_whole_is(given: int, wanted: int) -> None:
    """No seam is heard where a block ends, however short it is."""
    whole = np.random.default_rng(0).normal(size=(given // 2, 2))
    stream = Resampler(given, wanted)
    ends = [*range(0, 1000, 7), 1500, 1500, *range(4000, len(whole), given // 10), len(whole)]
    made = [stream(whole[start:end]) for start, end in itertools.pairwise(ends)]
    silence = np.zeros((stream.delay, 2))
    np.testing.assert_array_equal(np.concatenate([*made, stream(silence)]), resampled(whole, given, wanted))
    assert sum(map(len, made)) >= len(whole) * wanted / given - stream.delay * wanted / given - 1


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


def file_of(samples: bytes, form: int, bits: int, channels: int = 1, *, size: int | None = None) -> bytes:
    """A WAV file of 16,000 samples a second; ``size`` is what its header tells of them."""
    width = bits // 8 * channels
    head = struct.pack("<HHIIHH", min(form, 0xFFFE), channels, 16000, 16000 * width, width, bits)
    if form > 0xFFFF:  # extensible: the format stands behind
        head += struct.pack("<HHIH", 22, bits, 0, form >> 16) + bytes(14)
    told = len(samples) if size is None else size
    chunks = b"fmt " + struct.pack("<I", len(head)) + head + b"data" + struct.pack("<I", told) + samples
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


SAMPLES = [0.0, 0.5, -1.0, 0.75, -0.25]
FORMATS = [
    pytest.param(1, 8, bytes([128, 192, 0, 224, 96]), id="8 bits"),
    pytest.param(1, 16, struct.pack("<5h", 0, 16384, -32768, 24576, -8192), id="16 bits"),
    pytest.param(1, 24, bytes.fromhex("000000 000040 000080 000060 0000e0"), id="24 bits"),
    pytest.param(1, 32, struct.pack("<5i", 0, 1 << 30, -1 << 31, 3 << 29, -1 << 29), id="32 bits"),
    pytest.param(3, 32, struct.pack("<5f", *SAMPLES), id="float"),
    pytest.param(3, 64, struct.pack("<5d", 0.0, 0.5, -1.5, 0.75, -0.25), id="double, beyond its range"),
    pytest.param(0xFFFF + (1 << 16), 24, bytes.fromhex("000000 000040 000080 000060 0000e0"), id="extensible"),
]


@pytest.mark.parametrize(("form", "bits", "samples"), FORMATS)
def test_samples_of_every_format_are_read(form: int, bits: int, samples: bytes, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(file_of(samples, form, bits))
    np.testing.assert_array_equal(samples_at(str(path), 16000, 5), SAMPLES)
    as_16_bits, rate = read_wav(content_at(str(path), 16000))
    np.testing.assert_array_equal(as_16_bits[:, 0], SAMPLES)
    assert rate == 16000
    path.write_bytes(file_of(samples * 2, form, bits, 2))
    np.testing.assert_array_equal(samples_at(str(path), 16000, 5), [SAMPLES[i] for i in (0, 2, 4, 1, 3)])


def test_codes_of_telephones_are_those_of_g711(tmp_path: pathlib.Path) -> None:
    """Numbers of Python's audioop."""
    codes = bytes([0, 1, 15, 16, 37, 85, 127, 128, 129, 200, 213, 255])
    mu_law = [-32124, -31100, -16764, -15996, -6652, -716, 0, 32124, 31100, 1372, 716, 0]
    a_law = [-5504, -5248, -6784, -2752, -16896, -8, -848, 5504, 5248, 472, 8, 848]
    for form, wanted in ((7, mu_law), (6, a_law)):
        (tmp_path / "a.wav").write_bytes(file_of(codes, form, 8))
        np.testing.assert_array_equal(samples_at(str(tmp_path / "a.wav"), 16000, 12) * 32768, wanted)


def test_what_was_written_into_a_pipe_is_read_to_its_end(tmp_path: pathlib.Path) -> None:
    whole = file_of(struct.pack("<3h", 1, 2, 3), 1, 16, size=0xFFFFFFFF)
    (tmp_path / "a.wav").write_bytes(whole)
    np.testing.assert_array_equal(samples_at(str(tmp_path / "a.wav"), 16000, 3) * 32768, [1, 2, 3])
    assert len(read_wav(content_at(str(tmp_path / "a.wav"), 16000))[0]) == 3


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"ID3\4" + bytes(100), r"Expected RIFF.*; make a WAV file of it: ffmpeg -i "),
        (b"fLaC" + bytes(100), r"Expected RIFF.*; make a WAV file of it"),
        (file_of(bytes(40), 2, 8), r"8 bits in the WAV format 2 are not read; make a WAV file of it"),
        (b"no recording at all", r"Expected RIFF[^;]*$"),
        (file_of(bytes(40), 1, 16, size=400), r"announces 400 bytes of samples and has 40"),
    ],
)
def test_what_cannot_be_read_says_what_to_do(content: bytes, why: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(FormatError, match=rf"a\.wav: this is no recording: .*{why}"):
        samples_at(str(tmp_path / "a.wav"), 16000, 5)


@pytest.mark.parametrize(
    ("count", "window", "rate"),
    [
        (8000, 240, 8000), (8000, 480, None), (16000, 480, None), (16000, 240, 8000), (44100, 1323, 44100),
        (48000, 1440, 48000), (48000, 480, None), (22050, 661, 22050), (-1, 480, None), (12345, 480, None),
    ],
)  # fmt: skip
def test_the_rate_that_windows_tell(count: int, window: int, rate: int | None) -> None:
    graph = parse(f"""
        wav = Placeholder(dtype=string, shape=[])
        decoded = DecodeWav(wav, desired_channels=1, desired_samples={count})
        spectrogram = AudioSpectrogram(decoded, window_size={window}, stride=80)
    """)
    assert model_sample_rate(graph) == rate


def test_the_rate_that_an_mfcc_tells_goes_first() -> None:
    graph = parse("""
        wav = Placeholder(dtype=string, shape=[])
        decoded = DecodeWav(wav, desired_channels=1, desired_samples=8000)
        spectrogram = AudioSpectrogram(decoded, window_size=240, stride=80)
        rate = Const(int32 22050)
        mfcc = Mfcc(spectrogram, rate)
    """)
    assert model_sample_rate(graph) == 22050


@pytest.mark.parametrize(
    ("count", "length", "rate"),
    [(8000, 256, 8000), (16000, 256, None), (16000, 512, None), (8000, 512, None), (44100, 2048, 44100)],
)
def test_the_rate_that_a_fourier_transform_tells(count: int, length: int, rate: int | None) -> None:
    graph = parse(f"""
        wave = Placeholder(dtype=float, shape=[?, {count}])
        frames = Const(int32 [1, -1, {length // 4}])
        cut = Reshape(wave, frames, T=float, Tshape=int32)
        length = Const(int32 [{length}])
        spectrum = RFFT(cut, length)
        energies = ComplexAbs(spectrum)
    """)
    assert model_sample_rate(graph) == rate


def test_what_is_wrong_with_a_recording(tmp_path: pathlib.Path) -> None:
    whole = wav(tmp_path / "whole.wav", tone(440, 16000), 16000)
    assert not problem(str(whole))
    (tmp_path / "cut.wav").write_bytes(whole.read_bytes()[:40])
    (tmp_path / "empty.wav").touch()
    for name in ("cut", "empty"):
        assert problem(str(tmp_path / f"{name}.wav")).startswith("this is no recording")
    with pytest.raises(FormatError, match="No such file"):
        problem(str(tmp_path / "none.wav"))
