"""The front door: what is checked before, proved after, and left behind when something goes wrong."""

from __future__ import annotations

import errno
import os
import pathlib
import re
import stat
from functools import partial
from typing import Any

import numpy as np
import pytest

import pocketgraph
from pocketgraph.apps.shipping.preparation import prepared
from pocketgraph.errors import MissingExtraError, PocketgraphError, RunError, UsageError
from pocketgraph.exporting import target_options, targets, tool
from pocketgraph.exporting.entry_sizes import with_fixed_shapes, with_sizes
from pocketgraph.exporting.export_verification import DifferenceError
from pocketgraph.exporting.labels import check_labels
from pocketgraph.exporting.model import CODED_TOLERANCE, Normalization, Written
from pocketgraph.exporting.opening import opened
from pocketgraph.exporting.samples import made_feeds, taken_feeds
from pocketgraph.exporting.target_options import Option, arguments_of, options_of
from pocketgraph.exporting.target_support import support
from pocketgraph.exporting.targets import TARGETS, Target, target_of
from pocketgraph.graph import Graph, Shape, const
from pocketgraph.graph.graph import Signature
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization.stated_sizes import check_declared
from pocketgraph.quantization.text_inputs import with_shapes
from pocketgraph.runtime import Session

DENSE = parse("""
    x = Placeholder(dtype=float, shape=[?, 3])
    w = Const(float [[1.0, -2.0], [0.5, 1.0], [3.0, 0.25]])
    product = MatMul(x, w, T=float)
    y = Softmax(product, T=float)
""")


class _Spy:
    """Stands for an exporter's module."""

    write: Any = None


def exported(
    monkeypatch: pytest.MonkeyPatch,
    path: pathlib.Path,
    write: Any,
    *,
    is_folder: bool = False,
    graph: Graph = DENSE,
    **how: Any,
) -> Any:
    """Exports a graph to a target of the test's own."""
    _Spy.write = staticmethod(write)
    monkeypatch.setitem(__import__("sys").modules, "spied_exporter", _Spy)
    target = Target("spy", (".spy",), "spied_exporter", "a test's own", is_folder=is_folder)
    monkeypatch.setitem(targets.TARGETS, "spy", target)
    return tool.export(graph, path, target="spy", **how)


def right(name: str, feeds: Any) -> dict[str, Any]:
    """What DENSE computes."""
    product = feeds["x"] @ np.float32([[1, -2], [0.5, 1], [3, 0.25]])
    scores = np.exp(product - product.max(-1, keepdims=True))
    return {"y": (scores / scores.sum(-1, keepdims=True)).astype(np.float32)}


def test_what_is_equal_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    def write(model: Any, path: str) -> Written:
        assert os.path.basename(path) == "net.spy"
        pathlib.Path(path).write_bytes(b"main")
        pathlib.Path(path + ".data").write_bytes(b"beside it")
        return Written(right, ["a note"])

    made = exported(monkeypatch, tmp_path / "net.spy", write, samples={"x": np.float32([[1, 2, 3]])})
    assert made.files == (str(tmp_path / "net.spy"), str(tmp_path / "net.spy.data"))
    assert made.bytes == 13
    assert made.notes == ("a note",)
    (check,) = made.checks
    assert check.passed
    assert not check.is_made
    assert check.milliseconds > 0
    assert sorted(os.listdir(tmp_path)) == ["net.spy", "net.spy.data"]


def test_what_differs_leaves_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    def write(model: Any, path: str) -> Written:
        pathlib.Path(path).write_bytes(b"main")
        return Written(lambda name, feeds: {"y": right(name, feeds)["y"] + np.float32(0.01)})

    (tmp_path / "net.spy").write_bytes(b"what was there")
    with pytest.raises(DifferenceError, match=r"output 'y' of 'serving_default': .* past the tolerance of 0.0001"):
        exported(monkeypatch, tmp_path / "net.spy", write)
    assert (tmp_path / "net.spy").read_bytes() == b"what was there"
    assert os.listdir(tmp_path) == ["net.spy"]
    assert exported(monkeypatch, tmp_path / "net.spy", write, tolerance=0.1).checks[0].passed


