"""``quantize`` and ``evaluate`` from end to end, on a small net and on real models with real data."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from command_line import call
from pocketgraph import Session
from pocketgraph.cli.shared.ending import Ended
from pocketgraph.formats import save
from pocketgraph.formats.tflite_metadata import metadata
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from support import ROOT, model_dir, needs_shared, with_weights


@pytest.fixture
def small(tmp_path: pathlib.Path) -> pathlib.Path:
    """A net from [1,16] to 4 classes."""
    rng = np.random.default_rng(0)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,16])
        h = MatMul(x, a, T=float)
        r = Relu(h, T=float)
        l = MatMul(r, b, T=float)
        y = Softmax(l, T=float)
    """)
    weights = [
        const("a", rng.normal(size=(16, 32)).astype(np.float32)),
        const("b", rng.normal(size=(32, 4)).astype(np.float32)),
    ]
    save(Graph([*graph, *weights]), tmp_path / "net.pb")
    x = rng.normal(size=(60, 16)).astype(np.float32)
    np.savez(tmp_path / "cal.npz", x=x[:40])
    np.savez(tmp_path / "test.npz", x=x[40:], labels=np.arange(20) % 4)
    return tmp_path


@pytest.mark.parametrize(("name", "has_classes"), [("action", False), ("class_score", True)])
def test_actions_are_judged_as_numbers(small: pathlib.Path, name: str, has_classes: bool) -> None:
    weights = const("w", np.random.default_rng(1).normal(size=(16, 80)).astype(np.float32))
    head = parse(f"x = Placeholder(dtype=float, shape=[?,16])\nl = MatMul(x, w, T=float)\n{name} = Tanh(l, T=float)")
    save(Graph([*head, weights]), small / "actor.pb")
    for mode in ("static", "dynamic"):
        files = (small / "actor.pb", "--calibrate", small / "cal.npz", "-o", small / "actor.tflite")
        assert call("quantize", *files, "--mode", mode) == 0
        report = json.loads((small / "actor.report.json").read_text("utf-8"))
        assert (report["agreement"] is not None) == has_classes, mode
        assert report["snr_db"] > 25


def test_labels_say_that_a_tanh_tells_classes(small: pathlib.Path, capsys: Any) -> None:
    weights = const("w", np.random.default_rng(1).normal(size=(16, 80)).astype(np.float32))
    head = parse("x = Placeholder(dtype=float, shape=[?,16])\nl = MatMul(x, w, T=float)\naction = Tanh(l, T=float)")
    save(Graph([*head, weights]), small / "actor.pb")
    (small / "names.txt").write_text("\n".join(f"kind{at}" for at in range(80)), "utf-8")
    files = (small / "actor.pb", "--calibrate", small / "cal.npz", "-o", small / "actor.tflite")
    named = (*files, "--labels", small / "names.txt")
    for options in (["--mode", "static"], ["--mode", "dynamic"], ["--max_kl", "1"]):
        assert call("quantize", *named, *options) == 0, options
        assert json.loads((small / "actor.report.json").read_text("utf-8"))["agreement"] is not None, options
    assert call("quantize", *files, "--max_kl", "1") == 2
    assert "gives no scores of classes" in capsys.readouterr().err


def test_a_model_is_quantized_reported_on_and_judged(small: pathlib.Path, capsys: Any) -> None:
    out = small / "net.tflite"
    assert call("quantize", small / "net.pb", "--calibrate", small / "cal.npz", "-o", out) == 0
    printed = capsys.readouterr().out
    assert "same best class" in printed
    assert "what hurts most" in printed
    assert out.read_bytes()[4:8] == b"TFL3"
    report = json.loads((small / "net.report.json").read_text("utf-8"))
    assert [layer["operator"] for layer in report["layers"]][:1] == ["FULLY_CONNECTED"]
    assert report["snr_db"] > 25
    assert set(report["by_sensitivity"]) <= {layer["name"] for layer in report["layers"]}
    page = (small / "net.report.html").read_text("utf-8")
    assert page.count("<svg") > 2
    assert "://" not in page
    assert call("evaluate", small / "net.pb", out, "--data", small / "test.npz", "--json") == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["top1"] is not None
    assert second["agreement"] >= 0.8  # of 20, where many are near ties
    assert second["snr_db"] > 25


