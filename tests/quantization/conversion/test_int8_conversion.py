"""The rewriting of programs: LiteRT runs what comes out, and it is near what went in."""

from __future__ import annotations

import numpy as np
import pytest

import pocketgraph
from pocketgraph.errors import RunError, UsageError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.dtype import INT8
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.quantization.channels.cross_layer_equalization import equalize_across_layers
from pocketgraph.quantization.conversion import equal_codes, int8_conversion
from pocketgraph.quantization.conversion.int8_conversion import convert
from pocketgraph.quantization.core.conversion_recipe import ConversionRecipe
from pocketgraph.quantization.core.program_runner import ProgramRunner, as_fed, real
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.core.quantized_weights import QuantizedWeights, rounded
from pocketgraph.quantization.core.value_range import Range
from pocketgraph.quantization.fitting import weight_fitting
from pocketgraph.quantization.observing.calibration import observe
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes
from pocketgraph.quantization.weight_only import with_quantized_weights
from quantize_nets import SHAPE, float_program, judged, net, samples

QUIET = lambda stage, done, total: None  # noqa: E731


@pytest.fixture(scope="module")
def program() -> Program:
    return float_program(net(), ["y"])


def ranges(program: Program) -> dict:
    return {v: o.range for v, o in observe(program, lambda: iter(samples()), 24, QUIET, 1).items()}


def test_all_of_it_runs_in_codes_and_is_near(program: Program) -> None:
    converted = convert(program, ConversionRecipe(ranges(program)))
    codes = {operation.code for operation in converted.program.operations}
    assert {"CONV_2D", "DEPTHWISE_CONV_2D", "CONCATENATION", "MAX_POOL_2D", "ADD", "LOGISTIC", "MUL", "MEAN"} <= codes
    assert [o.code for o in converted.program.operations].count("QUANTIZE") <= 2
    assert judged(program, converted.program, samples(seed=5)).snr > 20


def test_int8_goes_in_and_comes_out_when_asked(program: Program) -> None:
    converted = convert(program, ConversionRecipe(ranges(program), io="int8")).program
    assert [v.dtype.name for v in (*converted.inputs, *converted.outputs)] == ["int8", "int8"]
    assert not any(operation.code == "DEQUANTIZE" for operation in converted.operations)
    quantization = converted.inputs[0].quantization
    assert quantization is not None
    from pocketgraph.quantization.core.value_range import quantized

    coded = [[quantized(sample[0], quantization)] for sample in samples(seed=5)]
    wanted = [ProgramRunner(program)(sample)[0] for sample in samples(seed=5)]
    got = [ProgramRunner(converted).numbers(sample)[0] for sample in coded]
    assert np.abs(np.array(wanted) - np.array(got)).max() < 0.15


@pytest.mark.parametrize("io", ["int8", "uint8"])
def test_codes_go_in_and_out_where_floats_did(program: Program, io: str) -> None:
    """To the last code: what the file with float ends makes of the numbers that the codes stand for."""
    known = ranges(program)
    plain, coded = (convert(program, ConversionRecipe(known, io=name)).program for name in ("float", io))
    assert [v.dtype.name for v in (*coded.inputs, *coded.outputs)] == [io, io]
    for sample in samples(seed=5):
        fed = as_fed(sample, coded.inputs)
        assert fed[0].dtype == io
        (given,) = ProgramRunner(coded)(fed)
        assert given.dtype == io
        (wanted,) = ProgramRunner(plain)([real(coded.inputs[0], fed[0])])
        np.testing.assert_array_equal(real(coded.outputs[0], given), wanted)


def test_bytes_are_no_codes_of_sixteen_bits(program: Program) -> None:
    with pytest.raises(UsageError, match="inputs and outputs are float or int16, not 'uint8'"):
        convert(program, ConversionRecipe(ranges(program), io="uint8", bits=16))


def test_what_is_kept_in_float_is_float(program: Program) -> None:
    kept = [operation for operation in program.operations if operation.code == "DEPTHWISE_CONV_2D"]
    converted = convert(program, ConversionRecipe(ranges(program), kept)).program
    depthwise = next(o for o in converted.operations if o.code == "DEPTHWISE_CONV_2D")
    assert [v.dtype.name for v in depthwise.inputs if v is not None] == ["float"] * 3
    assert judged(program, converted, samples(seed=5)).snr > 20


