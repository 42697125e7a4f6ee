"""Which pixel values a graph takes is read off what it does to them first, and pictures are fed so."""

import pathlib

import numpy as np
import pytest
from PIL import Image

import pocketgraph
import pocketgraph.datasets.inferred_scaling as inferred_scaling_module
from command_line import call
from pocketgraph.datasets.inferred_scaling import inferred_scaling
from pocketgraph.datasets.sample_reading import SampleReading
from pocketgraph.formats import save
from pocketgraph.graph import Graph, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program, Value
from pocketgraph.quantization.observing.synthetic_inputs import synthetic_inputs

INPUT = "x = Placeholder(dtype=float, shape=[?,8,8,3])"
LAYER = "w = Const(float[3,3,3,2] 0.5)\nconv = Conv2D(last, w, T=float)"
BYTES, SHARES, CENTRED = (0, 1), (0, 255), (127.5, 127.5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c = Const(float 255)\nlast = RealDiv(x, c)", BYTES),
        ("c = Const(float 0.0039215686)\nlast = Mul(c, x)", BYTES),
        ("c = Const(float 127.5)\na = RealDiv(x, c)\no = Const(float 1)\nlast = Sub(a, o)", BYTES),
        ("c = Const(float 128)\na = Sub(x, c)\nd = Const(float 128)\nlast = RealDiv(a, d)", BYTES),
        ("c = Const(float [123.68, 116.78, 103.94])\nlast = Sub(x, c)", BYTES),
        ("c = Const(float [-104, -117, -123])\nlast = BiasAdd(x, c)", BYTES),
        ("k = Identity(x)\nc = Const(float 255)\nd = Identity(c)\nlast = RealDiv(k, d)", BYTES),
        ("h = Const(float 0.5)\na = Sub(x, h)\nt = Const(float 2)\nlast = Mul(a, t)", SHARES),
        ("t = Const(float 2)\na = Mul(x, t)\no = Const(float 1)\nlast = Sub(a, o)", SHARES),
        ("c = Const(float 255)\na = Mul(x, c)\nm = Const(float [123.68, 116.78, 103.94])\nlast = Sub(a, m)", SHARES),
        ("m = Const(float [0.485, 0.456, 0.406])\na = Sub(x, m)\nd = Const(float 0.226)\nlast = RealDiv(a, d)", SHARES),
        ("last = FakeQuantWithMinMaxArgs(x, min=-1.0, max=1.0)", CENTRED),
        ("l = Const(float -1)\nh = Const(float 0.9921875)\nlast = FakeQuantWithMinMaxVars(x, l, h)", CENTRED),
        ("last = FakeQuantWithMinMaxArgs(x, min=0.0, max=255.0)", BYTES),
        ("last = Identity(x)", None),
        ("c = Const(float 1.5)\nlast = Mul(x, c)", None),
        ("c = Const(float 0.1)\nlast = AddV2(x, c)", None),
        ("a = Relu(x)\nc = Const(float 255)\nlast = RealDiv(a, c)", None),
    ],
)
def test_the_first_nodes_tell(text: str, expected: tuple[float, float] | None) -> None:
    graph = parse("\n".join([INPUT, text, LAYER]))
    found = inferred_scaling(graph, "x")
    assert (found and (found.mean, found.std)) == expected


def test_a_batch_norm_of_pixels_tells() -> None:
    for mean, variance, expected in ((118, 4000, BYTES), (0.46, 0.07, SHARES)):
        graph = Graph([
            *parse(f"{INPUT}\nlast = FusedBatchNormV3(x, s, o, m, v, T=float, U=float, is_training=false)\n{LAYER}"),
            *(const(name, np.full(3, number, np.float32)) for name, number in
              {"s": 1, "o": 0, "m": mean, "v": variance}.items()),
        ])  # fmt: skip
        found = inferred_scaling(graph, "x")
        assert found is not None
        assert (found.mean, found.std) == expected


