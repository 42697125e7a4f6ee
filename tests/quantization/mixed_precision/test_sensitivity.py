"""The noise of single tensors' codes, measured from behind each tensor on, is that of the whole program."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from pocketgraph.graph import Graph, const
from pocketgraph.graph.dtype import FLOAT, INT8
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core import step_limits
from pocketgraph.quantization.core.operator_rules import is_layer
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.value_range import Range
from pocketgraph.quantization.mixed_precision import segmented_execution, sensitivity
from pocketgraph.quantization.mixed_precision.segmented_execution import SegmentedExecution
from pocketgraph.quantization.mixed_precision.sensitivity import SensitivityAnalysis, noise_of_codes, powers_of_codes
from pocketgraph.quantization.program_pass import copied
from quantize_nets import float_program

RANDOM = np.random.default_rng(5)
SAMPLES = [[RANDOM.normal(size=(1, 12, 12, 4)).astype(np.float32)] for _ in range(3)]


@pytest.fixture(scope="module")
def program() -> Program:
    """A block with a residual sum and two branches that are joined."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,12,12,4])
        a = Conv2D(x, v, T=float, strides=[1,1,1,1], padding="SAME")
        r = Relu(a, T=float)
        b = Conv2D(r, w, T=float, strides=[1,1,1,1], padding="SAME")
        s = AddV2(b, r, T=float)
        left = Conv2D(s, w, T=float, strides=[1,2,2,1], padding="SAME")
        right = MaxPool(s, T=float, ksize=[1,2,2,1], strides=[1,2,2,1], padding="SAME")
        axis = Const(int32 3)
        both = ConcatV2(left, right, axis, T=float, N=2, Tidx=int32)
        places = Const(int32[2] [1, 2])
        m = Mean(both, places, T=float, Tidx=int32)
        y = Softmax(m, T=float)
    """)
    weights = [const(n, RANDOM.normal(size=(3, 3, c, 8)).astype(np.float32) / 6) for n, c in (("v", 4), ("w", 8))]
    return float_program(Graph([*graph, *weights]), ["y"])


def through_codes(program: Program, value: Value, span: Range) -> Program:
    """The whole program with codes for one tensor."""
    changed = copied(program)
    coded = Value("codes", INT8, value.shape, None, span.quantization(8))
    back = Value("back", FLOAT, value.shape)
    for operation in changed.operations:
        operation.inputs = [back if operand is value else operand for operand in operation.inputs]
    at = next((i + 1 for i, operation in enumerate(changed.operations) if value in operation.outputs), 0)
    changed.operations[at:at] = [Operation("QUANTIZE", [value], [coded]), Operation("DEQUANTIZE", [coded], [back])]
    return changed


def test_the_noise_is_that_of_the_whole_program_with_the_codes_in_it(program: Program) -> None:
    (before,) = (operation.inputs[0] for operation in program.operations if operation.code == "SOFTMAX")
    assert before is not None
    touched = [*program.inputs, *(v for o in program.operations[:-1] for v in o.outputs)]
    spans = {value: Range(-2.0, 2.5) for value in touched}
    noise = noise_of_codes(powers_of_codes(program, SAMPLES, spans))
    exact = [ProgramRunner(program, [before])(sample)[0].astype(np.float64) for sample in SAMPLES]
    power = sum(((scores - scores.mean()) ** 2).sum() for scores in exact)
    for value, found in zip(touched, noise, strict=True):
        if value is before:
            continue
        running = ProgramRunner(through_codes(program, value, spans[value]), [before])
        apart = [wanted - running(sample)[0] for wanted, sample in zip(exact, SAMPLES, strict=True)]
        wanted = sum(((each - each.mean()) ** 2).sum() for each in apart) / power
        assert wanted > 0
        assert found == pytest.approx(wanted, rel=1e-5), value.name


@pytest.mark.parametrize("together", [2, 3, 1000])
def test_segments_give_what_the_program_gives_from_every_cut_on(
    program: Program, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segmented_execution, "TOGETHER", together)
    cuts = [operation.outputs[0] for operation in program.operations[1::2]]
    running = SegmentedExecution(program, cuts, program.outputs, threads=2)
    (wanted,) = ProgramRunner(program)(SAMPLES[0])
    held = running.begin(SAMPLES[0])
    for place in range(running.place(cuts[-1]) + 1):
        np.testing.assert_array_equal(running.finish(held, place)[0], wanted)
        if place < running.place(cuts[-1]):
            held = running.advance(held, place)
    assert set(held) <= {v for o in program.operations for v in o.inputs} | set(program.outputs)  # the rest is let go


@pytest.mark.parametrize("threads", [2, 3])
def test_tensors_are_weighed_side_by_side_with_the_same_powers(
    program: Program, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No two threads are in one segment at once: what LiteRT holds of it is there once."""
    spans = {value: Range(-2.0, 2.5) for operation in program.operations[:-1] for value in operation.outputs}
    monkeypatch.setattr(segmented_execution, "TOGETHER", 1000)
    wanted = list(powers_of_codes(program, SAMPLES, spans))
    monkeypatch.setattr(segmented_execution, "TOGETHER", 2)
    inside, crowded, seen, run = set[int](), list[int](), set[int](), ProgramRunner.__call__

    def watched(self: ProgramRunner, sample: list[np.ndarray]) -> list[np.ndarray]:
        if id(self) in inside:
            crowded.append(id(self))
        inside.add(id(self))
        seen.add(threading.get_ident())
        try:
            return run(self, sample)
        finally:
            inside.discard(id(self))

    monkeypatch.setattr(ProgramRunner, "__call__", watched)
    np.testing.assert_array_equal(list(powers_of_codes(program, SAMPLES, spans, threads=threads)), wanted)
    assert not crowded
    assert len(seen) > 1


