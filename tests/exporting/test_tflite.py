"""LiteRT files that we write: their numbers, names, open sizes, signatures, versions, and what cannot be written."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

import pocketgraph
from command_line import call
from graph_files import graph_file
from pocketgraph.errors import PocketgraphError, RunError, UsageError
from pocketgraph.exporting import TARGETS, Normalization, export_model, opened
from pocketgraph.exporting.programs import LackingError
from pocketgraph.exporting.tflite.open_size_programs import how_to_fix
from pocketgraph.formats.flatbuffers import Table
from pocketgraph.formats.tflite import OPERATORS, facts
from pocketgraph.formats.tflite_metadata import metadata as litert_metadata
from pocketgraph.graph import Graph, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.graph import Signature
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.model_file import ModelFile
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.litert.writing.operator_versions import RULES, RUNTIMES, least_runtime
from pocketgraph.litert.writing.schema import OPERATORS as EMITTED
from pocketgraph.runtime.session import Session
from support import ROOT, golden, model_dir, needs_shared, script

FIXTURES = ROOT / "tests" / "fixtures" / "tflite"
NET = graph_file(FIXTURES, "pictures")


def arrays(name: str) -> dict[str, Any]:
    with np.load(FIXTURES / f"{name}.npz") as data:
        return {key: data[key] for key in data.files}


def versions(path: pathlib.Path) -> dict[str, int]:
    """The version of each operator in a file."""
    codes = Table.root(path.read_bytes()).tables(1)
    return {OPERATORS[max(t.number(0, "i8"), t.number(3, "i32"))]: t.number(2, "i32", 1) for t in codes}


@pytest.mark.parametrize("name", ["pictures", "numbers"])
def test_numbers_versions_and_bytes_beside_the_converters(tmp_path: pathlib.Path, name: str) -> None:
    """TensorFlow's numbers, the versions that its converter says where it uses the same operator, and no more bytes."""
    path, given = tmp_path / "net.tflite", arrays(name)
    made = pocketgraph.export(
        graph_file(FIXTURES, name),
        path,
        outputs=["y"],
        samples={"x": given["x"][None] if name == "numbers" else given["x"]},
    )
    theirs = FIXTURES / f"{name}.tflite"
    found = ModelFile(path).run("serving_default", {"x": given["x"]})["y"]
    np.testing.assert_allclose(found, given["y"], atol=1e-6 * np.abs(given["y"]).max())
    assert made.bytes <= theirs.stat().st_size
    ours, official = versions(path), versions(theirs)
    shared = ours.keys() & official.keys()
    assert len(shared) >= 10
    different = {code for code in shared if ours[code] != official[code]}
    assert different <= {"DEPTHWISE_CONV_2D", "TRANSPOSE"}  # we dilate in the operator, and turn fewer axes
    runtime = facts(path.read_bytes()).metadata["min_runtime_version"]
    assert len(runtime) == 16
    assert runtime == facts(theirs.read_bytes()).metadata["min_runtime_version"]


def test_what_quantize_writes_tells_versions_too(tmp_path: pathlib.Path) -> None:
    """A runtime that lacks a kernel on codes refuses the file when it is opened, as the converter's."""
    path, theirs = tmp_path / "net.tflite", FIXTURES / "coded.tflite"
    pocketgraph.quantize(NET, {"x": arrays("pictures")["x"]}, io="int8").save(path)
    ours, official = versions(path), versions(theirs)
    shared = ours.keys() & official.keys()
    assert len(shared) >= 5
    assert {code: ours[code] for code in shared} == {code: official[code] for code in shared}
    runtime = facts(path.read_bytes()).metadata["min_runtime_version"]
    assert runtime == facts(theirs.read_bytes()).metadata["min_runtime_version"]


def test_the_least_runtime_is_the_newest_that_an_operator_needs() -> None:
    assert set(RULES) <= set(RUNTIMES)
    assert EMITTED.keys() <= RUNTIMES.keys()
    assert least_runtime([]) == "1.5.0"


def test_the_batch_stays_open(tmp_path: pathlib.Path) -> None:
    given = arrays("pictures")
    made = pocketgraph.export(NET, tmp_path / "net.tflite")
    assert not made.notes
    file = ModelFile(tmp_path / "net.tflite")
    assert file.signature("serving_default").inputs["x"].shape == (-1, 16, 16, 3)
    assert file.signature("serving_default").outputs["y"].shape == (-1, 5)
    for count in (1, 2, 5):
        x = np.resize(given["x"], (count, 16, 16, 3))
        y = file.run("serving_default", {"x": x})["y"]
        np.testing.assert_allclose(y, np.resize(given["y"], (count, 5)), atol=1e-6)
    fixed = pocketgraph.export(NET, tmp_path / "net.tflite", fixed=True)
    assert ModelFile(tmp_path / "net.tflite").signature("serving_default").inputs["x"].shape == (1, 16, 16, 3)
    assert fixed.bytes < made.bytes


def test_pictures_of_any_size(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?, ?, ?, 3])
        y = MaxPool(x, T=float, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    """)
    pocketgraph.export(graph, tmp_path / "net.tflite")
    x = np.random.default_rng(0).standard_normal((3, 30, 50, 3)).astype(np.float32)
    y = ModelFile(tmp_path / "net.tflite").run("serving_default", {"x": x})["y"]
    np.testing.assert_array_equal(y, pocketgraph.Session(graph).run("y", {"x": x})[0])


@pytest.mark.parametrize("mode", ["float32", "dynamic"])
@pytest.mark.parametrize("op", ["ResizeBilinear", "ResizeNearestNeighbor"])
def test_pictures_that_are_made_larger_are_of_any_size(op: str, mode: str, tmp_path: pathlib.Path) -> None:
    """Repeated pixels are NumPy's; between two pixels, 3/4 and 1/4 of each with half pixel centers."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,?,?,64])
        w = Const(float[1,1,64,64] 0.015625)
        mean = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="VALID")
        shape = Shape(mean, T=float, out_type=int32)
        one = Const(int32 [1])
        three = Const(int32 [3])
        size = StridedSlice(shape, one, three, one, T=int32, Index=int32)
        two = Const(int32 [2, 3])
        larger = Mul(size, two, T=int32)
        y = {op}(mean, larger, T=float, half_pixel_centers=true)
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"], mode=mode)
    assert not any("fixed" in note for note in made.notes), made.notes
    file = ModelFile(made.path)
    for rows, columns in ((5, 7), (16, 9)):
        ramp = np.arange(rows, dtype=np.float32)[:, None, None]
        found = file.run("serving_default", {"x": np.broadcast_to(ramp, (2, rows, columns, 64))})["y"]
        of_rows = np.arange(rows * 2) // 2.0
        if op == "ResizeBilinear":
            of_rows = np.clip((np.arange(rows * 2) + 0.5) / 2 - 0.5, 0, rows - 1)
        wanted = np.broadcast_to(of_rows[:, None, None], (2, rows * 2, columns * 3, 64))
        np.testing.assert_allclose(found, wanted, atol=1e-5 if mode == "float32" else 0.01 * rows)