def test_another_shape_is_no_matter_of_rounding(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    def write(model: Any, path: str) -> Written:
        pathlib.Path(path).write_bytes(b"main")
        return Written(lambda name, feeds: {"y": right(name, feeds)["y"][:, :1]})

    with pytest.raises(DifferenceError, match=r": shape \[.*\] against \[.*\]; nothing was written$"):
        exported(monkeypatch, tmp_path / "net.spy", write)


def test_a_cut_to_whole_numbers_is_named_where_results_differ(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    def write(model: Any, path: str) -> Written:
        pathlib.Path(path).write_bytes(b"main")
        return Written(lambda name, feeds: {"y": np.trunc(feeds["x"] * 3).astype(np.float32) + np.float32(1)})

    text = """
        x = Placeholder(dtype=float, shape=[1,4])
        three = Const(float 3.0)
        scaled = Mul(x, three, T=float)
        bytes = Cast(scaled, SrcT=float, DstT=uint8)
        y = Cast(bytes, SrcT=uint8, DstT=float)
    """
    with pytest.raises(DifferenceError, match=r"'bytes' cuts floats .* export what is behind it \(inputs=bytes\)"):
        exported(monkeypatch, tmp_path / "net.spy", write, graph=parse(text))
    fed = parse(text.replace("Cast(scaled", "Cast(x")).replace(outputs=["y"])  # what is fed is the same for both
    with pytest.raises(DifferenceError, match=r"nothing was written$"):
        exported(monkeypatch, tmp_path / "net.spy", write, graph=fed)


@pytest.mark.parametrize(
    ("off", "own", "passes"), [(1.4e-7, 2**-22, True), (1.4e-7, 0.0, False), (1e-6, 2**-22, False)]
)
def test_a_sigmoid_near_zero_may_be_off_by_what_its_engine_rounds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, off: float, own: float, passes: bool
) -> None:
    def write(model: Any, path: str) -> Written:
        pathlib.Path(path).write_bytes(b"main")
        exact = 1 / (1 + np.exp(-feeds_of(model)["x"].astype(np.float64)))
        return Written(lambda name, feeds: {"y": (exact + off).astype(np.float32)}, sigmoid_error=own)

    def feeds_of(model: Any) -> Any:
        return next(iter(model.samples()))

    graph = parse("x = Placeholder(dtype=float, shape=[1, 2])\ns = Sigmoid(x, T=float)\ny = Identity(s, T=float)")
    how: dict[str, Any] = {"graph": graph.replace(outputs=["y"]), "samples": {"x": np.float32([[-12, -20]])}}
    if passes:
        assert exported(monkeypatch, tmp_path / "net.spy", write, **how).checks[0].passed
    else:
        with pytest.raises(DifferenceError, match=r"past the tolerance of"):
            exported(monkeypatch, tmp_path / "net.spy", write, **how)


@pytest.mark.parametrize(
    ("dtype", "off", "passes"), [("half", 0.003, True), ("half", 0.01, False), ("float", 0.003, False)]
)
def test_results_of_sixteen_bits_may_be_rounded_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, dtype: str, off: float, passes: bool
) -> None:
    def write(model: Any, path: str) -> Written:
        pathlib.Path(path).write_bytes(b"main")
        return Written(lambda name, feeds: {"y": np.maximum(feeds["x"], 0).astype(np.float32) + np.float32(off)})

    kind = np.float16 if dtype == "half" else np.float32
    graph = parse(f"x = Placeholder(dtype={dtype}, shape=[1, 2])\ny = Relu(x, T={dtype})")
    how: dict[str, Any] = {"graph": graph, "samples": {"x": np.array([[-1, 1]], kind)}}
    if passes:
        assert exported(monkeypatch, tmp_path / "net.spy", write, **how).checks[0].passed
    else:
        with pytest.raises(DifferenceError, match=r"past the tolerance of 0.004" if dtype == "half" else "of 0.0001"):
            exported(monkeypatch, tmp_path / "net.spy", write, **how)


@pytest.mark.parametrize(("off", "passes"), [(3e-4, True), (2e-3, False)])
def test_what_the_last_bits_of_weights_move_is_no_mistake(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, off: float, passes: bool
) -> None:
    """Of numbers near 8192 a last bit is 0.001, so that their difference, near 2, is known to some 0.0005."""

    def write(model: Any, path: str) -> Written:
        pathlib.Path(path).write_bytes(b"main")
        return Written(lambda name, feeds: {"y": 2 * feeds["x"] + np.float32(2 * off)})

    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 3])
        w = Const(float [8192.0, 8200.0, 8210.0])
        less = Const(float [8190.0, 8198.0, 8208.0])
        product = Mul(x, w, T=float)
        y = Sub(product, less, T=float)
    """)
    how: dict[str, Any] = {"graph": graph, "samples": {"x": np.ones((1, 3), np.float32)}}
    if passes:
        (check,) = exported(monkeypatch, tmp_path / "net.spy", write, **how).checks
        assert 1e-4 < check.limits["y"] <= 1e-3
    else:
        with pytest.raises(DifferenceError, match=r"past the tolerance of"):
            exported(monkeypatch, tmp_path / "net.spy", write, **how)


CODES = parse("""
    x = Placeholder(dtype=float, shape=[1, 3])
    low = Const(float -4.0)
    high = Const(float 4.0)
    q = QuantizeV2(x, low, high, T=quint8, mode="MIN_FIRST")
    r = QuantizedRelu(q, q:1, q:2, Tinput=quint8, out_type=quint8)
    y = Dequantize(r, r:1, r:2, T=quint8, mode="MIN_FIRST")
