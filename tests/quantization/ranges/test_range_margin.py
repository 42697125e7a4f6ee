"""How much further than the samples the codes of scores and of rarely seen tensors reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program, Value
from pocketgraph.quantization.core.observation import Observation
from pocketgraph.quantization.core.program_runner import ProgramRunner, as_fed
from pocketgraph.quantization.core.quantization_options import QuantizationOptions, silent
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.step_limits import SCORE_MARGIN_SHARE
from pocketgraph.quantization.core.value_range import Range
from pocketgraph.quantization.observing.calibration import observe
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.quantization.ranges import range_margin
from pocketgraph.quantization.ranges.range_margin import with_range_margin
from quantize_nets import float_program


def two_layers(ending: str = "y = Softmax(s, T=float)") -> Program:
    rng = np.random.default_rng(0)
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1,16])
        h = MatMul(x, a, T=float)
        r = Relu6(h, T=float)
        s = MatMul(r, b, T=float)
        {ending}
    """)
    weights = [const(n, rng.normal(size=shape).astype(np.float32)) for n, shape in (("a", (16, 32)), ("b", (32, 4)))]
    return float_program(Graph([*graph, *weights]), ["y" if ending else "s"])


def pooled() -> Program:
    """A layer on each of sixteen numbers, and one on the means over them."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,16])
        a = Reshape(x, places, T=float, Tshape=int32)
        c = Conv2D(a, k, T=float, strides=[1,1,1,1], padding="SAME")
        p = Mean(c, axes, T=float, Tidx=int32, keep_dims=false)
        h = MatMul(p, b, T=float)
        y = Relu(h, T=float)
        z = MatMul(y, d, T=float)
    """)
    rng = np.random.default_rng(0)
    shapes = (("k", (3, 3, 1, 8)), ("b", (8, 16)), ("d", (16, 4)))
    weights = [const(n, rng.normal(size=shape).astype(np.float32)) for n, shape in shapes]
    places = [const("places", np.array([1, 4, 4, 1], np.int32)), const("axes", np.array([1, 2], np.int32))]
    return float_program(Graph([*graph, *weights, *places]), ["z"])


def given(count: int, size: float = 1.0, seed: int = 1) -> list[list[Any]]:
    rng = np.random.default_rng(seed)
    return [[(size * row).reshape(1, 16)] for row in rng.normal(size=(count, 16)).astype(np.float32)]


def widened(program: Program, count: int) -> tuple[dict[Value, Observation], dict[Value, Range], dict[Value, Range]]:
    seen = observe(program, lambda: iter(given(count)), count, silent, 1)
    ranges = {value: found.range for value, found in seen.items()}
    return seen, ranges, with_range_margin(program, seen, ranges, count)


def named(ranges: dict[Value, Range], name: str) -> Range:
    return next(span for value, span in ranges.items() if value.name == name)


def test_scores_before_a_softmax_reach_further_up_and_nothing_else_changes() -> None:
    _, before, after = widened(two_layers(), 40)
    assert named(after, "s:0").high == (1 + SCORE_MARGIN_SHARE) * named(before, "s:0").high
    assert named(after, "s:0").low == named(before, "s:0").low
    assert [value.name for value in before if before[value] != after[value]] == ["s:0"]


def test_other_scores_reach_further_on_both_sides() -> None:
    _, before, after = widened(two_layers(""), 40)
    assert named(after, "s:0").high == (1 + SCORE_MARGIN_SHARE) * named(before, "s:0").high
    assert named(after, "s:0").low == (1 + SCORE_MARGIN_SHARE) * named(before, "s:0").low


def test_what_a_sigmoid_squeezes_stays() -> None:
    _, before, after = widened(two_layers("y = Sigmoid(s, T=float)"), 40)
    assert named(before, "s:0") == named(after, "s:0")