def test_sequences_of_any_length_are_convolved(tmp_path: pathlib.Path) -> None:
    """Batch and length are open, where TensorFlow puts an axis of size 1 between them; the sums are NumPy's."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,?,2])
        one = Const(int32 1)
        rows = ExpandDims(x, one, T=float, Tdim=int32)
        w = Const(float[1,3,2,1] 1.0)
        sums = Conv2D(rows, w, T=float, strides=[1,1,1,1], padding="VALID")
        y = Squeeze(sums, T=float, squeeze_dims=[1])
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    assert made.notes == ()
    file = ModelFile(made.path)
    for count, length in ((1, 3), (4, 9), (2, 50)):
        x = np.random.default_rng(0).integers(-9, 9, (count, length, 2)).astype(np.float32)
        of_steps = x.sum(2)
        wanted = of_steps[:, :-2] + of_steps[:, 1:-1] + of_steps[:, 2:]
        np.testing.assert_array_equal(file.run("serving_default", {"x": x})["y"][..., 0], wanted)


@pytest.mark.parametrize(
    "shape",
    [
        "shape = Shape(x, T=float, out_type=int32)",
        "shapes = ShapeN(half, x, T=float, N=2, out_type=int32)\n shape = Identity(shapes:1, T=int32)",
    ],
    ids=["Shape", "ShapeN"],
)
def test_pictures_that_get_the_size_of_another_are_fixed(shape: str, tmp_path: pathlib.Path) -> None:
    """Of 7 rows half are 4, which twice would be 8."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,?,?,3])
        half = MaxPool(x, T=float, ksize=[1,2,2,1], strides=[1,2,2,1], padding="SAME")
        {shape}
        one = Const(int32 [1])
        three = Const(int32 [3])
        size = StridedSlice(shape, one, three, one, T=int32, Index=int32)
        y = ResizeBilinear(half, size, T=float)
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    [note] = [note for note in made.notes if "fixed" in note]
    assert "but for the batch are fixed" in note


TO_INTEGERS = "larger = Cast(times, SrcT={0}, DstT=int32)"


@pytest.mark.parametrize(
    ("larger", "shape"),
    [
        # of 600 rows 1201
        (
            f"""as_float = Cast(size, SrcT=int32, DstT=float)
        more = Const(float 2.002)
        times = Mul(as_float, more, T=float)
        {TO_INTEGERS.format("float")}""",
            (224, 224),
        ),
        # of 2049 rows 2048
        (
            f"""times = Cast(size, SrcT=int32, DstT=half)
        {TO_INTEGERS.format("half")}""",
            (224, 224),
        ),
        # of 600 rows 1000
        (
            f"""table = Const(int32 {[min(2 * size, 1000) for size in range(1025)]})
        axis = Const(int32 0)
        larger = GatherV2(table, size, axis, Tparams=int32, Tindices=int32, Taxis=int32)""",
            (224, 224),
        ),
        # rows are the square of the width, which 256 times the height is at 4 x 32, 36 x 96 and 100 x 160
        (
            """last = Const(int32 [2])
        wide = StridedSlice(shape, last, three, one, T=int32, Index=int32, shrink_axis_mask=1)
        high = Mul(wide, wide, T=int32)
        larger = Pack(high, wide, T=int32, N=2, axis=0)""",
            (4, 32),
        ),
    ],
    ids=["not_whole", "rounded", "looked_up", "squared"],
)
def test_sizes_that_are_a_multiple_by_chance_are_fixed(
    larger: str, shape: tuple[int, int], tmp_path: pathlib.Path
) -> None:
    """They are one at all sizes that are tried, and none at others."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,?,?,3])
        shape = Shape(x, T=float, out_type=int32)
        one = Const(int32 [1])
        three = Const(int32 [3])
        size = StridedSlice(shape, one, three, one, T=int32, Index=int32)
        {larger}
        y = ResizeBilinear(x, larger, T=float)
    """)
    samples = {"x": np.zeros((1, *shape, 3), np.float32)}
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"], samples=samples)
    [note] = [note for note in made.notes if "fixed" in note]
    assert "but for the batch are fixed" in note


@pytest.mark.parametrize("of", ["x", "picture"])
@pytest.mark.parametrize(
    "before",
    [
        "picture = Relu(x, T=float)",
        "picture = Identity(x, T=float)",
        "none = Const(float [0, 0, 0])\n biased = BiasAdd(x, none, T=float)\n picture = Elu(biased, T=float)",
    ],
    ids=["relu", "identity", "bias"],
)
def test_pictures_of_the_same_size_are_made_larger_at_any_size(before: str, of: str, tmp_path: pathlib.Path) -> None:
    """Repeated pixels are NumPy's."""
    resized = "picture" if of == "x" else "x"
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,?,?,3])
        {before}
        shape = Shape({of}, T=float, out_type=int32)
        one = Const(int32 [1])
        three = Const(int32 [3])
        size = StridedSlice(shape, one, three, one, T=int32, Index=int32)
        two = Const(float [2, 3])
        as_float = Cast(size, SrcT=int32, DstT=float)
        times = Mul(as_float, two, T=float)
        {TO_INTEGERS.format("float")}
        y = ResizeNearestNeighbor({resized}, larger, T=float)
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    assert not any("fixed" in note for note in made.notes), made.notes
    x = np.random.default_rng(0).random((2, 600, 7, 3), np.float32)
    found = ModelFile(made.path).run("serving_default", {"x": x})["y"]
    np.testing.assert_array_equal(found, x.repeat(2, axis=1).repeat(3, axis=2))