def test_the_same_call_writes_the_same_bytes(small: pathlib.Path) -> None:
    for name in ("a", "b"):
        assert call("quantize", small / "net.pb", "--calibrate", small / "cal.npz", "-o", small / f"{name}.tflite") == 0
    assert (small / "a.tflite").read_bytes() == (small / "b.tflite").read_bytes()


@pytest.mark.parametrize("io", ["float", "int8", "uint8"])
@pytest.mark.parametrize("ranges", ["minmax", "percentile", "mse", "entropy"])
def test_every_way_gives_a_model_that_runs(small: pathlib.Path, capsys: Any, io: str, ranges: str) -> None:
    out = small / "net.tflite"
    flags = [f"--io={io}", f"--ranges={ranges}", "--rounding=corrected", "--equalize"]
    assert call("quantize", small / "net.pb", "--calibrate", small / "cal.npz", "-o", out, *flags) == 0
    capsys.readouterr()
    assert call("evaluate", small / "net.pb", out, "--data", small / "test.npz", "--json") == 0
    assert json.loads(capsys.readouterr().out)[1]["snr_db"] > 15


@pytest.mark.parametrize("mode", ["dynamic", "weights"])
def test_without_calibration(small: pathlib.Path, capsys: Any, mode: str) -> None:
    with np.load(small / "cal.npz") as cal:
        larger(small, cal["x"].shape[1])
    assert call("quantize", small / "large.pb", f"--mode={mode}", "-o", small / "net.tflite") == 0
    assert "weights of 1 layer in few bits" in capsys.readouterr().out
    report = json.loads((small / "net.report.json").read_text("utf-8"))
    assert report["agreement"] is None  # nothing was run
    assert [layer["weight_noise"] > 30 for layer in report["layers"] if layer["weight_noise"]] == [True]
    given = ("--calibrate", small / "cal.npz")
    assert call("quantize", small / "large.pb", f"--mode={mode}", "-o", small / "net.tflite", *given) == 0
    report = json.loads((small / "net.report.json").read_text("utf-8"))
    assert report["snr_db"] > 30
    assert any(layer["from_weights"] for layer in report["layers"])


