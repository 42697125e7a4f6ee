"""Functions that call each other stand for any number of nodes: planning them ends, and so does running them."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from function_text import with_functions
from pocketgraph.errors import DeadlineError, RunError
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import RunOptions, Session
from pocketgraph.runtime.engines.functions import FunctionLibrary
from pocketgraph.runtime.planning.rewriting import function_inlining

X = np.ones(2, np.float32)
CALL = "PartitionedCall({0}, Tin=list[float], Tout=list[float], f=func({1}))"


def doubling(depth: int) -> Graph:
    """Each function calls the next one twice; the last one adds 1."""
    lines = []
    for level in range(depth):
        following = f"f{level + 1}"
        lines += [
            f"f{level}(x: float) -> b:output:0",
            f"a = {CALL.format('x', following)}",
            f"b = {CALL.format('a:output:0', following)}",
        ]
    lines += [f"f{depth}(x: float) -> r:z:0", "c = Const(float 1)", "r = AddV2(x, c:output:0, T=float)"]
    return with_functions(parse(f"x = Placeholder(dtype=float)\ny = {CALL.format('x', 'f0')}"), lines)


@pytest.mark.parametrize("engine", [None, "reference"])
def test_some_calls_give_their_result(engine: str | None) -> None:
    graph = doubling(5)
    library = FunctionLibrary(graph)
    assert library.inlined_nodes([graph["y"]]) == 1 + sum(2**level for level in range(1, 6)) + 2 * 2**5
    with Session(graph, engine=engine) as session:
        np.testing.assert_array_equal(session.run(["y"], {"x": X})[0], X + 2**5)


def test_calls_stay_where_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_inlining, "MOST_NODES", 10)
    with Session(doubling(5), cache_dir="") as session:
        np.testing.assert_array_equal(session.run(["y"], {"x": X})[0], X + 2**5)


@pytest.mark.parametrize("engine", [None, "reference"])
def test_the_limits_of_a_run_end_it(engine: str | None) -> None:
    graph = doubling(40)
    assert FunctionLibrary(graph).inlined_nodes([graph["y"]]) > 2**41
    with Session(graph, engine=engine, step_limit=10_000) as session, pytest.raises(RunError, match="step limit"):
        session.run(["y"], {"x": X})
    with Session(graph, engine=engine) as session, pytest.raises(DeadlineError):
        session.run(["y"], {"x": X}, options=RunOptions(timeout_in_ms=200))


def test_functions_that_call_themselves_are_infinite() -> None:
    lines = ["f(x: float) -> a:output:0", f"a = {CALL.format('x', 'g')}", "g(x: float) -> a:output:0",
             f"a = {CALL.format('x', 'f')}"]  # fmt: skip
    graph = with_functions(parse(f"x = Placeholder(dtype=float)\ny = {CALL.format('x', 'f')}"), lines)
    assert FunctionLibrary(graph).inlined_nodes([graph["y"]]) == float("inf")
    with Session(graph) as session, pytest.raises(RunError):
        session.run(["y"], {"x": X})


def test_a_memory_limit_counts_texts() -> None:
    text = 'x = Placeholder(dtype=string)\ny = DecodeCompressed(x, compression_type="ZLIB")'
    packed = np.empty((), object)
    packed[()] = zlib.compress(bytes(1 << 22))
    with Session(parse(text)) as session:
        assert len(session.run(["y"], {"x": packed})[0].item()) == 1 << 22
    with Session(parse(text), memory_limit=1 << 20) as session, pytest.raises(RunError, match="out of memory"):
        session.run(["y"], {"x": packed})
