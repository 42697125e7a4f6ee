"""Other widths than eight bits: int16 tensors, int4 weights, and weights alone."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.errors import UsageError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.core.quantized_weights import packed
from pocketgraph.quantization.fitting.adaround import adaround
from pocketgraph.quantization.fitting.second_order_rounding import curvature, improve_codes
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes
from pocketgraph.quantization.weight_only import with_quantized_weights
from quantize_nets import float_program, judged, net, rows, samples, wide_graph


@pytest.fixture(scope="module")
def program() -> Program:
    return float_program(net(), ["y"])


def snr(program: Program, **how: object) -> float:
    outcome = quantize_program(program, lambda: iter(samples(48)), 48, QuantizationOptions(**how))  # type: ignore[arg-type]
    return judged(program, outcome.converted.program, samples(24, seed=8)).snr


def test_int16_tensors_lose_less_than_int8_ones(program: Program) -> None:
    assert snr(program, activations="int16", float_share=0) > snr(program, float_share=0) + 6


def test_int16_goes_in_and_comes_out_when_asked(program: Program) -> None:
    outcome = quantize_program(
        program, lambda: iter(samples(8)), 8, QuantizationOptions(activations="int16", io="int16")
    )
    made = outcome.converted.program
    assert [value.dtype.name for value in (*made.inputs, *made.outputs)] == ["int16", "int16"]


def test_the_width_of_what_goes_in_is_that_of_the_tensors() -> None:
    with pytest.raises(UsageError, match="io is one of float, int16, not 'int8'"):
        QuantizationOptions(activations="int16", io="int8")


@pytest.mark.parametrize("rounding", ["fitted", "adaround"])
def test_int4_weights_are_smaller_and_choosing_them_together_pays(rounding: str) -> None:
    program = float_program(wide_graph(), ["y"])

    def made(**how: object) -> Program:
        options = QuantizationOptions(float_share=0, **how)  # type: ignore[arg-type]
        return quantize_program(program, lambda: iter(rows(128, 1)), 128, options).converted.program

    eight, four, nearest = made(), made(weights="int4", rounding=rounding), made(weights="int4", rounding="nearest")
    saved = len(model_bytes(eight)) - len(model_bytes(four))
    assert saved > 0.45 * 96 * 96  # the first layer and the one with few weights keep eight bits
    assert judged(program, four, rows(40, 2)).snr > judged(program, nearest, rows(40, 2)).snr + 2


@pytest.mark.parametrize("dynamic", [True, False])
def test_int4_weights_without_calibration(dynamic: bool) -> None:
    program = float_program(wide_graph(), ["y"])
    four, eight = (
        with_quantized_weights(program, dynamic=dynamic, bits=4),
        with_quantized_weights(program, dynamic=dynamic),
    )
    assert len(model_bytes(four)) < 0.7 * len(model_bytes(eight))
    assert judged(program, four, rows(20, 2)).snr > 12


def test_codes_of_four_bits_lie_two_in_a_byte() -> None:
    assert packed(np.array([[1, -1], [7, -7], [0, 3]], np.int8)).tolist() == [0xF1, 0x97, 0x30]
    assert packed(np.array([-2, 5, 6], np.int8)).tolist() == [0x5E, 0x06]


def test_adaround_goes_up_or_down_only_and_beats_the_nearest_codes() -> None:
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(2000, 60)) @ rng.normal(size=(60, 60)) * 0.2
    moments = seen.T @ seen / len(seen)
    weights = rng.normal(size=(16, 60))
    scales = np.abs(weights).max(axis=1) / 7
    exact = weights / scales[:, None]
    found = adaround(weights, scales, moments, 7)
    assert set(np.unique(found)) <= set(range(-7, 8))
    assert ((found == np.floor(exact)) | (found == np.ceil(exact))).all()

    def loss(codes: np.ndarray) -> float:
        apart = codes * scales[:, None] - weights
        return float(np.einsum("oi,ij,oj->", apart, moments, apart))

    assert loss(found) < 0.7 * loss(np.rint(exact))
    improved = improve_codes(found, weights, scales, curvature(moments), 7)
    assert loss(improved) <= loss(found) * (1 + 1e-9)


@pytest.mark.parametrize("results", [1, 2])
def test_a_single_channel_keeps_eight_bits(results: int) -> None:
    """TensorFlow 2.21's interpreter refuses four bits there."""
    graph = parse("x = Placeholder(dtype=float, shape=[1,2000])\ny = MatMul(x, w, T=float)")
    weights = np.random.default_rng(0).normal(size=(2000, results)).astype(np.float32)
    light = with_quantized_weights(float_program(Graph([*graph, const("w", weights)]), ["y"]), dynamic=True, bits=4)
    kinds = {v.dtype.name for o in light.operations for v in o.inputs if v is not None and v.constant is not None}
    assert ("int4" in kinds) == (results > 1)


@pytest.mark.parametrize("rounding", ["fitted", "nearest"])
@pytest.mark.parametrize("activations", ["int8", "int16"])
def test_channels_whose_weights_are_all_zero_keep_their_bias(activations: str, rounding: str) -> None:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((3, 3, 2, 4)).astype(np.float32)
    weights[..., 1] = 0
    weights[..., 2] = 1e-30
    bias = np.array([0.5, -1, 2, 0.25], np.float32)
    nodes = parse("""
        x = Placeholder(dtype=float, shape=[1,4,4,2])
        c = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        shifted = BiasAdd(c, b, T=float)
        y = Tanh(shifted, T=float)
    """)
    images = rng.standard_normal((20, 4, 4, 2)).astype(np.float32)
    program = float_program(Graph([*nodes, const("w", weights), const("b", bias)]), ["y"])
    options = QuantizationOptions(activations=activations, rounding=rounding, float_share=0)
    outcome = quantize_program(program, lambda: ([image[None]] for image in images), 20, options)
    assert judged(program, outcome.converted.program, [[image[None]] for image in images]).snr > 30
