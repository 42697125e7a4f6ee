"""Codes of weights alone: by what batch norms tell of the training data, and by samples."""

from __future__ import annotations

import itertools
import threading
from functools import cache
from typing import Any

import numpy as np
import pytest

import pocketgraph
from pocketgraph import Session
from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.dtype import FLOAT, HALF, INT8, DType
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program
from pocketgraph.quantization.canonical.canonicalize import canonicalize
from pocketgraph.quantization.core.operator_rules import is_layer, weights
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.quantized_weights import float_weights, replace_weights
from pocketgraph.quantization.fitting import weight_only_fitting
from pocketgraph.quantization.fitting.weight_only_fitting import (
    least_noise,
    multiplies_codes,
    nearest_codes,
    wider_weights,
)
from pocketgraph.quantization.float_program import lowered_graph
from pocketgraph.quantization.observing.synthetic_inputs import synthetic_inputs
from pocketgraph.quantization.weight_only import quantize_weights
from quantize_nets import float_program, judged
from support import with_weights

LAYERS = ((3, 3, 3, 16), (1, 1, 16, 96), (1, 1, 96, 96), (1, 1, 96, 64))


def data(count: int, seed: int) -> list[list[np.ndarray[Any, Any]]]:
    """Smooth pictures of bright and dark areas."""
    rng = np.random.default_rng(seed)
    coarse = rng.uniform(-1, 1, (count, 4, 4, 3)).repeat(4, axis=1).repeat(4, axis=2)
    return [[np.clip(one[np.newaxis], -1, 1).astype(np.float32)] for one in coarse]


@cache
def trained(settled: float = 1.0, scales: tuple[float, ...] = (1.0,)) -> Graph:
    """A network whose batch norms know the data, as after training, with layers of its own for each input.

    Args:
        settled: the share of the data in averages that began with a mean of 0 and a variance of 1.
        scales: how far the pictures of each input reach.
    """
    rng = np.random.default_rng(5)
    nodes: list[Node] = []
    for fed, scale in zip("xz", scales, strict=False):
        nodes += parse(f"{fed} = Placeholder(dtype=float, shape=[1,16,16,3])")
        source, pictures = fed, [np.float32(scale) * sample[0] for sample in data(40, 1)]
        for at, shape in enumerate(LAYERS):
            kernel, conv, normal, active, *of_norm = (f"{fed}{kind}{at}" for kind in "wcnrgbmv")
            nodes += [
                const(kernel, rng.normal(0, 1, shape).astype(np.float32)),
                Node(conv, "Conv2D", [source, kernel], {"strides": (1, 1, 1, 1), "padding": b"SAME", "T": FLOAT}),
            ]
            with Session(Graph(nodes)) as session:
                seen = np.concatenate([session.run(conv, {fed: picture})[0] for picture in pictures])
            for name, values in zip(of_norm, (
                rng.uniform(0.2, 1.5, shape[3]), rng.uniform(0.5, 2.5, shape[3]),
                settled * seen.mean((0, 1, 2)), settled * seen.var((0, 1, 2)) + 1 - settled,
            ), strict=True):  # fmt: skip
                nodes.append(const(name, values.astype(np.float32)))
            attrs = {"T": FLOAT, "is_training": False, "epsilon": 1e-3, "data_format": b"NHWC"}
            nodes += [
                Node(normal, "FusedBatchNorm", [conv, *of_norm], attrs),
                Node(active, "Relu6", [normal], {"T": FLOAT}),
            ]
            source = active
    last = [f"{fed}r{len(LAYERS) - 1}" for fed, _ in zip("xz", scales, strict=False)]
    nodes += [
        *parse("axes = Const(int32 [1, 2])\naxis = Const(int32 3)"),
        const("last", rng.normal(0, 0.2, (64 * len(last), 10)).astype(np.float32)),
        Node("all", "ConcatV2", [*last, "axis"], {"T": FLOAT, "N": len(last)}),
        Node("m", "Mean", ["all" if last[1:] else last[0], "axes"], {"T": FLOAT, "keep_dims": False}),
        Node("y", "MatMul", ["m", "last"], {"T": FLOAT, "transpose_a": False, "transpose_b": False}),
    ]  # fmt: skip
    return Graph(nodes, inputs=["x", "z"][: len(scales)], outputs=["y"])