@pytest.mark.parametrize("ending", ["y = Sigmoid(s, T=float)", "y = Softmax(s, T=float)"])
def test_scores_that_come_out_beside_what_is_made_of_them_reach_further_on_both_sides(ending: str) -> None:
    program = two_layers(ending)
    program.outputs.append(program.operations[-1].inputs[0])
    _, before, after = widened(program, 40)
    assert named(after, "s:0").high == (1 + SCORE_MARGIN_SHARE) * named(before, "s:0").high
    assert named(after, "s:0").low == (1 + SCORE_MARGIN_SHARE) * named(before, "s:0").low


@pytest.mark.parametrize("is_last", [True, False])
def test_what_a_layer_reads_beside_a_sigmoid_reaches_further(is_last: bool) -> None:
    gate, layer = "g = Sigmoid(r, T=float)", "t = MatMul(r, b, T=float)"
    lines = [layer, gate] if is_last else [gate, layer]
    graph = parse("\n".join([
        "x = Placeholder(dtype=float, shape=[1,16])", "h = MatMul(x, a, T=float)", "r = Relu6(h, T=float)", *lines,
        "y = MatMul(g, b, T=float)",
    ]))  # fmt: skip
    rng = np.random.default_rng(0)
    weights = [const(n, rng.normal(size=shape).astype(np.float32)) for n, shape in (("a", (16, 32)), ("b", (32, 4)))]
    program = float_program(Graph([*graph, *weights]), ["t", "y"] if is_last else ["y", "t"])
    readers = [
        operation.code for operation in program.operations if any(v and v.name == "r:0" for v in operation.inputs)
    ]
    assert readers == (["FULLY_CONNECTED", "LOGISTIC"] if is_last else ["LOGISTIC", "FULLY_CONNECTED"])
    seen = observe(program, lambda: iter(given(100, 0.1)), 100, silent, 1)
    before = {value: found.range for value, found in seen.items()}
    after = with_range_margin(program, seen, before, 100)
    assert named(after, "r:0").high == pytest.approx(1.1 * named(before, "r:0").high)


def test_what_has_one_row_a_sample_reaches_further_the_fewer_samples_there_are() -> None:
    _, before, after = widened(pooled(), 100)
    assert named(after, "p:0").high == pytest.approx(1.1 * named(before, "p:0").high)
    assert named(after, "p:0").low == pytest.approx(1.1 * named(before, "p:0").low)
    assert named(after, "c:0") == named(before, "c:0")  # sixteen places of a picture
    _, before, after = widened(pooled(), 400)
    assert named(after, "p:0").high == pytest.approx(1.05 * named(before, "p:0").high)


