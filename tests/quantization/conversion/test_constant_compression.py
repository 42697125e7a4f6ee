"""Large constants that are read as floats take one byte a number, and results stay what they were."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph import Graph, const
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.conversion import constant_compression
from pocketgraph.quantization.conversion.constant_compression import (
    PRODUCTS,
    compressed,
    quantized_table,
    with_compressed_constants,
)
from pocketgraph.quantization.core.conversion_recipe import ConvertedProgram
from pocketgraph.quantization.core.program_runner import ProgramRunner, as_fed
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes
from pocketgraph.quantization.weight_only import with_quantized_weights
from pocketgraph.runtime import Session
from pocketgraph.runtime.comparison.answer_metrics import Comparison
from quantize_nets import float_program

rng = np.random.default_rng(11)


def normalized(gain: np.ndarray) -> Graph:
    """A layer, and behind it products with a number of their own for each of 40 places and 64 channels."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 40, 16])
        flat = Reshape(x, rows, T=float, Tshape=int32)
        l = MatMul(flat, w, T=float)
        deep = Reshape(l, places, T=float, Tshape=int32)
        wave = Sin(deep, T=float)
        y = Mul(wave, gain, T=float)
    """)
    constants = {
        "rows": np.array([40, 16], np.int32),
        "places": np.array([1, 40, 64], np.int32),
        "w": rng.normal(0, 0.3, (16, 64)).astype(np.float32),
        "gain": gain.astype(np.float32),
    }
    whole = Graph([*graph, *(const(name, value) for name, value in constants.items())])
    return whole.replace(inputs=["x"], outputs=["y"])


def embedded() -> Graph:
    """Rows of a table, whose mean is taken off before the first layer reads them."""
    graph = parse("""
        ids = Placeholder(dtype=int32, shape=[1, 12])
        rows = GatherV2(table, ids, axis, Tparams=float, Tindices=int32, Taxis=int32)
        mean = Mean(rows, last, T=float, Tidx=int32, keep_dims=true)
        even = Sub(rows, mean, T=float)
        flat = Reshape(even, all, T=float, Tshape=int32)
        y = MatMul(flat, w, T=float)
    """)
    constants = {
        "table": rng.normal(size=(300, 32)).astype(np.float32),
        "axis": np.array(0, np.int32),
        "last": np.array([2], np.int32),
        "all": np.array([1, 12 * 32], np.int32),
        "w": rng.normal(0, 0.1, (12 * 32, 8)).astype(np.float32),
    }
    whole = Graph([*graph, *(const(name, value) for name, value in constants.items())])
    return whole.replace(inputs=["ids"], outputs=["y"])


def quantized(graph: Graph, samples: list[np.ndarray], **how: object) -> tuple[QuantizationState, float]:
    """What came of it, and the signal to noise beside a session on the float graph."""
    program = float_program(graph, ["y"])
    outcome = quantize_program(program, lambda: iter([[s] for s in samples[:20]]), 20, QuantizationOptions(**how))  # type: ignore[arg-type]
    compared, running = Comparison(), ProgramRunner(outcome.converted.program)
    with Session(graph, exact=True) as session:
        for sample in samples[20:]:
            (wanted,) = session.run(["y:0"], {f"{graph.inputs[0]}:0": sample})
            compared.add(wanted, running.numbers(as_fed([sample], outcome.converted.program.inputs))[0])
    return outcome, compared.snr


def test_factors_of_a_normalization_are_a_byte_each() -> None:
    samples = list(rng.normal(size=(30, 1, 40, 16)).astype(np.float32))
    graph = normalized(rng.uniform(0.5, 1.5, (1, 40, 64)))
    outcome, snr = quantized(graph, samples)
    plain, plain_snr = quantized(graph, samples, with_tables=False)
    sizes = [len(model_bytes(made.converted.program)) for made in (outcome, plain)]
    assert sizes[0] < sizes[1] - 3 * 40 * 64 + 500
    assert snr > plain_snr - 1.5
    assert "1 large constants that are read as floats are kept in eight bits (2,560 numbers)" in outcome.notes
    assert not any("large constants" in note for note in plain.notes)


@pytest.mark.parametrize("is_static", [True, False])
def test_a_matrix_for_each_part_is_codes_in_the_file(is_static: bool) -> None:
    """As the votes of capsules have: a product that is no layer, as each part has weights of its own."""
    matrices = rng.normal(size=(72, 4, 32)).astype(np.float32)
    x, y = Value("x", FLOAT, (72, 1, 4)), Value("y", FLOAT, (72, 1, 32))
    kept = Value("w", FLOAT, matrices.shape, Constant.of(matrices))
    program = Program([x], [y], [Operation("BATCH_MATMUL", [x, kept], [y], {"adj_x": False, "adj_y": False})])
    if is_static:
        made = with_compressed_constants(ConvertedProgram(program, {}, []), ())[0].program
    else:
        made = with_quantized_weights(program, dynamic=True)
    assert [operation.code for operation in made.operations] == ["DEQUANTIZE", "BATCH_MATMUL"]
    assert program.operations[0].inputs[1] is kept
    assert len(model_bytes(made)) < len(model_bytes(program)) - 2.8 * matrices.size
    values = rng.normal(size=(72, 1, 4)).astype(np.float32)
    (found,) = ProgramRunner(made)([values])
    expected = values @ matrices
    assert ((found - expected) ** 2).sum() < 1e-4 * (expected**2).sum()


@pytest.mark.parametrize("odd", [0, np.inf, np.nan])
def test_constants_that_codes_cannot_hold_stay_float(odd: float) -> None:
    """Two thousand numbers of which each is a little more than half a step have no codes that are near them."""
    numbers = np.full((1, 40, 64), 0.6, np.float32)
    numbers[0, 0, :2] = (255, odd)
    x, y = Value("x", FLOAT, numbers.shape), Value("y", FLOAT, numbers.shape)
    gains = Value("gain", FLOAT, numbers.shape, Constant.of(numbers))
    program = Program([x], [y], [Operation("MUL", [x, gains], [y], {"activation": ""})])
    same, notes = with_compressed_constants(ConvertedProgram(program, {}, []), ())
    assert same.program is program
    assert not notes


def test_factors_before_the_first_layer_stay_float() -> None:
    numbers = rng.uniform(0.5, 1.5, (1, 40, 64)).astype(np.float32)
    x, y = Value("x", FLOAT, numbers.shape), Value("y", FLOAT, numbers.shape)
    gains = Value("gain", FLOAT, numbers.shape, Constant.of(numbers))
    program = Program([x], [y], [Operation("MUL", [x, gains], [y], {"activation": ""})])
    assert with_compressed_constants(ConvertedProgram(program, {}, []), [y])[0].program is program
    expanded, _ = with_compressed_constants(ConvertedProgram(program, {}, []), ())[0].program.operations
    assert expanded.code == "DEQUANTIZE"


def test_rows_that_are_read_as_floats_are_codes_in_the_file() -> None:
    graph = embedded()
    samples = list(rng.integers(0, 300, (30, 1, 12)).astype(np.int32))
    outcome, snr = quantized(graph, samples)
    assert len(model_bytes(outcome.converted.program)) < 300 * 32 + 384 * 8 + 4000
    assert snr > 30


@pytest.mark.parametrize("is_loud", [True, False])
@pytest.mark.parametrize("is_table_first", [True, False])
def test_rows_and_products_of_one_constant_agree_whichever_comes_first(is_loud: bool, is_table_first: bool) -> None:
    """The number that is far off leaves too few codes for a product; that the rows have codes beside saves nothing."""
    numbers = rng.uniform(0, 0.19, (1000, 64)).astype(np.float32)
    numbers[0, 0] = 100 if is_loud else 0
    table = Value("table", FLOAT, numbers.shape, Constant.of(numbers))
    ids, rows = Value("ids", INT32, (4,)), Value("rows", FLOAT, (4, 64))
    x, y = Value("x", FLOAT, (2, 1000)), Value("y", FLOAT, (2, 64))
    gather = Operation("GATHER", [table, ids], [rows], {"axis": 0, "batch_dims": 0})
    product = Operation("BATCH_MATMUL", [x, table], [y], {"adj_x": False, "adj_y": False})
    operations = [gather, product] if is_table_first else [product, gather]
    made, found = compressed(operations, PRODUCTS)
    codes = ["BATCH_MATMUL", "GATHER"] if is_loud else ["BATCH_MATMUL", "DEQUANTIZE", "DEQUANTIZE", "GATHER"]
    assert sorted(operation.code for operation in made) == codes
    assert found == ([] if is_loud else [table])
    assert len([value for each in made for value in each.operands if value.constant is not None]) == 2
    assert len({value for each in made for value in each.operands if value.constant is not None}) == 1


def test_a_table_is_coded_once_for_all_its_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = rng.normal(size=(1000, 64)).astype(np.float32)
    table = Value("table", FLOAT, numbers.shape, Constant.of(numbers))
    operations = [
        Operation("GATHER", [table, Value("ids", INT32, (4,))], [Value(f"rows{number}", FLOAT, (4, 64))], {"axis": 0})
        for number in range(20)
    ]
    coded = []
    monkeypatch.setattr(
        constant_compression, "quantized_table", lambda value: coded.append(value) or quantized_table(value)
    )
    made, found = compressed(operations, PRODUCTS)
    assert [operation.code for operation in made] == ["GATHER", "DEQUANTIZE"] * 20
    assert coded == found == [table]