def program(settled: float = 1.0, scales: tuple[float, ...] = (1.0,)) -> tuple[Program, Graph]:
    lowered, graph = lowered_graph(trained(settled, scales))
    return canonicalize(lowered), graph


@pytest.mark.parametrize("dynamic", [False, True])
def test_batch_norms_make_up_for_samples(dynamic: bool) -> None:
    exact, graph = program()

    def snr(rounding: str, count: int = 0) -> float:
        made = quantize_weights(
            exact, lambda: iter(data(count, 2)), count, dynamic=dynamic, graphs=(trained(), graph), rounding=rounding
        )
        return judged(exact, made.converted.program, data(40, 3)).snr

    nearest, told, shown = snr("nearest"), snr("fitted"), snr("fitted", 40)
    assert told > nearest + 3
    assert shown > nearest + 3


def test_batch_norms_of_a_training_that_was_too_short_are_not_trusted() -> None:
    """What their averages tell loses more than nearest codes do."""
    exact, graph = program(0.1)

    def snr(rounding: str) -> float:
        graphs = (trained(0.1), graph)
        made = quantize_weights(exact, lambda: iter(()), 0, dynamic=False, graphs=graphs, rounding=rounding)
        return judged(exact, made.converted.program, data(40, 3)).snr

    assert snr("fitted") > snr("nearest") + 3


def test_the_first_layer_behind_each_input_is_scaled() -> None:
    """Made-up pictures reach as far for both inputs; those of training reached thirty times as far for one of them."""

    def snr(*scales: float) -> float:
        exact, graph = program(scales=scales)
        made = quantize_weights(exact, lambda: iter(()), 0, dynamic=False, graphs=(trained(scales=scales), graph))
        shown = [
            [np.float32(scale) * picture for scale, (picture,) in zip(scales, pictures, strict=True)]
            for pictures in zip(data(20, 3), data(20, 4), strict=True)
        ]
        return judged(exact, made.converted.program, shown).snr

    assert snr(1.0, 30.0) == pytest.approx(snr(30.0, 1.0), abs=2)


@pytest.mark.parametrize("samples", [None, {"x": np.concatenate([sample[0] for sample in data(20, 2)])}])
def test_the_float_program_stays_as_it_is_and_the_file_hardly_grows(samples: dict[str, Array] | None) -> None:
    exact, graph = program()
    before = [weights(o).constant for o in exact.operations if o.code == "CONV_2D"]
    sizes = [
        len(pocketgraph.quantize(trained(), samples, mode="weights", rounding=rounding).to_bytes())
        for rounding in ("nearest", "fitted")
    ]
    quantize_weights(exact, lambda: iter(()), 0, dynamic=True, graphs=(trained(), graph))
    assert [weights(o).constant for o in exact.operations if o.code == "CONV_2D"] == before
    assert sizes[1] < 1.01 * sizes[0]


@pytest.mark.parametrize("count", [0, 20])
def test_small_layers_that_codes_would_hurt_have_float16_weights(count: int) -> None:
    exact, graph = program()
    made = quantize_weights(exact, lambda: iter(data(count, 2)), count, dynamic=False, graphs=(trained(), graph))
    stored = [o.inputs[0] for o in made.converted.program.operations if o.code == "DEQUANTIZE"]
    halves = [value for value in stored if value is not None and value.dtype is HALF]
    assert len(halves) == len(made.halves) > 0
    assert not set(made.halves) & set(made.weights)
    assert any("float16" in note for note in made.notes)
    for value, layer in zip(halves, made.halves, strict=True):
        assert value.constant is not None
        kept = weights(layer).constant
        assert kept is not None
        assert np.allclose(value.constant.numpy().astype(np.float32), kept.numpy(), rtol=1e-3, atol=1e-6)


def test_layers_of_few_products_for_each_value_do_not_quantize_it_at_each_run() -> None:
    """LiteRT takes longer to find a tensor's range than 16 channels of products with codes save."""
    exact, graph = program()
    made = quantize_weights(exact, lambda: iter(()), 0, dynamic=True, graphs=(trained(), graph))
    kinds = {
        weights(operation).shape[-1:] + weights(operation).shape[:1]: weights(operation).dtype
        for operation in made.converted.program.operations
        if operation.code == "CONV_2D"
    }
    assert kinds == {(3, 16): FLOAT, (16, 96): FLOAT, (96, 96): INT8, (96, 64): INT8}


