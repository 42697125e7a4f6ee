"""Ranges that were cut where it costs more at the scores than finer steps save."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph import Graph, const
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program, Value
from pocketgraph.quantization.core.quantization_options import QuantizationOptions, silent
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.value_range import Range
from pocketgraph.quantization.mixed_precision.sensitivity import measure_sensitivity
from pocketgraph.quantization.observing.calibration import observe
from pocketgraph.quantization.ranges import whole_ranges
from quantize_nets import float_program

RANDOM = np.random.default_rng(3)


def network(first: Array, second: Array) -> tuple[Program, Value]:
    """Two products, and the tensor between them."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,8])
        h = MatMul(x, a, T=float)
        y = MatMul(h, b, T=float)
    """)
    program = float_program(Graph([*graph, const("a", first), const("b", second)]), ["y"])
    return program, program.operations[0].outputs[0]


def weighed(program: Program, between: Value, cut: float, samples: Array) -> QuantizationState:
    """With the range of the tensor between ending at a share of what was seen, and those of the others whole."""
    fed = [[row[np.newaxis]] for row in samples]
    state = QuantizationState(program, lambda: iter(fed), len(fed), QuantizationOptions())
    state.seen = dict(observe(program, state.samples, state.count, silent, 1))
    state.ranges = {value: found.range for value, found in state.seen.items()}
    state.ranges[between] = Range(state.ranges[between].low, cut * state.ranges[between].high)
    assert measure_sensitivity(state)
    return state


def normal(*shape: int) -> Array:
    return RANDOM.normal(size=shape).astype(np.float32)


def test_a_cut_that_the_scores_suffer_from_is_undone() -> None:
    program, between = network(normal(8, 16), np.abs(normal(16, 4)))
    state = weighed(program, between, 0.5, np.abs(normal(20, 8)))
    before = state.sensitivity[between]
    assert whole_ranges.apply(state)
    assert state.ranges[between] == state.seen[between].range
    assert state.sensitivity[between] < before / 10


def test_a_cut_stays_where_the_scores_do_not_read_what_it_cuts_off() -> None:
    first, second = normal(8, 16), normal(16, 4)
    first[:, 3] = 100
    second[3] = 0
    program, between = network(first, second)
    state = weighed(program, between, 0.05, np.abs(normal(20, 8)))
    before = state.ranges, state.sensitivity
    assert not whole_ranges.apply(state)
    assert (state.ranges, state.sensitivity) == before


@pytest.mark.parametrize(("usual", "is_whole"), [(1.0, False), (0.1, True)], ids=["alike", "apart"])
def test_a_cut_that_spares_little_is_undone_where_samples_differ_in_their_reach(usual: float, is_whole: bool) -> None:
    first, second = np.eye(8, dtype=np.float32), np.eye(8, dtype=np.float32)
    first[0, 0], second[0, 0] = 1.15, 0
    program, between = network(first, second)
    samples = RANDOM.uniform(-1, 1, (200, 8)).astype(np.float32)
    samples[:, 0] = 1
    state = weighed(program, between, 1 / 1.15, samples)
    state.seen[between].peaks = [1.15] + [1.15 * usual] * 199
    assert whole_ranges.apply(state) == is_whole
