"""Rows of a table that differ much in size have a factor each."""

from __future__ import annotations

import numpy as np
import pytest

import pocketgraph
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program
from pocketgraph.quantization.canonical.row_factors import factor_rows
from pocketgraph.quantization.core.program_runner import ProgramRunner
from quantize_nets import float_program

chance = np.random.default_rng(0)
IDS = chance.integers(0, 1100, (60, 6)).astype(np.int32)
WEIGHTS = chance.normal(size=(16, 70)).astype(np.float32)


def table(largest: float) -> np.ndarray:
    numbers = chance.normal(size=(1100, 16)).astype(np.float32)
    numbers[1] = 0
    numbers[7] *= np.float32(largest)
    return numbers


def net(numbers: np.ndarray) -> Graph:
    graph = parse("""
        x = Placeholder(dtype=int32, shape=[1,6])
        rows = GatherV2(table, x, axis, Tparams=float, Tindices=int32, Taxis=int32)
        m = Mean(rows, one, T=float, Tidx=int32)
        y = MatMul(m, w, T=float)
    """)
    constants = {"table": numbers, "axis": np.int32(0), "one": np.int32([1]), "w": WEIGHTS}
    return Graph([*graph, *(const(name, value) for name, value in constants.items())])


def test_a_table_with_one_large_row_gives_the_same_in_factors() -> None:
    numbers = table(100)
    program = float_program(net(numbers), ["rows"])
    factor_rows(program)
    assert [o.code for o in program.operations if o.code != "RESHAPE"] == ["GATHER", "GATHER_ND", "MUL"]
    for ids in (IDS[:1], np.int32([[1, 7, 7, 0, 1099, 1]])):
        (given,) = ProgramRunner(program)([ids])
        np.testing.assert_allclose(given, numbers[ids], rtol=3e-7)


@pytest.mark.parametrize("odd", [1, 3, np.nan])
def test_a_table_of_even_rows_stays_as_it_is(odd: float) -> None:
    program = float_program(net(table(odd)), ["rows"])
    before = list(program.operations)
    factor_rows(program)
    assert program.operations == before


@pytest.mark.parametrize("how", [{}, {"io": "int8"}, {"activations": "int16"}, {"mode": "weights"}])
def test_eight_bits_of_such_a_table_keep_its_small_rows(how: dict[str, str]) -> None:
    numbers = table(100)
    ids = IDS[(IDS != 7).all(axis=1)]
    made = pocketgraph.quantize(net(numbers), ids, outputs=["y"], **how)  # type: ignore[arg-type]
    plain = pocketgraph.quantize(net(numbers), ids, outputs=["y"], without=["row_factors"], **how)  # type: ignore[arg-type]
    wanted = numbers[ids].mean(axis=1) @ WEIGHTS

    def decibels(program: Program) -> float:
        given = np.concatenate([ProgramRunner(program).numbers([row[None]])[0] for row in ids])
        return float(10 * np.log10((wanted**2).sum() / ((given - wanted) ** 2).sum()))

    assert decibels(made.program) > 30 > 15 > decibels(plain.program)
    assert len(made.to_bytes()) < len(plain.to_bytes()) + 4 * 1100 + 1300
