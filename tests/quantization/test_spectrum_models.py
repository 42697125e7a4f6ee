"""Models that make a spectrum of samples first: the part behind it ships, and is judged on samples."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import pocketgraph
from pocketgraph import Session, save
from pocketgraph.apps.shipping.ship import ship
from pocketgraph.apps.text_feeds import feeds_behind_texts
from pocketgraph.datasets.sample_reading import SampleReading
from pocketgraph.errors import UsageError
from pocketgraph.exporting.model import EntryPoint
from pocketgraph.exporting.programs import LackingError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.audio.wav import encode_wav
from pocketgraph.quantization.text_cut import NoCutError, text_preprocessing_of
from pocketgraph.quantization.text_inputs import reads_spectrum, text_inputs

RNG = np.random.default_rng(11)
TEXT = """
    waveform = Placeholder(dtype=float, shape=[?, 320])
    frames = Const(int32 [-1, 20, 16])
    cut = Reshape(waveform, frames, T=float, Tshape=int32)
    seen = Mul(cut, window, T=float)
    length = Const(int32 [16])
    spectrum = RFFT(seen, length)
    energies = ComplexAbs(spectrum)
    tiny = Const(float 1e-6)
    above = Add(energies, tiny, T=float)
    logs = Log(above, T=float)
    all = Const(int32 [-1, 180])
    flat = Reshape(logs, all, T=float, Tshape=int32)
    hidden = MatMul(flat, weights, T=float)
    bent = Relu(hidden, T=float)
    scores = MatMul(bent, heads, T=float)
    y = Softmax(scores, T=float)
"""


@pytest.fixture(scope="module")
def graph() -> Graph:
    constants = {
        "window": np.hanning(16).astype(np.float32),
        "weights": RNG.normal(0, 0.1, (180, 32)).astype(np.float32),
        "heads": RNG.normal(0, 0.3, (32, 3)).astype(np.float32),
    }
    return Graph([*parse(TEXT), *(const(name, value) for name, value in constants.items())])


@pytest.fixture
def open_graph(graph: Graph) -> Graph:
    """Of recordings of any length, in stretches of 320 samples."""
    text = """
    waveform = Placeholder(dtype=float, shape=[?])
    count = Size(waveform, T=float, out_type=int32)
    size = Const(int32 320)
    whole = FloorDiv(count, size, T=int32)
    most = Mul(whole, size, T=int32)
    zero = Const(int32 [0])
    one = Const(int32 0)
    ends = ExpandDims(most, one, T=int32, Tdim=int32)
    used = Slice(waveform, zero, ends, T=float, Index=int32)
    """ + TEXT.partition("\n")[2].partition("\n")[2].replace("Reshape(waveform,", "Reshape(used,")
    return Graph([*parse(text), *(graph[name] for name in ("window", "weights", "heads"))])


def test_the_length_of_recordings_is_asked_for_and_taken(open_graph: Graph, tmp_path: pathlib.Path) -> None:
    save(open_graph, tmp_path / "net.pb")
    with pytest.raises(UsageError) as error:
        pocketgraph.export(tmp_path / "net.pb", tmp_path / "net.tflite")
    assert "the model leaves sizes open, and 'energies:0' has no elements with waveform [1]" in str(error.value)
    assert 'shapes={"waveform": (16000,)}' in error.value.hint
    notes: list[str] = []
    path = tmp_path / "net.tflite"
    made = pocketgraph.export(tmp_path / "net.pb", path, shapes={"waveform": (960,)}, notify=notes.append)
    assert made.checks[0].passed
    assert len(notes) == len(set(notes))
    heard = RNG.normal(0, 0.3, 960).astype(np.float32)
    (energies, wanted) = Session(open_graph).run(["energies", "y"], {"waveform": heard})
    with Session(path) as session:
        [found] = session.run(list(session.outputs), {next(iter(session.inputs)): energies})
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_a_made_up_spectrum_is_that_of_a_recording(
    graph: Graph, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of magnitudes below zero this model's logarithms are NaN, which are alike in any two engines."""
    found: list[np.ndarray[Any, Any]] = []
    run = EntryPoint.run

    def kept(self: EntryPoint, session: Session, feeds: Any) -> Any:
        results = run(self, session, feeds)
        found.extend([*feeds.values(), *results.values()])
        return results

    monkeypatch.setattr(EntryPoint, "run", kept)
    save(graph, tmp_path / "net.pb")
    pocketgraph.export(tmp_path / "net.pb", tmp_path / "net.tflite")
    energies, scores = found[:2]
    assert energies.shape == (1, 20, 9)
    assert (energies >= 0).all()
    assert np.isfinite(scores).all()
    folder = pathlib.Path(pocketgraph.export(tmp_path / "net.pb", tmp_path / "net", target="c").path)
    golden = next((folder / "golden").glob("input_0*"))
    assert (np.fromfile(golden, np.float32) >= 0).all()


