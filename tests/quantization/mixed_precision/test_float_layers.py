"""What stays in float for other reasons than asked for, and what it may cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter

import pocketgraph
from pocketgraph import Session
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program
from pocketgraph.quantization.mixed_precision.float_layers import float_ends, last_normalizations, wide_softmaxes
from pocketgraph.quantization.mixed_precision.sensitivity import most_sensitive_stretch
from quantize_nets import float_program


def outputs_of(model: bytes, samples: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """What LiteRT gives for each sample."""
    interpreter = Interpreter(model_content=model, num_threads=1)
    interpreter.allocate_tensors()
    results = []
    for sample in samples:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample[None])
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    return results


def pictures(channels: int, classes: int = 2, normalization: str = "Softmax") -> Program:
    """A network that tells classes for each of 16 x 16 places."""
    rng = np.random.default_rng(0)
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1,16,16,4])
        a = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME", data_format="NHWC")
        r = Relu(a, T=float)
        s = Conv2D(r, v, T=float, strides=[1,1,1,1], padding="SAME", data_format="NHWC")
        y = {normalization}(s, T=float)
    """)
    shapes = {"w": (3, 3, 4, channels), "v": (1, 1, channels, classes)}
    weights = [const(n, rng.normal(size=shape).astype(np.float32)) for n, shape in shapes.items()]
    return float_program(Graph([*graph, *weights]), ["y"])


def products(*widths: int) -> Program:
    """Matrix products one after the other."""
    rng = np.random.default_rng(0)
    lines = [f"x = Placeholder(dtype=float, shape=[1,{widths[0]}])"]
    names = ["x", *(f"y{at}" for at in range(1, len(widths)))]
    lines += [f"{names[at]} = MatMul({names[at - 1]}, w{at}, T=float)" for at in range(1, len(widths))]
    sizes = [(f"w{at}", widths[at - 1 : at + 1]) for at in range(1, len(widths))]
    weights = [const(name, rng.normal(size=shape).astype(np.float32)) for name, shape in sizes]
    return float_program(Graph([*parse("\n".join(lines)), *weights]), [names[-1]])


def test_a_softmax_at_each_place_is_in_float_where_it_is_little_beside_the_layers() -> None:
    assert [operation.code for operation in last_normalizations(pictures(1024))] == ["SOFTMAX"]
    for channels in (4, 256):  # 256: 7 of 30 microseconds, as measured with LiteRT 2 on one thread
        assert last_normalizations(pictures(channels)) == []


def test_wide_rows_of_int16_activations_are_normalized() -> None:
    """LiteRT's int16 SOFTMAX counts what is far below the maximum as nearer, which other numbers then lack."""
    rng = np.random.default_rng(5)
    text = """
        x = Placeholder(dtype=float, shape=[1,256])
        s = MatMul(x, w, T=float)
        p = Softmax(s, T=float)
        y = MatMul(p, parts, T=float)
    """
    parts = np.stack([np.ones(256), np.arange(256) < 128], 1)
    weights = {"w": 8 * np.eye(256), "parts": parts}
    graph = Graph([*parse(text), *(const(name, value.astype(np.float32)) for name, value in weights.items())])
    x = rng.normal(size=(50, 256)).astype(np.float32)
    powers = np.exp(8 * x.astype(np.float64))
    expected = powers @ parts / powers.sum(1, keepdims=True)
    ratios = []
    for without in ((), ("float_softmax",)):
        model = pocketgraph.quantize(graph, samples=x, outputs=["y"], activations="int16", without=without)
        found = np.concatenate(outputs_of(model.to_bytes("tflite"), x))
        ratios.append(10 * np.log10(np.square(expected).sum() / np.square(found - expected).sum()))
    assert ratios[0] > 60
    assert ratios[1] < 50


def test_in_sixteen_bits_only_wide_rows_of_softmax_stay_in_float() -> None:
    assert wide_softmaxes(pictures(4, classes=7)) == []
    assert [operation.code for operation in wide_softmaxes(pictures(4, classes=8))] == ["SOFTMAX"]


