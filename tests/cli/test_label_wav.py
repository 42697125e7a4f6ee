"""``label_wav`` and ``test_streaming_accuracy``: golden scores, the original's lines, and wrong calls."""

import json
import pathlib
import re
from typing import Any

import numpy as np
import pytest

from command_line import call
from pocketgraph.kernels.audio.wav import encode_wav, read_wav
from support import golden, model_dir, needs_shared

pytestmark = needs_shared
WORDS = ["_silence_", "_unknown_", "yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"]


@pytest.fixture
def words(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "words.txt").write_text("\n".join(WORDS))
    return tmp_path / "words.txt"


def graph() -> str:
    return f"--graph={model_dir('kws_ds_cnn_s') / 'DS_CNN_S.pb'}"


def test_the_scores_are_the_golden_ones(tmp_path: pathlib.Path, words: pathlib.Path, capsys: Any) -> None:
    feeds, wanted = golden(model_dir("kws_ds_cnn_s"))
    (tmp_path / "a.wav").write_bytes(feeds["wav_data:0"].tobytes())
    assert call("label_wav", graph(), f"--labels={words}", f"--wav={tmp_path / 'a.wav'}") == 0
    lines = capsys.readouterr().out.splitlines()
    scores = wanted["labels_softmax:0"].reshape(-1)
    best = np.argsort(-scores, kind="stable")[:3]
    assert lines == [f"{WORDS[i]} (score = {scores[i]:.5f})" for i in best]
    assert call("label_wav", graph(), f"--labels={words}", "--style=cpp", "-k", "1", tmp_path / "a.wav") == 0
    assert re.fullmatch(rf"{WORDS[best[0]]} \({best[0]}\): 0\.\d+\n", capsys.readouterr().out)


def test_a_folder_and_what_is_broken_in_it(tmp_path: pathlib.Path, words: pathlib.Path, capsys: Any) -> None:
    yes = (model_dir("data_speech_wavs") / "yes_1000ms.wav").read_bytes()
    (tmp_path / "yes.wav").write_bytes(yes)
    (tmp_path / "zut.wav").write_bytes(yes[:30])
    assert call("label_wav_dir", graph(), f"--labels={words}", f"--wav_dir={tmp_path}", "--json") == 1
    out = capsys.readouterr()
    (found,) = json.loads(out.out)
    assert found["predictions"][0]["label"] == "yes"
    assert "zut.wav" in out.err


def test_words_along_a_recording(tmp_path: pathlib.Path, words: pathlib.Path, capsys: Any) -> None:
    pieces = []
    for name in ("silence", "yes", "silence", "no", "silence"):
        samples, rate = read_wav((model_dir("data_speech_wavs") / f"{name}_1000ms.wav").read_bytes())
        pieces.extend([samples[:rate]] if name != "silence" else [samples[:rate]] * 2)
    (tmp_path / "long.wav").write_bytes(encode_wav(np.concatenate(pieces), np.array(rate)).item())
    (tmp_path / "truth.txt").write_text("yes, 2000\nnot a line\nno, 5000\n")
    flags = [graph(), f"--labels={words}", f"--wav={tmp_path / 'long.wav'}", f"--ground_truth={tmp_path / 'truth.txt'}"]
    assert call("test_streaming_accuracy", *flags, "--verbose") == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\d+ms: yes: 0\.\d+ \(Correct\)", lines[0])
    assert lines[-1] == "100.0% matched, 100.0% correctly, 0.0% wrongly, 0.0% false positives "
    assert call("test_streaming_accuracy", *flags, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [entry["label"] for entry in told["words"]] == ["yes", "no"]
    assert told["missed"] == 0


def test_wrong_calls(tmp_path: pathlib.Path, words: pathlib.Path, capsys: Any) -> None:
    two = np.zeros((32000, 2), np.float32)
    (tmp_path / "two.wav").write_bytes(encode_wav(two, np.array(16000)).item())
    flags = [graph(), f"--labels={words}"]
    assert call("test_streaming_accuracy", *flags, f"--wav={tmp_path / 'two.wav'}") == 1
    assert "Only mono .wav files can be used, but input has 2 channels." in capsys.readouterr().err
    (tmp_path / "one.wav").write_bytes(encode_wav(two[:, :1], np.array(16000)).item())
    one = f"--wav={tmp_path / 'one.wav'}"
    assert call("test_streaming_accuracy", *flags, one, "--clip_duration_ms=500") == 2
    assert "--clip_duration_ms=1000" in capsys.readouterr().err
    (tmp_path / "truth.txt").write_text("yes, soon\n")
    assert call("test_streaming_accuracy", *flags, one, f"--ground_truth={tmp_path / 'truth.txt'}") == 1
    assert "Wrong number format at line: yes, soon" in capsys.readouterr().err
    assert call("label_wav", *flags) == 2
    assert call("label_wav", *flags, tmp_path / "none.wav") == 1
    assert "none.wav" in capsys.readouterr().err
