"""Masks of -infinity and borders of max pools cost a quantized model nothing."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import pocketgraph
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from quantize_nets import float_program

LOWEST = float(np.finfo(np.float32).min)
POOL = """
    x = Placeholder(dtype=float, shape=[1,4,4,1])
    borders = Const(int32 [[0,0],[1,1],[1,1],[0,0]])
    padded = PadV2(x, borders, low, T=float, Tpaddings=int32)
    pool = MaxPool(padded, T=float, ksize=[1,3,3,1], strides=[1,2,2,1], padding="VALID")
    y = Conv2D(pool, w, T=float, strides=[1,1,1,1], padding="SAME")
"""
MASK = """
    x = Placeholder(dtype=float, shape=[1,4])
    w = Const(float [[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1]])
    scores = MatMul(x, w, T=float)
    seen = Const(bool [true,false,true,true])
    zero = Const(float 0.0)
    mask = SelectV2(seen, zero, low, T=float)
    masked = AddV2(scores, mask, T=float)
"""


def graph_of(text: str, outputs: list[str], **constants: object) -> Graph:
    graph = Graph([*parse(text), *(const(name, np.float32(value)) for name, value in constants.items())])
    return graph.replace(outputs=outputs)


def answer(path: pathlib.Path, x: list[float], shape: tuple[int, ...]) -> np.ndarray:
    with pocketgraph.Session(path, threads=1) as session:
        found, *_ = session.run(list(session.outputs), {next(iter(session.inputs)): np.float32(x).reshape(shape)})
    return np.asarray(found).reshape(-1)


@pytest.mark.parametrize("low", [-np.inf, LOWEST])
@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_borders_that_a_max_pool_passes_over(tmp_path: pathlib.Path, low: float, mode: str) -> None:
    """Values of TensorFlow 2.21; the borders were in the range, which left one code for all pixels."""
    graph = graph_of(POOL, ["y:0"], low=low, w=np.full((1, 1, 1, 2), [[[[1, -1]]]]))
    samples = np.random.default_rng(1).uniform(-16, 16, (8, 4, 4, 1)).astype(np.float32)
    pocketgraph.quantize(graph, samples, mode=mode, float_share=0).save(tmp_path / "small.tflite")
    found = answer(tmp_path / "small.tflite", list(range(-8, 8)), (1, 4, 4, 1))
    np.testing.assert_allclose(found, [-3, 3, -1, 1, 5, -5, 7, -7], atol=0.3)


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_scores_behind_a_mask_of_infinity(tmp_path: pathlib.Path, mode: str) -> None:
    """Values of TensorFlow 2.21; the sample was said to give a value that is not finite."""
    text = f"{MASK}    y = Softmax(masked, T=float)\n"
    samples = np.random.default_rng(1).uniform(-4, 4, (8, 4)).astype(np.float32)
    pocketgraph.quantize(graph_of(text, ["y:0"], low=-np.inf), samples, mode=mode).save(tmp_path / "small.tflite")
    found = answer(tmp_path / "small.tflite", [1, 3.5, 3, 2], (1, 4))
    np.testing.assert_allclose(found, [0.09003057, 0, 0.66524094, 0.24472848], atol=0.02)


def test_no_mask_is_so_large_that_litert_ends_the_process() -> None:
    """Codes of a sum with steps of 1e36 did, in eight bits throughout."""
    program = float_program(graph_of(MASK, ["masked:0", "scores:0"], low=LOWEST), ["masked", "scores"])
    constants = [v.constant.numpy() for o in program.operations for v in o.inputs if v is not None and v.constant]
    assert min(float(numbers.min()) for numbers in constants) == np.float32(-1e30)


def test_an_exported_file_of_floats_keeps_infinity(tmp_path: pathlib.Path) -> None:
    pocketgraph.export(graph_of(MASK, ["masked:0"], low=-np.inf), tmp_path / "net.tflite")
    np.testing.assert_array_equal(answer(tmp_path / "net.tflite", [1, 3.5, 3, 2], (1, 4)), [1, -np.inf, 3, 2])


@pytest.mark.parametrize("samples", [None, np.random.default_rng(1).uniform(-4, 4, (8, 4)).astype(np.float32)])
@pytest.mark.parametrize("mode", ["weights", "dynamic"])
def test_weights_alone_in_codes_keep_infinity(tmp_path: pathlib.Path, mode: str, samples: np.ndarray | None) -> None:
    """The values are those of the graph in TensorFlow; with samples, which fit the codes, the mask was -1e30."""
    text = f"{MASK}    told = IsFinite(masked, T=float)\n    y = Cast(told, SrcT=bool, DstT=float)\n"
    graph = graph_of(text, ["masked:0", "y:0"], low=-np.inf)
    pocketgraph.quantize(graph, samples, mode=mode).save(tmp_path / "small.tflite")
    found = answer(tmp_path / "small.tflite", [1, 3.5, 3, 2], (1, 4))
    np.testing.assert_array_equal(found, [1, -np.inf, 3, 2])
    with pocketgraph.Session(tmp_path / "small.tflite", threads=1) as session:
        finite = session.run(list(session.outputs), {next(iter(session.inputs)): np.float32([[1, 3.5, 3, 2]])})[1]
    np.testing.assert_array_equal(finite, [[1, 0, 1, 1]])