""")


def test_what_magnifies_the_rounding_of_long_sums_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    """Of 4096 terms near 1 whose sum is near 4 another order moves the sum by some 1e-4, more than last bits alone."""

    def write(model: Any, path: str) -> Written:
        pathlib.Path(path).write_bytes(b"main")
        return Written(lambda name, feeds: {"y": feeds["x"].astype(np.float64) @ weights + off})

    rng = np.random.default_rng(0)
    half = rng.random(2048) + 0.5
    weights = np.float32(np.concatenate([half, -half]))[:, None]
    weights[0] += 4
    graph = parse("x = Placeholder(dtype=float, shape=[1, 4096])\nw = Const(float 0.0)\ny = MatMul(x, w, T=float)")
    graph = graph.map_nodes(lambda node: const("w", weights) if node.name == "w" else node)
    how: dict[str, Any] = {"graph": graph, "samples": {"x": np.ones((1, 4096), np.float32)}}
    off = 4 * 2e-4
    (check,) = exported(monkeypatch, tmp_path / "net.spy", write, **how).checks
    assert 2e-4 < check.limits["y"] <= 1e-3
    how["tolerance"] = 1e-5
    with pytest.raises(
        DifferenceError, match=r"magnifies rounding, .* by some 0\.\d+ of the largest value; .*=0\.0004"
    ):
        exported(monkeypatch, tmp_path / "net.spy", write, **how)
    off = 4 * 0.005
    with pytest.raises(DifferenceError, match=r"past the tolerance") as caught:
        exported(monkeypatch, tmp_path / "net.spy", write, **how)
    assert "magnifies" not in str(caught.value)


@pytest.mark.parametrize("op", ["Sin", "Cos"])
def test_waves_of_large_numbers_are_told_to_magnify_rounding(op: str, tmp_path: pathlib.Path) -> None:
    """Near 3e6 neighbouring floats lie 0.25 apart, and sums in another order more than one."""
    weights = np.random.default_rng(0).random((64, 8), np.float32) * 1e5
    x = "x = Placeholder(dtype=float, shape=[1, 64])"
    graph = parse(f"{x}\nw = Const(float 0.0)\nm = MatMul(x, w, T=float)\ny = {op}(m, T=float)")
    graph = graph.map_nodes(lambda node: const("w", weights) if node.name == "w" else node)
    with pytest.raises(DifferenceError, match=r"magnifies rounding, .* by some 0\.\d+ of the largest value"):
        pocketgraph.export(graph, tmp_path / "net.tflite")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("target", ["tflite", "c"])
@pytest.mark.parametrize("dtype", ["half", "bfloat16"])
def test_floats_of_16_bits_that_become_float32_are_told(target: str, dtype: str, tmp_path: pathlib.Path) -> None:
    graph = parse(f"""
        x = Placeholder(dtype={dtype}, shape=[1, 4])
        n = Placeholder(dtype=float, shape=[1, 4])
        y = Relu(x, T={dtype})
        z = Relu(n, T=float)
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite" if target == "tflite" else tmp_path / "net", target=target)
    told = [note for note in made.notes if "float32" in note]
    assert told == [
        f"the input 'x' is float32, the graph's is {dtype}",
        f"the output 'y' is float32, the graph's is {dtype}",
    ]


@pytest.mark.parametrize(("off", "passes"), [(0.05, True), (0.5, False)])
def test_a_graph_that_computes_with_codes_is_judged_by_the_mean(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, off: float, passes: bool
) -> None:
    """What is written in floats rounds elsewhere than the original's eight bits; 3.0 is the peak."""

    def write(model: Any, path: str) -> Written:
        pathlib.Path(path).write_bytes(b"main")
        return Written(lambda name, feeds: {"y": np.maximum(feeds["x"], 0) + np.float32(off)})

    how: dict[str, Any] = {"graph": CODES, "samples": {"x": np.float32([[-1, 2, 3]])}}
    if passes:
        assert exported(monkeypatch, tmp_path / "net.spy", write, **how).checks[0].passed
    else:
        with pytest.raises(DifferenceError, match=r"its mean difference from the graph is 0\.1"):
            exported(monkeypatch, tmp_path / "net.spy", write, **how)