def test_the_float_program_is_not_changed(program: Program) -> None:
    before = model_bytes(program)
    quantize_program(program, lambda: iter(samples()), 24, QuantizationOptions(equalize=True))
    assert model_bytes(program) == before


def test_fitted_weights_are_nearer_than_nearest_ones() -> None:
    """By the scores: of probabilities that are 0 or 1 nearly all, one sample makes all of the noise."""
    program, snr = float_program(net(), ["fc"]), {}
    for rounding in ("nearest", "fitted"):
        options = QuantizationOptions(rounding=rounding, float_share=0)
        outcome = quantize_program(program, lambda: iter(samples(64)), 64, options)
        made = outcome.converted.program
        snr[rounding] = sum(judged(program, made, samples(40, seed=seed)).snr for seed in (9, 10, 11))
    assert snr["fitted"] > snr["nearest"]


def test_the_same_seed_gives_the_same_bytes(program: Program) -> None:
    how = QuantizationOptions(seed=3)
    made = [quantize_program(program, lambda: iter(samples()), 24, how).converted.program for _ in range(2)]
    assert model_bytes(made[0]) == model_bytes(made[1])


def test_equalized_programs_compute_the_same(program: Program) -> None:
    seen = observe(program, lambda: iter(samples()), 24, QUIET, 1)
    even, count = equalize_across_layers(program, seen)
    assert count == 0 or judged(program, even, samples()).snr > 60


@pytest.mark.parametrize("dynamic", [True, False])
def test_lighter_programs_have_int8_weights_and_are_near(dynamic: bool) -> None:
    from pocketgraph.graph import const

    rng = np.random.default_rng(0)
    graph = Graph([
        *parse("x = Placeholder(dtype=float, shape=[1,64])\ny = MatMul(x, w, T=float)"),
        const("w", rng.normal(size=(64, 32)).astype(np.float32)),
    ])  # fmt: skip
    program = float_program(graph, ["y"])
    light = with_quantized_weights(program, dynamic=dynamic)
    assert len(model_bytes(light)) < 0.5 * len(model_bytes(program))
    given = [[rng.normal(size=(1, 64)).astype(np.float32)] for _ in range(8)]
    assert judged(program, light, given).snr > 30


def test_no_samples_are_refused(program: Program) -> None:
    with pytest.raises(UsageError, match="no sample to calibrate with"):
        quantize_program(program, lambda: iter(()), 0, QuantizationOptions())


def test_samples_that_are_not_finite_are_refused(program: Program) -> None:
    bad = samples(3)
    bad[2][0][0, 3, 3, 1] = np.nan
    with pytest.raises(RunError, match="sample 3 gives a value that is not finite"):
        quantize_program(program, lambda: iter(bad), 3, QuantizationOptions())


def test_constant_activations_are_quantized_too(program: Program) -> None:
    same = [[np.full(SHAPE, 0.25, np.float32)] for _ in range(4)]
    outcome = quantize_program(program, lambda: iter(same), 4, QuantizationOptions())
    assert judged(program, outcome.converted.program, same).snr > 15


def test_nothing_to_quantize_and_unknown_layers_are_said() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[1,4])\ny = Relu(x, T=float)")
    with pytest.raises(UsageError, match="no layer of this model can be quantized"):
        quantize_program(
            float_program(graph, ["y"]), lambda: iter([[np.ones((1, 4), np.float32)]]), 1, QuantizationOptions()
        )
    with pytest.raises(UsageError, match="the model has no layer 'dx'"):
        quantize_program(float_program(net(), ["y"]), lambda: iter(samples(2)), 2, QuantizationOptions(keep=["dx"]))
    with pytest.raises(UsageError, match="rounding is one of"):
        QuantizationOptions(rounding="up")


def test_a_node_that_litert_cannot_run_is_named() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[4,4])\ny = MatrixInverse(x, T=float)")
    with pytest.raises(UsageError, match=r"node 'y'.*must run on LiteRT alone"):
        float_program(graph, ["y"])


def test_an_addition_whose_operands_are_too_far_apart_for_litert_stays_in_float() -> None:
    graph = Graph([
        *parse("""
            x = Placeholder(dtype=float, shape=[1,4])
            f = MatMul(x, w, T=float)
            y = AddV2(f, tiny, T=float)
        """),
        *net_constants(),
    ])  # fmt: skip
    program = float_program(graph, ["y"])
    spans = {value: Range(0, 3e8) for value in program.inputs}
    for operation in program.operations:
        spans.update({value: Range(0, 3e8) for value in operation.outputs})
    spans[program.outputs[0]] = Range(0, 1)
    converted = convert(program, ConversionRecipe(spans))
    result = ProgramRunner(converted.program)([np.zeros((1, 4), np.float32)])
    assert np.isfinite(result[0]).all()


