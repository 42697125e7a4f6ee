"""``label_wav`` and ``test_streaming_accuracy``: golden scores, the original's lines, and wrong calls."""

import json
import pathlib
import re
from typing import Any

import numpy as np
import pytest

from command_line import call
from pocketgraph.apps.live.speech import SoundModel, hears
from pocketgraph.datasets.recordings import resampled, samples_at
from pocketgraph.errors import UsageError
from pocketgraph.formats import save
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.graph.dtype import INT8, INT32
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.audio.wav import encode_wav, read_wav
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes
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


def test_labels_of_another_model_are_doubted(tmp_path: pathlib.Path, words: pathlib.Path, capsys: Any) -> None:
    yes = model_dir("data_speech_wavs") / "yes_1000ms.wav"
    assert call("label_wav", graph(), f"--labels={words}", yes) == 0
    assert not capsys.readouterr().err
    words.write_text("yes\nno\n")
    assert call("label_wav", graph(), f"--labels={words}", yes) == 0
    assert "warning: the labels file has 2 lines and the output 12 scores" in capsys.readouterr().err


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
    names = ["--input-names", "decoded_sample_data:0", "decoded_sample_data:1"]  # as the original in Python takes them
    assert call("test_streaming_accuracy", *flags, *names, "--json") == 0
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
    assert call("test_streaming_accuracy", *flags, one, "--input-names", "audio:0", "decoded_sample_data:1") == 2
    assert "the samples go in at 'decoded_sample_data:0' here, not at 'audio:0'" in capsys.readouterr().err
    (tmp_path / "truth.txt").write_text("yes, soon\n")
    assert call("test_streaming_accuracy", *flags, one, f"--ground_truth={tmp_path / 'truth.txt'}") == 1
    assert "Wrong number format at line: yes, soon" in capsys.readouterr().err
    assert call("label_wav", *flags) == 2
    assert call("label_wav", *flags, tmp_path / "none.wav") == 1
    assert "none.wav" in capsys.readouterr().err


