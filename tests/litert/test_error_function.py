"""Erf and Erfc on LiteRT, against the C library's."""

from __future__ import annotations

from math import erf, erfc

import numpy as np

from pocketgraph.graph.text_format import parse
from pocketgraph.quantization.core.program_runner import ProgramRunner
from quantize_nets import float_program


def test_both_are_within_a_millionth_of_the_true_values() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[4,251])
        y = Erf(x, T=float)
        z = Erfc(x, T=float)
    """)
    program = float_program(graph, ["y", "z"])
    x = np.concatenate([np.linspace(-6, 6, 1000), [0.0, -0.0, 30.0, -30.0]]).astype(np.float32).reshape(4, 251)
    plain, complement = ProgramRunner(program)([x])
    assert np.abs(plain - np.vectorize(erf)(x)).max() < 1e-6
    assert np.abs(complement - np.vectorize(erfc)(x)).max() < 1e-6
    assert plain[-1, -4] == 0
    assert complement[-1, -2] == 0  # not below, however far out


def test_the_complement_stays_on_xnnpack() -> None:
    """Which has no comparisons: every GELU that Keras 3 writes was cut out of its network."""
    graph = parse("x = Placeholder(dtype=float, shape=[4,251])\n z = Erfc(x, T=float)")
    codes = {operation.code for operation in float_program(graph, ["z"]).operations}
    assert codes.isdisjoint({"LESS", "SELECT_V2"})
