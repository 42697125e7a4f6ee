"""Steps are rows of a table: each can be left out, the report says what became of it, and a new one is a row more."""

from __future__ import annotations

import json

import numpy as np
import pytest

import pocketgraph
from pocketgraph.errors import UsageError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization import quantization_steps
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.quantization.quantization_steps import (
    ANALYSIS_STEPS,
    CONVERSION_STEPS,
    QuantizationStep,
    optional_names,
    purposes,
)
from pocketgraph.quantization.report.html_report import to_html, to_json
from pocketgraph.quantization.report.layer_report import report_of
from quantize_nets import float_program, judged, net, samples
from support import ROOT

OPTIONAL = [step.name for step in (*ANALYSIS_STEPS, *CONVERSION_STEPS) if step.is_optional]


def made(*without: str) -> QuantizationState:
    program = float_program(net(), ["y"])
    return quantize_program(program, lambda: iter(samples()), 24, QuantizationOptions(without=without))


def test_names_are_unique_and_say_what_they_are_for() -> None:
    names = [step.name for step in (*ANALYSIS_STEPS, *CONVERSION_STEPS)]
    assert len({*optional_names(), *names}) == len(purposes())
    assert all(len(purpose.split()) > 3 for purpose in purposes().values())


@pytest.mark.parametrize("name", OPTIONAL)
def test_a_step_that_is_left_out_leaves_a_model_that_is_right(name: str) -> None:
    program = float_program(net(), ["y"])
    outcome = made(name)
    assert outcome.done[name] == "left out"
    assert judged(program, outcome.converted.program, samples(8, seed=3)).snr > 12


def test_the_report_says_what_became_of_each_step() -> None:
    outcome = made("channel_replication")
    report = report_of(outcome, lambda: iter(samples()), 1000)
    told = json.loads(to_json(report))["steps"]
    assert told["channel_replication"] == "left out"
    assert told["calibration"] == "done"
    assert told["cross_layer_equalization"] == "nothing to do"
    assert told["size_limit"] == "does not apply"
    assert list(told) == [step.name for step in (*ANALYSIS_STEPS, *CONVERSION_STEPS)]
    assert "<li>channel_replication: left out" in to_html(report, "net")


def test_names_of_nothing_and_of_what_must_be_done_are_refused() -> None:
    with pytest.raises(UsageError, match=r"without: 'channel_replicatoin' is no step; did you mean"):
        made("channel_replicatoin")
    with pytest.raises(UsageError, match="without: 'calibration' cannot be left out"):
        made("calibration")


def test_passes_of_the_canonical_form_are_left_out_by_name() -> None:
    nodes = parse("""
        x = Placeholder(dtype=float, shape=[1,8,8,3])
        shares = RealDiv(x, all, T=float)
        centred = Sub(shares, means, T=float)
        scaled = RealDiv(centred, spreads, T=float)
        y = Conv2D(scaled, w, strides=[1,1,1,1], padding="SAME", T=float)
    """)
    rng = np.random.default_rng(0)
    constants = {"all": 255.0, "means": [0.4, 0.5, 0.6], "spreads": [0.2, 0.3, 0.4], "w": rng.normal(size=(3, 3, 3, 8))}
    graph = Graph([*nodes, *(const(name, np.float32(value)) for name, value in constants.items())])
    pictures = rng.uniform(0, 255, (20, 8, 8, 3)).astype(np.float32)
    whole = pocketgraph.quantize(graph, pictures)
    plain = pocketgraph.quantize(graph, pictures, without=["affine_chains"])
    assert [operation.code for operation in whole.exact.operations] == ["MUL", "ADD", "CONV_2D"]
    assert [operation.code for operation in plain.exact.operations] == ["DIV", "SUB", "DIV", "CONV_2D"]
    assert min(found.judged.comparison.snr for found in (whole, plain) if found.judged) > 30


def test_a_new_step_is_a_row_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def widen(state: QuantizationState) -> bool:
        state.ranges = {value: span.union(type(span)(-9.0, 9.0)) for value, span in state.ranges.items()}
        return True

    row = QuantizationStep("nine", "every range holds nine", widen, lambda state: state.options.bits == 8)
    at = next(i for i, step in enumerate(ANALYSIS_STEPS) if step.name == "range_margin")
    monkeypatch.setattr(quantization_steps, "ANALYSIS_STEPS", (*ANALYSIS_STEPS[:at], row, *ANALYSIS_STEPS[at:]))
    outcome = made()
    assert outcome.done["nine"] == "done"
    assert all(span.high >= 9 for span in outcome.ranges.values())
    assert made("nine").done["nine"] == "left out"


def test_the_page_lists_every_step() -> None:
    page = (ROOT / "docs" / "quantization.md").read_text("utf-8")
    rows = [line.split("|")[2:4] for line in page.splitlines() if line.startswith(("| canonical form |", "| analysis |",
            "| conversion |", "| file |"))]  # fmt: skip
    told = {name.strip().strip("`"): purpose.strip().removesuffix(" (always)") for name, purpose in rows}
    assert told == purposes()
