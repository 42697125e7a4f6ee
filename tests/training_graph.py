"""The network of tests/fixtures/training_net.py as a frozen graph, and what TensorFlow learned of it."""

from __future__ import annotations

import sys

import numpy as np

from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from support import ROOT

FIXTURES = ROOT / "tests" / "fixtures"
sys.path.insert(0, str(FIXTURES))
from training_net import L1, L2, OPTIMIZERS, SCHEDULES, STEPS, values  # noqa: E402

__all__ = [
    "FIXTURES", "GOLDEN", "L1", "L2", "NET", "OPTIMIZERS", "SCHEDULES", "STEPS", "WEIGHTS", "frozen", "values",
]  # fmt: skip

GOLDEN = dict(np.load(FIXTURES / "training_steps.npz"))
NET = """
    x = Placeholder(dtype=float, shape=[?,5,5,2])
    conv = Conv2D(x, filters, T=float, strides=[1,1,1,1], padding="VALID")
    biased = BiasAdd(conv, bias, T=float)
    relu = Relu(biased, T=float)
    sizes = Const(int32 [-1, 36])
    flat = Reshape(relu, sizes, T=float, Tshape=int32)
    product = MatMul(flat, weights, T=float)
    logits = Add(product, offset, T=float)
"""
"""The layers, without their weights."""
WEIGHTS = ("filters", "bias", "weights", "offset")


def frozen() -> Graph:
    """From ``x``, float [?,5,5,2], to ``logits``; the weights are constants."""
    layers = parse(NET)
    given = values()
    return layers.replace([*(const(name, given[name]) for name in WEIGHTS), *layers])