SEVERAL_SIZES: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "rows_apart": (
        """
    rows = Const(int32 [-1, 6])
    flat = Reshape(x, rows, T=float, Tshape=int32)
    w = Const(float[6,4] 1.0)
    product = MatMul(flat, w, T=float)
    zero = Const(int32 [0])
    two = Const(int32 [2])
    sizes = StridedSlice(shape, zero, two, one, T=int32, Index=int32)
    rest = Const(int32 [2, 2])
    axis = Const(int32 0)
    apart = ConcatV2(sizes, rest, axis, T=int32, Tidx=int32, N=2)
    y = Reshape(product, apart, T=float, Tshape=int32)""",
        lambda x: np.broadcast_to(x.sum(2)[..., None, None], (*x.shape[:2], 2, 2)),
    ),
    "turned": (
        """
    axis = Const(int32 [0])
    turned = ReverseV2(shape, axis, Tidx=int32, T=int32)
    y = Reshape(x, turned, T=float, Tshape=int32)""",
        lambda x: x.reshape(x.shape[::-1]),
    ),
    "repeated": (
        """
    mean = Mean(x, axes, T=float, Tidx=int32, keep_dims=true)
    axes = Const(int32 [1, 2])
    y = BroadcastTo(mean, shape, T=float, Tidx=int32)""",
        lambda x: np.broadcast_to(x.mean((1, 2), keepdims=True), x.shape),
    ),
    "cropped": (
        """
    begin = Const(int32 [0, 1, 1])
    end = Const(int32 [0, -1, 0])
    steps = Const(int32 [1, 1, 1])
    y = StridedSlice(x, begin, end, steps, T=float, Index=int32, begin_mask=1, end_mask=5)""",
        lambda x: x[:, 1:-1, 1:],
    ),
    "chosen": (
        """
    none = ZerosLike(x, T=float)
    most = Const(float 3.0)
    full = Fill(shape, most, T=float, index_type=int32)
    is_above = Greater(x, none, T=float)
    y = SelectV2(is_above, full, x, T=float)""",
        lambda x: np.where(x > 0, np.float32(3), x),
    ),
    "alike": (
        """
    y = BatchMatMulV2(x, x, T=float, adj_y=true)""",
        lambda x: x @ x.transpose(0, 2, 1),
    ),
}


@pytest.mark.parametrize("name", SEVERAL_SIZES)
def test_batch_and_length_stay_open_where_both_stand_in_a_shape_before(name: str, tmp_path: pathlib.Path) -> None:
    """At a length of 1, which is made up, some of it would be left out; the numbers are NumPy's."""
    text, wanted = SEVERAL_SIZES[name]
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,?,6])
        shape = Shape(x, T=float, out_type=int32)
        one = Const(int32 [1])
        {text}
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    assert made.notes == ()
    file = ModelFile(made.path)
    for count, length in ((1, 3), (7, 5), (2, 101), (31, 4)):
        x = np.random.default_rng(0).integers(-9, 9, (count, length, 6)).astype(np.float32)
        found = file.run("serving_default", {"x": x})["y"]
        np.testing.assert_allclose(found, wanted(x), atol=1e-4)


@pytest.mark.parametrize("to", ["half", "int32"])
def test_sizes_that_are_rounded_beyond_those_tried_are_fixed(to: str, tmp_path: pathlib.Path) -> None:
    """Of 2049 columns half floats make 2048."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,?,6])
        shape = Shape(x, T=float, out_type=int32)
        cast = Cast(shape, SrcT=int32, DstT={to})
        sizes = Cast(cast, SrcT={to}, DstT=int32)
        axes = Const(int32 [1, 2])
        mean = Mean(x, axes, T=float, Tidx=int32, keep_dims=true)
        y = BroadcastTo(mean, sizes, T=float, Tidx=int32)
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    assert any("TILE takes a constant" in note for note in made.notes) is (to == "half"), made.notes


def test_sizes_that_cannot_stay_open_are_fixed_and_said(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?, ?])
        rows = Shape(x, T=float, out_type=int32)
        one = Const(int32 1)
        more = Add(rows, one, T=int32)
        two = Const(int32 2)
        half = FloorDiv(more, two, T=int32)
        start = Const(int32 [0, 0])
        y = Slice(x, start, half, T=float, Index=int32)
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    assert any("fixed" in note for note in made.notes)
    file = ModelFile(tmp_path / "net.tflite")
    with pytest.raises(pocketgraph.PocketgraphError, match="has the shape"):
        file.run("serving_default", {"x": np.zeros((1, 3), np.float32)})


def two_ways() -> Graph:
    """A graph with two signatures that share their weights."""
    graph = parse("""
        features = Placeholder(dtype=float, shape=[?, 64])
        w = Const(float 0.0)
        product = MatMul(features, w, T=float)
        scores = Softmax(product, T=float)
        axis = Const(int32 1)
        best = ArgMax(product, axis, T=float, Tidx=int32, output_type=int64)
    """)
    weights = np.random.default_rng(2).standard_normal((64, 64)).astype(np.float32)
    return graph.map_nodes(lambda node: const("w", weights, FLOAT) if node.name == "w" else node).replace(
        signatures={
            "scores": Signature({"in": "features:0"}, {"out": "scores:0"}),
            "best": Signature({"in": "features:0"}, {"index": "best:0", "same": "features:0"}),
        }
    )


TWO = two_ways()


@pytest.mark.parametrize("name", ["keras_lstm", "keras_gru", "keras_two_ways"])
def test_recurrent_nets_keep_their_batch_open(tmp_path: pathlib.Path, name: str) -> None:
    """States of zeros, which grow with the batch, are broadcast; slices take what there is."""
    graph = graph_file(ROOT / "tests" / "runtime" / "recurrent", name)
    made = pocketgraph.export(graph, tmp_path / "net.tflite")
    assert not made.notes
    file = ModelFile(tmp_path / "net.tflite")
    ((fed, info),) = file.signature("serving_default").inputs.items()
    assert info.shape[0] == -1 or -1 in info.shape
    x = np.random.default_rng(4).standard_normal([5 if size < 0 else size for size in info.shape]).astype(np.float32)
    found = file.run("serving_default", {fed: x})
    with pocketgraph.Session(graph, engine="reference") as session:
        for key, value in found.items():
            (wanted,) = session.run(key, {fed: x})
            np.testing.assert_allclose(value, wanted, atol=1e-5)


def test_several_signatures_share_their_weights(tmp_path: pathlib.Path) -> None:
    made = pocketgraph.export(TWO, tmp_path / "two.tflite")
    assert {check.entry for check in made.checks} == {"scores", "best"}
    assert made.bytes < 1.5 * 64 * 64 * 4
    file = ModelFile(tmp_path / "two.tflite")
    assert set(file.signatures) == {"scores", "best"}
    x = np.random.default_rng(1).standard_normal((3, 64)).astype(np.float32)
    found = file.run("best", {"in": x})
    np.testing.assert_array_equal(found["same"], x)
    assert found["index"].dtype == np.int64
    assert file.run("scores", {"in": x})["out"].shape == (3, 64)
    alone = pocketgraph.export(TWO, tmp_path / "one.tflite", signatures=["best"])
    assert [check.entry for check in alone.checks] == ["best"]


def test_what_only_passes_through(tmp_path: pathlib.Path) -> None:
    """Inputs, constants and doubled results as outputs, which LiteRT does not pass by itself."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        same = Identity(x, T=float)
        fixed = Const(float [4.0, 5.0])
        y = Neg(x, T=float)
        again = Identity(y, T=float)
    """)
    pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["same", "fixed", "y", "again"])
    found = ModelFile(tmp_path / "net.tflite").run("serving_default", {"x": np.float32([1, 2])})
    assert {name: value.tolist() for name, value in found.items()} == {
        "same": [1, 2], "fixed": [4, 5], "y": [-1, -2], "again": [-1, -2]
    }  # fmt: skip


@needs_shared
@pytest.mark.parametrize(("mode", "share", "most"), [("float16", 0.53, 1e-4), ("dynamic", 0.33, 2e-3)])
def test_lighter_weights(tmp_path: pathlib.Path, mode: str, share: float, most: float) -> None:
    model = model_dir("mobilenet_v1_025_128")
    feeds, wanted = golden(model)
    whole = pocketgraph.export(model / "frozen_graph.pb", tmp_path / "whole.tflite")
    light = pocketgraph.export(model / "frozen_graph.pb", tmp_path / "light.tflite", mode=mode)
    assert light.bytes < share * whole.bytes
    for name, tolerance in (("whole", 1e-4), ("light", most)):
        (found,) = ModelFile(tmp_path / f"{name}.tflite").run("serving_default", {"input": feeds["input:0"]}).values()
        (expected,) = wanted.values()
        assert np.abs(found - expected).mean() <= tolerance * np.abs(expected).max()


def test_eight_bits_with_samples(tmp_path: pathlib.Path) -> None:
    given = arrays("pictures")
    samples = {"x": given["x"]}
    made = pocketgraph.export(NET, tmp_path / "net.tflite", mode="static", samples=samples)
    assert made.checks[0].outputs[0].mean_relative < 0.02
    file = ModelFile(tmp_path / "net.tflite")
    assert file.signature("serving_default").inputs["x"].shape == (-1, 16, 16, 3)
    assert not any("fixed" in note for note in made.notes)
    rows = file.run("serving_default", samples)["y"]
    alone = [file.run("serving_default", {"x": given["x"][at : at + 1]})["y"] for at in range(len(given["x"]))]
    np.testing.assert_array_equal(rows, np.concatenate(alone))
    pocketgraph.export(NET, tmp_path / "coded.tflite", mode="static", io="int8", samples=samples)
    coded = ModelFile(tmp_path / "coded.tflite")
    info = coded.signature("serving_default").inputs["x"]
    assert info.dtype == np.int8
    assert info.scale > 0
    found = coded.numbers("serving_default", {"x": given["x"][:1]})["y"]
    np.testing.assert_allclose(found, given["y"][:1], atol=0.1)


def test_large_windows_are_sums_of_small_ones_where_that_is_quicker(tmp_path: pathlib.Path) -> None:
    """XNNPACK has kernels of up to 25 elements; small devices and LiteRT's loops over int16 codes gain nothing."""
    rng = np.random.default_rng(0)
    kernel = const("k", rng.normal(size=(7, 7, 40, 1)).astype(np.float32))
    lines = """
        x = Placeholder(dtype=float, shape=[SIZES])
        d = DepthwiseConv2dNative(x, k, T=float, strides=[1,1,1,1], padding="SAME")
        y = Relu(d, T=float)
    """
    path = tmp_path / "net.tflite"
    given: dict[str, Any] = {"mode": "static", "samples": rng.normal(size=(20, 12, 12, 40)).astype(np.float32)}
    for sizes, options, parts, most in (
        ("1,12,12,40", {}, 3, 1e-6), ("-1,12,12,40", {}, 3, 1e-6), ("1,-1,-1,40", {}, 1, 1e-6),
        ("1,12,12,40", {"mode": "float16"}, 3, 1e-3), ("-1,12,12,40", {"mode": "dynamic"}, 3, 0.03),
        ("1,12,12,40", given, 3, 0.03), ("1,12,12,40", given | {"io": "int8"}, 1, 0.03),
        ("1,12,12,40", given | {"activations": "int16"}, 1, 0.03),
    ):  # fmt: skip
        graph = Graph([*parse(lines.replace("SIZES", sizes)), kernel], inputs=["x"], outputs=["y"])
        made = pocketgraph.export(graph, path, **options)
        assert made.checks[0].outputs[0].mean_relative < most, (sizes, options)
        assert not any("fixed" in note for note in made.notes), made.notes
        (subgraph,) = Table.root(path.read_bytes()).tables(2)
        used = [list(versions(path))[operator.number(0, "u32")] for operator in subgraph.tables(3)]
        assert used.count("DEPTHWISE_CONV_2D") == parts, options


