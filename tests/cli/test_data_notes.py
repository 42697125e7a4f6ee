"""What quantize and evaluate say of data that are easily given wrongly, and what they refuse to do with a model."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest

from command_line import call
from pocketgraph.apps.shipping.device_times import device_times
from pocketgraph.formats import load, save
from pocketgraph.formats.tflite_metadata import metadata
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.comparison.answer_metrics import ClassAccuracy, Comparison


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A net from pictures of 4 x 4 to 3 classes, twice, the second a little off."""
    rng = np.random.default_rng(0)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4,4,1])
        to = Const(int32[2] [-1, 16])
        flat = Reshape(x, to, T=float)
        l = MatMul(flat, w, T=float)
        y = Softmax(l, T=float)
    """)
    weights = rng.normal(size=(16, 3)).astype(np.float32)
    for name, off in (("a", 0.0), ("b", 0.01)):
        save(Graph([*graph, const("w", weights + np.float32(off))]), tmp_path / f"{name}.pb")
    return tmp_path


def test_bytes_that_nothing_scales_are_pointed_out(folder: pathlib.Path, capsys: Any) -> None:
    np.savez(folder / "bytes.npz", x=np.arange(160, dtype=np.uint8).reshape(10, 4, 4))
    assert call("evaluate", folder / "a.pb", "--data", folder / "bytes.npz") == 0
    assert "--input_mean and --input_std scale them" in capsys.readouterr().err
    assert call("evaluate", folder / "a.pb", "--data", folder / "bytes.npz", "--input_std=255") == 0
    assert "scale them" not in capsys.readouterr().err
    out = folder / "o.tflite"
    assert call("quantize", folder / "a.pb", "--calibrate", folder / "bytes.npz", "-o", out) == 0
    assert "--input_mean and --input_std scale them" in capsys.readouterr().err


def test_classes_that_are_not_the_models_are_pointed_out(folder: pathlib.Path, capsys: Any) -> None:
    x = np.random.default_rng(1).random((6, 4, 4, 1), np.float32)
    np.savez(folder / "far.npz", x=x, labels=np.full(6, 77))
    assert call("evaluate", folder / "a.pb", "--data", folder / "far.npz") == 0
    said = capsys.readouterr()
    assert "tells classes, such as '77', but not which score is whose" in said.err
    assert "top-1" not in said.out


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ("y = Div(l, length, T=float)", "vectors of length 1 and no scores"),
        (
            "shape = Const(int32 [-1,1,1,3])\ny = Reshape(l, shape, T=float, Tshape=int32)",
            "but not which score is whose",
        ),
        (
            "shape = Const(int32 [-1,4,3])\ny = Reshape(four, shape, T=float, Tshape=int32)",
            "for each place of a sample",
        ),
    ],
)
def test_answers_that_classes_do_not_judge(tmp_path: pathlib.Path, capsys: Any, last: str, said: str) -> None:
    rng = np.random.default_rng(4)
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,4])
        l = MatMul(x, w, T=float)
        axis = Const(int32 1)
        both = Const(int32 [1,4])
        four = Tile(l, both, T=float, Tmultiples=int32)
        squares = Square(l, T=float)
        sum = Sum(squares, axis, T=float, Tidx=int32, keep_dims=true)
        length = Sqrt(sum, T=float)
        {last}
    """)
    save(Graph([*graph, const("w", rng.normal(size=(4, 3)).astype(np.float32))]), tmp_path / "net.pb")
    np.savez(tmp_path / "far.npz", x=rng.normal(size=(6, 4)).astype(np.float32), labels=np.arange(6) + 77)
    assert call("evaluate", tmp_path / "net.pb", "--outputs=y", "--data", tmp_path / "far.npz") == 0
    out = capsys.readouterr()
    assert said in out.err
    assert "top-1" not in out.out


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_labels_may_be_whole_or_floating_numbers(folder: pathlib.Path, capsys: Any, kind: Any) -> None:
    x = np.random.default_rng(1).random((6, 4, 4, 1), np.float32)
    with Session(folder / "a.pb") as session:
        labels = session.run(list(session.outputs), {"x": x})[0].argmax(1)
    np.savez(folder / "near.npz", x=x, labels=labels.astype(kind))
    assert call("evaluate", folder / "a.pb", "--data", folder / "near.npz") == 0
    said = capsys.readouterr()
    assert "top-1" in said.out
    assert not said.err


