"""Parts of a graph on LiteRT, with what is known of their tensors found out first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from pocketgraph.graph import Graph, Node, Shape, canonical, const
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.litert import engine, part_lowering
from pocketgraph.litert.cache import Specs
from pocketgraph.litert.program import Program
from pocketgraph.litert.rewriting.optimize import optimize


def compiled_part(
    graph: Graph, nodes: Sequence[Node], inputs: Sequence[str], outputs: Sequence[str], specs: Specs, **how: Any
) -> engine.Executable:
    """The part, compiled; ``how`` as for engine.compile."""
    return engine.compile(graph, nodes, inputs, outputs, specs, inferred_of(graph, specs), **how)


def lowered(
    graph: Graph,
    nodes: Sequence[Node],
    inputs: Sequence[str],
    outputs: Sequence[str],
    specs: Specs,
    without: Collection[str] = (),
) -> Program:
    """The part as a program, optimized for size."""
    program = part_lowering.lowered(graph, nodes, inputs, outputs, specs, inferred_of(graph, specs))
    optimize(program, without)
    return program


def inferred_of(graph: Graph, specs: Specs) -> Inferred:
    """What is known of the graph's tensors where these are fed."""
    return infer(graph, {canonical(name): (dtype, Shape(shape)) for name, (dtype, shape) in specs.items()})


WEIGHTS = np.random.default_rng(1).random((64, 64), np.float32)


def product() -> Graph:
    """A rectified product with ``WEIGHTS``."""
    text = """
        x = Placeholder(dtype=float, shape=[4,64])
        p = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
        y = Relu(p, T=float)
    """
    return Graph([const("w", WEIGHTS), *parse(text)])