def test_masks_of_infinity_have_codes(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(0)
    shapes = {"a": (8, 64), "b": (64, 10)}
    lines = """
        x = Placeholder(dtype=float, shape=[1,8])
        zero = Const(float 0)
        h = MatMul(x, a, T=float)
        is_high = Greater(h, zero, T=float)
        m = SelectV2(is_high, h, mask, T=float)
        s = Softmax(m, T=float)
        y = MatMul(s, b, T=float)
    """
    weights = [const(name, rng.normal(size=shape).astype(np.float32)) for name, shape in shapes.items()]
    mask = const("mask", np.full((1, 64), -np.inf, np.float32))
    graph = Graph([*parse(lines), *weights, mask], inputs=["x"], outputs=["y"])
    samples = rng.normal(size=(40, 8)).astype(np.float32)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", mode="static", samples=samples)
    assert made.checks[0].outputs[0].mean_relative < 0.03


def test_bytes_go_in_and_out_of_eight_bits(tmp_path: pathlib.Path) -> None:
    pictures, files = arrays("pictures")["x"], {}
    for io in ("int8", "uint8"):
        pocketgraph.export(NET, tmp_path / f"{io}.tflite", mode="static", io=io, samples={"x": pictures})
        files[io] = ModelFile(tmp_path / f"{io}.tflite")
    codes, bytes_ = (files[io].signature("serving_default") for io in ("int8", "uint8"))
    for side in ("inputs", "outputs"):
        (coded,), (whole,) = getattr(codes, side).values(), getattr(bytes_, side).values()
        assert (whole.dtype, whole.scale, whole.zero_point) == (np.uint8, coded.scale, coded.zero_point + 128)
    for picture in pictures:
        given = bytes_.inputs["x"].coded(picture[None])
        (found,) = files["uint8"].run("serving_default", {"x": given}).values()
        (wanted,) = files["int8"].run("serving_default", {"x": (given.astype(int) - 128).astype(np.int8)}).values()
        np.testing.assert_array_equal(found, wanted.astype(int) + 128)


@pytest.mark.parametrize(("mean", "std", "expected"), [
    (128.0, 64.0, (1 / 64, 128)), (0.0, 255.0, (1 / 255, 0)), ((1, 2, 3), (4, 5, 6), None), (300.0, 9.0, None),
])  # fmt: skip
def test_the_bytes_of_pictures_are_the_codes(tmp_path: pathlib.Path, mean: Any, std: Any, expected: Any) -> None:
    """What cameras and task libraries feed; where each channel has a mean of its own no one scale says it."""
    path = tmp_path / "net.tflite"
    pictures = arrays("pictures")["x"]
    model = opened(NET, shapes={"x": (1, 16, 16, 3)})
    parts = [value if isinstance(value, tuple) else (value,) for value in (mean, std)]
    model = replace(
        model, normalization=Normalization(*parts), samples=lambda: iter([{"x": p[None]} for p in pictures]),
        sample_count=len(pictures),
    )  # fmt: skip
    export_model(model, str(path), TARGETS["tflite"], {"mode": "static", "io": "uint8"}, tolerance=1e9)
    info = ModelFile(path).signature("serving_default").inputs["x"]
    assert info.dtype == np.uint8
    given = (pytest.approx(info.scale), info.zero_point)
    assert given == expected if expected else info.scale != pytest.approx(1 / 9)
    told = litert_metadata(path.read_bytes())
    assert told is not None
    assert (told.mean, told.std) == tuple(tuple(map(float, part)) for part in parts)


def test_what_computes_in_float_beside_the_ends_stays_so(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 4])
        side = Placeholder(dtype=float, shape=[1, 4])
        w = Const(float [[1.0, 2.0], [0.5, 1.0], [0.25, 3.0], [1.0, 1.0]])
        y = MatMul(x, w, T=float)
        z = Sin(side, T=float)
    """)
    samples = {name: np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4) for name in ("x", "side")}
    made = pocketgraph.export(
        graph, tmp_path / "n.tflite", mode="static", io="uint8", samples=samples, outputs=["y", "z"]
    )
    assert [note for note in made.notes if "stay float32" in note] == [
        "'side', 'z' stay float32: what is next to them computes in float"
    ]


def test_eight_bits_need_samples(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="eight bits need samples to calibrate with; pass samples"):
        pocketgraph.export(NET, tmp_path / "net.tflite", mode="static")
    with pytest.raises(UsageError, match="io and activations are for mode=static"):
        pocketgraph.export(NET, tmp_path / "net.tflite", io="int8")
    with pytest.raises(UsageError, match="so 'best' cannot be calibrated; signatures=scores"):
        pocketgraph.export(TWO, tmp_path / "t.tflite", mode="static", samples=np.zeros((1, 64)))


def test_a_long_list_of_missing_operators_is_cut_short(tmp_path: pathlib.Path) -> None:
    ops = ["Digamma", "Lgamma", "Erfinv", "Ndtri", "BesselI0e", "BesselI1e"]
    lines = ["x = Placeholder(dtype=float, shape=[2, 2])"]
    lines += [f"{op} = {op}({before}, T=float)" for before, op in zip(["x", *ops], ops, strict=False)]
    with pytest.raises(LackingError) as caught:
        pocketgraph.export(parse("\n".join(lines)), tmp_path / "net.tflite")
    assert len(caught.value.reasons) >= 5
    text = str(caught.value)
    assert "more ops (check lists all)" in text
    assert text.count("has no LiteRT lowering") == 4


def test_a_length_that_is_made_up_is_told_with_how_to_choose_it() -> None:
    text = "words = Placeholder(dtype=float, shape=SHAPE)\ny = Relu(words, T=float)"
    sequence = opened(parse(text.replace("SHAPE", "[?,?,2]")))
    assert how_to_fix(sequence.main) == '; shapes={"words": (1, N, 2)} chooses how long it is'
    for shape in ("[?,5,2]", "[]"):  # an open batch needs no choice
        assert how_to_fix(opened(parse(text.replace("SHAPE", shape))).main) == ""


def test_operators_that_are_missing_are_all_named(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2, 2])
        one = Digamma(x, T=float)
        other = Digamma(one, T=float)
        y = MatrixInverse(other, T=float, adjoint=false)
        z = Relu(y, T=float)
    """)
    with pytest.raises(LackingError) as caught:
        pocketgraph.export(graph, tmp_path / "net.tflite")
    assert caught.value.reasons.keys() == {"one", "other", "y"}
    assert "LiteRT has nothing for 3 nodes: Digamma ('one', 'other')" in str(caught.value)
    assert not list(tmp_path.iterdir())
    made = pocketgraph.export(graph, tmp_path / "net.tflite", custom_ops=True)
    assert "Digamma, MatrixInverse" in made.unchecked
    loaded = pocketgraph.load(tmp_path / "net.tflite")
    assert [node.op for node in loaded if node.op.startswith("tfl.")] == [
        "tfl.custom.Digamma", "tfl.custom.Digamma", "tfl.custom.MatrixInverse", "tfl.relu"
    ]  # fmt: skip
    np.savez(tmp_path / "x.npz", x=np.ones((3, 2, 2), np.float32))
    for runs in (
        lambda: pocketgraph.Session(tmp_path / "net.tflite").run("z", {"x": np.ones((2, 2), np.float32)}),
        lambda: pocketgraph.evaluate(tmp_path / "net.tflite", tmp_path / "x.npz"),
    ):
        with pytest.raises(PocketgraphError, match="LiteRT has no operator 'Digamma', which the file asks for by name"):
            runs()
    assert call("summarize", tmp_path / "net.tflite") == 0
    said = capsys.readouterr().out
    assert "only where a program registers its custom operators: Digamma, MatrixInverse" in said
    assert "benchmark_model" not in said


