"""Steps written out as a function: local variables that are taken again, and the step that a failure comes from."""

import pathlib

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import Node
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.engines.region import StepList
from pocketgraph.runtime.engines.step_calls import gatherer
from pocketgraph.runtime.engines.step_codegen import StepCodegen
from pocketgraph.runtime.engines.steps import DEAD, Step, execute

CHAIN = 500


def chain(count: int) -> StepList:
    """Each step adds the two numbers before it; what is not needed any more is let go."""
    steps = []
    for index in range(count):
        frees = (index + 1,) if index else ()
        out = index + 3
        add = lambda x, y: np.asarray(x + y)  # noqa: E731
        step = Step(add, gatherer((index + 1, index + 2)), out, ((0, out),), (), frees, Node(f"n{index}", "Add"))
        steps.append(step)
    return StepList(steps)


def test_variables_are_taken_again() -> None:
    """As many as there are values at once, and not as many as there are steps."""
    steps = chain(CHAIN)
    values, expected = ([None, np.float64(0), np.float64(1), *[None] * CHAIN] for _ in range(2))
    execute(steps, expected)
    code = StepCodegen(steps, DEAD)
    code.run(values)
    assert values[-2:] == expected[-2:]
    assert code.run.__code__.co_nlocals < 10


def test_a_failure_names_its_node_and_what_it_was_given(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        zero = Const(int32 0)
        x = Placeholder(dtype=float)
        i = Placeholder(dtype=int32)
        a = Abs(x, T=float)
        b = Neg(a, T=float)
        c = Exp(b, T=float)
        d = GatherV2(c, i, zero, Tparams=float, Tindices=int32, Taxis=int32)
        y = Mul(d, d, T=float)
    """)
    x = np.arange(5, dtype=np.float32)
    # The reference engine writes its steps out, too, once they have run often.
    with Session(graph, cache_dir=tmp_path, engine="reference") as session:
        for _ in range(20):
            (y,) = session.run("y", {"x": x, "i": np.array([1, 4], np.int32)})
            np.testing.assert_allclose(y, np.exp(-2 * x[[1, 4]]), rtol=1e-6)
        with pytest.raises(RunError, match=r"node 'd'") as told:
            session.run("y", {"x": x, "i": np.array([1, 7], np.int32)})
    assert "float32[5], int32[2], int32[]" in str(told.value)
