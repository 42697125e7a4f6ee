"""The report tells the kinds of error apart, and its page and JSON hold what it says."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np
import pytest

from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.quantization.core import program_runner
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.quantization.report.html_report import LEVELS, summary, to_html, to_json
from pocketgraph.quantization.report.layer_report import QuantizationReport, compare_layers, report_of
from pocketgraph.quantization.weight_only import quantize_weights
from pocketgraph.runtime.comparison.answer_metrics import Comparison
from quantize_nets import float_program, net, rows, samples, wide_graph


@pytest.fixture(scope="module")
def outcome() -> QuantizationState:
    program = float_program(wide_graph(), ["y"])
    options = QuantizationOptions(rounding="nearest", weights="int4", float_share=0, widen=0)
    return quantize_program(program, lambda: iter(rows(40, 1)), 40, options)


def test_weights_of_four_bits_are_told_from_operands_of_eight(outcome: QuantizationState) -> None:
    found = compare_layers(outcome, [], lambda: iter(rows(16, 2))).apart
    middle = next(o for o in found if outcome.weights[o].bits == 4)
    assert found[middle]["weights"].snr < 25  # steps of a seventh of the largest weight
    assert found[middle]["operand"].snr > 35  # steps of a 255th of the range
    values = outcome.weights[middle]
    assert np.abs(values.codes).max() == 7


def test_each_program_is_compiled_once_and_run_once_a_sample(
    outcome: QuantizationState, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, ran = list[int](), list[str]()

    class Counted(PlainRunner):
        def __init__(self, model: str | bytes, threads: int) -> None:
            made.append(threads)
            super().__init__(model, threads)

        def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
            ran.append("run")
            return super().run(inputs)

        def views(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
            ran.append("views")
            return super().views(inputs)

    monkeypatch.setattr(program_runner, "PlainRunner", Counted)
    found = report_of(outcome, lambda: iter(rows(3, 2)), 1000, threads=2)
    assert found.samples == 3
    assert sorted(made) == [1, 2]
    assert sorted(ran) == ["run"] * 3 + ["views"] * 3  # the eight-bit program, and the float one with its probes


def test_page_and_json_hold_the_kinds_of_error(outcome: QuantizationState) -> None:
    found: QuantizationReport = report_of(outcome, lambda: iter(rows(16, 2)), 1000)
    page, content = to_html(found, "a <model>"), json.loads(to_json(found))
    assert "a &lt;model&gt;" in page
    assert "Errors by kind" in page
    table = [row.split("</tr>")[0] for row in page.split("<tr")[1:]]
    columns = table[0].count("<th")
    assert {row.count("<td") for row in table if "<th" not in row} == {columns}  # each row has all columns
    tally = content["errors_by_kind"]["weights"]
    assert tally["from_db"] == list(LEVELS)
    assert sum(tally["layers"]) == sum(layer["from_weights"] is not None for layer in content["layers"])
    assert list(content["by_sensitivity"]) == [layer.name for layer in found.ranked()]


def test_values_that_are_cut_off_are_told_from_wide_steps() -> None:
    """One value far outside: the range of all values has wide steps, one that leaves it out cuts off."""
    given = samples(24)
    given[3][0][0, 0, 0, 0] = 400.0
    program = float_program(net(), ["y"])

    def layer(ranges: str) -> tuple[float, float]:
        made = quantize_program(
            program, lambda: iter(given), 24, QuantizationOptions(ranges=ranges, float_share=0, rounding="nearest")
        )
        first = report_of(made, lambda: iter(given), 1000).layers[0]
        return first.from_steps, first.from_cutting

    wide, cut = layer("minmax"), layer("percentile")
    assert cut[0] >= wide[0]
    assert math.isinf(wide[1]) or wide[1] > cut[1]


def test_without_samples_the_weights_are_reported_on(monkeypatch: pytest.MonkeyPatch) -> None:
    program, made = float_program(wide_graph(), ["y"]), list[int]()
    light = quantize_weights(program, lambda: iter(()), 0, dynamic=True, bits=4)
    monkeypatch.setattr(program_runner, "PlainRunner", lambda model, threads: made.append(threads))
    found = report_of(light, lambda: iter(()), 1000)
    assert found.samples == 0
    assert not made, "programs were compiled for nothing"
    assert all(layer.weight_noise < 35 for layer in found.ranked())
    assert len(found.ranked()) == 2  # the last layer has too few weights
    assert any("weights' codes cost most" in line for line in summary(found))
    assert json.loads(to_json(found))["kl"] is None


def test_warnings_stand_out_and_outputs_without_classes_have_no_agreement(outcome: QuantizationState) -> None:
    found = report_of(outcome, lambda: iter(rows(16, 2)), 1000)
    found.notes = ["warning: too <few>", "a note"]
    found.total = Comparison()
    found.total.add(np.zeros((1, 1)), np.ones((1, 1)))
    assert "<li class=warning>warning: too &lt;few&gt;</li><li>a note</li>" in to_html(found, "title")
    content = json.loads(to_json(found))
    assert (content["agreement"], content["kl"]) == (None, None)


def test_layers_that_stay_in_float_come_last(outcome: QuantizationState) -> None:
    """They would have done harm; the first ones do."""
    found = report_of(outcome, lambda: iter(rows(4, 2)), 1000)
    loudest = found.ranked()[0]
    loudest.in_float = True
    ranked = found.ranked()
    assert ranked[-1] is loudest
    noises = [layer.activation_noise for layer in ranked[:-1]]
    assert noises == sorted(noises)
    assert noises