def larger(folder: pathlib.Path, width: int) -> None:
    """A net with weights that are worth making smaller."""
    rng = np.random.default_rng(0)
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1,{width}])
        h = MatMul(x, a, T=float)
        y = Relu(h, T=float)
    """)
    save(Graph([*graph, const("a", rng.normal(size=(width, 128)).astype(np.float32))]), folder / "large.pb")


def test_a_graph_is_written_that_sessions_run(small: pathlib.Path, capsys: Any) -> None:
    out = small / "eight.pb"
    assert call("quantize", small / "net.pb", "--calibrate", small / "cal.npz", "-o", out) == 0
    capsys.readouterr()
    assert call("evaluate", small / "net.pb", out, "--data", small / "test.npz", "--json") == 0
    assert json.loads(capsys.readouterr().out)[1]["snr_db"] > 20


def test_a_budget_is_kept_on_samples_that_were_not_calibrated_with(small: pathlib.Path, capsys: Any) -> None:
    flags = ["--calibrate", small / "test.npz", "--limit", 10, "--max-accuracy-drop=10", "--max-kl=0.05"]
    assert call("quantize", small / "net.pb", *flags, "-o", small / "net.tflite") == 0
    printed = capsys.readouterr().out
    assert "within the budget" in printed
    assert re.search(r"on \d+ samples that it had not seen: top-1 lost", printed)
    assert "top-1 lost" in printed  # the file holds classes
    said = refused(
        capsys, "quantize", small / "net.pb", "--calibrate", small / "cal.npz", "--max-kl=0", "-o", small / "n.tflite"
    )
    assert re.search(
        r"no form with eight bits keeps the budget; with 75% in float, on \d+ samples: same best class", said
    )
    assert not (small / "n.tflite").exists()


def test_tables_with_and_without_classes(small: pathlib.Path, capsys: Any) -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=(30, 16))
    names = ",".join(f"c{i}" for i in range(16))
    (small / "plain.csv").write_text(names + "\n" + "\n".join(",".join(map(str, row)) for row in values) + "\n")
    rows = "\n".join(f"{i % 4}," + ",".join(map(str, row)) for i, row in enumerate(values))
    (small / "known.csv").write_text(f"label,{names}\n{rows}\n")
    assert call("quantize", small / "net.pb", "--calibrate", small / "plain.csv", "-o", small / "net.tflite") == 0
    capsys.readouterr()
    assert call("evaluate", small / "net.pb", small / "net.tflite", "--data", small / "known.csv", "--json") == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["top1"] is not None
    assert second["snr_db"] > 20
    (small / "bad.csv").write_text("1,2,3\n")
    assert "a row has 3 columns, and the model takes 16 numbers" in refused(
        capsys, "evaluate", small / "net.pb", "--data", small / "bad.csv"
    )
    (small / "bad.csv").write_text(",".join("1" * 15) + ",one\n")
    assert "row 1 has 'one', which is no number" in refused(
        capsys, "evaluate", small / "net.pb", "--data", small / "bad.csv"
    )
    (small / "bad.csv").write_text(names + "\n")
    assert "there are no samples here" in refused(capsys, "evaluate", small / "net.pb", "--data", small / "bad.csv")


def test_recordings_go_through_the_front_of_the_graph(tmp_path: pathlib.Path, capsys: Any) -> None:
    from pocketgraph.kernels.audio.wav import encode_wav

    rng = np.random.default_rng(1)
    (tmp_path / "yes").mkdir()
    (tmp_path / "no").mkdir()
    for index in range(6):
        wave = np.sin(np.arange(1600) * (0.05 + 0.03 * index))[:, None] * 0.5
        place = tmp_path / ("yes" if index % 2 else "no") / f"{index}.wav"
        place.write_bytes(bytes(np.asarray(encode_wav(wave.astype(np.float32), np.int32(16000))).item()))
    graph = parse("""
        wav = Placeholder(dtype=string, shape=[])
        pcm = DecodeWav(wav, desired_channels=1, desired_samples=1600)
        seen = AudioSpectrogram(pcm, window_size=256, stride=128, magnitude_squared=true)
        heard = Mfcc(seen, pcm:1, dct_coefficient_count=10)
        flat = Reshape(heard, shape, T=float, Tshape=int32)
        l = MatMul(flat, w, T=float)
        y = Softmax(l, T=float)
    """)
    windows = 1 + (1600 - 256) // 128
    extra = [
        const("shape", np.int32([1, windows * 10])),
        const("w", rng.normal(0, 0.05, (windows * 10, 2)).astype(np.float32)),
    ]
    save(Graph([*graph, *extra]), tmp_path / "speech.pb")
    out = tmp_path / "speech.tflite"
    assert call("quantize", tmp_path / "speech.pb", "--calibrate", tmp_path, "-o", out) == 0
    assert "the part behind heard:0 is quantized" in capsys.readouterr().err
    assert call("evaluate", tmp_path / "speech.pb", out, "--data", tmp_path, "--json") == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["top1"] is not None
    assert second["snr_db"] > 25
    (tmp_path / "no" / "0.wav").write_bytes(b"RIFFnothing")
    assert call("evaluate", tmp_path / "speech.pb", "--data", tmp_path) == 0
    assert "0.wav is left out: this is no recording: Header mismatch" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("stop", "code", "said"),
    [(KeyboardInterrupt(), 130, "stopped"), (Ended(signal.SIGTERM), 143, "stopped by SIGTERM")],
    ids=["Ctrl-C", "SIGTERM"],
)
def test_an_interrupted_call_goes_on(
    stop: KeyboardInterrupt, code: int, said: str, small: pathlib.Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pocketgraph.quantization.fitting import weight_fitting

    flags = ["quantize", small / "net.pb", "--calibrate", small / "cal.npz"]
    assert call(*flags, "-o", small / "whole.tflite") == 0
    fitted, calls = weight_fitting.fitted_codes, []

    def once(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise stop
        return fitted(*arguments)

    def at_once(*arguments: Any, **options: Any) -> Any:
        raise type(stop)(*stop.args)

    capsys.readouterr()
    with monkeypatch.context() as patched:
        patched.setattr("pocketgraph.quantization.quantizer.quantize_within", at_once)
        assert call(*flags, "-o", small / "net.tflite") == code
    assert capsys.readouterr().err.endswith(f"error: {said}\n")
    assert not list(small.glob("*.resume.npz"))
    with monkeypatch.context() as patched:
        patched.setattr(weight_fitting, "fitted_codes", once)
        assert call(*flags, "-o", small / "net.tflite") == code
    assert not (small / "net.tflite").exists()
    assert capsys.readouterr().err.endswith(f"error: {said}; the same call made again goes on from here\n")
    assert call(*flags, "-o", small / "net.tflite") == 0
    assert "going on from an interrupted call" in capsys.readouterr().err
    assert (small / "net.tflite").read_bytes() == (small / "whole.tflite").read_bytes()
    assert not list(small.glob("*.resume.npz"))


def test_constant_samples_are_quantized(small: pathlib.Path, capsys: Any) -> None:
    np.savez(small / "same.npz", x=np.full((8, 16), 0.5, np.float32))
    assert call("quantize", small / "net.pb", "--calibrate", small / "same.npz", "-o", small / "net.tflite") == 0
    assert call("evaluate", small / "net.pb", small / "net.tflite", "--data", small / "same.npz", "--json") == 0


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        (np.zeros((40, 16)), "warning: all samples hold nothing but 0 for 'x:0'"),
        (np.full((40, 16), 3.0), "warning: all samples hold nothing but 3 for 'x:0'"),
        (np.tile(np.arange(16.0), (40, 1)), "warning: the first 16 samples are all the same"),
        (np.arange(32.0).reshape(2, 16), "warning: only 2 samples to calibrate with"),
    ],
)
def test_hollow_samples_are_warned_of(
    small: pathlib.Path, capsys: Any, samples: np.ndarray[Any, Any], said: str
) -> None:
    np.savez(small / "hollow.npz", x=samples.astype(np.float32))
    out = small / "net.tflite"
    assert call("quantize", small / "net.pb", "--calibrate", small / "hollow.npz", "-o", out) == 0
    assert said in capsys.readouterr().out
    assert said in json.loads((small / "net.report.json").read_text("utf-8"))["notes"][0]


def test_answers_that_never_change_are_warned_of() -> None:
    graph = with_weights(
        """
        x = Placeholder(dtype=float, shape=[1,16])
        w = Const(float 0.0)
        y = MatMul(x, w, T=float)
        """,
        w=np.zeros((16, 80), np.float32),
    )
    samples = np.random.default_rng(0).normal(size=(20, 16)).astype(np.float32)
    warning, *_ = pocketgraph.quantize(graph, {"x": samples}).notes
    assert warning.startswith("warning: 'y:0' is 0 for all samples, so that nothing shows what eight bits lose there")


@pytest.mark.parametrize("factor", [1e-40, 1e-25, 1e15])
def test_samples_of_very_small_or_large_numbers_are_counted_without_a_warning_of_numpy(
    small: pathlib.Path, capsys: Any, factor: float, recwarn: Any
) -> None:
    samples = np.random.default_rng(0).normal(size=(20, 16)) * factor
    np.savez(small / "far.npz", x=samples.astype(np.float32))
    out = small / "net.tflite"
    assert call("quantize", small / "net.pb", "--calibrate", small / "far.npz", "-o", out) == 0
    assert not [warning for warning in recwarn if issubclass(warning.category, RuntimeWarning)]


@pytest.mark.parametrize("mode", ["static", "dynamic", "weights"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_refused(tmp_path: pathlib.Path, capsys: Any, mode: str, bad: float) -> None:
    weights = np.ones((16, 100), np.float32)
    weights[3, 4] = bad
    graph = parse("x = Placeholder(dtype=float, shape=[?,16])\ny = MatMul(x, a, T=float)")
    save(Graph([*graph, const("a", weights)]), tmp_path / "net.pb")
    np.savez(tmp_path / "cal.npz", x=np.ones((3, 16), np.float32))
    said = refused(
        capsys, "quantize", tmp_path / "net.pb", "--calibrate", tmp_path / "cal.npz", "--mode", mode,
        "-o", tmp_path / "o.tflite",
    )  # fmt: skip
    assert "y:0: its weights hold NaN or infinity" in said
    assert not (tmp_path / "o.tflite").exists()


def refused(capsys: Any, *arguments: object) -> str:
    code = call(*arguments)
    assert code in (1, 2)
    lines = capsys.readouterr().err.strip().splitlines()
    lines = [line for line in lines if not re.search(r" of all, after \d+ s$", line)]  # a busy machine takes its time
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    return str(lines[0])


def test_bad_calibration_data_are_refused_in_one_line(small: pathlib.Path, capsys: Any) -> None:
    def attempt(place: object) -> str:
        return refused(capsys, "quantize", small / "net.pb", "--calibrate", place, "-o", small / "o.tflite")

    np.savez(small / "wrong.npz", x=np.zeros((5, 17), np.float32))
    assert "the model takes [1, 16]" in attempt(small / "wrong.npz")
    np.savez(small / "none.npz", x=np.zeros((0, 16), np.float32))
    assert "no samples here" in attempt(small / "none.npz")
    np.savez(small / "nan.npz", x=np.full((3, 16), np.nan, np.float32))
    assert "each sample holds NaN or infinity" in attempt(small / "nan.npz")
    np.savez(small / "other.npz", p=np.zeros((3, 16)), q=np.zeros((3, 16)))
    assert "no array for the input 'x:0'" in attempt(small / "other.npz")
    (small / "broken.npz").write_bytes(b"PK\3\4 not really")
    assert "no .npz or .npy file" in attempt(small / "broken.npz")
    (small / "empty").mkdir()
    assert "no pictures in this folder" in attempt(small / "empty")
    assert "cannot be read" in attempt(small / "missing.txt")
    assert not (small / "o.tflite").exists()
    assert "no samples are given" in refused(capsys, "quantize", small / "net.pb", "-o", small / "o.tflite")
    assert "does not end in .tflite or .pb" in refused(capsys, "quantize", small / "net.pb", "-o", small / "o.txt")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("-o", "o.pb", "--activations=int16"), "--activations=int16 is for .tflite files"),
        (("-o", "o.pb", "--weights=int4"), "--weights=int4 is for .tflite files"),
        (("-o", "o.pb", "--mode=dynamic"), "--mode=dynamic is for .tflite files"),
        (("-o", "o.pb", "--io=int8"), "float inputs and outputs"),
        (("-o", "o.tflite", "--io=int16"), "--io is one of float, int8, uint8, not 'int16'"),
        (("-o", "o.tflite", "--max-kl=-1"), "--max-kl must be 0 or more"),
        (("-o", "o.tflite", "--mode=weights", "--max-kl=1"), "--max-kl is for --mode=static"),
        (("-o", "o.tflite", "--mode=weights", "--keep=nothing"), "--keep is for --mode=static"),
        (("-o", "o.tflite", "--mode=dynamic", "--activations=int16"), "--activations is for --mode=static"),
        (("-o", "o.tflite", "--float_share=2"), "--float_share is a share from 0 to 1"),
    ],
)
def test_what_does_not_go_together_is_refused(
    small: pathlib.Path, capsys: Any, flags: tuple[str, ...], said: str
) -> None:
    placed = [small / flag if flag.startswith("o.") else flag for flag in flags]
    assert said in refused(capsys, "quantize", small / "net.pb", "--calibrate", small / "cal.npz", *placed)
    assert not list(small.glob("o.*"))


def test_places_that_are_not_there_are_refused_before_any_work(small: pathlib.Path, capsys: Any) -> None:
    flags = ["quantize", small / "net.pb", "--calibrate", small / "missing.npz"]
    for place in (["-o", small / "no" / "o.tflite"], ["-o", small / "o.tflite", "--report", small / "no" / "r.html"]):
        assert "the directory to write to does not exist" in refused(capsys, *flags, *place)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("w = VariableV2(dtype=float, shape=[4,4])\ny = MatMul(x, w, T=float)", "freeze_graph"),
        ("q = QuantizeV2(x, lo, hi, T=quint8)\ny = Dequantize(q, q:1, q:2, T=quint8)", "give the float one"),
    ],
)
def test_graphs_that_are_not_ready_are_told_what_to_do(
    tmp_path: pathlib.Path, capsys: Any, text: str, said: str
) -> None:
    graph = parse(f"x = Placeholder(dtype=float, shape=[1,4])\nlo = Const(float 0)\nhi = Const(float 1)\n{text}")
    save(graph, tmp_path / "net.pb")
    assert said in refused(capsys, "quantize", tmp_path / "net.pb", "--mode=weights", "-o", tmp_path / "o.tflite")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_report_that_has_no_room_leaves_the_model(small: pathlib.Path, capsys: Any) -> None:
    out = small / "full.tflite"
    assert call("quantize", small / "net.pb", "--mode=dynamic", "-o", out, "--report=/dev/full") == 1
    told = capsys.readouterr().err
    assert "/dev/full: the file cannot be written: no space left on device" in told
    assert f"the model is written: {out}; make room, or give --report another place" in told
    assert pocketgraph.load(out)


def test_labels_that_do_not_fit_are_refused(small: pathlib.Path, capsys: Any) -> None:
    (small / "labels.txt").write_text("zero\none\n")
    said = refused(
        capsys, "evaluate", small / "net.pb", "--data", small / "test.npz", "--labels", small / "labels.txt"
    )  # fmt: skip
    assert "the labels file has 2 lines, but the model gives 4 scores" in said
    told: list[object] = [small / "net.pb", "--calibrate", small / "cal.npz", "--labels", small / "labels.txt"]
    assert "the labels file has 2 lines" in refused(capsys, "quantize", *told, "-o", small / "o.tflite")
    assert not list(small.glob("o.*"))
    np.savez(small / "few.npz", x=np.zeros((5, 16), np.float32), labels=np.zeros(3))
    assert "5 samples but only 3 labels" in refused(capsys, "evaluate", small / "net.pb", "--data", small / "few.npz")


def test_a_file_that_is_no_litert_model_is_refused(small: pathlib.Path, capsys: Any) -> None:
    (small / "bad.tflite").write_bytes(b"\x1c\0\0\0TFL3" + b"\xff" * 64)
    assert "LiteRT cannot run this file" in refused(
        capsys, "evaluate", small / "net.pb", small / "bad.tflite", "--data", small / "test.npz"
    )


@needs_shared
def test_the_narrow_mobilenet_on_flowers(tmp_path: pathlib.Path, capsys: Any) -> None:
    """The hard case: the official converter's full int8 agrees in 75 %, with KL 1.3 and 11 dB."""
    model = model_dir("mobilenet_v1_025_128") / "frozen_graph.pb"
    flowers = model_dir("data_flower_photos")
    out = tmp_path / "mobilenet.tflite"
    assert call("quantize", model, "--calibrate", flowers, "--limit", 100, "-o", out) == 0
    assert "that it had not seen" in capsys.readouterr().out
    assert out.stat().st_size < 0.33 * model.stat().st_size
    outputs = "--outputs=MobilenetV1/Predictions/Reshape_1"
    assert call("evaluate", model, out, "--data", flowers, "--skip", 100, "--limit", 200, outputs, "--json") == 0
    verdict = json.loads(capsys.readouterr().out)[1]
    assert verdict["agreement"] >= 0.9
    assert verdict["kl"] <= 0.03
    assert verdict["snr_db"] >= 20