def test_a_loop_whose_length_is_fed_is_a_while(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        n = Placeholder(dtype=int32, shape=[])
        zero = Const(int32 0)
        enter = Enter(zero, T=int32, frame_name="loop", is_constant=false, parallel_iterations=10)
        limit = Enter(n, T=int32, frame_name="loop", is_constant=true, parallel_iterations=10)
        merge = Merge(enter, next, T=int32, N=2)
        less = Less(merge, limit, T=int32)
        cond = LoopCond(less)
        switch = Switch(merge, cond, T=int32)
        inside = Identity(switch:1, T=int32)
        one = Const(int32 1, ^inside)
        add = Add(inside, one, T=int32)
        next = NextIteration(add, T=int32)
        exit = Exit(switch, T=int32)
        minus = Neg(n, T=int32)
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["exit"])
    assert made.checks[0].passed
    with Session(tmp_path / "net.tflite") as session:
        for count, wanted in ((-2, 0), (0, 0), (7, 7)):
            assert session.run_signature({"n": np.int32(count)})["exit"] == wanted
    made = pocketgraph.export(graph, tmp_path / "known.tflite", outputs=["exit"], values={"n": 3})
    assert made.checks[0].passed
    signatures = {"loop": Signature({"n": "n:0"}, {"m": "exit:0"}), "less": Signature({"n": "n:0"}, {"m": "minus:0"})}
    both = pocketgraph.export(graph.replace(signatures=signatures), tmp_path / "both.tflite")
    assert [check.passed for check in both.checks] == [True, True]