ROUNDED = parse("""
    x = Placeholder(dtype=float, shape=[64])
    low = Const(float -1.0)
    high = Const(float 1.0)
    q = QuantizeV2(x, low, high, T=quint8, mode="MIN_FIRST")
    d = Dequantize(q, q:1, q:2, T=quint8, mode="MIN_FIRST")
    n = Const(int32 [8, 8])
    y = Reshape(d, n, T=float, Tshape=int32)
""")


SPREAD = np.linspace(-1.1, 1.1, 64).astype(np.float32)


@pytest.mark.parametrize("wrong", [0, 2, 20])
def test_what_a_graph_rounds_once_is_judged_by_how_many_codes_are_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, wrong: int
) -> None:
    """A third of all codes off by one is a mean of 0.2 %, which passed."""

    def write(model: Any, path: str) -> Written:
        pathlib.Path(path).write_bytes(b"main")
        with Session(model.graph, engine="reference") as session:
            (values,) = np.array(session.run(["y"], {"x": SPREAD}))
        values.reshape(-1)[:wrong] += np.float32(2 / 255)
        return Written(lambda name, feeds: {"y": values}, is_coded=True, tolerance=CODED_TOLERANCE)

    how: dict[str, Any] = {"graph": ROUNDED, "samples": {"x": SPREAD[None]}}
    if wrong < 4:
        assert exported(monkeypatch, tmp_path / "net.spy", write, **how).checks[0].passed
    else:
        with pytest.raises(DifferenceError, match="20 of its 64 elements are other codes than the graph's"):
            exported(monkeypatch, tmp_path / "net.spy", write, **how)


@pytest.mark.parametrize("wrong", ["shape", "nan"])
def test_wrong_shapes_and_lost_numbers_are_differences(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, wrong: str
) -> None:
    def write(model: Any, path: str) -> Written:
        pathlib.Path(path).write_bytes(b"main")
        change = (lambda y: y[..., :1]) if wrong == "shape" else (lambda y: y * np.float32(np.nan))
        return Written(lambda name, feeds: {"y": change(right(name, feeds)["y"])}, is_coded=True, tolerance=0.5)

    with pytest.raises(DifferenceError):
        exported(monkeypatch, tmp_path / "net.spy", write)
    assert not os.listdir(tmp_path)


