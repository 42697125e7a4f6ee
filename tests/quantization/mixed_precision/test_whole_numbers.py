"""Whole numbers that become integers: a code just below one would be the integer before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

import pocketgraph
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization.mixed_precision.whole_numbers import whole_number_operations
from quantize_nets import float_program

RNG = np.random.default_rng(5)
LAST = 30
SAMPLING = f"""
    x = Placeholder(dtype=float, shape=[1, 32])
    row = Const(int32 [32])
    pixels = Reshape(x, row, T=float, Tshape=int32)
    moved = MatMul(x, weights, T=float)
    middle = Const(float 15.3)
    place = AddV2(moved, middle, T=float)
    low = Floor(place, T=float)
    one = Const(float 1)
    above = AddV2(low, one, T=float)
    last = Const(float {LAST})
    inside = Minimum(above, last, T=float)
    corner = Relu(inside, T=float)
    index = Cast(corner, SrcT=float, DstT=int32, Truncate=false)
    axis = Const(int32 0)
    picked = GatherV2(pixels, index, axis, Tparams=float, Tindices=int32, Taxis=int32, batch_dims=0)
    y = MatMul(picked, heads, T=float)
"""


WEIGHTS = RNG.normal(0, 1.3, (32, 48)).astype(np.float32)
HEADS = RNG.normal(size=(48, 6)).astype(np.float32)


def sampling() -> Graph:
    return Graph([*parse(SAMPLING), const("weights", WEIGHTS), const("heads", HEADS)])


def run(model: bytes, sample: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    interpreter = Interpreter(model_content=model, num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample)
    interpreter.invoke()
    result: np.ndarray[Any, Any] = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return result


def codes_between(graph: Graph, output: str) -> set[str]:
    return {each.outputs[0].name for each in whole_number_operations(float_program(graph, [output]))}


@pytest.mark.parametrize("activations", ["int8", "int16"])
def test_a_picture_is_sampled_at_the_pixels_that_are_meant(activations: Any) -> None:
    """Left out, the signal is some 10 dB over the noise: the pixel is the one before. The numbers are NumPy's."""
    graph = sampling()
    samples = RNG.normal(size=(60, 32)).astype(np.float32)
    corners = np.clip(np.floor(samples @ WEIGHTS + 15.3) + 1, 0, LAST).astype(int)
    expected = np.take_along_axis(samples, corners, 1) @ HEADS
    noise = {}
    for without in ([], ["whole_numbers", "float_partition"]):
        model = pocketgraph.quantize(
            graph, samples=samples, outputs=["y"], activations=activations, keep=["moved"], without=without
        )
        found = np.concatenate([run(model.to_bytes("tflite"), sample[None]) for sample in samples])
        noise[bool(without)] = 10 * np.log10(np.square(expected).sum() / np.square(found - expected).sum())
    assert noise[False] > 30
    assert noise[True] < noise[False] - 10


def test_only_what_ends_in_integers_stays_in_float() -> None:
    assert {name.split(":")[0] for name in codes_between(sampling(), "y")} >= {"inside", "corner"}
    assert codes_between(sampling(), "place") == set()


@pytest.mark.parametrize(("addend", "whole"), [(2.0, True), (0.5, False)])
def test_a_sum_is_whole_where_its_constant_is(addend: float, whole: bool) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[8])
        steps = Round(x, T=float)
        addend = Const(float {addend})
        moved = Sub(steps, addend, T=float)
        bent = Relu(moved, T=float)
        zero = Const(float 0)
        y = Greater(bent, zero, T=float)
    """)
    assert bool(codes_between(graph, "y")) == whole
