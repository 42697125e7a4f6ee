"""``wav_to_features`` and ``generate_streaming_test_wav``: the files that TensorFlow's programs write, byte by byte."""

import hashlib
import json
import os
import pathlib
import sys
from typing import Any

import numpy as np
import pytest

from command_line import call
from pocketgraph.apps.label_wav import said_words
from pocketgraph.datasets.recordings import recording, samples_at
from support import ROOT

FIXTURES = ROOT / "tests" / "fixtures"
sys.path.insert(0, str(FIXTURES))
from speech_recordings import write, write_data_set  # noqa: E402

GOLDEN = FIXTURES / "speech_commands"
FACTS = json.loads((GOLDEN / "facts.json").read_text())


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", FACTS["settings"])
def test_features_are_the_originals_byte_by_byte(folder: pathlib.Path, name: str) -> None:
    write(folder / "Word.wav", 3, 2000)
    flags = [*FACTS["settings"][name].split(), "--input_wav=Word.wav", f"--output_c_file={name}.c"]
    assert call("wav_to_features", *flags, "--clip_duration_ms=150") == 0
    assert (folder / f"{name}.c").read_bytes() == (GOLDEN / f"{name}.c").read_bytes()


def test_names_and_rates_of_recordings(folder: pathlib.Path, capsys: Any) -> None:
    write(folder / "a-b 1.wav", 0, 4000)
    assert call("wav_to_features", "a-b 1.wav", "-o", "a.c", "--sample_rate=8000", "--quantize") == 0
    assert "has 16000 samples a second, and --sample_rate is 8000" in capsys.readouterr().err
    assert "const unsigned char g_a_b_1_data[] = {" in (folder / "a.c").read_text()
    assert call("wav_to_features", "a-b 1.wav", "-o", "b.c", "--quantize=false") == 0
    assert "const float g_a_b_1_data[] = {" in (folder / "b.c").read_text()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "no recording is given"),
        (("none.wav",), "none.wav"),
        (("a.txt",), "this is no recording of 16-bit samples"),
        (("a.wav", "--feature_bin_count=41"), "pass --feature_bin_count=40 or less"),
        (("a.wav", "--preprocess=average", "--feature_bin_count=300"), "pass --feature_bin_count=257 or less"),
        (("a.wav", "--window_size_ms=0"), "pass larger --window_size_ms"),
        (("a.wav", "--preprocess=micro", "--sample_rate=4000"), "no features can be made with these settings"),
    ],
)
def test_features_that_cannot_be(folder: pathlib.Path, capsys: Any, flags: tuple[str, ...], said: str) -> None:
    write(folder / "a.wav", 0, 4000)
    (folder / "a.txt").write_text("no sound")
    assert call("wav_to_features", "--output_c_file=a.c", *flags) in (1, 2)
    assert said in capsys.readouterr().err
    assert not (folder / "a.c").exists()


def talk(*flags: str) -> int:
    files = ("--data_dir=data", "--output_audio_file=out/talk.wav", "--output_labels_file=out/talk.txt")
    return call("generate_streaming_test_wav", *files, *flags)


TALK = [f"--{name}={value}" for name, value in FACTS["talk"].items()]


def test_the_long_recording_is_the_originals_byte_by_byte(folder: pathlib.Path, capsys: Any) -> None:
    write_data_set(folder / "data")
    assert talk(*TALK, "--seed=7") == 0
    assert capsys.readouterr().out.splitlines()[0] == "Saved streaming test wav to out/talk.wav"
    made = (folder / "out" / "talk.wav").read_bytes()
    assert (len(made), hashlib.sha256(made).hexdigest()) == (FACTS["bytes"], FACTS["sha256"])
    assert (folder / "out" / "talk.txt").read_bytes() == (GOLDEN / "talk.txt").read_bytes()
    assert said_words(folder / "out" / "talk.txt")[0] == ("_unknown_", 251)


def test_words_stand_in_silence_where_there_is_no_noise(folder: pathlib.Path, capsys: Any) -> None:
    write_data_set(folder / "data")
    os.rename(folder / "data" / "_background_noise_", folder / "noises")
    assert talk(*TALK, "--seed=1") == 0
    assert "the words stand in silence" in capsys.readouterr().err
    _, sound, _ = recording(str(folder / "out" / "talk.wav"))
    (_, first), *_ = said_words(folder / "out" / "talk.txt")
    assert first > 0
    assert not sound[: first * 16].any()
    assert sound[first * 16 :].any()
    assert talk(*TALK, "--seed=1", "--background_dir=noises") == 0
    assert recording(str(folder / "out" / "talk.wav"))[1][: first * 16].any()


def test_a_word_is_where_the_labels_say(folder: pathlib.Path) -> None:
    write_data_set(folder / "data")
    flags = ("--wanted_words=yes", "--unknown_percentage=0", "--background_volume=0", "--testing_percentage=100")
    assert talk(*TALK, *flags, "--validation_percentage=0", "--seed=3", "--silence_percentage=0") == 0
    _, sound, _ = recording(str(folder / "out" / "talk.wav"))
    for line in (folder / "out" / "talk.txt").read_text().splitlines():
        word, time = line.split(", ")
        begin = round(float(time) * 16)
        heard = sound[begin + 500 : begin + 2000, 0]
        own = [samples_at(str(path), 16000, 2000)[500:] for path in (folder / "data" / word).iterdir()]
        assert min(float(np.abs(heard - other).max()) for other in own) < 1e-4


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--data_dir=none"], "no recordings in folders here; pass --data_dir=FOLDER that has a folder a word"),
        (["--wanted_words=yes,maybe"], "there is no folder of 'maybe', only of bird, no, yes"),
        (["--wanted_words=bird,no,yes"], "--unknown_percentage=0 where all words are wanted"),
        (["--testing_percentage=0"], "pass a larger --testing_percentage"),
        (["--clip_duration_ms=800"], "Background sample is too short! Need more than 12800 samples but only 12000"),
        (["--background_dir=none"], "there are no .wav files of noise in this folder"),
    ],
)
def test_long_recordings_that_cannot_be(folder: pathlib.Path, capsys: Any, flags: list[str], said: str) -> None:
    write_data_set(folder / "data")
    assert talk(*TALK, "--seed=1", *flags) in (1, 2)
    assert said in capsys.readouterr().err
    assert not (folder / "out").exists()