def test_classes_counted_from_one_keep_their_order(folder: pathlib.Path) -> None:
    from pocketgraph.datasets.evaluation_dataset import Dataset

    data = Dataset("here", (), classes=["10", "9", "1", "2", "3", "4", "5", "6", "7", "8"])
    assert data.truth(None, 10) == [9, 8, 0, 1, 2, 3, 4, 5, 6, 7]


def test_samples_that_hold_nan_are_left_out_and_named(folder: pathlib.Path, capsys: Any) -> None:
    x = np.random.default_rng(1).random((6, 4, 4, 1), np.float32)
    x[2, 1, 1] = np.nan
    np.savez(folder / "nan.npz", x=x)
    assert call("evaluate", folder / "a.pb", folder / "b.pb", "--data", folder / "nan.npz") == 0
    said = capsys.readouterr()
    assert "nan.npz: sample 3 is left out, which holds NaN or infinity" in said.err
    assert "5 samples" in said.out
    assert call("quantize", folder / "a.pb", "--calibrate", folder / "nan.npz", "-o", folder / "q.tflite") == 0
    assert "sample 3 is left out" in capsys.readouterr().err
    x[5] = np.inf
    np.savez(folder / "nan.npz", x=x)
    assert call("evaluate", folder / "a.pb", "--data", folder / "nan.npz") == 0
    assert "2 samples, the first being 3, are left out, which hold NaN or infinity" in capsys.readouterr().err
    np.savez(folder / "nan.npz", x=x * np.nan)
    assert call("evaluate", folder / "a.pb", "--data", folder / "nan.npz") == 2
    assert "each sample holds NaN or infinity" in capsys.readouterr().err


def test_a_model_that_fills_gaps_is_judged_with_them(tmp_path: pathlib.Path, capsys: Any) -> None:
    graph = parse(
        """
        x = Placeholder(dtype=float, shape=[?,3])
        missing = IsNan(x, T=float)
        none = ZerosLike(x, T=float)
        y = Select(missing, none, x, T=float)
        """
    )
    save(graph, tmp_path / "net.pb")
    np.savez(tmp_path / "data.npz", x=np.float32([[np.nan, 1, 2], [3, 0, 1]]), labels=[2, 0])
    assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "data.npz", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["top1"] == 1
    assert row["top1_interval"][0] == pytest.approx(0.342, abs=1e-3)  # of two samples


def test_an_answer_of_nan_is_never_right() -> None:
    accuracy, comparison = ClassAccuracy(), Comparison()
    nothing = np.full(3, np.nan, np.float32)
    accuracy.add(nothing, 0)
    assert (accuracy.count, accuracy.top1, accuracy.top5) == (1, 0, 0)
    comparison.add(nothing, nothing)
    comparison.add(np.float32([1, -np.inf, 0]), np.float32([2, -np.inf, 0]))  # masked scores are scores
    assert comparison.agreement == 0.5


def test_the_model_itself_is_not_written_over(folder: pathlib.Path, capsys: Any) -> None:
    before = (folder / "a.pb").read_bytes()
    np.savez(folder / "cal.npz", x=np.zeros((3, 4, 4, 1), np.float32))
    (folder / "link.pb").symlink_to(folder / "a.pb")
    for out in ("a.pb", "link.pb"):
        assert call("quantize", folder / "a.pb", "--calibrate", folder / "cal.npz", "-o", folder / out) == 2
        assert "is the model itself" in capsys.readouterr().err
        assert call("graph_to_dot", folder / "a.pb", "-o", folder / out) == 2
        assert "is the model itself" in capsys.readouterr().err
        flags = [f"--image_dir={folder}", f"--output_graph={folder / out}"]
        assert call("retrain", folder / "a.pb", *flags) == 2
        assert "is the model itself" in capsys.readouterr().err
    (folder / "model.json").write_bytes(before)
    assert call("model_explorer", folder / "model.json", "-o", folder / "model.json") == 2
    assert "is the model itself" in capsys.readouterr().err
    assert (folder / "a.pb").read_bytes() == (folder / "model.json").read_bytes() == before