@pytest.mark.parametrize(("channels", "kind"), [(1, FLOAT), (3, INT8)])
def test_a_wide_window_over_the_colours_of_a_picture_multiplies_codes(channels: int, kind: DType) -> None:
    """LiteRT takes 0.6 of the time with codes for three channels, and 1.4 times as long for one."""
    graph = with_weights(
        f"""
        x = Placeholder(dtype=float, shape=[1,16,16,{channels}])
        w = Const(float 0.0)
        y = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        """,
        w=np.random.default_rng(0).normal(size=(5, 5, channels, 96)).astype(np.float32),
    )
    made = quantize_weights(float_program(graph, ["y"]), lambda: iter(()), 0, dynamic=True)
    (layer,) = (o for o in made.converted.program.operations if o.code == "CONV_2D")
    assert weights(layer).dtype is kind


@pytest.mark.parametrize(("window", "channels", "pays"), [(3, 56, True), (3, 12, False), (1, 280, False)])
def test_results_that_fill_no_block_of_channels_count_as_a_full_one(window: int, channels: int, pays: bool) -> None:
    """With codes LiteRT takes 0.26 of the time for windows of 3x3 over 56 channels that make 3, as a picture's last
    layer does, but 1.4 times as long for few channels, and two or three times as long for single pixels."""
    graph = with_weights(
        f"""
        x = Placeholder(dtype=float, shape=[1,32,32,{channels}])
        w = Const(float 0.0)
        y = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        """,
        w=np.random.default_rng(0).normal(size=(window, window, channels, 3)).astype(np.float32),
    )
    (layer,) = (o for o in float_program(graph, ["y"]).operations if o.code == "CONV_2D")
    assert multiplies_codes(layer) is pays


def test_layers_that_are_much_of_the_work_get_no_floats_where_codes_are_quicker() -> None:
    graph = with_weights(
        """
        x = Placeholder(dtype=float, shape=[1,16,16,16])
        w = Const(float 0.0)
        c = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        shape = Const(int32 [1, 4096])
        r = Reshape(c, shape, T=float, Tshape=int32)
        m = Const(float 0.0)
        y = MatMul(r, m, T=float)
        """,
        w=np.random.default_rng(0).normal(size=(3, 3, 16, 16)).astype(np.float32),
        m=np.random.default_rng(1).normal(size=(4096, 256)).astype(np.float32),
    )
    convolution, product = (o for o in float_program(graph, ["y"]).operations if is_layer(o))
    codes = nearest_codes({convolution: 8, product: 8})
    codes.noise, codes.float16_noise = {convolution: 0.1}, {convolution: 1e-6}
    assert wider_weights(codes, dynamic=False) == {convolution: 32}
    assert wider_weights(codes, dynamic=True) == {}


def test_weights_that_several_layers_read_make_room_for_floats_once() -> None:
    graph = with_weights(
        """
        x = Placeholder(dtype=float, shape=[1,16,16,16])
        w = Const(float 0.0)
        c = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        shape = Const(int32 [1, 4096])
        r = Reshape(c, shape, T=float, Tshape=int32)
        m = Const(float 0.0)
        first = MatMul(r, m, T=float)
        s = Sigmoid(r, T=float)
        second = MatMul(s, m, T=float)
        y = Mul(first, second, T=float)
        """,
        w=np.random.default_rng(0).normal(size=(3, 3, 16, 16)).astype(np.float32),
        m=np.random.default_rng(1).normal(size=(4096, 100)).astype(np.float32),
    )
    convolution, *products = (o for o in float_program(graph, ["y"]).operations if is_layer(o))
    assert len({weights(product) for product in products}) == 1 < len(products)
    codes = nearest_codes(dict.fromkeys([convolution, *products], 8))
    codes.noise = {convolution: 0.1}
    assert wider_weights(codes, dynamic=False) == {}