def test_what_was_cut_off_hears_noise_also_where_a_saver_takes_a_name(graph: Graph, tmp_path: pathlib.Path) -> None:
    """A SavedModel has a string among its placeholders, the name that its saver writes to, and still hears no texts."""
    whole = Graph([*graph, *parse("saver_filename = Placeholder(dtype=string, shape=[])")])
    pocketgraph.export(graph, tmp_path / "net.tflite")
    notes: list[str] = []
    report = pocketgraph.verify(whole, tmp_path / "net.tflite", notify=notes.append)
    assert notes == ["fed with 20 made-up recordings; data gives others"]
    assert (report.passed, report.runs, report.notes) == (True, 20, ())  # silence is noted: it answers always the same
    behind = feeds_behind_texts(whole, str(tmp_path / "net.tflite"), None, SampleReading(), limit=3)
    assert behind is not None
    energies = [next(iter(feeds.values())) for feeds in behind[1]]
    assert [value.shape for value in energies] == [(1, 20, 9)] * 3
    assert min(value.mean() for value in energies) > 0.5
    assert not np.array_equal(energies[0], energies[1])


def samples(count: int = 40) -> dict[str, Any]:
    heard = RNG.normal(0, 0.3, (count, 320)).astype(np.float32)
    heard[::4, 100:] = 0
    return {"waveform": heard}


def test_the_part_behind_the_spectrum_gives_the_same(graph: Graph) -> None:
    assert [item.name for item in text_inputs(graph, ["y"])] == ["waveform:0"]
    front = text_preprocessing_of(graph, ["y"])
    assert front is not None
    assert list(front.shapes) == ["energies:0"]
    heard = samples(3)["waveform"]
    for one in heard:
        whole = Session(graph).run(["y"], {"waveform": one[None]})[0]
        [made] = front([one[None]])
        np.testing.assert_array_equal(Session(front.behind()).run(["y"], {"energies": made})[0], whole)


def test_layers_in_front_of_complex_numbers_are_not_cut_off() -> None:
    """A network that mixes its features by a Fourier transform keeps its layers."""
    mixed = parse("""
        x = Placeholder(dtype=float, shape=[2, 2])
        w = Const(float [[1, 0], [0, 1]])
        hidden = MatMul(x, w, T=float)
        length = Const(int32 [2])
        spectrum = RFFT(hidden, length)
        y = ComplexAbs(spectrum)
    """)
    assert not reads_spectrum(mixed, ["y"])
    assert text_inputs(mixed, ["y"]) == ()


@pytest.mark.parametrize("behind", ["Identity(energies, T=float)", "Reshape(energies, all, T=float, Tshape=int32)"])
def test_a_model_that_is_nothing_but_a_spectrum_is_refused(behind: str, tmp_path: pathlib.Path) -> None:
    """The part behind would hand on what it is fed."""
    spectrum = parse(f"""
        waveform = Placeholder(dtype=float, shape=[1, 16])
        length = Const(int32 [16])
        spectrum = RFFT(waveform, length)
        energies = ComplexAbs(spectrum)
        all = Const(int32 [9])
        y = {behind}
    """)
    with pytest.raises(LackingError, match=r"RFFT \('spectrum'\)"):
        pocketgraph.export(spectrum, tmp_path / "net.tflite", outputs=["y"])
    with pytest.raises(NoCutError, match="in front of all layers and results"):
        text_preprocessing_of(spectrum, ["y"])


