"""A budget is kept by leaving more in float, or said not to be kept; an interrupted run gives the same bytes."""

from __future__ import annotations

import pathlib
from dataclasses import asdict

import numpy as np
import pytest

from pocketgraph import evaluate, quantize
from pocketgraph.errors import RunError, UsageError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.quantization.accuracy_budget import (
    AccuracyBudget,
    ProgramComparison,
    compare_programs,
    quantize_within,
)
from pocketgraph.quantization.core import program_runner, resume_state
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.resume_state import ResumeState
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes
from pocketgraph.runtime.comparison.answer_metrics import ClassAccuracy, Comparison
from quantize_nets import float_program, net, samples


@pytest.fixture(scope="module")
def program() -> Program:
    return float_program(net(), ["y"])


def within(program: Program, budget: AccuracyBudget) -> tuple[QuantizationState, ProgramComparison]:
    given = samples(40, seed=7)

    def judge(outcome: QuantizationState) -> ProgramComparison:
        return compare_programs(outcome, lambda: iter(given), 40, lambda scores: None)

    options = QuantizationOptions(float_share=0, rounding="nearest")
    return quantize_within(program, lambda: iter(samples()), 24, options, budget, judge)


def test_a_tight_budget_leaves_more_in_float_and_is_kept(program: Program) -> None:
    free, loose = within(program, AccuracyBudget())
    assert not free.kept
    outcome, tight = within(program, AccuracyBudget(kl=loose.comparison.kl / 3))
    assert outcome.kept
    assert tight.comparison.kl <= loose.comparison.kl / 3
    assert any(note.startswith("within the budget with") for note in outcome.notes)


@pytest.mark.parametrize(
    ("threads", "count", "runners"),
    [(1, 16, [1, 1]), (2, 16, [1, 1, 1, 1]), (3, 16, [3, 3]), (4, 16, [2, 2, 2, 2]), (2, 9, [2, 2])],
)
def test_two_samples_are_judged_side_by_side_by_half_of_the_threads_where_there_are_many(
    program: Program, threads: int, count: int, runners: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From one file of each program in memory; what is found does not depend on the threads."""
    outcome = quantize_program(
        program, lambda: iter(samples()), 24, QuantizationOptions(float_share=0, rounding="nearest")
    )
    written, made = list[Program](), list[int]()

    def counted(program: Program) -> bytes:
        written.append(program)
        return model_bytes(program)

    class Counted(PlainRunner):
        def __init__(self, model: str | bytes, threads: int) -> None:
            made.append(threads)
            super().__init__(model, threads)

    wanted = compare_programs(outcome, lambda: iter(samples(count, seed=7)), count, lambda scores: None)
    monkeypatch.setattr(program_runner, "model_bytes", counted)
    monkeypatch.setattr(program_runner, "PlainRunner", Counted)
    found = compare_programs(outcome, lambda: iter(samples(count, seed=7)), count, lambda scores: None, threads)
    assert (len(written), made) == (2, runners)
    np.testing.assert_equal(asdict(found), asdict(wanted))


def test_a_budget_that_nothing_keeps_is_an_error(program: Program) -> None:
    with pytest.raises(RunError, match="no form with eight bits keeps the budget"):
        within(program, AccuracyBudget(kl=0.0))


def test_a_model_without_classes_is_refused_before_any_work_is_done() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[1,4])\ny = MatMul(x, w, T=float)")
    program = float_program(Graph([*graph, const("w", np.ones((4, 1), np.float32))]), ["y"])

    def judge(outcome: QuantizationState) -> ProgramComparison:
        raise AssertionError("it was quantized")

    given = [[np.ones((1, 4), np.float32)]] * 20
    with pytest.raises(UsageError, match="gives no scores of classes"):
        quantize_within(program, lambda: iter(given), 20, QuantizationOptions(), AccuracyBudget(kl=1.0), judge)


@pytest.mark.parametrize(
    ("last", "first"),
    [("Sigmoid(logit, T=float)", 0), ("Identity(logit, T=float)", 0), ("Identity(logit, T=float)", -1),
     ("Tanh(logit, T=float)", -1)],
)  # fmt: skip
def test_a_budget_is_of_the_answers_of_one_score_for_two_classes(last: str, first: int) -> None:
    """The classes are 0 and 1, or -1 and 1 as a hinge loss and a tanh have them."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(8, 16)), rng.normal(size=(16, 1))
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,8])
        a = Const(float {a.tolist()})
        b = Const(float {b.tolist()})
        hidden = MatMul(x, a, T=float)
        active = Relu(hidden, T=float)
        logit = MatMul(active, b, T=float)
        y = {last}
    """)
    rows = rng.normal(size=(80, 8)).astype(np.float32)
    right = (np.maximum(rows @ a, 0) @ b > 0).astype(np.int64).ravel()
    right[60:70] = 1 - right[60:70]
    told = np.where(right == 0, first, 1)
    made = quantize(graph, {"x": rows, "labels": told}, limit=60, max_accuracy_drop=5)
    (found,) = evaluate(graph, {"x": rows, "labels": told}, outputs=["y"])
    assert found.accuracy is not None
    assert found.accuracy.top1 == pytest.approx(7 / 8)
    assert made.judged.exact is not None
    assert made.judged.exact.top1 == 0.5  # of the 20 that judge
    assert made.judged.keeps(AccuracyBudget(accuracy_drop=5.0))
    with pytest.raises(UsageError, match="gives no scores of classes"):
        quantize(graph, {"x": rows, "labels": right + 1}, limit=60, max_accuracy_drop=5)


def test_the_drop_is_of_right_answers_where_classes_are_known_and_of_agreement_elsewhere() -> None:
    comparison = Comparison(count=10, agreed=9)
    assert ProgramComparison(comparison, None, None).drop == pytest.approx(10)
    known = ProgramComparison(comparison, ClassAccuracy(count=10, first=8), ClassAccuracy(count=10, first=8))
    assert known.drop == 0
    assert known.keeps(AccuracyBudget(accuracy_drop=0.0))
    assert not ProgramComparison(comparison, None, None).keeps(AccuracyBudget(accuracy_drop=9.9))


@pytest.mark.parametrize("wrong", [-1.0, float("nan")])
def test_budgets_below_zero_are_refused(wrong: float) -> None:
    with pytest.raises(UsageError, match="max_kl must be 0 or more"):
        AccuracyBudget(kl=wrong)


class StoppedError(Exception):
    """Stands for the user's Ctrl-C."""


