"""Samples that reach many times as far as all others, and values that are missing."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph import quantize
from pocketgraph.errors import RunError
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.core.quantization_options import QuantizationOptions, silent
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.observing.calibration import observe
from pocketgraph.quantization.observing.outliers import outliers, without
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.runtime.comparison.answer_metrics import ClassAccuracy, Comparison
from quantize_nets import float_program, net, samples


def test_one_sample_scaled_otherwise_spoils_nothing() -> None:
    given = samples(40)
    spoiled = [[100 * array for array in sample] if at == 7 else sample for at, sample in enumerate(given)]
    outcome = made(spoiled)
    assert any("1 of 40 samples (number 8) reach up to" in note for note in outcome.notes)
    assert judged(outcome) > 25
    plain = made([sample for at, sample in enumerate(given) if at != 7])
    assert list(outcome.ranges.values()) == list(plain.ranges.values())
    kept = made(spoiled, ranges="minmax")
    pairs = zip(kept.ranges.values(), plain.ranges.values(), strict=True)
    assert any(wide.high > 20 * narrow.high for wide, narrow in pairs)


def test_data_of_which_many_samples_reach_far_stay_as_they_are() -> None:
    spread = [[100 * array for array in sample] if at % 8 == 0 else sample for at, sample in enumerate(samples(40))]
    program = float_program(net(), ["y"])
    assert outliers(program, observe(program, lambda: iter(spread), 40, silent, 1)) == ([], "")


def test_few_samples_do_not_show_what_is_usual() -> None:
    few = [[100 * array for array in sample] if at == 1 else sample for at, sample in enumerate(samples(5))]
    program = float_program(net(), ["y"])
    assert outliers(program, observe(program, lambda: iter(few), 5, silent, 1)) == ([], "")


def test_samples_are_left_out_by_number() -> None:
    rows = [[np.float32(at)] for at in range(5)]
    assert [row[0] for row in without(lambda: iter(rows), [1, 4])()] == [0, 2, 3]
    assert without(list, []) is list


def made(given: list[list[np.ndarray]], **how: str) -> QuantizationState:  # type: ignore[type-arg]
    return quantize_program(
        float_program(net(), ["y"]), lambda: iter(given), len(given), QuantizationOptions(float_share=0, **how)
    )


def judged(outcome: QuantizationState) -> float:
    exact, coded, result = ProgramRunner(outcome.program), ProgramRunner(outcome.converted.program), Comparison()
    for sample in samples(20, seed=9):
        result.add(exact(sample)[0], coded.numbers(sample)[0])
    return result.snr


def test_missing_values_that_the_model_looks_for() -> None:
    """Codes have no NaN; floats have, and the model puts another number in its place."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,4])
        missing = IsNan(x, T=float)
        half = Const(float 0.5)
        scaled = Mul(x, half, T=float)
        usual = Const(float [[7, 8, 9, 10]])
        y = SelectV2(missing, usual, scaled, T=float)
    """)
    program = float_program(graph, ["y"])
    rows = [[np.float32([[1, np.nan, -3, 2]])], [np.float32([[np.nan, 1, 2, np.nan]])]]
    seen = observe(program, lambda: iter(rows), 2, silent, 1, keeps_floats=True)
    ranges = [(seen[value].low, seen[value].high) for value in (program.inputs[0], program.outputs[0])]
    assert ranges == [(-3, 2), (-1.5, 10)]
    with pytest.raises(RunError, match=r"the model looks for NaN, as for missing values, .* mode=weights keeps it"):
        observe(program, lambda: iter(rows), 2, silent, 1)
    infinite = [[np.float32([[1, np.inf, 1, 1]])]]
    with pytest.raises(RunError, match=r"gives a value that is not finite; take that sample out"):
        observe(program, lambda: iter(infinite), 1, silent, 1, keeps_floats=True)
    with pytest.raises(RunError, match=r"gives a value that is not finite; take that sample out"):
        observe(float_program(net(), ["y"]), lambda: iter(nan_samples()), 1, silent, 1, keeps_floats=True)


def nan_samples() -> list[list[Array]]:
    """One, of a net that looks for no NaN."""
    return [[np.full_like(array, np.nan) for array in sample] for sample in samples(1)]


def test_a_sample_that_is_left_out_is_not_judged_either() -> None:
    """Neither in the summary nor in the report, and the classes of the others stay theirs."""
    given = np.stack([sample[0][0] for sample in samples(40)])
    spoiled = given.copy()
    spoiled[7] *= 100
    runner = ProgramRunner(float_program(net(), ["y"]))
    classes = np.array([runner([sample[None]])[0].argmax() for sample in given])
    classes[7] = (classes[7] + 1) % 5
    model = quantize(net(), {"x": spoiled, "labels": classes}, outputs=["y"], float_share=0)
    assert model.outcome.left_out == [7]
    assert model.judged is not None
    assert model.judged.comparison.count == 39
    assert isinstance(model.judged.exact, ClassAccuracy)
    assert model.judged.exact.top1 == 1
    assert any(note.startswith("on 39 samples that it was calibrated with") for note in model.notes)
    assert len(list(model.samples())) == 39
    unseen = quantize(net(), {"x": given}, outputs=["y"], float_share=0, judge={"x": spoiled})
    assert unseen.judged is not None
    assert unseen.judged.comparison.count == 40
