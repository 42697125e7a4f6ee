"""Masks of attention leave the scores beside them their codes, in eight bits throughout and in sixteen."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import pocketgraph
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.model_file import ModelFile
from pocketgraph.quantization.core.masked_scores import without_masks

ATTENTION = """
    x = Placeholder(dtype=float, shape=[1,6,4])
    there = Placeholder(dtype=float, shape=[1,1,6])
    query = BatchMatMulV2(x, wq, T=float, adj_x=false, adj_y=false)
    key = BatchMatMulV2(x, wk, T=float, adj_x=false, adj_y=false)
    scores = BatchMatMulV2(query, key, T=float, adj_x=false, adj_y=true)
    one = Const(float 1.0)
    half = Const(float 0.5)
    {masking}
    share = Softmax(masked, T=float)
    y = BatchMatMulV2(share, x, T=float, adj_x=false, adj_y=false)
"""
CONSTANT = "masked = AddV2(scores, low, T=float)"
ADDED = """away = Sub(one, there, T=float)
    mask = Mul(away, low, T=float)
    masked = AddV2(scores, mask, T=float)"""
CHOSEN = """is_there = Greater(there, half, T=float)
    masked = SelectV2(is_there, scores, low, T=float)"""
SAMPLES = np.random.default_rng(1).normal(size=(40, 6, 4)).astype(np.float32)
LENGTHS = np.random.default_rng(2).integers(2, 7, 40)
LENGTHS[0], LENGTHS[5] = 4, 0  # one sample is nothing but padding
THERE = (np.arange(6) < LENGTHS[:, np.newaxis]).astype(np.float32)[:, np.newaxis]
FIRST_ROWS = {
    CONSTANT: [[0.3456, 0.8216, 0.3304, -1.3032], [0.7638, 0.5413, -0.3176, 0.1047], [0.714, 0.4314, -0.3163, 0.434]],
    ADDED: [[0.3508, 0.8108, 0.314, -1.2613], [0.4968, 0.4058, -0.2809, 0.2452], [0.4285, 0.3144, -0.349, 0.4664]],
}
FIRST_ROWS[CHOSEN] = FIRST_ROWS[ADDED]
"""TensorFlow 2.21's results for the first sample, with four of six places there or with those before each place."""


def attention(masking: str, low: float) -> Graph:
    weights = np.random.default_rng(0).normal(size=(2, 4, 4)).astype(np.float32) * np.float32(0.9)
    lows = np.where(np.tril(np.ones((1, 6, 6))) > 0, 0, low) if masking is CONSTANT else low
    constants = [("wq", weights[0]), ("wk", weights[1]), ("low", lows)]
    text = parse(ATTENTION.format(masking=masking))
    return Graph([*text, *(const(name, np.float32(value)) for name, value in constants)]).replace(outputs=["y:0"])


@pytest.mark.parametrize("how", [{}, {"float_share": 0}, {"io": "int8"}, {"activations": "int16"}])
@pytest.mark.parametrize("masking", [CONSTANT, ADDED, CHOSEN], ids=["constant", "added", "chosen"])
@pytest.mark.parametrize("low", [-1e4, -1e9, -np.inf])
def test_scores_beside_masked_ones_keep_their_codes(
    tmp_path: pathlib.Path, masking: str, low: float, how: dict[str, Any]
) -> None:
    """All scores had one code in a range from the mask on: signal to noise of 1 dB."""
    if masking is ADDED and low == -np.inf:
        low = -1e30  # nothing times infinity is no number
    feeds = {"x": SAMPLES} | ({} if masking is CONSTANT else {"there": THERE})
    pocketgraph.quantize(attention(masking, low), feeds, threads=1, **how).save(tmp_path / "small.tflite")
    file = ModelFile(tmp_path / "small.tflite")
    found = file.numbers("serving_default", {f"{name}:0": given[:1] for name, given in feeds.items()})["y:0"]
    np.testing.assert_allclose(found[0, :3], FIRST_ROWS[masking], atol=0.06)


@pytest.mark.parametrize("io", ["float", "int8"])
def test_a_mask_that_is_a_result_too_keeps_its_numbers(tmp_path: pathlib.Path, io: str) -> None:
    graph = attention(ADDED, -1e9).replace(outputs=["y:0", "mask:0"])
    pocketgraph.quantize(graph, {"x": SAMPLES, "there": THERE}, threads=1, io=io).save(tmp_path / "small.tflite")
    found = ModelFile(tmp_path / "small.tflite").numbers("serving_default", {"x:0": SAMPLES[:1], "there:0": THERE[:1]})
    np.testing.assert_allclose(found["mask:0"], [[[0, 0, 0, 0, -1e9, -1e9]]])
    np.testing.assert_allclose(found["y:0"][0, :3], FIRST_ROWS[ADDED], atol=0.06)


@pytest.mark.parametrize("low", [0.3, -1e-7, 3e-7])
def test_what_is_added_to_all_scores_is_no_mask(tmp_path: pathlib.Path, low: float) -> None:
    """The rounding of the sums was taken for one, which left what scales the scores in float."""
    graph = attention("scaled = Mul(scores, half, T=float)\n masked = AddV2(scaled, low, T=float)", low)
    files = []
    for without in ((), ("mask_ranges",)):
        pocketgraph.quantize(graph, {"x": SAMPLES}, threads=1, without=without).save(tmp_path / "small.tflite")
        files.append((tmp_path / "small.tflite").read_bytes())
    assert files[0] == files[1]


def test_only_what_a_softmax_makes_nothing_of_is_not_counted() -> None:
    plain = np.float32([[-40, 3, 8], [-5000, -5050, -5090]])
    np.testing.assert_array_equal(without_masks(plain[:1]), plain[:1])
    np.testing.assert_allclose(without_masks(plain[1:]), [[-5000, -5050, -5000 - np.log(3 * 512)]])  # far, but no mask
    rows = np.float32([[2, 8, -np.inf], [-1e4, 1 - 1e4, -1e4], [1, 1, 1]])
    np.testing.assert_allclose(without_masks(rows), [[2, 8, 8 - np.log(3 * 512)], [0, 0, 0], [1, 1, 1]])
    np.testing.assert_array_equal(without_masks(np.float32([[-1e9, -1e9]])), [[0, 0]])


def test_rows_of_large_scores_are_no_masked_ones() -> None:
    """Rows 1,000 below the sample's largest score counted as 0, whatever was in them."""
    large = np.float32([[5000, 4990, 4960], [3000, 2990, 2970], [-700, -710, -740]])
    np.testing.assert_array_equal(without_masks(large), large)
    twice = np.float32([[3, 8, 9], [-1e4, 5 - 1e4, -2e4]])  # masked, by two masks in places
    np.testing.assert_array_equal(without_masks(twice), [[3, 8, 9], [0, 0, 0]])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("low", [np.finfo(np.float32).min, -np.inf])
def test_masks_at_the_end_of_the_type_overflow_nothing(low: float) -> None:
    rows = np.float32([[2, 8, low], [low, low, low], [1, 1, 1]])
    np.testing.assert_allclose(without_masks(rows), [[2, 8, 8 - np.log(3 * 512)], [0, 0, 0], [1, 1, 1]])
