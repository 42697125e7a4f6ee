"""Small nets and inputs that the tests of the quantizer share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Program
from pocketgraph.quantization.canonical.canonicalize import canonicalize
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.float_program import lowered_graph
from pocketgraph.runtime.comparison.answer_metrics import Comparison

SHAPE = (1, 12, 12, 3)


def float_program(graph: Graph, outputs: Sequence[str] | None = None, *what: Any) -> Program:
    """The program that a graph is quantized from; ``what``: shapes and values, as for ``lowered_graph``."""
    return canonicalize(lowered_graph(graph, outputs, *what)[0])


def net(seed: int = 0) -> Graph:
    """A small net with every kind of operator: weights, pools, joins, additions, fixed codes."""
    rng = np.random.default_rng(seed)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,12,12,3])
        c1 = Conv2D(x, w1, strides=[1,2,2,1], padding="SAME", T=float)
        b1 = BiasAdd(c1, v1, T=float)
        r1 = Relu6(b1, T=float)
        dw = DepthwiseConv2dNative(r1, w2, strides=[1,1,1,1], padding="SAME", T=float)
        r2 = Relu(dw, T=float)
        pool = MaxPool(r2, ksize=[1,3,3,1], strides=[1,1,1,1], padding="SAME", T=float)
        both = ConcatV2(r1, pool, axis, T=float, N=2, Tidx=int32)
        pw = Conv2D(both, w3, strides=[1,1,1,1], padding="VALID", T=float)
        sum = AddV2(pw, pool, T=float)
        s = Sigmoid(sum, T=float)
        t = Mul(sum, s, T=float)
        mean = Mean(t, axes, T=float, Tidx=int32)
        fc = MatMul(mean, w4, T=float)
        y = Softmax(fc, T=float)
    """)
    extra = [
        const("w1", rng.normal(0, 0.4, (3, 3, 3, 8)).astype(np.float32)),
        const("v1", rng.normal(0, 0.2, 8).astype(np.float32)),
        const("w2", (rng.normal(0, 0.4, (3, 3, 8, 1)) * np.logspace(-1, 1, 8)[:, None]).astype(np.float32)),
        const("w3", rng.normal(0, 0.3, (1, 1, 16, 8)).astype(np.float32)),
        const("w4", rng.normal(0, 0.8, (8, 5)).astype(np.float32)),
        const("axis", np.int32(3)),
        const("axes", np.array([1, 2], np.int32)),
    ]
    return Graph([*graph, *extra])


def samples(count: int = 24, seed: int = 1) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [[rng.uniform(-1, 1, SHAPE).astype(np.float32)] for _ in range(count)]


def judged(a: Program, b: Program, given: list[list[np.ndarray]]) -> Comparison:
    comparison = Comparison()
    first, second = ProgramRunner(a), ProgramRunner(b)
    for sample in given:
        comparison.add(first.numbers(sample)[0], second.numbers(sample)[0])
    return comparison


def wide_graph() -> Graph:
    """Three matrix products from [1,64] to [1,10], with rectifiers in between."""
    rng = np.random.default_rng(3)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,64])
        a = MatMul(x, w1, T=float)
        r = Relu(a, T=float)
        b = MatMul(r, w2, T=float)
        s = Relu(b, T=float)
        y = MatMul(s, w3, T=float)
    """)
    sizes = (("w1", (64, 96)), ("w2", (96, 96)), ("w3", (96, 10)))
    return Graph([*graph, *(const(n, rng.normal(0, s[0] ** -0.5, s).astype(np.float32)) for n, s in sizes)])


def rows(count: int, seed: int) -> list[list[np.ndarray]]:
    """Correlated inputs for it: that is what choosing codes together makes use of."""
    mixing = np.random.default_rng(5).normal(size=(12, 64))
    rng = np.random.default_rng(seed)
    return [[(rng.normal(size=(1, 12)) @ mixing).astype(np.float32)] for _ in range(count)]
