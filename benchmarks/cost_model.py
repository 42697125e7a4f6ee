"""Measures the figures of the cost model again (src/pocketgraph/litert/cost_model.py), beside those in the table.

    python benchmarks/cost_model.py [--rounds 7]

Each is the median of rounds of its best repetition, on one thread, so that a machine at other work does less harm. What
the table says in microseconds is of a processor of 2020; the ratios of the column "here" to each other are what counts.
Limits that no single run shows (how many nodes are unrolled, from how many bytes weights are packed) are not measured:
``passes.py`` shows what the passes bring that they steer.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable

import numpy as np

from measure import table
from pocketgraph import Session
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels import blas_threads
from pocketgraph.litert import cost_model
from pocketgraph.runtime.engines.region import StepList
from pocketgraph.runtime.engines.step_codegen import StepCodegen
from pocketgraph.runtime.engines.steps import DEAD

CHAIN = 400  # nodes of a chain; the call of the session is shared by as many


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    rows = []
    for name, measure in MEASURES.items():
        said = getattr(cost_model, name)
        here = statistics.median(measure() for _ in range(rounds))
        rows.append([name, UNITS[name], f"{said:.4g}", f"{here:.4g}", f"{here / said:.2f}"])
    table("The cost model, measured again", ["figure", "unit", "table", "here", "ratio"], rows)


def best(call: Callable[[], object], seconds: float = 0.05) -> float:
    """The shortest time of a call in microseconds, of as many as fit into ``seconds`` (at least 5)."""
    found, end = [], time.perf_counter() + seconds
    while len(found) < 5 or time.perf_counter() < end:
        begin = time.perf_counter_ns()
        call()
        found.append((time.perf_counter_ns() - begin) / 1000)
    return min(found)


def on_reference(line: str, size: int) -> float:
    """Microseconds of a node on the reference engine; ``line`` is the node's text with {old} and {new}."""
    lines = [f"x = Placeholder(dtype=float, shape=[{size}])", "one = Const(float 1.0)"]
    old = "x"
    for index in range(CHAIN):
        lines.append(line.format(old=old, new=f"n{index}"))
        old = f"n{index}"
    feeds = {"x": np.full(size, 0.5, np.float32)}
    with Session(parse("\n".join(lines)), 1, engine="reference") as session:
        for _ in range(20):
            session.run(old, feeds)
        return best(lambda: session.run(old, feeds)) / CHAIN


def on_litert(inputs: int) -> float:
    """Microseconds of a call of a LiteRT part with so many inputs of a few elements."""
    lines = [f"x{index} = Placeholder(dtype=float, shape=[8])" for index in range(inputs)]
    lines += [f"s = AddN({', '.join(f'x{index}' for index in range(inputs))}, T=float, N={inputs})"]
    lines += ["y = Relu(s, T=float)", "z = Tanh(y, T=float)"]
    feeds = {f"x{index}": np.ones(8, np.float32) for index in range(inputs)}
    with tempfile.TemporaryDirectory() as cache, Session(parse("\n".join(lines)), 1, cache_dir=cache) as session:
        for _ in range(40):
            session.run("z", feeds)
        return best(lambda: session.run("z", feeds))


def product(columns: int) -> float:
    """Microseconds of a product with so many columns on the reference engine."""
    graph = Graph([*parse("x = Placeholder(dtype=float, shape=[1,64])\ny = MatMul(x, w, T=float)"), weights(columns)])
    feeds = {"x": np.ones((1, 64), np.float32)}
    with Session(graph, 1, engine="reference") as session:
        for _ in range(20):
            session.run("y", feeds)
        return best(lambda: session.run("y", feeds))


def convolution(outputs: int) -> float:
    """Microseconds of a convolution with so many outputs on the reference engine, 3 x 3 over 64 channels."""
    filters = const("w", np.random.default_rng(0).random((3, 3, 64, outputs), np.float32))
    attrs = 'T=float, strides=[1, 1, 1, 1], padding="SAME"'
    graph = Graph([*parse(f"x = Placeholder(dtype=float, shape=[1,48,48,64])\ny = Conv2D(x, w, {attrs})"), filters])
    feeds = {"x": np.ones((1, 48, 48, 64), np.float32)}
    with Session(graph, 1, engine="reference") as session, blas_threads.at_most(1):
        return best(lambda: session.run("y", feeds))


def weights(columns: int):  # type: ignore[no-untyped-def]
    return const("w", np.random.default_rng(0).random((64, columns), np.float32))


def break_even_of_writing_out() -> float:
    """Runs of a list of steps, after which writing it out as a function has paid for itself."""
    lines = ["x = Placeholder(dtype=float, shape=[4])", "one = Const(float 1.0)", "n0 = Add(x, one, T=float)"]
    lines += [f"n{index} = Add(n{index - 1}, one, T=float)" for index in range(1, CHAIN)]
    with Session(parse("\n".join(lines)), 1, engine="reference") as session:
        session.run(f"n{CHAIN - 1}", {"x": np.ones(4, np.float32)})
        (plan,) = session._calls.plans.values()
        assert plan.program is not None
        steps = plan.program._steps
    assert isinstance(steps, StepList)
    return best(lambda: StepCodegen(steps, DEAD)) / (0.15 * CHAIN)  # µs a step that running it written out saves


MEASURES: dict[str, Callable[[], float]] = {
    "PART_CALL": lambda: on_litert(2) - 2 * (on_litert(10) - on_litert(2)) / 8,
    "PART_TENSOR": lambda: (on_litert(10) - on_litert(2)) / 8,
    "NODE_CALL": lambda: on_reference("{new} = Add({old}, one, T=float)", 300),
    "CURVED_NODE_CALL": lambda: on_reference("{new} = Sigmoid({old}, T=float)", 300),
    "WEIGHT_PRODUCT": lambda: (product(4096) - product(64)) / (64 * (4096 - 64)),
    "ANSWERED_PRODUCT": lambda: (convolution(128) - convolution(64)) / (48 * 48 * 576 * 64),
    "ANSWERED_ELEMENT": lambda: on_reference("{new} = Mul({old}, one, T=float)", 200_000) / 200_000,
    "LEAST_PART_NODES": lambda: on_litert(1) / on_reference("{new} = Mul({old}, one, T=float)", 20_000),
    "SMALL_TENSOR": lambda: 512 / on_reference("{new} = Mul({old}, one, T=float)", 512),
    "WRITTEN_OUT_AFTER": break_even_of_writing_out,
}
UNITS = {
    "PART_CALL": "µs", "PART_TENSOR": "µs", "NODE_CALL": "µs", "CURVED_NODE_CALL": "µs", "WEIGHT_PRODUCT": "µs",
    "ANSWERED_PRODUCT": "µs", "ANSWERED_ELEMENT": "µs", "LEAST_PART_NODES": "nodes", "SMALL_TENSOR": "elements",
    "WRITTEN_OUT_AFTER": "runs",
}  # fmt: skip


if __name__ == "__main__":
    main()