def test_a_signature_that_cannot_be_written_says_which_ones_can(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        n = Placeholder(dtype=int32, shape=[2])
        draw = RandomUniform(n, T=int32, dtype=float)
        minus = Neg(n, T=int32)
    """)
    signatures = {"draw": Signature({"n": "n:0"}, {"m": "draw:0"}), "less": Signature({"n": "n:0"}, {"m": "minus:0"})}
    with pytest.raises(LackingError, match="signatures=less leaves out the signatures that need it"):
        pocketgraph.export(graph.replace(signatures=signatures), tmp_path / "both.tflite")
    made = pocketgraph.export(graph.replace(signatures=signatures), tmp_path / "both.tflite", signatures=["less"])
    assert made.checks[0].passed


def test_branches_say_which_switch_decides(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        upside = Placeholder(dtype=bool, shape=[])
        x = Placeholder(dtype=float, shape=[2])
        s = Switch(x, upside, T=float)
        low = Neg(s, T=float)
        high = Abs(s:1, T=float)
        m = Merge(low, high, T=float, N=2)
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["m"])
    assert any("values=upside=false (or true) sets it for good" in note for note in made.notes)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["m"], values={"upside": False}, force=True)
    assert not any("upside" in note for note in made.notes)


def test_ragged_rows_say_what_ships(tmp_path: pathlib.Path) -> None:
    """As TensorFlow's signatures of RaggedTensors take them: values and row splits."""
    graph = parse("""
        values = Placeholder(dtype=int32, shape=[?])
        splits = Placeholder(dtype=int64, shape=[?])
        zero = Const(int64 [0])
        one = Const(int64 [1])
        sum/RaggedSplitsToSegmentIds/ends = Slice(splits, one, minus, T=int64, Index=int64)
        minus = Const(int64 [-1])
        y = UniqueV2(sum/RaggedSplitsToSegmentIds/ends, axis, T=int64, Taxis=int64, out_idx=int32)
        axis = Const(int64 [0])
    """)
    with pytest.raises(
        LackingError, match=r"as values and row splits \(splits\), have no form on a device: save"
    ) as caught:
        pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    one = "sum/RaggedSplitsToSegmentIds/ends"
    said = f"LiteRT has nothing for 2 nodes: what is computed of ragged rows ('{one}' and 1 more); rows of different"
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(("scope", "shape"), [("RaggedNet", "?"), ("RaggedReduceSum", "1,6")])
def test_rows_of_one_length_are_not_ragged(scope: str, shape: str, tmp_path: pathlib.Path) -> None:
    """A user's own scope may begin with the word, and tokens of one length are no row splits."""
    graph = parse(f"""
        tokens = Placeholder(dtype=int32, shape=[{shape}])
        {scope}/Cast = Cast(tokens, SrcT=int32, DstT=float)
        y = Svd({scope}/Cast, T=float, compute_uv=false)
    """)
    with pytest.raises(LackingError) as caught:
        pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    assert "RaggedTensor" not in str(caught.value)


def test_branches_that_the_input_decides_are_in_the_file_unless_they_are_set(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        zero = Const(float 0)
        axis = Const(int32 [0])
        sum = Sum(x, axis, T=float, Tidx=int32)
        positive = Greater(sum, zero, T=float)
        s = Switch(x, positive, T=float)
        low = Neg(s, T=float)
        high = Abs(s:1, T=float)
        m = Merge(low, high, T=float, N=2)
    """)
    for goes in ({}, {"positive": True}, {"positive": False}):
        pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["m"], values=goes, force=True)
        for x in ([3, -5], [5, -3]):
            [found] = ModelFile(tmp_path / "net.tflite").run("serving_default", {"x": np.float32(x)}).values()
            wanted = np.abs(x) if goes.get("positive", sum(x) > 0) else np.negative(x)
            np.testing.assert_array_equal(found, wanted)


def test_weights_over_two_gigabytes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants that a FlatBuffer cannot point to lie behind it; here the limit is small, not the model large."""
    from pocketgraph.litert.writing import writer

    monkeypatch.setattr(writer, "LIMIT", 1000)
    given = arrays("pictures")
    pocketgraph.export(NET, tmp_path / "net.tflite", samples={"x": given["x"]}, labels=list("abcde"))
    found = ModelFile(tmp_path / "net.tflite").run("serving_default", {"x": given["x"]})["y"]
    np.testing.assert_allclose(found, given["y"], atol=1e-6)


@needs_shared
def test_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    """Every model whose loops end and whose weights are there gives TensorFlow's numbers in LiteRT's interpreter."""
    tool = script(ROOT / "tools" / "export_catalogue.py")
    not_exported = {
        "aggregator_v1", "aggregator_v2_contrib", "aiy_visionkit_detect", "mtcnn_blaueck",  # loops of unknown length
        "enet_segmentation", "haensel_frozen",  # dropout that is active
        "federated_graph", "lucid_fixture", "rust_regression",  # variables
    }  # fmt: skip
    loose = {"stylize_quantized"}
    base = model_dir("mobilenet_v1_025_128").parent
    for item in tool.items(base, op_graphs=False):
        if item.name in not_exported | loose:
            continue
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            apart, _ = tool.tried(item, "tflite", {}, folder)
        assert apart <= tool.TOLERANCE, item.name


def test_a_power_of_two_is_a_square(tmp_path: pathlib.Path) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[2, 3])\ntwo = Const(float 2)\ny = Pow(x, two, T=float)")
    made = pocketgraph.export(graph, tmp_path / "a.tflite", outputs=["y"])
    assert made.checks[0].outputs[0].largest == 0
    assert [node.op for node in pocketgraph.load(tmp_path / "a.tflite") if node.op.startswith("tfl.")] == ["tfl.square"]


ASSERTED = """
    x = Placeholder(dtype=float, shape=[1,8])
    limit = Const(float 100.0)
    axes = Const(int32 [0, 1])
    small = Less(x, limit, T=float)
    all = All(small, axes, Tidx=int32)
    check = Assert(all, x, T=[float], summarize=3)
    one = Sigmoid(x, T=float)
    two = Sigmoid(x, ^check, T=float)
    y = DivNoNan(one, two, T=float)
"""


@pytest.mark.parametrize("suffix", ["tflite", "onnx"])
def test_assertions_are_left_out_and_said(tmp_path: pathlib.Path, suffix: str) -> None:
    if suffix == "onnx":
        pytest.importorskip("onnx")
    made = pocketgraph.export(parse(ASSERTED), tmp_path / f"net.{suffix}")
    assert [note for note in made.notes if "check" in note] == [
        "assertions are left out (1): devices do not check 'check'"
    ]
    assert made.checks[0].passed


def test_equal_work_is_done_once(tmp_path: pathlib.Path) -> None:
    made = pocketgraph.export(parse(ASSERTED), tmp_path / "net.tflite")
    graph = pocketgraph.load(made.path)
    assert [node.op for node in graph if node.op == "tfl.logistic"] == ["tfl.logistic"]


@pytest.mark.parametrize(("least", "is_fixed"), [(0.0, False), (9.0, True)])
def test_open_sizes_that_only_nan_was_compared_of_are_fixed(
    least: float, is_fixed: bool, tmp_path: pathlib.Path
) -> None:
    """Logarithms of drawn numbers less 9 are NaN in every engine; those of drawn numbers are, too, but of their
    magnitudes they are not."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,4])
        least = Const(float {least})
        w = Const(float [[1,0],[0,1],[1,1],[2,1]])
        above = Sub(x, least, T=float)
        sums = MatMul(above, w, T=float)
        y = Log(sums, T=float)
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite")
    said = [note for note in made.notes if note.startswith("open sizes are fixed")]
    assert bool(said) == is_fixed
    assert not said or "NaN or infinity for made-up inputs, which proves nothing" in said[0]
    shape = pocketgraph.load(tmp_path / "net.tflite")["x"].attrs["shape"]
    assert str(shape) == ("[1,4]" if is_fixed else "[?,4]")


@pytest.mark.parametrize(("divisor", "is_fixed"), [(4, True), (1, False)])
def test_a_batch_that_is_computed_with_is_open_where_that_holds_far_from_the_first_too(
    divisor: int, is_fixed: bool, tmp_path: pathlib.Path
) -> None:
    """A quarter of 1, 2 and 3 is 0, which would be added to each larger batch, too."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,3])
        shape = Shape(x, T=float, out_type=int32)
        zero = Const(int32 [0])
        one = Const(int32 [1])
        batch = StridedSlice(shape, zero, one, one, T=int32, Index=int32, shrink_axis_mask=1)
        divisor = Const(int32 {divisor})
        share = FloorDiv(batch, divisor, T=int32)
        rows = Pack(share, three, T=int32, N=2)
        three = Const(int32 3)
        y = {"Reshape(x, rows, T=float, Tshape=int32)" if divisor == 1 else "Add(x, more, T=float)"}
        more = Cast(share, SrcT=int32, DstT=float)
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    assert any(note.startswith("open sizes are fixed") for note in made.notes) is is_fixed


def test_open_sizes_stand_in_the_file_as_the_samples_have_them(tmp_path: pathlib.Path) -> None:
    """Two heights that grow by half with the other sizes that are tried, as the batch does: 64, and 66 without the
    layer's border. TensorFlow's layer makes [1,64,32,4] of [1,66,34,3]."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,?,?,3])
        w = Const(float[3,3,3,4] 0.1)
        conv = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="VALID")
        rows = Const(int32 [-1, 4])
        y = Reshape(conv, rows, T=float, Tshape=int32)
    """)
    for height, of_y in ((66, [64 * 32, 4]), (64, [62 * 32, 4])):
        path = tmp_path / f"{height}.tflite"
        pocketgraph.export(graph, path, samples=np.ones((1, height, 34, 3), np.float32))
        tensors = Table.root(path.read_bytes()).tables(2)[0].tables(0)
        shapes = {tensor.text(3): tensor.numbers(0, "i32") for tensor in tensors}
        assert [list(shapes[name]) for name in ("x", "y")] == [[1, height, 34, 3], of_y]


