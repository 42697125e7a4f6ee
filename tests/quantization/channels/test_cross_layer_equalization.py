"""Even channels in front of a RELU6 leave room for values twice as large as those seen."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program
from pocketgraph.quantization.channels.cross_layer_equalization import CLIPPED, equalize_across_layers
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.core.quantization_options import silent
from pocketgraph.quantization.core.step_limits import RELU6_ROOM
from pocketgraph.quantization.float_program import float_program
from pocketgraph.quantization.observing.calibration import observe

STRENGTH = np.array([0.02, 0.3, 1.0, 2.5], np.float32)  # the largest value of each channel, for inputs up to 1


def clipped() -> Program:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 4, 4, 4])
        c = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="VALID")
        r = Relu6(c, T=float)
        y = Conv2D(r, v, T=float, strides=[1, 1, 1, 1], padding="VALID")
    """)
    rng = np.random.default_rng(2)
    constants = [
        const("w", np.diag(STRENGTH).reshape(1, 1, 4, 4)),
        const("v", rng.normal(size=(1, 1, 4, 3)).astype(np.float32) / STRENGTH[:, None]),
    ]
    return float_program(Graph([*graph, *constants]).replace(inputs=["x"], outputs=["y"]), ["y"])


def inputs(largest: float) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(1)
    given = rng.uniform(0, largest, (12, 1, 4, 4, 4)).astype(np.float32)
    given[0, 0, 0, 0] = largest
    return [[x] for x in given]


@pytest.mark.parametrize(("times", "is_same"), [(1.0, True), (RELU6_ROOM, True), (1.3 * RELU6_ROOM, False)])
def test_values_twice_as_large_as_those_seen_are_not_clipped(times: float, is_same: bool) -> None:
    program = clipped()
    seen = observe(program, lambda: iter(inputs(1.0)), 12, silent, 1)
    even, count = equalize_across_layers(program, seen, mixing=1.0)
    assert count == 1
    exact, changed = ProgramRunner(program), ProgramRunner(even)
    differences = [np.abs(exact(x)[0] - changed(x)[0]).max() for x in inputs(times)]
    assert (max(differences) < 1e-3) == is_same


def test_no_channel_comes_nearer_to_the_end_than_that() -> None:
    program = clipped()
    seen = observe(program, lambda: iter(inputs(1.0)), 12, silent, 1)
    even, _ = equalize_across_layers(program, seen, mixing=1.0)
    inner = even.operations[0].outputs[0]
    (values,) = ProgramRunner(even, [inner])(inputs(1.0)[0])
    assert values.max() <= CLIPPED / RELU6_ROOM * 1.001
    np.testing.assert_allclose(values[0, 0, 0], CLIPPED / RELU6_ROOM, rtol=1e-3)
