"""The door of the package: arrays or paths in, a model out that is saved, judged and printed."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from command_line import call
from pocketgraph.errors import GOES_ON, UsageError
from pocketgraph.graph import Graph, Tensor, const
from pocketgraph.graph.model_file_graph import numbers
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program
from pocketgraph.quantization import quantized_model
from pocketgraph.quantization.report import size_and_latency
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes
from quantize_nets import net, samples

IMAGES = np.concatenate([sample[0] for sample in samples(40)])


def test_the_name_is_the_function_also_after_its_package_is_imported() -> None:
    import pocketgraph.quantization.quantizer

    assert callable(pocketgraph.quantize)
    assert callable(pocketgraph.evaluate)
    assert {"quantize", "evaluate", "QuantizedModel"} <= set(dir(pocketgraph))


def test_the_command_and_the_function_write_the_same_bytes(tmp_path: pathlib.Path) -> None:
    pocketgraph.save(net(), tmp_path / "net.pb")
    np.savez(tmp_path / "x.npz", x=IMAGES)
    for form in ("tflite", "pb"):
        flags = ["--calibrate", tmp_path / "x.npz", "--outputs=y", "-o", tmp_path / f"command.{form}"]
        assert call("quantize", tmp_path / "net.pb", *flags) == 0
        made = pocketgraph.quantize(tmp_path / "net.pb", {"x": IMAGES}, outputs=["y"], form=form)  # type: ignore[arg-type]
        made.save(tmp_path / f"function.{form}")
        assert (tmp_path / f"command.{form}").read_bytes() == (tmp_path / f"function.{form}").read_bytes()


def test_the_file_of_floats_is_counted_with_what_describes_a_file() -> None:
    """Labels, counted in the file of eight bits alone, made a small one the larger of the two."""
    made = pocketgraph.quantize(net(), IMAGES[:24], outputs=["y"])
    plain = len(made.to_bytes())
    floats = len(model_bytes(made.exact))
    described = made.to_described_bytes({"about": bytes(5000)})
    for measures in (True, False):
        model = replace(made, describe=lambda: described)
        assert not measures or model.size_and_latency().float_bytes == floats + len(described) - plain
        assert model.report.float_bytes == floats + len(described) - plain > floats + 4999
        assert f": {len(described):,} bytes of {floats + len(described) - plain:,}," in repr(model)


def test_a_model_says_what_it_is_and_saves_a_report(tmp_path: pathlib.Path) -> None:
    model = pocketgraph.quantize(net(), IMAGES, outputs=["y"], limit=24)
    assert model.judged is not None
    assert model.judged.comparison.count == 16  # those after the first 24
    assert model.outcome.are_unseen
    said = repr(model)
    assert said.startswith("<QuantizedModel graph: ")
    assert "on 16 samples: same best class" in said
    assert f"{len(model.to_bytes()):,} bytes of " in said
    assert "on 16 samples" in model._repr_html_()
    assert "<table>" not in model._repr_html_(), "layers are looked at when the report is asked for"
    model.save(tmp_path / "net.tflite", report=tmp_path / "net.html")
    assert "<table>" in model._repr_html_()
    assert "a sample" in (tmp_path / "net.html").read_text("utf-8")
    assert (tmp_path / "net.tflite").read_bytes() == model.to_bytes()
    assert json.loads((tmp_path / "net.json").read_text("utf-8"))["bytes"] == len(model.to_bytes())
    assert model.size_and_latency().bytes == len(model.to_bytes())


def test_a_model_says_whether_it_was_judged_on_samples_that_it_was_calibrated_with() -> None:
    model = pocketgraph.quantize(net(), IMAGES[:24], outputs=["y"])
    assert "; on 24 samples that it was calibrated with: same best class" in repr(model)
    assert "On 24 samples that it was calibrated with: same best class" in model._repr_html_()


@pytest.mark.parametrize(("times", "is_sure"), [(0.01, False), (1.0, True)])
def test_a_model_says_where_it_is_sure_of_the_samples_that_it_was_calibrated_with(times: float, is_sure: bool) -> None:
    model = pocketgraph.quantize(net(), times * IMAGES[:24], outputs=["y"])
    note = next(note for note in model.notes if "calibrated with" in note)
    assert note.startswith("on 24 samples that it was calibrated with (others do worse")
    assert (", as the model is 9" in note or ", as the model is 100%" in note) == is_sure
    assert "; judge measures on some): same best class" in note


def test_saving_writes_the_float_program_once_to_see_how_large_it_is(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, written = pocketgraph.quantize(net(), IMAGES, outputs=["y"], limit=24), list[Program]()

    def noted(program: Program, *arguments: object) -> bytes:
        written.append(program)
        return model_bytes(program, *arguments)  # type: ignore[arg-type]

    for module in (quantized_model, size_and_latency):
        monkeypatch.setattr(module, "model_bytes", noted)
    model.save(tmp_path / "net.tflite", report=tmp_path / "net.html")
    assert written.count(model.exact) == 1
    found = json.loads((tmp_path / "net.json").read_text("utf-8"))
    assert found["float_bytes"] == model.size_and_latency().float_bytes == len(model_bytes(model.exact))


def test_a_model_for_a_graph_is_saved_in_both_forms(tmp_path: pathlib.Path) -> None:
    both = pocketgraph.quantize(net(), IMAGES, outputs=["y"], form="pb")
    both.save(tmp_path / "net.pb")
    both.save(tmp_path / "net.tflite")
    found = pocketgraph.evaluate([net(), both, tmp_path / "net.pb", tmp_path / "net.tflite"], IMAGES, outputs=["y"])
    assert [verdict.model for verdict in found] == ["graph", "graph", "net.pb", "net.tflite"]
    assert all(verdict.comparison is not None and verdict.comparison.snr > 20 for verdict in found[1:])
    assert repr(found).startswith("40 samples; agreement is with graph\n")
    only = pocketgraph.quantize(net(), IMAGES, outputs=["y"])
    with pytest.raises(UsageError, match=r"made for a \.tflite file; make it with form='pb' for both"):
        only.save(tmp_path / "other.pb")
    with pytest.raises(UsageError, match="does not end in"):
        only.save(tmp_path / "other.onnx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.pb", "net.tflite"]


@pytest.mark.parametrize("mode", ["dynamic", "weights"])
def test_weights_alone_need_no_samples(mode: str) -> None:
    model = pocketgraph.quantize(net(), outputs=["y"], mode=mode)  # type: ignore[arg-type]
    assert model.judged is None
    assert "weights in few bits" in repr(model)


def test_an_interrupted_call_goes_on_with_any_number_of_threads(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pocketgraph.quantization import quantized_model
    from pocketgraph.quantization.fitting import weight_fitting

    whole = pocketgraph.quantize(net(), IMAGES, outputs=["y"]).to_bytes()
    place, fitted, told = tmp_path / "state.npz", weight_fitting.fitted_codes, list[str]()

    def interrupted(*arguments: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(weight_fitting, "fitted_codes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pocketgraph.quantize(net(), IMAGES, outputs=["y"], resume=place)
    assert place.exists()
    monkeypatch.setattr(weight_fitting, "fitted_codes", fitted)
    model = pocketgraph.quantize(net(), IMAGES, outputs=["y"], resume=place, threads=2, notify=told.append)
    assert told == ["going on from an interrupted call"]
    with monkeypatch.context() as patch:
        patch.setattr(quantized_model, "write_atomically", interrupted)
        with pytest.raises(KeyboardInterrupt) as stopped:
            model.save(tmp_path / "net.tflite")
    assert getattr(stopped.value, GOES_ON)
    assert place.exists()
    model.save(tmp_path / "net.tflite")
    assert model.to_bytes() == whole
    assert not place.exists()


def test_an_interrupted_call_on_a_checkpoint_goes_on_where_that_is_the_same(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training is known by what its variables hold, whichever of its files was named."""
    from pocketgraph.formats import graphdef
    from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
    from pocketgraph.quantization.fitting import weight_fitting

    def interrupted(*arguments: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(weight_fitting, "fitted_codes", interrupted)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,8])
        w = VariableV2(dtype=float, shape=[8,64], container="", shared_name="")
        read = Identity(w, T=float)
        y = MatMul(x, read, T=float)
    """)
    definition = b"".join(graphdef.chunks(graph))
    length = bytes([len(definition) & 127 | 128, len(definition) >> 7])
    (tmp_path / "model.ckpt.meta").write_bytes(b"\x12" + length + definition)
    samples = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)

    def told(model: str, factor: float) -> list[str]:
        weights = np.float32(factor) * np.arange(512, dtype=np.float32).reshape(8, 64)
        write_checkpoint(tmp_path / "model.ckpt", {"w": Tensor.from_numpy(weights)})
        notes = list[str]()
        with pytest.raises(KeyboardInterrupt):
            pocketgraph.quantize(
                tmp_path / model, samples, outputs=["y"], resume=tmp_path / "state.npz", notify=notes.append
            )
        return [note for note in notes if "going on" in note]

    assert told("model.ckpt", 1.0) == []
    assert told("model.ckpt", 1.0) == told("model.ckpt.meta", 1.0) == ["going on from an interrupted call"]
    assert told("model.ckpt.meta", 2.0) == []


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"samples": None}, "no samples are given"),
        ({"mode": "fast"}, "^mode is one of static, dynamic, weights, not 'fast'"),
        ({"form": "onnx"}, "^form is one of tflite, pb, not 'onnx'"),
        ({"form": "pb", "weights": "int4"}, "^weights=int4 is for .tflite files"),
        ({"mode": "weights", "max_kl": 0.1}, "^max_kl is for mode=static"),
        ({"feeds": {"keep": 1}}, "the graph has no node 'keep'"),
        ({"samples": {"z": IMAGES, "u": IMAGES}}, "the samples: there is no array for the input 'x:0'; there are z, u"),
        ({"samples": IMAGES[:, :5]}, "the model takes \\[1, 12, 12, 3\\]"),
        ({"without": ["softmax"]}, "^without: 'softmax' is no step"),
    ],
)
def test_what_is_wrong_is_said(how: dict[str, object], said: str) -> None:
    given = {"samples": IMAGES, "outputs": ["y"], **how}
    with pytest.raises(UsageError, match=said):
        pocketgraph.quantize(net(), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("mean", "std", "zero_point"), [(127.5, 127.5, 128), (0.0, 255.0, 0), (-20.0, 60.0, None)])
def test_the_bytes_of_a_picture_are_codes_as_they_are(
    mean: float, std: float, zero_point: int | None, tmp_path: pathlib.Path
) -> None:
    """Whatever the photos' own range is; where a mean is no byte, the calibrated scale stays."""
    rng = np.random.default_rng(3)
    side = IMAGES.shape[1]
    for number in range(12):
        pixels = rng.integers(60, 190, (side, side, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    made = pocketgraph.quantize(net(), tmp_path, outputs=["y"], io="uint8", input_mean=mean, input_std=std)
    made.save(tmp_path / "net.tflite")
    (given,) = pocketgraph.identify(tmp_path / "net.tflite").model.signatures["serving_default"][0].values()
    assert given.dtype == "uint8"
    if zero_point is None:
        assert given.scale != pytest.approx(1 / std, rel=1e-3)
    else:
        assert (given.scale, given.zero_point) == (pytest.approx(1 / std), zero_point)
    if zero_point is not None:
        pixels = np.asarray(Image.open(tmp_path / "3.png"))[None]
        (exact,) = pocketgraph.Session(net()).run("y", {"x": ((pixels - mean) / std).astype(np.float32)})
        with pocketgraph.Session(tmp_path / "net.tflite") as session:
            (name,), (wanted,) = session.inputs, session.outputs
            (codes,) = session.run(wanted, {name: pixels})
            found = numbers(session.graph, session.graph.outputs[0], codes)
        np.testing.assert_allclose(found, exact, atol=0.1 * np.abs(exact).max())


@pytest.mark.parametrize("mode", ["static", "dynamic", "weights"])
def test_outputs_that_a_node_hands_on_have_its_names(mode: str, tmp_path: pathlib.Path) -> None:
    """As those of a frozen SavedModel, whose last node hands all results on; each is compared with its own."""
    ends = parse("""
        ends = IdentityN(y, mean, T=[float, float])
    """)
    graph = Graph([*net(), *ends])
    pocketgraph.save(graph, tmp_path / "net.pb")
    names = ["ends:0", "ends:1"]
    made = pocketgraph.quantize(graph, IMAGES[:16], outputs=names, mode=mode)  # type: ignore[arg-type]
    made.save(tmp_path / "net.tflite")
    for name in names:
        found = pocketgraph.evaluate(
            [tmp_path / "net.pb", tmp_path / "net.tflite"], {"x": IMAGES[16:24]}, outputs=[name]
        )
        assert found[1].comparison is not None
        assert found[1].comparison.snr > 15


def test_an_output_of_which_little_is_left_is_said() -> None:
    nodes = parse("""
        x = Placeholder(dtype=float, shape=[?,6,6,3])
        first = Conv2D(x, f, T=float, strides=[1,1,1,1], padding="SAME")
        hidden = Conv2D(first, k, T=float, strides=[1,1,1,1], padding="SAME")
        y = Mean(hidden, places, T=float, Tidx=int32)
        parts = Split(last, hidden, T=float, num_split=2)
    """)
    weights = np.random.default_rng(0).standard_normal((3, 3, 3, 2)).astype(np.float32) * np.float32([1, 1e-3])
    constants = [
        const("k", weights),
        const("f", weights[..., [0, 0, 0]]),
        const("places", np.int32([1, 2])),
        const("last", np.int32(3)),
    ]
    graph = Graph([*nodes, *constants])
    given = np.random.default_rng(1).standard_normal((20, 6, 6, 3)).astype(np.float32)
    outputs = ["y", "parts:0", "parts:1"]
    told = [note for note in pocketgraph.quantize(graph, given, outputs=outputs).notes if "little is left" in note]
    assert len(told) == 1
    assert "'parts:1': its signal to noise is" in told[0]
    kept = pocketgraph.quantize(graph, given, outputs=outputs, keep=["hidden"])
    assert not any("little is left" in note for note in kept.notes)


def test_an_input_without_dimensions_is_timed_and_judged_too(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        gain = Placeholder(dtype=float, shape=[])
        w = Const(float[4,3] 0.25)
        product = MatMul(x, w, T=float)
        y = Mul(product, gain, T=float)
    """)
    given = np.random.default_rng(0).standard_normal((12, 4)).astype(np.float32)
    samples_of_both = {"x": given, "gain": np.linspace(0.5, 2, 12, dtype=np.float32)}
    made = pocketgraph.quantize(graph, samples_of_both, outputs=["y"])
    made.save(tmp_path / "small.tflite", report=tmp_path / "small.html")
    rows = pocketgraph.evaluate([graph, tmp_path / "small.tflite"], samples_of_both)
    assert len(rows) == 2


def test_threads_change_no_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    from pocketgraph.quantization.fitting import layer_reconstruction

    monkeypatch.setattr(layer_reconstruction, "OUTPUTS_AT_ONCE", 2)
    one, three = (pocketgraph.quantize(net(), IMAGES, outputs=["y"], threads=threads).to_bytes() for threads in (1, 3))
    assert one == three


def test_layers_that_read_the_same_rows_share_what_is_worked_out_from_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from pocketgraph.quantization.fitting import layer_reconstruction, weight_fitting

    random = np.random.default_rng(3)
    nodes = parse("""
        x = Placeholder(dtype=float, shape=[?,8,8,3])
        first = Conv2D(x, a, T=float, strides=[1,1,1,1], padding="SAME")
        relu = Relu(first, T=float)
        second = Conv2D(x, b, T=float, strides=[1,1,1,1], padding="SAME")
        third = Conv2D(x, c, T=float, strides=[1,2,2,1], padding="SAME")
        sums = AddV2(relu, second, T=float)
        y = Mean(sums, axes, T=float, Tidx=int32, keep_dims=false)
        z = Mean(third, axes, T=float, Tidx=int32, keep_dims=false)
    """)
    kernels = [const(name, random.normal(size=(1, 1, 3, 6)).astype(np.float32)) for name in ("a", "b", "c")]
    graph = Graph([*nodes, *kernels, const("axes", np.int32([1, 2]))])
    images = random.normal(size=(12, 8, 8, 3)).astype(np.float32)
    made, inverse = list[int](), layer_reconstruction.inverse

    def counted(matrices: np.ndarray) -> np.ndarray:
        made.append(len(matrices))
        return inverse(matrices)

    monkeypatch.setattr(layer_reconstruction, "inverse", counted)
    together = pocketgraph.quantize(graph, images, outputs=["y", "z"]).to_bytes()
    assert len(made) == 2
    monkeypatch.setattr(weight_fitting, "rows_read", id)
    assert pocketgraph.quantize(graph, images, outputs=["y", "z"]).to_bytes() == together
    assert len(made) == 2 + 3


def test_a_model_of_much_work_is_judged_on_fewer_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    from pocketgraph.quantization.core import step_limits

    monkeypatch.setattr(step_limits, "JUDGING_MULTIPLICATIONS", 1)
    monkeypatch.setattr(step_limits, "FEWEST_JUDGED_SAMPLES", 3)
    many = np.concatenate([IMAGES] * 2)
    made = [pocketgraph.quantize(net(), many, outputs=["y"], limit=5, **how) for how in ({}, {"max_kl": 1.0})]  # type: ignore[arg-type]
    counts = [model.judged.comparison.count for model in made if model.judged is not None]
    assert counts == [3, len(many) - 5]


def test_the_more_work_a_model_is_the_fewer_samples_weigh_its_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    from pocketgraph.quantization.core import step_limits
    from pocketgraph.quantization.mixed_precision import segmented_execution

    started, begin = list[int](), segmented_execution.SegmentedExecution.begin

    def counted(self: segmented_execution.SegmentedExecution, sample: Sequence[np.ndarray]) -> object:
        started.append(1)
        return begin(self, sample)

    monkeypatch.setattr(segmented_execution.SegmentedExecution, "begin", counted)
    counts = []
    for limit, value in (
        ("HEAVY_MULTIPLICATIONS", 1 << 60),
        ("HEAVY_MULTIPLICATIONS", 1),
        ("VERY_HEAVY_MULTIPLICATIONS", 1),  # its scores are few, so that each sample says another noise
        ("MANY_SCORES", 5),  # and there is little of it
        ("SAMPLE_DECIBELS", 1000.0),
    ):
        monkeypatch.setattr(step_limits, limit, value)
        started.clear()
        pocketgraph.quantize(net(), IMAGES, outputs=["y"], limit=5)
        counts.append(len(started))
    assert counts == [5, 4, 4, 1, 2]


def test_writing_what_an_interrupted_call_found_takes_a_small_share_of_the_time(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pocketgraph.quantization.core import resume_state

    now = 0.0

    def slow(path: str, content: bytes) -> None:
        nonlocal now
        now += 2.0

    monkeypatch.setattr(resume_state.time, "monotonic", lambda: now)
    monkeypatch.setattr(resume_state, "write_atomically", slow)
    state, due = resume_state.ResumeState(tmp_path / "state.npz", "key"), list[float]()
    for second in range(100):
        now = max(now, float(second))
        before = now
        state.put("stage", {"array": np.zeros(1)})
        if now > before:
            due.append(before)
    assert due == [6.0, 49.0, 92.0]


def test_what_stays_float_although_codes_were_asked_for_is_said() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 4])
        side = Placeholder(dtype=float, shape=[1, 4])
        w = Const(float [[1.0, 2.0], [0.5, 1.0], [0.25, 3.0], [1.0, 1.0]])
        y = MatMul(x, w, T=float)
        z = Sin(side, T=float)
    """)
    arrays = {name: np.linspace(-1, 1, 48, dtype=np.float32).reshape(12, 4) for name in ("x", "side")}
    made = pocketgraph.quantize(graph, arrays, outputs=["y", "z"], io="int8")
    assert [value.dtype.name for value in (*made.program.inputs, *made.program.outputs)].count("float") == 2
    assert "'side', 'z' stay float32: what is next to them computes in float" in made.notes


@pytest.mark.parametrize("how", [{}, {"activations": "int16"}, {"mode": "dynamic"}], ids=["int8", "int16", "dynamic"])
def test_numbers_whose_products_a_float_does_not_hold(how: dict[str, Any], tmp_path: pathlib.Path) -> None:
    """Sums of squares of these results are infinite; their codes are fitted by means alone, and are no worse."""
    rng = np.random.default_rng(0)
    nodes = parse("""
        x = Placeholder(dtype=float, shape=[?,16])
        wide = MatMul(x, first, T=float)
        active = Relu(wide, T=float)
        y = MatMul(active, second, T=float)
    """)
    first, second = rng.normal(size=(16, 64)) * 1e18, rng.normal(size=(64, 8)) * 1e16
    graph = Graph([*nodes, const("first", first.astype(np.float32)), const("second", second.astype(np.float32))])
    rows = rng.normal(size=(40, 16)).astype(np.float32)
    made = pocketgraph.quantize(graph, {"x": rows}, outputs=["y"], **how)
    wanted = np.maximum(rows.astype(np.float64) @ first, 0) @ second
    made.save(tmp_path / "net.tflite")
    with pocketgraph.Session(tmp_path / "net.tflite") as session:
        given = np.concatenate([session.run(list(session.outputs), {"x": row[None]})[0] for row in rows])
    noise = np.mean(((given - wanted) / 1e35) ** 2) / np.mean((wanted / 1e35) ** 2)
    assert -10 * np.log10(noise) > 35