@pytest.mark.usefixtures("eight_bits_are_faster")
def test_it_ships_and_is_judged_by_recordings(graph: Graph, tmp_path: pathlib.Path) -> None:
    save(graph, tmp_path / "model.pb")
    for index, one in enumerate(samples()["waveform"]):
        folder = tmp_path / "words" / "abc"[index % 3]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{index}.wav").write_bytes(encode_wav(one[:, None], np.array(16000)).item())
    told: list[str] = []
    shipment = ship(tmp_path / "model.pb", tmp_path / "out", data=tmp_path / "words", notify=told.append)
    assert shipment.form == "static"
    assert any("what makes the spectrum in front of it stays with the app" in line for line in told)
    assert any("as the graph does: Reshape, Mul, RFFT, ComplexAbs" in line for line in shipment.app)
    small = tmp_path / "out" / "model.tflite"
    found = pocketgraph.evaluate([graph, small], tmp_path / "words", outputs=["y"])
    assert found[1].comparison is not None
    assert found[1].comparison.agreement > 0.9
    assert pocketgraph.verify(tmp_path / "model.pb", small, data=tmp_path / "words", tolerance=0.2).passed


def test_export_leaves_the_spectrum_to_the_app(graph: Graph, tmp_path: pathlib.Path) -> None:
    pocketgraph.export(graph, tmp_path / "model.tflite", samples=samples(), outputs=["y"])
    found = pocketgraph.evaluate([graph, tmp_path / "model.tflite"], samples(), outputs=["y"])
    assert found[1].comparison is not None
    assert found[1].comparison.snr > 100


@pytest.mark.usefixtures("eight_bits_are_faster")
def test_recordings_tell_the_length_that_a_graph_leaves_open(open_graph: Graph, tmp_path: pathlib.Path) -> None:
    save(open_graph, tmp_path / "net.pb")
    (tmp_path / "words").mkdir()
    for index, one in enumerate(samples(12)["waveform"]):
        (tmp_path / "words" / f"{index:02}.wav").write_bytes(encode_wav(one[:, None], np.array(16000)).item())
    told: list[str] = []
    small = pocketgraph.quantize(tmp_path / "net.pb", tmp_path / "words", outputs=["y"], notify=told.append)
    small.save(tmp_path / "net.tflite")
    assert any("or filled with silence, to 320 samples" in line for line in told)
    rows = pocketgraph.evaluate([tmp_path / "net.pb", tmp_path / "net.tflite"], tmp_path / "words", outputs=["y"])
    assert rows[1].comparison is not None
    assert rows[1].comparison.snr > 20
    assert ship(tmp_path / "net.pb", tmp_path / "out", tmp_path / "words", outputs=["y"]).form == "static"


def test_sound_of_any_length_is_labelled(open_graph: Graph, tmp_path: pathlib.Path) -> None:
    from pocketgraph.apps.label_wav import WavLabeler

    heard = samples(1)["waveform"][0]
    (tmp_path / "a.wav").write_bytes(encode_wav(heard[:, None], np.array(16000)).item())
    [wanted] = Session(open_graph).run(["y"], {"waveform": np.rint(heard * 32768).clip(-32768, 32767) / 32768})
    found = WavLabeler(open_graph.replace(outputs=["y"]))(str(tmp_path / "a.wav"))
    assert [index for _, index, _ in found] == list(np.argsort(-wanted[0]))
    np.testing.assert_allclose([score for *_, score in found], np.sort(wanted[0])[::-1], atol=1e-3)
