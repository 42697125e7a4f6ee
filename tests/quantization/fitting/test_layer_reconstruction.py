"""What codes are fitted with: by parts of the outputs, on any number of threads, without needless products."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.kernels import blas_threads
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Value
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.core.quantized_weights import rounded
from pocketgraph.quantization.fitting import layer_reconstruction, weight_fitting
from pocketgraph.quantization.fitting.im2col import products
from pocketgraph.quantization.fitting.layer_reconstruction import FitSettings, reconstruct
from pocketgraph.quantization.fitting.weight_fitting import fitted_codes, held_exactly
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes
from quantize_nets import float_program, net, samples

RANDOM = np.random.default_rng(7)
MIXING = RANDOM.normal(size=(12, 12)).astype(np.float32)
WANTED = np.maximum(RANDOM.normal(size=(400, 12)).astype(np.float32) @ MIXING, 0)
GIVEN = WANTED + 0.05 * RANDOM.normal(size=WANTED.shape).astype(np.float32)


def layer(activation: str, outputs: int = 10) -> Operation:
    def constant(name: str, *shape: int) -> Value:
        values = RANDOM.normal(size=shape).astype(np.float32)
        return Value(name, FLOAT, shape, Constant.of(values))

    inputs = [Value("x", FLOAT, (400, 12)), constant("w", outputs, 12), constant("b", outputs)]
    return Operation("FULLY_CONNECTED", inputs, [Value("y", FLOAT, (400, outputs))], {"activation": activation})


@pytest.mark.parametrize("activation", ["NONE", "RELU"])
def test_parts_and_threads_give_the_same_codes(activation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    operation = layer(activation)
    whole = reconstruct(operation, WANTED, GIVEN, 0.02, FitSettings())
    monkeypatch.setattr(layer_reconstruction, "OUTPUTS_AT_ONCE", 4)
    monkeypatch.setattr(layer_reconstruction, "MUCH_WORK", 1)
    parts = [reconstruct(operation, WANTED, GIVEN, 0.02, FitSettings(threads=threads)) for threads in (1, 3)]
    for found in parts:
        assert np.array_equal(found.codes, whole.codes)
        np.testing.assert_allclose(found.scales, whole.scales, rtol=1e-6)
        np.testing.assert_allclose(found.bias, whole.bias, rtol=1e-4, atol=1e-5)
    assert np.array_equal(parts[0].scales, parts[1].scales)
    assert np.array_equal(parts[0].bias, parts[1].bias)


@pytest.mark.parametrize("most", [layer_reconstruction.MOST_ELEMENTS, 1])
def test_goals_are_worked_out_beside_the_statistics_of_the_rows(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    operation, together = layer("RELU", outputs=200), threading.Barrier(2, timeout=300)
    alone = reconstruct(operation, WANTED, GIVEN, 0.02, FitSettings())
    statistics, first_goal, made = layer_reconstruction._statistics, layer_reconstruction._first_goal, list[int]()

    def waiting(*arguments: object) -> object:
        together.wait()
        return statistics(*arguments)  # type: ignore[arg-type]

    def noted(matrix: np.ndarray, *others: object) -> object:
        made.append(len(matrix))
        if len(made) == 1:
            together.wait()
        return first_goal(matrix, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(layer_reconstruction, "MUCH_WORK", 1)
    monkeypatch.setattr(layer_reconstruction, "MOST_ELEMENTS", most)
    monkeypatch.setattr(layer_reconstruction, "_statistics", waiting)
    monkeypatch.setattr(layer_reconstruction, "_first_goal", noted)
    found = reconstruct(operation, WANTED, GIVEN, 0.02, FitSettings(threads=2))
    assert sorted(made) == [72, 128]  # each once, though memory may hold the goal of one part only
    assert np.array_equal(found.codes, alone.codes)


def test_fitted_codes_are_nearer_than_rounded_ones_without_an_activation() -> None:
    operation = layer("NONE")
    kernel, bias = (value.constant.numpy() for value in operation.inputs[1:] if value is not None and value.constant)
    wanted = products(operation, WANTED, kernel) + bias
    errors = [
        np.square(products(operation, GIVEN, found.numpy()) + found.bias - wanted).sum()
        for found in (reconstruct(operation, WANTED, GIVEN, 0.02, FitSettings(bits=4)), rounded(operation, 0.02, 4))
    ]
    assert errors[0] < 0.8 * errors[1]


@pytest.mark.parametrize(("activation", "products_made"), [("NONE", 1), ("RELU", 3)])
def test_targets_without_flat_parts_are_met_in_one_round(
    activation: str, products_made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, product = list[int](), layer_reconstruction._product

    def counted(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        made.append(len(matrix))
        return product(rows, matrix)

    monkeypatch.setattr(layer_reconstruction, "_product", counted)
    reconstruct(layer(activation), WANTED, GIVEN, 0.02, FitSettings())
    assert len(made) == products_made


@pytest.mark.skipif(not blas_threads.used(), reason="NumPy has another library than OpenBLAS")
def test_products_take_one_thread_of_openblas(monkeypatch: pytest.MonkeyPatch) -> None:
    used, fit = list[int](), weight_fitting.reconstruct

    def looked_at(*arguments: object) -> object:
        used.append(blas_threads.used())
        return fit(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(weight_fitting, "reconstruct", looked_at)
    operation = layer("RELU")
    fitted_codes(operation, WANTED, GIVEN, 0.02, rounded(operation, 0.02), "fitted", FitSettings(threads=2))
    assert used == [1]


@pytest.mark.parametrize("is_on_grid", [True, False])
def test_a_channel_of_zeros_does_not_tell_of_a_training(is_on_grid: bool) -> None:
    operation = layer("RELU")
    weights = RANDOM.integers(-100, 101, (10, 12)) * 0.01 if is_on_grid else RANDOM.normal(size=(10, 12))
    weights[3] = 0
    operation.inputs[1] = Value("w", FLOAT, weights.shape, Constant.of(weights.astype(np.float32)))
    assert held_exactly(operation, rounded(operation, 0.02)).tolist() == [is_on_grid] * 10


def test_rows_of_the_float_model_are_collected_while_the_layer_before_is_fitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program, given = float_program(net(), ["y"]), samples()
    whole = quantize_program(program, lambda: iter(given), len(given), QuantizationOptions())
    collected, collect, fit, places = (
        threading.Event(),
        weight_fitting.collect,
        weight_fitting.fitted_codes,
        list[int](),
    )

    def noted(*arguments: object) -> object:
        found = collect(*arguments)  # type: ignore[arg-type]
        places.append(threading.get_ident())
        if len(places) - places.count(threading.main_thread().ident) == 2:
            collected.set()
        return found

    def waiting(*arguments: object) -> object:
        assert collected.wait(timeout=300)  # the next layer's rows, by another thread
        return fit(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(weight_fitting, "collect", noted)
    monkeypatch.setattr(weight_fitting, "fitted_codes", waiting)
    made = quantize_program(program, lambda: iter(given), len(given), QuantizationOptions(threads=2))
    assert len(set(places)) == 2
    assert model_bytes(made.converted.program) == model_bytes(whole.converted.program)