def test_a_full_disk_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    def write(model: Any, path: str) -> Written:
        pathlib.Path(path).write_bytes(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(PocketgraphError, match=r"net.spy: the file cannot be written: no space left on device"):
        exported(monkeypatch, tmp_path / "net.spy", write)
    assert not os.listdir(tmp_path)


def test_folders_are_not_overwritten(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    def write(model: Any, path: str) -> Written:
        os.makedirs(os.path.join(path, "inside"))
        pathlib.Path(path, "inside", "model.c").write_bytes(b"new")
        return Written(unchecked="nothing runs it here")

    place = tmp_path / "project"
    made = exported(monkeypatch, place, write, is_folder=True)
    assert made.files == (str(place / "inside/model.c"),)
    assert made.unchecked == "nothing runs it here"
    (place / "own.txt").write_text("mine")
    with pytest.raises(UsageError, match="this directory is not empty; give another one, or force"):
        exported(monkeypatch, place, write, is_folder=True)
    exported(monkeypatch, place, write, is_folder=True, force=True)
    assert (place / "own.txt").read_text() == "mine"


def test_places_that_cannot_be_written(tmp_path: pathlib.Path) -> None:
    with pytest.raises(PocketgraphError, match="mkdir -p"):
        pocketgraph.export(DENSE, tmp_path / "none" / "x.tflite")
    with pytest.raises(PocketgraphError, match="a directory, not a place for a file"):
        (tmp_path / "x.tflite").mkdir()
        pocketgraph.export(DENSE, tmp_path / "x.tflite")
    pocketgraph.save(DENSE, tmp_path / "net.pb")
    os.rename(tmp_path / "net.pb", tmp_path / "net.tflite")
    with pytest.raises(UsageError, match="is the model itself"):
        pocketgraph.export(tmp_path / "net.tflite", tmp_path / "net.tflite")


def test_the_target_follows_from_the_suffix_or_its_name() -> None:
    assert target_of("a/B.TFLITE").name == "tflite"
    assert target_of("a/b", "tflite").name == "tflite"
    with pytest.raises(UsageError, match=r"'model.bin' does not say what to write.*target="):
        target_of("model.bin")
    with pytest.raises(UsageError, match="did you mean 'tflite'"):
        target_of("model.bin", "tflit")
    missing = Target("far", (".far",), "no.module", "far", needs=("no_such_package",), extra="far")
    with pytest.raises(MissingExtraError, match=r"pip install 'pocketgraph\[far\]'"):
        _ = missing.write


def test_options_come_from_the_exporters_signature() -> None:
    target = TARGETS["tflite"]
    options = options_of(target)
    assert options["mode"].choices == ("float32", "float16", "dynamic", "static")
    assert "eight-bit weights" in options["mode"].help
    assert arguments_of(target, {"mode": "static", "custom-ops": "true"}) == {"mode": "static", "custom_ops": True}
    with pytest.raises(UsageError, match="mode is one of float32, float16"):
        arguments_of(target, {"mode": "int7"})
    with pytest.raises(UsageError, match="fixed is true or false, not 'perhaps'"):
        arguments_of(target, {"fixed": "perhaps"})
    with pytest.raises(UsageError, match=r"tflite has no option 'modes'; did you mean 'mode'"):
        arguments_of(target, {"modes": "static"})


@pytest.mark.parametrize("value", ["nan", float("nan"), np.float32("inf"), [1.0]])
def test_an_option_of_a_target_is_a_number(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"bound": Option("bound", float, (), None, "")}
    monkeypatch.setattr(target_options, "options_of", lambda target: known)
    for fit in (None, 2, "0.5", np.float32(3)):
        arguments_of(TARGETS["tflite"], {"bound": fit})
    with pytest.raises(UsageError, match=r"bound is a number \(float\), not '"):
        arguments_of(TARGETS["tflite"], {"bound": value})


def test_samples_have_to_fit(tmp_path: pathlib.Path) -> None:
    for samples, said in (
        ({"z": np.zeros((1, 3)), "v": np.zeros((1, 3))}, "no array"),
        ({"x": np.zeros((1, 2))}, "each of its 1 sample has 2 numbers"),
        (np.zeros((0, 3)), "there are no samples here"),
        (tmp_path / "none.npz", "the data cannot be read"),
    ):
        with pytest.raises(PocketgraphError, match=said):
            pocketgraph.export(DENSE, tmp_path / "x.tflite", samples=samples)
    np.savez(tmp_path / "x.npz", x=np.float32([[1, 2, 3], [3, 2, 1]]))
    (check,) = pocketgraph.export(DENSE, tmp_path / "x.tflite", samples=tmp_path / "x.npz").checks
    assert (check.runs, check.is_made) == (2, False)
    (check,) = pocketgraph.export(DENSE, tmp_path / "x.tflite", samples=tmp_path / "x.npz", limit=1).checks
    assert check.runs == 1


def test_public_names_and_sizes() -> None:
    model = opened(DENSE)
    (entry,) = model.entries
    assert [(port.name, port.tensor, port.shape, port.sizes) for port in entry.inputs] == [
        ("x", "x:0", (None, 3), (1, 3))
    ]
    assert [(port.name, port.shape, port.sizes) for port in entry.outputs] == [("y", (None, 2), (1, 2))]
    assert with_fixed_shapes(model).main.inputs[0].is_fixed
    wide = with_sizes(model, {"x:0": (5, 3)}).main
    assert (wide.inputs[0].shape, wide.inputs[0].sizes, wide.outputs[0].sizes) == ((None, 3), (5, 3), (5, 2))
    fixed = opened(DENSE, shapes={"": (7, 3)}).main.inputs[0]
    assert (fixed.shape, fixed.sizes) == ((7, 3), (7, 3))
    for shapes, said in (
        ({"x": (7, 4)}, "does not fit"),
        ({"nox:1,x": (7, 3)}, "no input 'nox:1,x' .*; the model takes x:"),
    ):
        with pytest.raises(UsageError, match=said):
            opened(DENSE, shapes=shapes)


@pytest.mark.parametrize("wrong", [(7, 3), np.array([7, 3])], ids=["tuple", "array"])
def test_sizes_without_names_are_refused_in_every_call(wrong: Any) -> None:
    for call in (
        opened,
        pocketgraph.benchmark,
        partial(pocketgraph.verify, DENSE),
        partial(pocketgraph.quantize, mode="dynamic"),
        partial(support, target="tfmobile"),
    ):
        with pytest.raises(UsageError, match=f"a mapping of input names to sizes, not a {type(wrong).__name__}"):
            call(DENSE, shapes=wrong)


def test_no_other_inputs_are_named_where_there_are_none_and_each_once() -> None:
    with pytest.raises(UsageError, match=r"there is no input 'foo' to give a shape$"):
        opened(DENSE, values={"x": np.ones((1, 3), np.float32)}, shapes={"foo": (1,)})
    signature = Signature({"given": "x:0"}, {"made": "y:0"})
    graph = DENSE.replace(signatures={"serving_default": signature, "again": signature})
    with pytest.raises(UsageError, match=r'the model takes given: shapes={"given": \(SIZES,\)}'):
        opened(graph, shapes={"foo": (1,)})


def test_sizes_that_a_model_cannot_compute_are_told_with_those_that_it_can() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?, ?, ?, 1])
        shape = Const(int32 [-1, 784])
        row = Reshape(x, shape, T=float)
        begin = Const(int32 [0, 4])
        end = Const(int32 [0, -4])
        steps = Const(int32 [1, 1])
        cut = StridedSlice(x, begin, end, steps, T=float, Index=int32, begin_mask=1, end_mask=1)
    """)
    for output, size, said, fitting in (
        ("row", 20, "node 'row': .*", 28),
        ("cut", 8, "'cut:0' would be empty, .*", 224),
    ):
        with pytest.raises(UsageError) as caught:
            opened(graph, outputs=[output], shapes={"x": (1, size, size, 1)})
        assert re.fullmatch(
            rf'shapes={{"x": \(1, {size}, {size}, 1\)}} does not fit the model: {said}', caught.value.what
        )
        assert caught.value.hint == f'shapes={{"x": (1, {fitting}, {fitting}, 1)}} fits'
    assert opened(graph, outputs=["row"], shapes={"x": (2, 14, 56, 1)}).main.outputs[0].sizes == (2, 784)
    for of in (None, (None, None, None, 1)):
        with pytest.raises(UsageError, match=r"-1\)}: a size is 0 or more; give what it is when the model runs"):
            check_declared("x", of, (1, 28, -1))


@pytest.mark.parametrize("is_longer", ["Const(bool false)", "Greater(length, ten, T=int32)"])
def test_what_a_branch_cannot_compute_that_is_not_taken_refuses_no_sizes(is_longer: str) -> None:
    """A row is cut where it is longer than ten, else filled."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1, ?])
        length = Size(x, T=float, out_type=int32)
        ten = Const(int32 10)
        is_longer = {is_longer}
        ways = Switch(x, is_longer, T=float)
        begin = Const(int32 [0, 0])
        size = Const(int32 [1, 10])
        cut = Slice(ways:1, begin, size, T=float, Index=int32)
        more = Const(int32 [[0, 0], [0, 5]])
        filled = Pad(ways:0, more, T=float, Tpaddings=int32)
        row = Merge(cut, filled, T=float, N=2)
        both = Slice(x, begin, size, T=float, Index=int32)
        y = Relu(row, T=float)
        far = Const(int32 [0, 5])
        end = Const(int32 [0, 0])
        steps = Const(int32 [1, 1])
        behind = StridedSlice(x, far, end, steps, T=float, Index=int32, begin_mask=1, end_mask=3)
    """)
    for outputs in (["y"], ["y", "behind"]):  # of several, one may be empty
        assert opened(graph, outputs=outputs, shapes={"x": (1, 5)}).main.inputs[0].sizes == (1, 5)
    for output, said in (("both", "node 'both': Slice cannot take"), ("behind", "'behind:0' would be empty")):
        with pytest.raises(UsageError, match=said):
            opened(graph, outputs=[output], shapes={"x": (1, 5)})


def test_sizes_are_said_by_a_signatures_names_or_the_tensors_also_where_outputs_are_named() -> None:
    """As a page that detects names them, which chooses the outputs itself."""
    graph = DENSE.replace(signatures={"serving_default": Signature({"given": "x:0"}, {"made": "y:0"})})
    for name in ("given", "x", "x:0"):
        model = opened(graph, outputs=["product"], shapes={name: (4, 3)})
        assert [port.sizes for port in model.main.inputs] == [(4, 3)], name
    with pytest.raises(UsageError, match="there is no input 'gave' to give a shape"):
        opened(graph, outputs=["product"], shapes={"gave": (4, 3)})


def test_quantize_and_ship_and_evaluate_take_a_signatures_names_of_sizes(tmp_path: pathlib.Path) -> None:
    graph = DENSE.replace(signatures={"serving_default": Signature({"given": "x:0"}, {"made": "y:0"})})
    made = pocketgraph.quantize(graph, mode="dynamic", shapes={"given": (4, 3)})
    assert made.graph["x"].shape() == Shape((4, 3))
    np.savez(tmp_path / "x.npz", x=np.ones((4, 3), np.float32))
    with pytest.raises(UsageError, match="the graph has no node 'gave'"):
        pocketgraph.evaluate([graph], tmp_path / "x.npz", shapes={"gave": (1, 3)})
    found = pocketgraph.evaluate([graph], tmp_path / "x.npz", shapes={"given": (1, 3)})
    assert found.samples == 4
    prepared_graph, _, _ = prepared(graph, ["y"], {}, print, shapes={"given": (1, 3)})
    assert prepared_graph["x"].shape() == Shape((1, 3))


def test_signatures_that_devices_cannot_take_are_left_out() -> None:
    graph = parse("""
        text = Placeholder(dtype=string, shape=[?])
        x = Placeholder(dtype=float, shape=[2])
        y = Relu(x, T=float)
        z = StringToNumber(text, out_type=float)
    """).replace(
        signatures={
            "examples": Signature({"inputs": "text:0"}, {"out": "z:0"}),
            "numbers": Signature({"given": "x:0"}, {"made": "y:0"}),
        }
    )
    model = opened(graph)
    assert [entry.name for entry in model.entries] == ["numbers"]
    assert [port.name for port in (*model.main.inputs, *model.main.outputs)] == ["given", "made"]
    assert model.notes[0].startswith("left out the signature 'examples'")
    assert [entry.name for entry in opened(graph, signatures=["examples"]).entries] == ["examples"]
    with pytest.raises(UsageError, match="did you mean 'numbers'"):
        opened(graph, signatures=["number"])


def test_a_placeholder_whose_default_is_computed_is_no_input() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 2])
        features = Relu(x, T=float)
        cached = PlaceholderWithDefault(features, dtype=float, shape=[?, 2])
        y = Neg(cached, T=float)
    """)
    assert [port.name for port in opened(graph).main.inputs] == ["x"]
    assert [port.name for port in opened(graph, inputs=["cached"]).main.inputs] == ["cached"]