def colours(divided: bool) -> Graph:
    """A classifier that says which of red, green and blue a picture has most of, as shares of 255."""
    first = "c = Const(float 255)\nscaled = RealDiv(x, c)" if divided else "scaled = Identity(x)"
    return parse(f"""
        {INPUT}
        {first}
        axes = Const(int32 [1, 2])
        means = Mean(scaled, axes, T=float, Tidx=int32)
        sharp = Const(float 4)
        scores = Mul(means, sharp)
        y = Softmax(scores)
    """)


def photos(folder: pathlib.Path) -> pathlib.Path:
    for at, name in enumerate(("blue", "green", "red")):
        (folder / name).mkdir(parents=True)
        for number in range(12):
            pixels = np.random.default_rng([at, number]).integers(0, 120, (8, 8, 3), np.uint8)
            pixels[..., 2 - at] += 120
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


def test_pictures_are_fed_as_the_graph_takes_them(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = photos(tmp_path / "photos")
    save(colours(divided=True), tmp_path / "net.pb")
    picture = data / "red" / "0.png"
    share = np.asarray(Image.open(picture), np.float64).reshape(-1, 3).mean(axis=0) / 255
    expected = np.exp(4 * share) / np.exp(4 * share).sum()
    (labelled,) = pocketgraph.label_image(tmp_path / "net.pb", picture, ["red", "green", "blue"])
    assert labelled.predictions[0].label == "red"
    assert labelled.predictions[0].score == pytest.approx(expected[0], abs=1e-5)
    (tmp_path / "labels.txt").write_text("red\ngreen\nblue\n")
    assert call("evaluate", tmp_path / "net.pb", "--data", data, "--labels", tmp_path / "labels.txt") == 0
    captured = capsys.readouterr()
    assert "100.00%" in captured.out
    assert "pixels from 0 to 255, as 'scaled' shows" in captured.err
    assert call("evaluate", tmp_path / "net.pb", "--data", data, "--input_std=255", "--input_mean=0") == 0
    assert "as 'scaled' shows" not in capsys.readouterr().err  # the caller knows better
    exported = tmp_path / "net.tflite"
    assert call("export", tmp_path / "net.pb", "-o", exported) == 0
    (again,) = pocketgraph.label_image(exported, picture)
    assert again.predictions[0].score == pytest.approx(expected[0], abs=1e-4)


def test_pictures_that_are_made_up_have_the_values_that_the_graph_takes() -> None:
    program = Program([Value("x", FLOAT, (1, 8, 8, 3))], [])
    for divided, low, high in ((True, 0, 255), (False, -1, 1)):
        made = np.concatenate([sample[0] for sample in synthetic_inputs(program, [colours(divided)])])
        assert made.dtype == np.float32
        assert low <= made.min() < low + 0.1 * (high - low)
        assert high - 0.1 * (high - low) < made.max() <= high


@pytest.mark.parametrize(("shape", "is_told"), [("[1,40,40,3]", True), ("[1,3,40]", False), ("[?,7]", False)])
def test_numbers_that_are_no_pictures_have_no_range_of_pixels(shape: str, is_told: bool) -> None:
    """Also where a call names the input: spectra or sensors are scaled, too."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape={shape})
        most = Const(float 255)
        scaled = RealDiv(x, most, T=float)
        y = Softmax(scaled, T=float)
    """)
    notes: list[str] = []
    found = SampleReading(notify=notes.append).scaling(graph, ["x:0"])
    assert found.std == (1 if is_told else None)
    assert bool(notes) is is_told


def test_a_sum_of_very_many_equal_operands_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    affine = inferred_scaling_module._affine
    monkeypatch.setattr(inferred_scaling_module, "_affine", lambda *given: looked.append(given) or affine(*given))
    graph = parse(f"{INPUT}\ny = AddN({', '.join(['x'] * 30_000)}, T=float, N=30000)")
    assert inferred_scaling(graph, "x") is None
    assert len(looked) == 1