def test_a_dropout_whose_draws_are_fed_stays(tmp_path: pathlib.Path) -> None:
    """The values are TensorFlow's: floor(keep_prob + draws) decides what passes."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[4])
        keep_prob = Const(float 0.5)
        scaled = RealDiv(x, keep_prob, T=float)
        size = Shape(x, T=float)
        noise = RandomUniform(size, dtype=float)
        sum = Add(keep_prob, noise, T=float)
        mask = Floor(sum, T=float)
        y = Mul(scaled, mask, T=float)
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", inputs=["x", "noise"], outputs=["y"])
    assert made.notes == ()
    feeds = {"x": np.float32([1, 2, 3, 4]), "noise": np.float32([0.1, 0.6, 0.5, 0.9])}
    assert ModelFile(made.path).run("serving_default", feeds)["y"].tolist() == [0, 4, 6, 8]


@pytest.mark.parametrize("mode", ["float32", "dynamic"])
def test_a_file_refuses_lengths_beyond_their_sequences(tmp_path: pathlib.Path, mode: str) -> None:
    """Of all but the first, LiteRT's own operator would read memory behind the tensor."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[3,5,2])
        n = Placeholder(dtype=int32, shape=[3])
        turned = ReverseSequence(x, n, T=float, Tlen=int32, seq_dim=1, batch_dim=0)
        y = Exp(turned, T=float)
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", mode=mode)
    x = np.random.default_rng(1).normal(size=(3, 5, 2)).astype(np.float32)
    with Session(made.path) as session:
        for lengths in ([5, 2, 60], [5, -1, 2], [5, 2, 50_000_000]):
            with pytest.raises(RunError, match="out of bounds"):
                session.run("y", {"x": x, "n": np.array(lengths, np.int32)})
        y = session.run("y", {"x": x, "n": np.array([5, 2, 0], np.int32)})
    wanted = np.exp([x[0, ::-1], x[1, [1, 0, 2, 3, 4]], x[2]])
    np.testing.assert_allclose(np.asarray(y).reshape(3, 5, 2), wanted, rtol=1e-6)


def test_lengths_of_two_inputs_are_told_apart(tmp_path: pathlib.Path) -> None:
    """The mean of one input is repeated over the length of the other; where both are as long, either would do."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,?,6])
        other = Placeholder(dtype=float, shape=[?,?,6])
        axis = Const(int32 1)
        mean = Mean(x, axis, T=float, Tidx=int32, keep_dims=true)
        shape = Shape(other, T=float, out_type=int32)
        begin = Const(int32 [1])
        end = Const(int32 [2])
        length = StridedSlice(shape, begin, end, begin, T=int32, Index=int32)
        zero = Const(int32 0)
        times = ConcatV2(begin, length, begin, zero, T=int32, Tidx=int32, N=3)
        repeated = Tile(mean, times, T=float, Tmultiples=int32)
        two = Const(int32 2)
        y = ConcatV2(repeated, other, two, T=float, Tidx=int32, N=2)
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    assert not any("fixed" in note for note in made.notes), made.notes
    draw = np.random.default_rng(0)
    x, other = draw.random((2, 13, 6), np.float32), draw.random((2, 17, 6), np.float32)
    found = ModelFile(made.path).run("serving_default", {"x": x, "other": other})["y"]
    wanted = np.concatenate([np.broadcast_to(x.mean(1, keepdims=True), other.shape), other], 2)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_slice_with_open_sizes_is_computed_by_xnnpack_and_ends_where_a_sequence_does(tmp_path: pathlib.Path) -> None:
    """Given: the first five steps, negated. Result: TensorFlow's, of shorter sequences too, in one delegated part."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,?,6])
        begin = Const(int32 [0, 0, 0])
        end = Const(int32 [0, 5, 0])
        ones = Const(int32 [1, 1, 1])
        first = StridedSlice(x, begin, end, ones, T=float, Index=int32, begin_mask=5, end_mask=5)
        y = Neg(first, T=float)
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    assert not made.notes
    interpreter = Interpreter(made.path, num_threads=1)
    (given,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    for shape in ((1, 1, 6), (2, 3, 6), (1, 5, 6), (3, 40, 6)):
        x = np.random.default_rng(0).random(shape, np.float32)
        interpreter.resize_tensor_input(given["index"], shape)
        interpreter.allocate_tensors()
        assert given["index"] in interpreter._get_ops_details()[-1]["inputs"]  # of what is delegated
        interpreter.set_tensor(given["index"], x)
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(result["index"]), -x[:, :5])