@pytest.mark.parametrize(("stage", "at"), [("calibrating", 9), ("weighing each tensor", 4), ("fitting weights", 2)])
def test_an_interrupted_run_goes_on_and_gives_the_same_bytes(
    program: Program, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, stage: str, at: int
) -> None:
    monkeypatch.setattr(resume_state, "PAUSE", 0.0)
    monkeypatch.setattr(resume_state, "PAUSE_RATIO", 0.0)
    whole = model_bytes(quantize_program(program, lambda: iter(samples()), 24, QuantizationOptions()).converted.program)
    place = tmp_path / "found.npz"

    def stop(said: str, done: int, total: int) -> None:
        if said == stage and done == at:
            raise StoppedError

    with pytest.raises(StoppedError):
        quantize_program(program, lambda: iter(samples()), 24, QuantizationOptions(), stop, ResumeState(place, "this"))
    told: list[tuple[str, int]] = []
    resume = ResumeState(place, "this")
    assert resume.resumed
    made = quantize_program(
        program,
        lambda: iter(samples()),
        24,
        QuantizationOptions(),
        lambda said, done, total: told.append((said, done)),
        resume,
    )
    assert model_bytes(made.converted.program) == whole
    calibrated = [done for said, done in told if said == "calibrating"]
    assert calibrated == ([] if stage != "calibrating" else list(range(at, 25)))
    resume.remove()
    assert not place.exists()


def test_findings_of_something_else_or_damaged_ones_do_not_count(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "found.npz"
    first = ResumeState(place, "this")
    first.put("stage", {"x": np.arange(3)})
    first.save()
    assert ResumeState(place, "this").get("stage")["x"].tolist() == [0, 1, 2]
    assert not ResumeState(place, "that").resumed
    place.write_bytes(place.read_bytes()[:40])
    assert not ResumeState(place, "this").resumed