@pytest.mark.parametrize(("quiet", "used"), [(-300.0, 1), (300.0, 2)])
def test_one_sample_weighs_a_very_heavy_program_whose_noise_is_far_below_what_matters(
    program: Program, quiet: float, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sensitivity, "samples_weighed_on", lambda program: 2)
    state = QuantizationState(program, lambda: iter(SAMPLES), 3, QuantizationOptions(quiet=quiet, loud=quiet))
    state.ranges = {value: Range(-2.0, 2.5) for o in program.operations for value in (*o.outputs, *program.inputs)}
    assert sensitivity.measure_sensitivity(state)
    assert len(state.resume.get(sensitivity.RESUMED)) == used
    first = powers_of_codes(program, SAMPLES[:used], {value: state.ranges[value] for value in state.sensitivity})
    np.testing.assert_allclose(list(state.sensitivity.values()), noise_of_codes(first), rtol=1e-6)


def test_fewer_samples_weigh_a_program_of_very_many_operations(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = QuantizationState(program, lambda: iter(SAMPLES), 3, QuantizationOptions())
    state.ranges = {value: Range(-2.0, 2.5) for o in program.operations for value in (*o.outputs, *program.inputs)}
    monkeypatch.setattr(step_limits, "HEAVY_SENSITIVITY_SAMPLES", 1)
    assert step_limits.weighed_samples(100, 200) == 400
    monkeypatch.setattr(step_limits, "MOST_OPERATIONS_WEIGHED", 2 * len(state.ranges) * len(program.operations))
    assert sensitivity.measure_sensitivity(state)
    assert len(state.resume.get(sensitivity.RESUMED)) == 2
    monkeypatch.setattr(step_limits, "MOST_OPERATIONS_WEIGHED", 1)
    assert step_limits.weighed_samples(100, 200) == 1


@pytest.mark.parametrize(("bits", "used"), [("int16", 1), ("int8", 3)])
def test_one_sample_weighs_sixteen_bits_whose_noise_is_far_below_what_matters(
    program: Program, bits: str, used: int
) -> None:
    options = QuantizationOptions(activations=bits, quiet=-300.0, loud=-300.0)
    state = QuantizationState(program, lambda: iter(SAMPLES), 3, options)
    state.ranges = {value: Range(-2.0, 2.5) for o in program.operations for value in (*o.outputs, *program.inputs)}
    assert sensitivity.measure_sensitivity(state)
    assert len(state.resume.get(sensitivity.RESUMED)) == used


def test_a_tensor_that_nothing_reads_makes_no_noise(program: Program) -> None:
    unread = Value("unread", FLOAT, program.inputs[0].shape)
    more = copied(program)
    more.operations.insert(0, Operation("RELU", [program.inputs[0]], [unread]))
    noise = noise_of_codes(powers_of_codes(more, SAMPLES, {unread: Range(0.0, 1.0)}))
    assert noise.tolist() == [0.0]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_scores_that_are_infinite_anyway_count_for_nothing() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,4])
        m = MatMul(x, w, T=float)
        y = Exp(m, T=float)
    """)
    weights = np.eye(4, 3, dtype=np.float32)
    program = float_program(Graph([*graph, const("w", weights)]), ["y"])
    (layer,) = (operation for operation in program.operations if is_layer(operation))
    stored = layer.inputs[1]
    assert stored is not None
    analysis = SensitivityAnalysis(program, lambda: iter([[np.float32([[200, 1, 2, 3]])]]), 1)  # exp(200) is infinite
    bias = np.zeros(3, np.float32)
    kept = weights.T if stored.shape == (3, 4) else weights
    assert analysis.of_weights(layer, kept, bias) == 0
    assert 0 < analysis.of_weights(layer, kept * np.float32(1.01), bias) < 1
    assert analysis.of_weights(layer, kept * np.float32(1000), bias) == np.inf