@pytest.mark.parametrize(("dtype", "code"), [("float", "STRIDED_SLICE"), ("int32", "SLICE")])
def test_slices_with_open_sizes_are_those_that_litert_copies_by_rows(
    dtype: str, code: str, tmp_path: pathlib.Path
) -> None:
    """XNNPACK takes no whole numbers, of which LiteRT copies a STRIDED_SLICE element by element."""
    graph = parse(f"""
        x = Placeholder(dtype={dtype}, shape=[?,?,6])
        begin = Const(int32 [0, 1, 0])
        end = Const(int32 [0, 0, 4])
        ones = Const(int32 [1, 1, 1])
        part = StridedSlice(x, begin, end, ones, T={dtype}, Index=int32, begin_mask=5, end_mask=3)
        y = Add(part, part, T={dtype})
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    assert not made.notes
    file = ModelFile(made.path)
    x = np.arange(2 * 7 * 6).reshape(2, 7, 6).astype(graph["x"].dtype("dtype").numpy)
    np.testing.assert_array_equal(file.run("serving_default", {"x": x})["y"], 2 * x[:, 1:, :4])
    assert code in {operation["op_name"] for operation in Interpreter(made.path)._get_ops_details()}


@pytest.mark.parametrize(
    "rest",
    [
        # padded to a multiple of 32, which all sizes have that differ by 32
        """
        length = StridedSlice(shape, one, two, one, T=int32, Index=int32)
        minus = Neg(length, T=int32)
        block = Const(int32 32)
        missing = FloorMod(minus, block, T=int32)
        none = Const(int32 [0])
        row = ConcatV2(none, missing, axis, T=int32, Tidx=int32, N=2)
        nothing = Const(int32 [0, 0])
        pads = Pack(nothing, row, nothing, T=int32, N=3, axis=0)
        padded = Pad(x, pads, T=float, Tpaddings=int32)
        second = Const(int32 1)
        mean = Mean(padded, second, T=float, Tidx=int32, keep_dims=true)
        y = Sub(x, mean, T=float)""",
        """
        places = StridedSlice(shape, one, two, one, T=int32, Index=int32)
        most = Const(int32 [6])
        fewer = Minimum(places, most, T=int32)
        none = Const(int32 [])
        k = Reshape(fewer, none, T=int32, Tshape=int32)
        order = Const(int32 [0, 2, 1])
        turned = Transpose(x, order, T=float, Tperm=int32)
        y = TopKV2(turned, k, T=float, sorted=true)""",
    ],
    ids=["padded", "top_six"],
)
def test_lengths_that_other_lengths_do_not_tell_are_fixed(rest: str, tmp_path: pathlib.Path) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,?,6])
        shape = Shape(x, T=float, out_type=int32)
        one = Const(int32 [1])
        two = Const(int32 [2])
        axis = Const(int32 0)
        {rest}
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    assert any("fixed" in note for note in made.notes)


@pytest.mark.parametrize("across", [0, 1])
def test_eight_bits_whose_rows_count_for_each_other_keep_their_batch(across: int, tmp_path: pathlib.Path) -> None:
    """Given: what is left of sums less their mean, over all rows or each row's own. Result: the first is fixed."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,4])
        w = Const(float {np.linspace(-1, 1, 24).reshape(4, 6).tolist()})
        sums = MatMul(x, w, T=float)
        axis = Const(int32 {across})
        mean = Mean(sums, axis, T=float, Tidx=int32, keep_dims=true)
        y = Sub(sums, mean, T=float)
    """)
    samples = {"x": np.random.default_rng(0).uniform(-1, 1, (8, 4)).astype(np.float32)}
    made = pocketgraph.export(graph, tmp_path / "net.tflite", mode="static", samples=samples)
    assert any("fixed" in note for note in made.notes) == (across == 0)


def test_a_length_that_another_input_has_is_not_that_of_a_short_one(tmp_path: pathlib.Path) -> None:
    """Given: twice x, repeated by the length of y. Result: no file that makes one row of one row and five others."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,?,6])
        y = Placeholder(dtype=float, shape=[?,?,6])
        shape = Shape(y, T=float, out_type=int32)
        one = Const(int32 [1])
        two = Const(int32 [2])
        length = StridedSlice(shape, one, two, one, T=int32, Index=int32)
        axis = Const(int32 0)
        sizes = ConcatV2(one, length, one, axis, T=int32, Tidx=int32, N=3)
        factor = Const(float 2.0)
        factors = Fill(sizes, factor, T=float)
        z = Mul(factors, x, T=float)
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["z"])
    assert any("but for the batch are fixed" in note for note in made.notes)


def test_the_batch_of_half_samples_stays_open(tmp_path: pathlib.Path) -> None:
    """The file takes float32 for them."""
    graph = parse("""
        x = Placeholder(dtype=half, shape=[?,4])
        w = Const(half[4,4] 0.25)
        y = MatMul(x, w, T=half)
    """)
    samples = {"x": np.random.default_rng(0).normal(size=(12, 4)).astype(np.float16)}
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"], mode="static", samples=samples)
    assert not any("fixed" in note for note in made.notes)


def test_lengths_stay_open_where_litert_refuses_a_short_one(tmp_path: pathlib.Path) -> None:
    """Given: differences of five axes, of which LiteRT repeats none. Result: a file for other lengths."""
    graph = parse("""
        a = Placeholder(dtype=float, shape=[?,?,2,2,2])
        b = Placeholder(dtype=float, shape=[?,?,2,2,2])
        y = Sub(a, b, T=float)
    """)
    made = pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    assert not any("fixed" in note for note in made.notes)
    runner = PlainRunner(str(tmp_path / "net.tflite"), 1, is_bare=False)
    a, b = np.random.default_rng(0).normal(size=(2, 3, 7, 2, 2, 2)).astype(np.float32)
    runner.resize({0: a.shape, 1: b.shape})
    np.testing.assert_allclose(runner.run([a, b])[0], a - b)
    with pytest.raises(RunError, match="failed to reshape"):
        runner.resize({1: (3, 1, 2, 2, 2)})