def labelled(graph: Graph, **how: Any) -> None:
    from dataclasses import replace

    check_labels(replace(opened(graph), **how))


def test_labels_have_to_fit() -> None:
    labelled(DENSE, labels=("a", "b"), calibration=("1,2,3", ""))
    for how, said in (
        ({"labels": ("a", "b", "c")}, "there are 3 labels and 2 scores in the output 'y'"),
        ({"calibration": ("1,2,3",)}, "there are 1 lines of score calibration and 2 scores"),
        ({"labels": ("a", "b\nc")}, "label 2 has a line break"),
        ({"calibration": ("1,2,3", "1,2")}, "line 2 of the score calibration is '1,2'"),
        ({"calibration": ("-1,2,3", "")}, "a scale of 0 or more"),
    ):
        with pytest.raises(UsageError, match=said):
            labelled(DENSE, **how)
    picture = parse("x = Placeholder(dtype=float, shape=[1, 4, 4, 2])\ny = Relu(x, T=float)")
    with pytest.raises(UsageError, match=r"the output 'y' is float\[1, 4, 4, 2\]; name the scores with outputs"):
        labelled(picture, labels=("a", "b"))


def test_a_normalization_divides() -> None:
    for mean, std in (((0.0,), (0.0,)), ((), ()), ((1.0, 2.0), (1.0,))):
        with pytest.raises(UsageError):
            Normalization(mean, std)


