"""A size that a number limits is not left open in a .tflite file where no size that was tried reaches the number."""

import pathlib

import numpy as np
import pytest

import pocketgraph
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.model_file import ModelFile

GRAPH = """
x = Placeholder(dtype=float, shape=[?, ?, 4])
r = Relu(x, T=float)
zero = Const(int32 [0])
one = Const(int32 [1])
two = Const(int32 [2])
ones = Const(int32 [1, 1])
"""
CUT = """
b = Const(int32 [0, {begin}])
e = Const(int32 [0, {end}])
y = StridedSlice(r, b, e, ones, T=float, Index=int32, begin_mask={begins}, end_mask={ends})
"""
ELLIPSIS = """
b = Const(int32 [0, 0, 0])
e = Const(int32 [0, 512, 0])
s = Const(int32 [1, 1, 1])
y = StridedSlice(r, b, e, s, T=float, Index=int32, begin_mask=7, end_mask=5, ellipsis_mask=1)
"""
LEAST = """
shape = Shape(r, T=float, out_type=int32)
rows = StridedSlice(shape, one, two, one, T=int32, Index=int32)
limit = Const(int32 [512])
least = Minimum(rows, limit, T=int32)
axis = Const(int32 0)
e = ConcatV2(zero, least, axis, N=2, T=int32, Tidx=int32)
b = Const(int32 [0, 0])
y = StridedSlice(r, b, e, ones, T=float, Index=int32, begin_mask=3, end_mask=1)
"""


def cut(begin: int = 0, end: int = 0) -> str:
    return CUT.format(begin=begin, end=end, begins=1 if begin else 3, ends=1 if end else 3)


@pytest.mark.parametrize(
    ("text", "node"), [(cut(end=512), "y"), (cut(begin=-512), "y"), (ELLIPSIS, "y"), (LEAST, "least")]
)
def test_a_limit_that_no_size_reached_fixes_it(text: str, node: str, tmp_path: pathlib.Path) -> None:
    made = pocketgraph.export(parse(GRAPH + text), tmp_path / "net.tflite", outputs=["y"])
    assert any("but for the batch are fixed" in note and f"({node})" in note for note in made.notes)


@pytest.mark.parametrize("text", [cut(begin=1), cut(end=2**31 - 1)])
def test_slices_that_hold_for_any_size_stay_open(text: str, tmp_path: pathlib.Path) -> None:
    graph = parse(GRAPH + text)
    pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    x = np.random.default_rng(0).standard_normal((2, 600, 4)).astype(np.float32)
    found = ModelFile(tmp_path / "net.tflite").run("serving_default", {"x": x})["y"]
    begin, end = (int(graph[name].tensor.numpy()[1]) for name in "be")
    np.testing.assert_array_equal(found, np.maximum(x, 0)[:, begin : end or None])


def test_a_limit_of_channels_leaves_sizes_open(tmp_path: pathlib.Path) -> None:
    graph = parse(GRAPH + ELLIPSIS.replace("[0, 512, 0]", "[0, 0, 512]").replace("end_mask=5", "end_mask=3"))
    pocketgraph.export(graph, tmp_path / "net.tflite", outputs=["y"])
    x = np.ones((2, 600, 4), np.float32)
    assert ModelFile(tmp_path / "net.tflite").run("serving_default", {"x": x})["y"].shape == (2, 600, 4)
