"""Random graphs of ops that have gradients: ours are within 1e-5 of the peak of TensorFlow 1.15's."""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

import compare_gradients
from pocketgraph.differentiation.gradient_table import GRADIENTS, no_gradient
from pocketgraph.graph import Graph, canonical
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.order import reachable
from random_graphs import making
from random_graphs.growth import Growth

BATCH = 25  # graphs for which TensorFlow is started once: one may bring it down
NO_JUDGE = ("Atan2", "PadV2", "EuclideanNorm", "ClipByValue", "BlockLSTMV2")
"""TensorFlow's gradients of these lack something, or take gates in another order; tests hold ours to other numbers."""
LARGEST = 1e6  # of a value: beyond, a gradient is rounding


def judged(arguments: argparse.Namespace, registered: making.Registered) -> int:
    """Compares; 1 when any gradient differs."""
    rng = np.random.default_rng(arguments.seed)
    wanted = {op for op in arguments.ops.split(",") if op}
    known = [op for op in making.known_ops() if op in GRADIENTS and op not in NO_JUDGE and (not wanted or op in wanted)]
    table = {op: making.combinations(op, registered) for op in known}
    ops = [op for op, choices in table.items() if choices and GRADIENTS.row(op) is not no_gradient]
    differ = down = 0
    jobs = _jobs(rng, ops, table, arguments)
    for _ in range(0, arguments.gradients, BATCH):
        batch = [job for job, _ in zip(jobs, range(BATCH), strict=False)]
        with tempfile.TemporaryDirectory() as folder:
            try:
                differ |= compare_gradients.compare(arguments.oracle, pathlib.Path(folder), batch)
            except subprocess.CalledProcessError:
                down += 1
    if down:
        print(f"{down} batches brought TensorFlow down")
    return differ


def _jobs(
    rng: np.random.Generator, ops: list[str], table: dict[str, Any], arguments: argparse.Namespace
) -> Iterator[tuple[str, Graph, dict[str, Any], str]]:
    """(name, graph, feeds, y): graphs whose last tensor of floats is neither wild nor constant."""
    number = 0
    while True:
        few = [str(op) for op in rng.choice(ops, min(len(ops), 12), replace=False)]
        growth = making.grow(rng, few, table, int(rng.integers(1, arguments.size + 1)), wild=False, floats=True)
        y = _last(growth)
        if y and all(array.dtype.kind != "O" for array in growth.feeds.values()):
            number += 1
            graph = growth.graph()
            needed = reachable(graph, [y])
            feeds = {name: array for name, array in growth.feeds.items() if name in needed}
            whole = graph.replace([node for node in graph if node.name in needed])
            yield f"random graph {number} ({graph.producer(y).op})", whole, feeds, y


def _last(growth: Growth) -> str:
    """The tensor to differentiate; "" where none will do."""
    graph = growth.graph()
    for ref in reversed(list(growth.pool)):
        value = growth.pool[ref]
        if growth.dtypes.get(ref) is not FLOAT or graph.producer(ref).op in ("Const", "Placeholder") or not value.size:
            continue
        if np.isfinite(value).all() and np.abs(value).max() < LARGEST:
            return canonical(ref)
    return ""