def test_in_sixteen_bits_numbers_of_many_units_are_prepared_in_float_also_where_layers_are_small() -> None:
    rng = np.random.default_rng(0)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,8])
        c = Sub(x, mean, T=float)
        n = RealDiv(c, deviation, T=float)
        y = MatMul(n, w, T=float)
    """)
    deviation = np.logspace(-3, 3, 8, dtype=np.float32)
    rows = (rng.normal(size=(40, 8)) + 2).astype(np.float32) * deviation
    constants = (("mean", 2 * deviation), ("deviation", deviation), ("w", rng.normal(size=(8, 4)).astype(np.float32)))
    graph = Graph([*graph, *(const(name, array) for name, array in constants)])
    model = pocketgraph.quantize(graph, rows, activations="int16")
    given = np.concatenate(outputs_of(model.to_bytes("tflite"), rows))
    wanted = (rows / deviation - 2) @ constants[2][1]
    assert 20 * np.log10(np.abs(wanted).max() / np.abs(given - wanted).max()) > 40


def test_logarithms_of_probabilities_stay_in_float_at_each_place() -> None:
    found = last_normalizations(pictures(4, normalization="LogSoftmax"))  # with codes, steps of 1/16 and no less time
    assert [operation.code for operation in found] == ["LOG_SOFTMAX"]


def test_one_row_of_scores_is_given_in_float_but_not_by_an_only_layer() -> None:
    program = products(8, 16, 4)
    assert [operation.outputs[0].name for operation in float_ends(program, program.operations, {}, [])] == ["y2:0"]
    assert float_ends(program, program.operations, {}, program.operations) == []
    single = products(8, 4)
    assert float_ends(single, single.operations, {}, []) == []


def test_a_row_that_is_computed_on_in_float_is_given_in_float() -> None:
    """As of an embedding whose length is taken off; the layer in front, and one that codes read too, keep theirs."""
    rng = np.random.default_rng(0)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,8])
        h = MatMul(x, w1, T=float)
        e = MatMul(h, w2, T=float)
        s = Square(e, T=float)
        axis = Const(int32 [1])
        l = Sum(s, axis, T=float, Tidx=int32, keep_dims=true)
        r = Rsqrt(l, T=float)
        y = Mul(e, r, T=float)
        z = Tanh(e, T=float)
    """)
    weights = [const(name, rng.normal(size=(8, 8)).astype(np.float32)) for name in ("w1", "w2")]
    program = float_program(Graph([*graph, *weights]), ["y", "z"])
    layers = [operation for operation in program.operations if operation.code == "FULLY_CONNECTED"]
    assert float_ends(program, layers, {}, []) == layers[1:]
    tanh = [operation for operation in program.operations if operation.code == "TANH"]
    assert float_ends(program, [*layers, *tanh], {}, []) == []


def test_a_row_is_given_in_float_also_where_codes_come_later_on_another_way() -> None:
    rng = np.random.default_rng(0)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,8])
        h = MatMul(x, w1, T=float)
        e = MatMul(h, w2, T=float)
        s = Square(e, T=float)
        y = Abs(s, T=float)
        z = Tanh(s, T=float)
    """)
    weights = [const(name, rng.normal(size=(8, 8)).astype(np.float32)) for name in ("w1", "w2")]
    program = float_program(Graph([*graph, *weights]), ["y", "z"])
    layers = [operation for operation in program.operations if operation.code == "FULLY_CONNECTED"]
    tanh = [operation for operation in program.operations if operation.code == "TANH"]
    assert len(tanh) == 1
    assert float_ends(program, [*layers, *tanh], {}, []) == layers[1:]


def test_what_stays_in_float_makes_weights_no_larger_than_allowed() -> None:
    program = products(64, 64, 64, 8, 8, 64, 64)
    sensitivity = {operation.outputs[0]: 1.0 for operation in program.operations}
    free = most_sensitive_stretch(program, program.operations, sensitivity, 0.9, math.inf)
    bound = most_sensitive_stretch(program, program.operations, sensitivity, 0.9, 0.2)
    assert len(free) > len(bound) > 0

    def size(operations: list) -> int:  # type: ignore[type-arg]
        return sum(operation.inputs[1].size for operation in operations)

    assert 3 * size(bound) <= 0.2 * size(program.operations) < 3 * size(free)


def test_a_transposed_convolution_takes_its_activation_along() -> None:
    rng = np.random.default_rng(0)
    values = {"size": np.array([1, 14, 10, 4], np.int32), "w": rng.normal(size=(3, 3, 4, 6)).astype(np.float32)}
    for name in ("Relu", "Relu6"):
        graph = parse(f"""
            x = Placeholder(dtype=float, shape=[1,7,5,6])
            t = Conv2DBackpropInput(size, w, x, T=float, strides=[1,2,2,1], padding="SAME", data_format="NHWC")
            y = {name}(t, T=float)
        """)
        graph = Graph([*graph, *(const(key, value) for key, value in values.items())])
        assert [operation.code for operation in float_program(graph, ["y"]).operations] == ["TRANSPOSE_CONV"]
        image = (3 * rng.normal(size=(1, 7, 5, 6))).astype(np.float32)
        exact, fast = (Session(graph, engine=e).run(["y"], {"x": image})[0] for e in ("reference", None))
        assert exact.min() == 0
        assert np.abs(exact - fast).max() < 1e-4