@pytest.mark.parametrize("target", ["onnx", "c", "tflite"])
def test_of_several_signatures_those_that_were_written_are_checked(target: str, tmp_path: pathlib.Path) -> None:
    """Forms with one entry point have the outputs of no other one."""
    signatures = {
        "predict": Signature({"images": "x:0"}, {"logits": "product:0", "scores": "y:0"}),
        "vectors": Signature({"images": "x:0"}, {"vector": "product:0"}),
    }
    made = pocketgraph.export(DENSE.replace(signatures=signatures), tmp_path / "made", target=target)
    expected = ["predict", "vectors"] if target == "tflite" else ["predict"]
    assert [checked.entry for checked in made.checks] == expected
    assert all(output.largest_relative < 1e-5 for checked in made.checks for output in checked.outputs)


@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_samples_are_of_the_signature_whose_inputs_their_arrays_are_named_like(
    target: str, tmp_path: pathlib.Path
) -> None:
    graph = parse("""
        c = Placeholder(dtype=float, shape=[?,2])
        x = Placeholder(dtype=float, shape=[?,3])
        decoded = Softmax(c, T=float)
        encoded = Tanh(x, T=float)
    """)
    signatures = {
        "decode": Signature({"code": "c:0"}, {"x": "decoded:0"}),
        "encode": Signature({"x": "x:0"}, {"code": "encoded:0"}),
    }
    samples = {"x": np.ones((4, 3), np.float32)}
    made = pocketgraph.export(graph.replace(signatures=signatures), tmp_path / "made", target=target, samples=samples)
    expected = ["encode", "decode"] if target == "tflite" else ["encode"]
    assert [checked.entry for checked in made.checks] == expected


