"""A classifier of tones out of recordings in folders."""

import pathlib
import re
from typing import Any

import numpy as np
import pytest

from command_line import call
from pocketgraph.apps.retraining.distortions import Distortions
from pocketgraph.apps.retraining.example_lists import examples_of
from pocketgraph.apps.retraining.fine_tuning import Tuning
from pocketgraph.apps.retraining.recording_features import distorted
from pocketgraph.apps.retraining.tool import retrain
from pocketgraph.datasets.file_lists import RECORDINGS, of_folder
from pocketgraph.errors import UsageError
from pocketgraph.formats import save
from pocketgraph.graph import Graph
from pocketgraph.kernels.audio.wav import encode_wav
from support import with_weights


def base() -> Graph:
    """A "classifier" of spectrograms: a layer on each frame, a last layer on their means."""
    text = """
        wav_data = Placeholder(dtype=string, shape=[])
        wav = DecodeWav(wav_data, desired_channels=1, desired_samples=1600)
        spectrogram = AudioSpectrogram(wav, window_size=256, stride=128, magnitude_squared=false)
        flat = Const(int32 [-1, 129])
        frames = Reshape(spectrogram, flat, T=float, Tshape=int32)
        w1 = Const(float [0.0])
        inner = MatMul(frames, w1, T=float, transpose_a=false, transpose_b=false)
        bent = Relu(inner, T=float)
        axis = Const(int32 [0])
        features = Mean(bent, axis, T=float, Tidx=int32, keep_dims=true)
        w2 = Const(float [0.0])
        logits = MatMul(features, w2, T=float, transpose_a=false, transpose_b=false)
        scores = Softmax(logits, T=float)
    """
    rng = np.random.default_rng(0)
    tables = {name: rng.normal(0, 0.1, size).astype(np.float32) for name, size in (("w1", (129, 24)), ("w2", (24, 2)))}
    return with_weights(text, **tables)


@pytest.fixture
def tones(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Their folder is a relative path: examples are split by the hash of their path, which is the same in every run."""
    rng = np.random.default_rng(1)
    for name, pitch in (("low", 400), ("middle", 1200), ("high", 3000)):
        (tmp_path / "tones" / name).mkdir(parents=True)
        for number in range(30):
            time = np.arange(1600) / 16000
            heard = 0.4 * np.sin(2 * np.pi * pitch * rng.uniform(0.8, 1.25) * time) + rng.normal(0, 0.05, 1600)
            content = encode_wav(heard[:, None].astype(np.float32), np.array(16000)).item()
            (tmp_path / "tones" / name / f"{number}.wav").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return pathlib.Path("tones")


def test_a_classifier_of_tones(tones: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    save(base(), tmp_path / "base.pb")
    (tones / "low" / "broken.wav").write_bytes(b"RIFF")
    out = tmp_path / "out.pb"
    assert call("retrain", tmp_path / "base.pb", f"--image_dir={tones}", f"--output_graph={out}") == 0
    said = capsys.readouterr()
    right = re.search(r"Final test accuracy = ([\d.]+)% ", said.out)
    assert right is not None
    assert float(right[1]) > 80
    assert "1 file that did not open was left out" in said.out
    assert "broken.wav" in said.err
    flags = [f"--graph={out}", f"--labels={tmp_path / 'labels.txt'}", f"--wav={tones / 'high' / '3.wav'}"]
    assert call("label_wav", *flags, "--how_many_labels=1") == 0
    assert capsys.readouterr().out.startswith("high (score = 0.")
    assert call("evaluate", out, f"--data={tones}", f"--labels={tmp_path / 'labels.txt'}") == 0
    said = capsys.readouterr()
    assert "broken.wav is left out: this is no recording" in said.err
    assert "90 samples" in said.out + said.err


def test_the_same_tones_give_the_same_graph_and_distorted_ones_another(tones: pathlib.Path) -> None:
    made = [retrain(base(), tones, distortions=how).head.weights for how in (Distortions(), Distortions(flip=True))]
    np.testing.assert_array_equal(*made)  # a recording is not mirrored
    stages: set[str] = set()
    other = retrain(
        base(), tones, distortions=Distortions(phone=True), copies=2, progress=lambda stage, *_: stages.add(stage)
    )
    assert stages == {"examples", "variants"}  # and no photos
    assert not np.array_equal(other.head.weights, made[0])
    assert other.accuracy["cross_validation"] > 0.9


def test_a_distorted_recording_is_moved_louder_or_softer() -> None:
    sound = np.zeros(1000, np.float32)
    sound[500] = 0.5
    made = [distorted(sound, np.random.default_rng(seed)) for seed in range(20)]
    places = [int(np.abs(each).argmax()) for each in made]
    assert min(places) < 460
    assert max(places) > 540
    assert all(400 <= place <= 600 for place in places)
    assert all(0.2 < each.max() <= 1 for each in made)


def test_frames_that_are_the_batch_cannot_be_trained(tones: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="one example at a time"):
        retrain(base(), tones, tuning=Tuning(1, steps=10))


def test_the_folders_of_speech_commands_that_are_no_words(tmp_path: pathlib.Path) -> None:
    for name in ("Yes", "no", "_silence_", "_unknown_", "_background_noise_"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.wav").touch()
    (tmp_path / "no" / "b.MP3").touch()
    told: list[str] = []
    labels, _ = examples_of(str(tmp_path), testing=0, validation=0, suffixes=RECORDINGS, warn=told.append)
    assert sorted(labels) == ["_silence_", "_unknown_", "no", "yes"]  # live tells none as a word that begins with "_"
    assert any("'_background_noise_' is no word and is left out" in text for text in told)
    assert "'no': files such as b.MP3 are of kinds that are not read; make WAV files of them" in told
    assert sorted({*of_folder(str(tmp_path))[1]}) == ["Yes", "_silence_", "_unknown_", "no"]