def test_a_model_of_samples_with_an_open_batch_hears(tmp_path: pathlib.Path, capsys: Any) -> None:
    """Beside a second entry for files, as SavedModels of TensorFlow 2 have it; scores by hand."""
    net = parse("""
        file = Placeholder(dtype=string, shape=[])
        other = StringLength(file)
        audio = Placeholder(dtype=float, shape=[?,16000])
        axis = Const(int32 1)
        mean = Mean(audio, axis, T=float, Tidx=int32, keep_dims=true)
        w = Const(float [[1.0, -1.0]])
        l = MatMul(mean, w, T=float)
        y = Softmax(l, T=float)
    """)
    save(net.replace(outputs=["y"]), tmp_path / "net.pb")
    sound = encode_wav(np.full((16000, 1), 0.5, np.float32), np.array(16000, np.int32))
    (tmp_path / "a.wav").write_bytes(sound.item())
    assert call("label_wav", "--graph", tmp_path / "net.pb", tmp_path / "a.wav", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    best = found["predictions"][0]
    assert best["index"] == 0
    assert best["score"] == pytest.approx(1 / (1 + np.exp(-1.0)), abs=1e-3)
    assert call("label_wav", "--graph", tmp_path / "net.pb", "--output_name=mean", "--wav", tmp_path / "no.wav") == 1


def test_an_eight_bit_file_of_samples_hears(tmp_path: pathlib.Path, capsys: Any) -> None:
    """It takes codes, which are made of what is heard."""
    coding = Quantization((1 / 128,), (0,))
    heard, halves, sizes = (
        Value(name, INT8, shape, None, coding)
        for name, shape in (("x", (1, 16000)), ("halves", (1, 2, 8000)), ("sizes", (1, 2, 8000)))
    )
    loud = Value("y", INT8, (1, 2), None, Quantization((1 / 256,), (-128,)))
    shape, axis = (Value("c", INT32, (len(v),), Constant.of(np.array(v, np.int32))) for v in ([1, 2, 8000], [2]))
    steps = [
        Operation("RESHAPE", [heard, shape], [halves], {}), Operation("ABS", [halves], [sizes], {}),
        Operation("MEAN", [sizes, axis], [loud], {"keep_dims": False}),
    ]  # fmt: skip
    (tmp_path / "net.tflite").write_bytes(model_bytes(Program([heard], [loud], steps)))
    samples = np.repeat(np.float32([0.25, -0.5]), 8000)
    (tmp_path / "a.wav").write_bytes(encode_wav(samples[:, None], np.int32(16000)).item())
    (tmp_path / "words.txt").write_text("early\nlate\n")
    assert call("label_wav", tmp_path / "net.tflite", tmp_path / "a.wav", f"--labels={tmp_path / 'words.txt'}") == 0
    assert capsys.readouterr().out.split() == ["late", "(score", "=", "0.50000)", "early", "(score", "=", "0.25000)"]


def test_a_training_directory_is_frozen_on_the_way(tmp_path: pathlib.Path, capsys: Any) -> None:
    text = "audio = Placeholder(dtype=float, shape=[?,16000])\naxis = Const(int32 1)\n"
    text += "mean = Mean(audio, axis, T=float, Tidx=int32, keep_dims=true)\nw = VariableV2(dtype=float, shape=[1,2])\n"
    text += "l = MatMul(mean, w, T=float)\ny = Softmax(l, T=float)"
    folder = tmp_path / "training"
    folder.mkdir()
    save(parse(text), folder / "graph.pb")
    write_checkpoint(folder / "m", {"w": parse("w = Const(float [[1.0, -1.0]])")["w"].tensor})
    sound = encode_wav(np.full((16000, 1), 0.5, np.float32), np.array(16000, np.int32))
    (tmp_path / "a.wav").write_bytes(sound.item())
    assert call("label_wav", "--graph", folder, tmp_path / "a.wav") == 0
    assert capsys.readouterr().out.startswith("class 0")


def test_a_graph_without_sound_is_told_what_hears(tmp_path: pathlib.Path, capsys: Any) -> None:
    save(parse("x = Placeholder(dtype=float, shape=[?,2])\ny = Relu(x, T=float)"), tmp_path / "net.pb")
    (tmp_path / "a.wav").write_bytes(b"")
    assert call("label_wav", "--graph", tmp_path / "net.pb", tmp_path / "a.wav") == 2
    said = capsys.readouterr().err
    assert "takes no sound" in said
    assert "--app" not in said


SLOW = """
    wav_data = Placeholder(dtype=string, shape=[])
    decoded = DecodeWav(wav_data, desired_channels=1, desired_samples=8000)
    spectrogram = AudioSpectrogram(decoded, window_size=240, stride=80, magnitude_squared=true)
    mfcc = Mfcc(spectrogram, decoded:1, dct_coefficient_count=5)
    axis = Const(int32 [1])
    sums = Mean(mfcc, axis, T=float, Tidx=int32)
    keep_prob = Placeholder(dtype=float, shape=[])
    noise_shape = Const(int32 [1, 5])
    noise = RandomUniform(noise_shape, T=int32, dtype=float)
    kept = Add(keep_prob, noise, T=float)
    mask = Floor(kept, T=float)
    grown = RealDiv(sums, keep_prob, T=float)
    dropped = Mul(grown, mask, T=float)
    labels_softmax = Softmax(dropped, T=float)
"""


def test_a_model_of_8000_samples_a_second_hears_them_and_its_dropout_keeps_all(
    tmp_path: pathlib.Path, capsys: Any
) -> None:
    """Scores of TensorFlow 1.15. At 16,000 a second the model would hear the first half, at half its speed."""
    save(parse(SLOW), tmp_path / "slow.pb")
    times = np.arange(8000) / 8000
    sweep = (0.4 * np.sin(2 * np.pi * (300 + 900 * times) * times))[:, None].astype(np.float32)
    (tmp_path / "sweep.wav").write_bytes(encode_wav(sweep, np.array(8000)).item())
    flags = ["-k", "3", tmp_path / "sweep.wav"]
    assert call("label_wav", f"--graph={tmp_path / 'slow.pb'}", *flags) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["class 3 (score = 0.41088)", "class 1 (score = 0.31620)", "class 4 (score = 0.27290)"]
    model = SoundModel(parse(SLOW))
    scores, _ = model(samples_at(str(tmp_path / "sweep.wav"), model.rate, model.count))
    np.testing.assert_allclose(scores, [0.0, 0.31620, 0.00003, 0.41088, 0.27290], atol=1e-5)
    assert call("label_wav", f"--graph={tmp_path / 'slow.pb'}", "--sample_rate=16000", *flags) == 0
    assert capsys.readouterr().out.splitlines() != lines


def test_a_long_recording_of_another_rate_is_resampled(
    tmp_path: pathlib.Path, words: pathlib.Path, capsys: Any
) -> None:
    pieces = []
    for name in ("silence", "silence", "yes", "silence"):
        samples, rate = read_wav((model_dir("data_speech_wavs") / f"{name}_1000ms.wav").read_bytes())
        pieces.append(samples[:rate])
    slow = resampled(np.concatenate(pieces), rate, 44100).astype(np.float32)
    (tmp_path / "long.wav").write_bytes(encode_wav(slow, np.array(44100)).item())
    assert (
        call("test_streaming_accuracy", graph(), f"--labels={words}", f"--wav={tmp_path / 'long.wav'}", "--json") == 0
    )
    assert [entry["label"] for entry in json.loads(capsys.readouterr().out)["words"]] == ["yes"]


def test_commands_of_photos_say_that_they_read_no_recordings(tmp_path: pathlib.Path, capsys: Any) -> None:
    (tmp_path / "yes").mkdir()
    (tmp_path / "yes" / "1.wav").write_bytes(b"")
    assert call("dataset", "check", tmp_path) == 2
    assert "there are recordings, which retrain and evaluate read" in capsys.readouterr().err


def test_features_that_may_be_fed_in_place_of_sound_are_no_sound() -> None:
    """As a retrained model takes them: a placeholder whose default the model computes of the sound."""
    graph = parse("""
        waveform = Placeholder(dtype=float, shape=[?])
        length = Const(int32 [32])
        spectrum = RFFT(waveform, length)
        loud = ComplexAbs(spectrum, T=complex64, Tout=float)
        features = PlaceholderWithDefault(loud, dtype=float, shape=[20000])
        final = Sigmoid(features, T=float)
    """)
    assert hears(graph)
    model = SoundModel(graph, "final")
    assert (model.samples, model.is_open) == ("waveform:0", True)


def test_what_a_training_of_speech_commands_takes_is_no_recording() -> None:
    """A row of its Mfccs is as long as a short recording, of which the model would make answers without a meaning."""
    graph = parse("fingerprint_input = Placeholder(dtype=float, shape=[?,3920])\n y = Relu(fingerprint_input, T=float)")
    with pytest.raises(UsageError, match=r"^this graph takes no sound; .* as freeze\.py of speech_commands makes"):
        SoundModel(graph)
    SoundModel(parse("samples = Placeholder(dtype=float, shape=[?,3920])\n y = Relu(samples, T=float)"))