@pytest.mark.parametrize("command", ["quantize", "evaluate"])
def test_a_value_for_a_node_that_is_not_there(folder: pathlib.Path, capsys: Any, command: str) -> None:
    np.savez(folder / "cal.npz", x=np.zeros((3, 4, 4, 1), np.float32))
    how = ["--data", folder / "cal.npz"] if command == "evaluate" else ["--calibrate", folder / "cal.npz", "-o", "n.pb"]
    assert call(command, folder / "a.pb", *how, "--feed", "keep=1") == 2
    assert "error: --feed: the graph has no node 'keep'" in capsys.readouterr().err


def test_a_file_that_only_looks_like_arrays(folder: pathlib.Path, capsys: Any) -> None:
    (folder / "no.npz").write_text("hello")
    assert call("evaluate", folder / "a.pb", "--data", folder / "no.npz") == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "this is no .npz or .npy file" in said
    assert "pickle" not in said


def speech(folder: pathlib.Path, rate: int, rate_in_graph: str = "pcm:1") -> None:
    """A net of recordings in folder/speech.pb, one that takes samples in folder/plain.pb, and words in folder/words."""
    rng = np.random.default_rng(1)
    graph = parse(f"""
        wav = Placeholder(dtype=string, shape=[])
        pcm = DecodeWav(wav, desired_channels=1, desired_samples=1600)
        rate = Const(int32 8000)
        seen = AudioSpectrogram(pcm, window_size=256, stride=128, magnitude_squared=true)
        heard = Mfcc(seen, {rate_in_graph}, dct_coefficient_count=10)
        flat = Reshape(heard, shape, T=float, Tshape=int32)
        y = MatMul(flat, w, T=float)
    """)
    extra = [const("shape", np.int32([1, 110])), const("w", rng.normal(0, 0.05, (110, 2)).astype(np.float32))]
    save(Graph([*graph, *extra]), folder / "speech.pb")
    plain = parse("x = Placeholder(dtype=float, shape=[?,1600])\ny = MatMul(x, w, T=float)")
    save(Graph([*plain, const("w", rng.normal(size=(1600, 2)).astype(np.float32))]), folder / "plain.pb")
    (folder / "words").mkdir()
    for index in range(12):
        sound(folder / "words" / f"{index}.wav", np.sin(np.arange(rate // 10) * (500 + 300 * index) / rate), rate)


def sound(path: pathlib.Path, samples: np.ndarray[Any, Any], rate: int) -> None:
    from pocketgraph.kernels.audio.wav import encode_wav

    path.write_bytes(bytes(np.asarray(encode_wav(samples[:, None].astype(np.float32), np.int32(rate))).item()))


@pytest.mark.parametrize("model", ["speech", "plain"])
def test_recordings_of_another_rate_are_resampled_and_pointed_out(
    tmp_path: pathlib.Path, capsys: Any, model: str
) -> None:
    speech(tmp_path, 44100)
    note = "12 of 12 recordings have 44,100 samples a second and are resampled to 16,000; --sample_rate"
    net, out = tmp_path / f"{model}.pb", tmp_path / "o.tflite"
    assert call("quantize", net, "--calibrate", tmp_path / "words", "-o", out) == 0
    assert note in capsys.readouterr().err
    assert call("evaluate", net, out, "--data", tmp_path / "words") == 0
    assert note in capsys.readouterr().err
    assert call("evaluate", net, out, "--data", tmp_path / "words", "--sample_rate=44100") == 0
    assert "resampled" not in capsys.readouterr().err


def test_the_rate_is_the_graphs_where_it_says(tmp_path: pathlib.Path, capsys: Any) -> None:
    speech(tmp_path, 8000, "rate")
    for flags, said in (([], ""), (["--sample-rate=16000"], "have 8,000 samples a second and are resampled to 16,000")):
        assert call("evaluate", tmp_path / "speech.pb", "--data", tmp_path / "words", *flags) == 0
        err = capsys.readouterr().err
        assert said in err if said else "resampled" not in err


def test_an_empty_recording_is_left_out_and_named(tmp_path: pathlib.Path, capsys: Any) -> None:
    speech(tmp_path, 16000)
    sound(tmp_path / "words" / "5.wav", np.zeros(0), 16000)
    for net in ("speech.pb", "plain.pb"):
        for flags in (["evaluate", "--data"], ["quantize", "-o", tmp_path / "o.tflite", "--calibrate"]):
            assert call(*flags, tmp_path / "words", tmp_path / net) == 0
            assert "5.wav is left out: the recording is empty" in capsys.readouterr().err


def test_open_sizes_are_those_of_the_arrays_or_of_the_flags(tmp_path: pathlib.Path, capsys: Any) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,?,?,3])
        c = Conv2D(x, f, T=float, strides=[1, 2, 2, 1], padding="SAME")
        axes = Const(int32[2] [1, 2])
        y = Mean(c, axes, T=float)
    """)
    filters = np.random.default_rng(0).normal(size=(3, 3, 3, 4)).astype(np.float32)
    save(Graph([*graph, const("f", filters)]), tmp_path / "open.pb")
    pictures = np.random.default_rng(1).random((12, 10, 14, 3), np.float32)
    np.savez(tmp_path / "x.npz", x=pictures)
    out = tmp_path / "open.tflite"
    assert call("quantize", tmp_path / "open.pb", "--calibrate", tmp_path / "x.npz", "-o", out) == 0
    assert call("evaluate", tmp_path / "open.pb", "--data", tmp_path / "x.npz") == 0
    assert call("evaluate", tmp_path / "open.pb", out, "--data", tmp_path / "x.npz") == 0
    capsys.readouterr()
    from PIL import Image

    (tmp_path / "photos").mkdir()
    for index, picture in enumerate(pictures):
        Image.fromarray((picture * 255).astype(np.uint8)).save(tmp_path / "photos" / f"{index}.png")
    size = ["--input_width=14", "--input_height=10"]
    note = "leaves the size of its pictures open; they are fed as they are, all 14 x 10"
    for flags, noted in (([], True), ([out], False), (size, False)):
        assert call("evaluate", tmp_path / "open.pb", *flags, "--data", tmp_path / "photos") == 0
        assert (note in capsys.readouterr().err) == noted
    quantized = tmp_path / "photos.tflite"
    assert call("quantize", tmp_path / "open.pb", "--calibrate", tmp_path / "photos", "-o", quantized, *size) == 0
    assert call("evaluate", out, quantized, "--data", tmp_path / "photos") == 0  # both take the same size


def test_recordings_tell_the_length_that_a_model_leaves_open(tmp_path: pathlib.Path, capsys: Any) -> None:
    (tmp_path / "words").mkdir()
    sound(tmp_path / "words" / "a.wav", np.ones(900), 16000)
    save(parse("x = Placeholder(dtype=float, shape=[?,?])\ny = Relu(x, T=float)"), tmp_path / "net.pb")
    assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "words") == 0
    assert "'x'; they are cut, or filled with silence, to 900 samples" in capsys.readouterr().err


def test_the_order_of_classes_that_nobody_said_is_told(folder: pathlib.Path, capsys: Any) -> None:
    """Names are taken in alphabetical order, which need not be the model's."""
    x = np.random.default_rng(1).random((6, 4, 4, 1), np.float32)
    [scores] = Session(load(folder / "a.pb")).run(["y"], {"x": x})
    best = scores.argmax(axis=1)
    np.savez(folder / "right.npz", x=x, labels=np.array(["high", "low", "mid"])[best])
    np.savez(folder / "named.npz", x=x, labels=np.array(["low", "mid", "high"])[best])
    for name in ("right", "named"):  # all three classes are told, whatever the net says
        with np.load(folder / f"{name}.npz") as data:
            more = np.concatenate([data["x"], np.zeros((3, 4, 4, 1), np.float32)])
            np.savez(folder / f"{name}.npz", x=more, labels=[*data["labels"], "high", "low", "mid"])
    assert call("evaluate", folder / "a.pb", "--data", folder / "right.npz") == 0
    assert "alphabetical" not in capsys.readouterr().err
    assert call("evaluate", folder / "a.pb", "--data", folder / "named.npz") == 0
    said = capsys.readouterr().err
    assert "the scores are taken to be of high, low, mid, in alphabetical order" in said
    assert "--labels names the class of each score" in said
    (folder / "labels.txt").write_text("low\nmid\nhigh\n")
    assert call("evaluate", folder / "a.pb", "--data", folder / "named.npz", "--labels", folder / "labels.txt") == 0
    assert "alphabetical" not in capsys.readouterr().err
    np.savez(folder / "numbered.npz", x=x, labels=np.arange(6) % 3)
    assert call("evaluate", folder / "a.pb", "--data", folder / "numbered.npz") == 0
    assert "alphabetical" not in capsys.readouterr().err


def test_what_a_model_of_recordings_takes_on_devices_is_estimated_behind_the_recording(tmp_path: pathlib.Path) -> None:
    speech(tmp_path, 16000)
    lines, unknown = device_times(str(tmp_path / "speech.pb"), "", ["y"], "android", "static")
    assert lines
    assert not unknown


def test_doubts_about_recordings_ask_for_their_rate(tmp_path: pathlib.Path, capsys: Any) -> None:
    speech(tmp_path, 16000)
    for index in range(12, 24):
        sound(tmp_path / "words" / f"{index}.wav", np.zeros(1600), 16000)
    (tmp_path / "list.txt").write_text("".join(f"words/{index}.wav\t{index % 2}\n" for index in range(24)))
    assert call("evaluate", tmp_path / "speech.pb", f"--data={tmp_path / 'list.txt'}") == 0
    told = capsys.readouterr().err
    assert "does the model hear 16,000 samples a second (--sample_rate), and are the labels in the order" in told
    assert "scaling" not in told


def test_windows_of_a_fourier_transform_tell_the_rate(tmp_path: pathlib.Path, capsys: Any) -> None:
    """8,000 samples in windows of 256 are a second at 8,000 a second: words of that rate are heard as they are."""
    rng = np.random.default_rng(2)
    graph = parse("""
        wave = Placeholder(dtype=float, shape=[1,8000])
        frames = Const(int32 [1, 25, 320])
        cut = Reshape(wave, frames, T=float, Tshape=int32)
        length = Const(int32 [256])
        spectrum = RFFT(cut, length)
        energies = ComplexAbs(spectrum)
        flat_shape = Const(int32 [1, 3225])
        flat = Reshape(energies, flat_shape, T=float, Tshape=int32)
        y = MatMul(flat, w, T=float)
    """)
    net, out, words = tmp_path / "stft.pb", tmp_path / "o.tflite", tmp_path / "words"
    save(Graph([*graph, const("w", rng.normal(0, 0.05, (3225, 2)).astype(np.float32))]), net)
    words.mkdir()
    for index in range(4):
        sound(words / f"{index}.wav", np.sin(np.arange(8000) * (500 + 300 * index) / 8000), 8000)

    for flags in (["evaluate", net, "--data"], ["quantize", net, "-o", out, "--calibrate"],
                  ["verify", net, out, "--data"], ["evaluate", net, out, "--data"],
                  ["export", net, "--mode=static", "-o", tmp_path / "s.tflite", "--samples"],
                  ["ship", net, "-o", tmp_path / "shipped", "--data"]):  # fmt: skip
        capsys.readouterr()
        assert call(*flags, words) == 0
        assert "resampled" not in "".join(capsys.readouterr())
    assert call("evaluate", net, "--data", words, "--sample_rate=16000") == 0
    assert "have 8,000 samples a second and are resampled to 16,000" in capsys.readouterr().err
    exported = metadata((tmp_path / "s.tflite").read_bytes())
    assert exported is None or not exported.sample_rate  # it takes the spectrum


def test_the_rate_that_a_files_metadata_tell(tmp_path: pathlib.Path, capsys: Any) -> None:
    speech(tmp_path, 8000)
    out = tmp_path / "o.tflite"
    assert call("export", tmp_path / "plain.pb", "-o", out, "--sample_rate=8000") == 0
    for models in ([out], [out, tmp_path / "plain.pb"], [tmp_path / "plain.pb", out]):
        capsys.readouterr()
        assert call("evaluate", *models, "--data", tmp_path / "words") == 0
        assert "resampled" not in capsys.readouterr().err


def test_a_single_model_on_data_without_classes_is_said_to_be_judged_by_nothing(
    tmp_path: pathlib.Path, capsys: Any
) -> None:
    save(parse("x = Placeholder(dtype=float, shape=[?,3])\ny = Softmax(x, T=float)"), tmp_path / "net.pb")
    np.savez(tmp_path / "some.npz", x=np.eye(3, dtype=np.float32))
    np.savez(tmp_path / "told.npz", x=np.eye(3, dtype=np.float32), labels=np.arange(3))
    assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "some.npz") == 0
    told = capsys.readouterr().err
    assert "nothing tells whether the answers are right" in told
    assert "no numbers that the model should give (an array 'y' beside the inputs)" in told
    assert call("evaluate", tmp_path / "net.pb", "--data", tmp_path / "told.npz") == 0
    assert "nothing tells" not in capsys.readouterr().err