def test_a_picture_laid_out_as_one_row_keeps_its_codes() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,4,4,1])
        c = Conv2D(x, k, T=float, strides=[1,1,1,1], padding="SAME")
        f = Reshape(c, row, T=float, Tshape=int32)
        h = MatMul(f, b, T=float)
        y = Relu(h, T=float)
        z = MatMul(y, d, T=float)
    """)
    rng = np.random.default_rng(0)
    shapes = (("k", (3, 3, 1, 8)), ("b", (128, 16)), ("d", (16, 4)))
    weights = [const(n, rng.normal(size=shape).astype(np.float32)) for n, shape in shapes]
    program = float_program(Graph([*graph, *weights, const("row", np.array([1, 128], np.int32))]), ["z"])
    pictures = [[sample[0].reshape(1, 4, 4, 1)] for sample in given(40)]
    seen = observe(program, lambda: iter(pictures), 40, silent, 1)
    before = {value: found.range for value, found in seen.items()}
    after = with_range_margin(program, seen, before, 40)
    changed = {value.name for value in before if before[value] != after[value]}
    assert "y:0" in changed
    assert not changed & {"c:0", "f:0"}


def test_pooled_features_of_other_samples_are_not_cut_off() -> None:
    program = pooled()
    features = ProgramRunner(program, [v for o in program.operations for v in o.outputs if v.name == "p:0"])
    reach = named(widened(program, 40)[1], "p:0").high
    others = [[0.4 + 0.5 * sample[0]] for sample in given(400, seed=5)]  # near to each other, so that means are large
    others = [sample for sample in others if 1.05 * reach < features(sample)[0].max() < 1.15 * reach]
    assert len(others) > 10
    kept, lost = (noise(program, made(program, 40, without=names), others) for names in ((), ("range_margin",)))
    assert kept < 2e-3
    assert lost > 10 * kept


def test_a_few_samples_widen_all_tensors_but_not_beyond_what_they_can_be() -> None:
    seen, before, after = widened(two_layers(), 4)
    assert named(after, "x:0").high > named(before, "x:0").high
    assert named(after, "x:0").low < named(before, "x:0").low
    rectified = named(after, "r:0")
    assert rectified.low == 0
    assert named(before, "r:0").high <= rectified.high <= 6
    assert all(found.range == before[value] for value, found in seen.items())


def test_one_sample_alone_does_not_cut_off_all_others() -> None:
    program, others = two_layers(""), given(20, seed=7)
    assert noise(program, made(program, 1), others) < 0.02
    assert noise(program, made(program, 1, ranges="minmax"), others) > 0.04


def test_scores_larger_than_all_those_seen_keep_their_probabilities() -> None:
    """Codes would end at those seen; results in float do not."""
    program = two_layers()
    outcome = made(program, 40)
    assert [operation.outputs[0].name for operation in outcome.hybrid] == ["s:0"]
    assert any("no score is cut off" in note for note in outcome.notes)
    scores = ProgramRunner(program, [program.operations[-2].outputs[0]])
    others = sorted(given(2000, seed=5), key=lambda sample: float(scores(sample)[0].max()))[-20:]
    assert scores(others[0])[0].max() > 1.2 * outcome.seen[program.operations[-2].outputs[0]].high
    assert noise(program, outcome, others) < 1e-4


def test_scores_as_codes_reach_beyond_those_seen() -> None:
    program = two_layers("")
    outcome = made(program, 40, io="int8")
    assert not outcome.hybrid
    result = outcome.converted.program.outputs[0]
    assert result.quantization is not None
    top = (127 - result.quantization.zero_points[0]) * result.quantization.scales[0]
    assert top > 1.2 * max(found.high for value, found in outcome.seen.items() if value.name == "s:0")


@pytest.mark.parametrize(
    ("farthest", "count", "more"), [(1.0, 40, 1.0), (1.25, 40, 1.3), (9.0, 40, 2.0), (1.0, 8, 2.0)],
    ids=["alike", "apart", "far apart", "few"],
)  # fmt: skip
def test_sixteen_bits_have_room_as_the_samples_differ_in_their_reach(farthest: float, count: int, more: float) -> None:
    program = two_layers()
    state = QuantizationState(program, iter, count, QuantizationOptions(activations="int16"))
    scores, bounded = program.operations[1].outputs[0], program.operations[0].outputs[0]
    state.seen = {scores: Observation("s"), bounded: Observation("r", (0.0, 6.0))}
    for number in range(count):
        for value in (scores, bounded):
            state.seen[value].add(np.float32([[0, 2, -1, 1]]) * (farthest if number == 3 else 1))
    state.ranges = {value: Range(0.0, seen.high) for value, seen in state.seen.items()}
    seen = 2 * farthest
    assert range_margin.apply(state) == (more > 1)
    assert state.ranges[scores].high == pytest.approx(more * seen)
    assert state.ranges[bounded].high == pytest.approx(min(more * seen, max(6, seen)))


def made(program: Program, count: int, **how: Any) -> QuantizationState:
    samples = given(count)
    return quantize_program(program, lambda: iter(samples), count, QuantizationOptions(float_share=0, **how))


def noise(program: Program, outcome: QuantizationState, samples: list[list[Any]]) -> float:
    exact, coded = ProgramRunner(program), ProgramRunner(outcome.converted.program)
    fed = outcome.converted.program.inputs
    pairs = [(exact(sample)[0], coded.numbers(as_fed(sample, fed))[0]) for sample in samples]
    wrong, all_of_it = sum(((a - b) ** 2).sum() for a, b in pairs), sum((a**2).sum() for a, _ in pairs)
    return float(wrong / all_of_it)
