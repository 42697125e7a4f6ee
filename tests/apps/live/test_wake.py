"""A small model decides whether a large one runs: real words, and frames whose answer is known."""

import pathlib
from typing import Any

import numpy as np
import pytest

import pocketgraph
from colours import COLOURS
from command_line import call
from pocketgraph.apps.live.answers import Answer, Frame, Sound
from pocketgraph.apps.live.application_choice import application
from pocketgraph.apps.live.classification import Classification
from pocketgraph.apps.live.wake_cascade import WakeApp
from pocketgraph.errors import UsageError
from pocketgraph.formats import save
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.audio.wav import encode_wav, read_wav
from support import model_dir, needs_shared

WORDS = ["_silence_", "_unknown_", "yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"]
RED, BLUE = (np.full((8, 8, 3), colour, np.uint8) for colour in ((255, 0, 0), (0, 0, 255)))


def recording(*words: str) -> np.ndarray:
    """Recorded words with two seconds of near silence behind each, 16,000 samples a second."""
    rng = np.random.default_rng(0)
    pieces = []
    for word in words:
        samples, _ = read_wav((model_dir("data_speech_wavs") / f"{word}_1000ms.wav").read_bytes())
        pieces += [samples[:, 0], 0.001 * rng.standard_normal(32000).astype(np.float32)]
    return np.concatenate(pieces)


@needs_shared
def test_a_word_is_told_only_after_the_wake_word() -> None:
    small, large = (
        application(pocketgraph.load(model_dir(name) / file), labels=WORDS)
        for name, file in (("kws_dnn_s", "DNN_S.pb"), ("kws_ds_cnn_s", "DS_CNN_S.pb"))
    )
    runs: list[float] = []
    model = large.model  # type: ignore[attr-defined]

    def counted(samples: np.ndarray) -> Any:
        runs.append(0.0)
        return model(samples)

    counted.rate, counted.count = model.rate, model.count  # type: ignore[attr-defined]
    large.model = counted  # type: ignore[attr-defined]
    app = WakeApp(small, large, "yes")
    heard = recording("no", "yes", "no")
    words, awake = [], []
    for start in range(0, len(heard), 1600):
        answer = app(Sound(heard[start : start + 1600], 16000, start / 16000))
        words += [answer.word[0]] if answer.word else []
        awake.append(answer.values["awake"])
    assert words == ["yes", "no"]
    assert not any(awake[:30])
    assert 0.3 < answer.values["went on"] < 0.7
    assert len(runs) < 0.7 * len(heard) / 480


def test_a_class_wakes_for_a_while() -> None:
    seen: list[float] = []

    class Large(Classification):
        def __call__(self, given: Frame) -> Answer:
            seen.append(given.time)
            return super().__call__(given)

    plain = application(parse(COLOURS), labels=["red", "green", "blue"])
    assert isinstance(plain, Classification)
    app = WakeApp(plain.another(), Large(plain.labeler), "blue")
    app.change("awake_s", 1.0)
    app.change("threshold", 0.1)
    for time, pixels in ((0.0, RED), (1.0, BLUE), (1.5, RED), (3.0, RED)):
        app(Frame(pixels, time, alone=True))
    assert seen == [1.0, 1.5]
    twin = app.another()
    assert twin.awake_s == 1.0
    assert twin(Frame(RED, 1.2)).values["awake"] is False
    with pytest.raises(UsageError, match=r"from 0\.5 to 60"):
        app.change("awake_s", 100)


@needs_shared
def test_on_the_command_line(tmp_path: pathlib.Path, capsys: Any) -> None:
    (tmp_path / "words.txt").write_text("\n".join(WORDS))
    (tmp_path / "talk.wav").write_bytes(encode_wav(recording("no", "yes", "no")[:, None], np.array(16000)).item())
    small, large = model_dir("kws_dnn_s") / "DNN_S.pb", model_dir("kws_ds_cnn_s") / "DS_CNN_S.pb"
    words = f"--labels={tmp_path / 'words.txt'}"
    wake = [f"--wake={small}", f"--wake_labels={tmp_path / 'words.txt'}"]
    base = ["live", large, words, f"--input={tmp_path / 'talk.wav'}", "-o", tmp_path / "out.jsonl"]
    assert call(*base, *wake, "--wake_word=yes") == 0
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [word for line in lines for word in ("yes", "no") if f'"word": {{"label": "{word}"' in line] == ["yes", "no"]
    capsys.readouterr()
    assert call(*base, *wake, "--wake_word=yess") == 2
    assert "did you mean 'yes'" in capsys.readouterr().err
    assert call(*base, *wake) == 2
    assert call(*base, "--wake_word=yes") == 2
    save(parse(COLOURS), tmp_path / "colours.pb")
    assert call(*base, f"--wake={tmp_path / 'colours.pb'}", "--wake_word=red") == 2
    assert "the small model takes pictures, the large one sound" in capsys.readouterr().err