@pytest.mark.parametrize("seed", range(8))
def test_small_layers_share_their_bytes_so_that_noise_is_least(seed: int) -> None:
    rng = np.random.default_rng(seed)
    forms = []
    for _ in range(6):
        codes = int(rng.integers(20, 90))
        forms.append(
            {
                0: (codes, float(rng.exponential())),
                16: (2 * codes - int(rng.integers(0, 60)), 1e-3),
                32: (4 * codes, 0.0),
            }
        )
    least = sum(min(stored for stored, _ in layer.values()) for layer in forms)
    for room in (least - 10, least, least + 35, least + 200, least + 900):
        chosen = least_noise(forms, room)
        taken = sum(layer[bits][0] for layer, bits in zip(forms, chosen, strict=True))
        noise = sum(layer[bits][1] for layer, bits in zip(forms, chosen, strict=True))
        assert taken <= max(room, least)
        every = [
            sum(layer[bits][1] for layer, bits in zip(forms, each, strict=True))
            for each in itertools.product((0, 16, 32), repeat=len(forms))
            if sum(layer[bits][0] for layer, bits in zip(forms, each, strict=True)) <= max(room, least)
        ]
        assert noise == pytest.approx(min(every))


def test_weights_that_float16_does_not_reach_stay_out_of_it() -> None:
    """A channel scaled down by its batch norm has weights beyond 65504 before that."""
    exact, graph = program()
    layer = next(o for o in exact.operations if o.code == "CONV_2D" and weights(o).size == 1536)
    values, bias = float_weights(layer)
    values[0] *= 1e7
    replace_weights(layer, values, bias)
    made = quantize_weights(exact, lambda: iter(()), 0, dynamic=False, graphs=(trained(), graph))
    assert layer not in made.halves
    sample = data(1, 4)[0]
    assert np.isfinite(ProgramRunner(made.converted.program)(sample)[0]).all()


def test_without_batch_norms_or_pictures_codes_are_the_nearest() -> None:
    rng = np.random.default_rng(0)
    nodes = parse("x = Placeholder(dtype=float, shape=[1,64])\ny = MatMul(x, w, T=float)")
    graph = Graph([*nodes, const("w", rng.normal(0, 1, (64, 64)).astype(np.float32))])
    fitted, nearest = (pocketgraph.quantize(graph, mode="weights", rounding=how) for how in ("fitted", "nearest"))
    assert fitted.to_bytes() == nearest.to_bytes()


def test_what_codes_are_fitted_to_is_said() -> None:
    exact, graph = program()
    assert fitted_to(quantize_weights(exact, lambda: iter(()), 0, dynamic=True, graphs=(trained(), graph))) == (
        "what the batch norms tell of the training data"
    )
    kernel = np.random.default_rng(1).normal(0, 0.1, (3, 3, 3, 64)).astype(np.float32)
    plain = Graph(
        [
            *parse("""
                x = Placeholder(dtype=float, shape=[1,16,16,3])
                y = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME", data_format="NHWC")
            """),
            const("w", kernel),
        ]
    )
    lowered, graph = lowered_graph(plain)
    made = quantize_weights(canonicalize(lowered), lambda: iter(()), 0, dynamic=True, graphs=(plain, graph))
    assert fitted_to(made) == "made-up pictures"


def fitted_to(state: QuantizationState) -> str:
    (note,) = (note for note in state.notes if note.startswith("codes and biases"))
    return note.partition(" are fitted to ")[2]


def test_made_up_pictures_are_the_same_each_time_and_differ() -> None:
    first, second = synthetic_inputs(program()[0]), synthetic_inputs(program()[0])
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0][0], first[1][0])
    assert first[0][0].shape == (1, 16, 16, 3)
    assert all(np.abs(sample[0]).max() <= 1 for sample in first)


@pytest.mark.parametrize("dynamic", [False, True])
def test_rows_of_the_float_model_are_collected_ahead_for_the_same_codes(
    dynamic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact, given, places = program()[0], data(6, 3), list[bool]()
    collect = weight_only_fitting.collect

    def noted(*arguments: object) -> object:
        places.append(threading.current_thread() is threading.main_thread())
        return collect(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(weight_only_fitting, "collect", noted)
    one, two = (quantize_weights(exact, lambda: iter(given), 6, dynamic=dynamic, threads=n) for n in (1, 2))
    assert places.count(False) == len(two.weights) > 0  # those of two threads' that are of the float model
    assert one.weights.keys() == two.weights.keys()
    for operation, found in one.weights.items():
        np.testing.assert_array_equal(found.codes, two.weights[operation].codes)
        np.testing.assert_array_equal(found.bias, two.weights[operation].bias)