@pytest.mark.parametrize("rows", [1, 2, 30])
def test_made_up_numbers_fit_the_rows_of_a_table(rows: int) -> None:
    graph = parse(f"""
        ids = Placeholder(dtype=int64, shape=[1, 20])
        table = Const(float {np.ones((rows, 2)).tolist()})
        axis = Const(int32 0)
        y = GatherV2(table, ids, axis, Tparams=float, Tindices=int64, Taxis=int32)
    """)
    model = opened(graph)
    feeds = taken_feeds(model)
    with pocketgraph.Session(graph) as session:
        session.run(["y:0"], {"ids:0": feeds["ids"]})
    drawn = made_feeds(model.main)["ids"]
    assert (drawn.max() < rows) == bool((feeds["ids"] == drawn).all())


def test_tables_of_one_row_are_checked(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        ids = Placeholder(dtype=int32, shape=[8])
        table = Const(float [[1, 2]])
        axis = Const(int32 0)
        y = GatherV2(table, ids, axis, Tparams=float, Tindices=int32, Taxis=int32)
    """)
    assert pocketgraph.export(graph, str(tmp_path / "one.tflite")).checks[0].passed


def test_where_nothing_made_up_fits_samples_are_asked_for(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        order = Placeholder(dtype=int32, shape=[4])
        y = InvertPermutation(order, T=int32)
    """)
    with pytest.raises(RunError, match="the inputs were made up; give some that fit with samples"):
        pocketgraph.export(graph, str(tmp_path / "inverse.onnx"))


@pytest.mark.parametrize(("mode", "reach"), [("REFLECT", 3), ("SYMMETRIC", 4)])
def test_borders_that_a_side_is_too_short_to_mirror(mode: str, reach: int, tmp_path: pathlib.Path) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,?,?,1])
        t = MaxPool(x, T=float, ksize=[1,2,2,1], strides=[1,2,2,1], padding="VALID")
        p = Const(int32 [[0,0],[{reach + 1},0],[0,{reach + 1}],[0,0]])
        m = MirrorPad(t, p, T=float, Tpaddings=int32, mode="{mode}")
        y = Relu(m, T=float)
    """)
    told = rf"'m'\): a border of {reach + 1} round a side of 4, of which {mode} mirrors {reach} at most"
    with pytest.raises(UsageError, match=rf"{told} \(larger inputs have larger sides: shapes\)"):
        pocketgraph.export(with_shapes(graph, {"x": (1, 8, 8, 1)}), tmp_path / "net.tflite")
    told = rf"does not fit the model: node 'm': MirrorPad .*: borders of {reach + 1} and 0 do not mirror a side of 4"
    with pytest.raises(UsageError, match=told):
        pocketgraph.export(graph, tmp_path / "net.tflite", shapes={"x": (1, 8, 8, 1)})
    made = pocketgraph.export(graph, tmp_path / "net.tflite", shapes={"x": (1, 12, 12, 1)})
    assert made.checks[0].passed


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes among its files")
def test_a_pipe_takes_the_file_and_stays(tmp_path: pathlib.Path) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[2])\ny = Neg(x, T=float)")
    pocketgraph.export(graph, tmp_path / "model.tflite")
    os.mkfifo(tmp_path / "pipe.tflite")
    end = os.open(tmp_path / "pipe.tflite", os.O_RDONLY | os.O_NONBLOCK)
    pocketgraph.export(graph, tmp_path / "pipe.tflite")
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe.tflite").st_mode), "nothing took its place"
    assert os.read(end, 1 << 16) == (tmp_path / "model.tflite").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.tflite", "pipe.tflite"]
    os.close(end)