def test_open_sizes_are_those_of_the_samples(tmp_path: pathlib.Path, capsys: Any) -> None:
    rng = np.random.default_rng(4)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?, ?, 6])
        flat = ExpandDims(x, axis, T=float, Tdim=int32)
        c = Conv2D(flat, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
        r = Relu(c, T=float)
        y = Mean(r, axes, T=float, Tidx=int32)
    """)
    constants = [
        const("axis", np.int32(1)),
        const("axes", np.array([1, 2], np.int32)),
        const("w", rng.normal(size=(1, 3, 6, 16)).astype(np.float32)),
    ]
    whole = Graph([*graph, *constants]).replace(inputs=["x"], outputs=["y"])
    save(whole, tmp_path / "open.pb")
    samples = rng.normal(size=(20, 30, 6)).astype(np.float32)
    np.savez(tmp_path / "samples.npz", x=samples, labels=np.arange(20) % 16)
    out = tmp_path / "open.tflite"
    assert call("quantize", tmp_path / "open.pb", f"--calibrate={tmp_path / 'samples.npz'}", "-o", out) == 0
    assert "LiteRT files: " in capsys.readouterr().out
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(out))
    interpreter.allocate_tensors()
    (entry,) = interpreter.get_input_details()
    assert entry["shape"].tolist() == [1, 30, 6]
    interpreter.set_tensor(entry["index"], samples[:1])
    interpreter.invoke()
    given = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    with Session(whole, exact=True) as session:
        (wanted,) = session.run(["y:0"], {"x:0": samples[:1]})
    assert np.abs(given - wanted).max() < 0.05 * np.abs(wanted).max()


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("x = Placeholder(dtype=string, shape=[1])\n"
         "n = StringToNumber(x, out_type=float)\ny = Relu(n, T=float)", "name tensors of numbers behind them"),
        ("x = Placeholder(dtype=float, shape=[1, 4])\nupside = Placeholder(dtype=bool, shape=[])\n"
         "s = Switch(x, upside, T=float)\ny = Relu(s, T=float)", "--feed=upside=false"),
    ],
)  # fmt: skip
def test_what_stands_in_the_way_is_told_with_what_to_type(
    text: str, hint: str, tmp_path: pathlib.Path, capsys: Any
) -> None:
    save(parse(text).replace(outputs=["y"]), tmp_path / "model.pb")
    assert call("quantize", tmp_path / "model.pb", "--mode=dynamic", "-o", tmp_path / "o.tflite") == 2
    assert hint in capsys.readouterr().err


def test_a_training_directory_is_frozen_on_the_way(tmp_path: pathlib.Path, capsys: Any) -> None:
    training = ROOT / "examples" / "digits" / "training"
    held = np.load(ROOT / "examples" / "digits" / "data" / "held_out.npz")
    images = (held["images"].astype(np.float32) / 255).reshape(-1, 8, 8, 1)
    np.savez(tmp_path / "digits.npz", images=images, labels=held["labels"])
    out, name = tmp_path / "digits.tflite", "--outputs=probabilities"
    flags = ["--calibrate", tmp_path / "digits.npz", "-o", out, "--limit", 40, name]
    assert call("quantize", training, *flags) == 0
    assert "top-1 lost" in capsys.readouterr().out.splitlines()[0]
    assert json.loads((tmp_path / "digits.report.json").read_text("utf-8"))["unseen"]["agreement"] > 0.98
    assert call("evaluate", training, out, "--data", tmp_path / "digits.npz", "--skip", 40, name, "--json") == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["top1"] > 0.98
    assert second["agreement"] > 0.98


def test_a_file_says_how_pixels_are_scaled_where_the_nodes_that_told_are_folded(
    tmp_path: pathlib.Path, capsys: Any
) -> None:
    """The bytes that are told are those of the file, with what it says."""
    net = parse("""
        x = Placeholder(dtype=float, shape=[?,8,8,3])
        of_bytes = Const(float 0.003921569)
        shares = Mul(x, of_bytes, T=float)
        conv = Conv2D(shares, w, T=float, strides=[1, 1, 1, 1], padding="SAME", data_format="NHWC")
        rectified = Relu(conv, T=float)
        axes = Const(int32 [1, 2])
        pooled = Mean(rectified, axes, T=float, Tidx=int32, keep_dims=false)
        y = Softmax(pooled, T=float)
    """)
    rng = np.random.default_rng(4)
    save(Graph([*net, const("w", rng.normal(size=(3, 3, 3, 4)).astype(np.float32))]), tmp_path / "net.pb")
    (tmp_path / "photos").mkdir()
    for at in range(12):
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8)).save(tmp_path / "photos" / f"{at}.png")
    for mode in ("static", "dynamic"):
        small = tmp_path / f"{mode}.tflite"
        data = ("--calibrate", tmp_path / "photos") if mode == "static" else ()
        assert call("quantize", tmp_path / "net.pb", *data, "--mode", mode, "-o", small) == 0
        assert f"{small.stat().st_size:,} now" in capsys.readouterr().out
        about = metadata(small.read_bytes())
        assert about is not None
        assert about.scaling == (0.0, 1.0)
        samples = tmp_path / "photos" if mode == "static" else None
        how: Any = {"mode": mode}
        pocketgraph.quantize(tmp_path / "net.pb", samples, **how).save(tmp_path / "by_python.tflite")
        assert (tmp_path / "by_python.tflite").read_bytes() == small.read_bytes()