def net_constants() -> list:
    from pocketgraph.graph import const

    return [const("w", np.ones((4, 4), np.float32)), const("tiny", np.float32([[1e-3, 1, 2, 3]]).repeat(2, 0))]


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_a_layer_whose_rectifier_is_always_zero_has_steps_that_its_sums_can_reach(scale: float) -> None:
    rng = np.random.default_rng(0)
    nodes = parse("""
        x = Placeholder(dtype=float, shape=[1,4,4,3])
        first = Conv2D(x, silent, T=float, strides=[1,1,1,1], padding="SAME")
        shifted = BiasAdd(first, down, T=float)
        zeros = Relu(shifted, T=float)
        second = Conv2D(zeros, w, T=float, strides=[1,1,1,1], padding="SAME")
        y = BiasAdd(second, up, T=float)
    """)
    constants = {
        "silent": scale * rng.standard_normal((1, 1, 3, 2)),
        "down": np.full(2, -20 * scale),
        "w": rng.standard_normal((3, 3, 2, 4)),
        "up": np.array([0.5, -1, 2, 0.25]),
    }
    graph = Graph([*nodes, *(const(name, array.astype(np.float32)) for name, array in constants.items())])
    samples = rng.standard_normal((20, 4, 4, 3)).astype(np.float32)
    model = pocketgraph.quantize(graph, samples, outputs=["y"], float_share=0.0)
    assert model.judged.comparison.snr > 30


def test_sums_of_weights_on_a_coarse_grid_are_within_reach_of_the_steps_of_results() -> None:
    """Weights of -64 to 64 steps have codes as large, and a scale of 1/64 where others would have 1/127."""
    weights = np.arange(-64, 65, dtype=np.float32).reshape(129, 1) / 64
    graph = Graph(
        [*parse("x = Placeholder(dtype=float, shape=[1,129])\ny = MatMul(x, w, T=float)"), const("w", weights)]
    )
    program = float_program(graph, ["y"])
    (product,) = (operation for operation in program.operations if operation.code == "FULLY_CONNECTED")
    spans = {program.inputs[0]: Range(0, 255), product.outputs[0]: Range(0, 255 / 64 / 300)}
    made = convert(program, ConversionRecipe(spans)).program
    (layer,) = (operation for operation in made.operations if operation.code == "FULLY_CONNECTED")
    data, kernel, _ = layer.operands
    step = data.coding.scales[0] * max(kernel.coding.scales)
    assert step < int8_conversion.MOST_SUM_RATIO * layer.outputs[0].coding.scales[0]


@pytest.mark.parametrize(("rows", "left"), [(1, []), (3, ["MINIMUM"])])
def test_a_bound_at_the_last_code_is_left_out_where_it_repeats_nothing(rows: int, left: list[str]) -> None:
    coding = Quantization((0.1,), (0,), 0)
    x, y, z = (Value(name, INT8, (size, 4), None, coding) for name, size in (("x", 1), ("y", rows), ("z", rows)))
    bound = Value("", INT8, (rows, 4), Constant.of(np.full((rows, 4), 127, np.int8)), coding)
    program = Program([x], [z], [Operation("MINIMUM", [x, bound], [y]), Operation("RELU", [y], [z])])
    program.substitute(equal_codes.same_codes(program))
    program.drop_unused()
    assert [operation.code for operation in program.operations] == [*left, "RELU"]


def test_fitting_rounds_each_layer_once(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Converting for the next layer takes the codes that are there, and does not make them anew."""
    made = list[str]()

    def counted(operation: Operation, data_scale: float, bits: int = 8) -> QuantizedWeights:
        made.append(operation.outputs[0].name)
        return rounded(operation, data_scale, bits)

    monkeypatch.setattr(int8_conversion, "rounded", counted)
    monkeypatch.setattr(weight_fitting, "rounded", counted)
    outcome = quantize_program(program, samples, 24, QuantizationOptions())
    assert len(outcome.weights) > 1
    assert sorted(made) == sorted(operation.outputs[0].name for operation in outcome.weights)
