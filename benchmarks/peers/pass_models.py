"""Makes graphs on which single passes show, for passes.py: ``python benchmarks/peers/pass_models.py FOLDER [NAME …]``.

Small graphs as TensorFlow writes them, with drawn weights; NAME.pb each. Needs no TensorFlow.
"""

from __future__ import annotations

import math
import pathlib
import sys
from collections.abc import Callable, Mapping

import numpy as np

import pocketgraph
from pocketgraph.differentiation.node_builder import GraphBuilder
from pocketgraph.graph import Graph, Shape
from pocketgraph.graph.dtype import FLOAT


class Net:
    """A graph that is written layer by layer; ``last`` is the tensor that was added last, ``channels`` its features."""

    def __init__(self, *sizes: int, channels: int) -> None:
        self.builder, self.random = GraphBuilder(Graph([])), np.random.default_rng(5)
        self.last = self.builder.add("Placeholder", name="x", dtype=FLOAT, shape=Shape(sizes))
        self.channels = channels

    def weights(self, *shape: int) -> str:
        """A constant of this shape, scaled so that layers keep the size of what passes."""
        drawn = self.random.normal(scale=(2 / math.prod(shape[:-1])) ** 0.5, size=shape)
        return self.builder.const(drawn, FLOAT, name="weights")

    def convolution(self, height: int, width: int, count: int, *, layout: str = "NHWC", padding: str = "SAME") -> None:
        """A convolution with a bias and a rectifier."""
        form = {"strides": (1, 1, 1, 1), "padding": padding.encode(), "data_format": layout.encode()}
        made = self.builder.add("Conv2D", self.last, self.weights(height, width, self.channels, count), **form)
        made = self.builder.add("BiasAdd", made, self.weights(count), data_format=layout.encode())
        self.last, self.channels = self.builder.add("Relu", made), count

    def reshape(self, *sizes: int) -> None:
        self.last = self.builder.add("Reshape", self.last, self.builder.const(sizes))

    def graph(self, *outputs: str) -> Graph:
        found = list(outputs or [self.last])
        return self.builder.finished(found).replace(outputs=found)


def residual(side: int) -> Graph:
    """Eight residual blocks in NCHW, as training on GPUs has them, with windows of side x side."""
    net = Net(1, 64, 28, 28, channels=64)
    for _ in range(8):
        shortcut = net.last
        net.convolution(side, side, 64, layout="NCHW")
        net.convolution(side, side, 64, layout="NCHW")
        net.last = net.builder.add("AddV2", net.last, shortcut)
    return net.graph()


def texts() -> Graph:
    """A classifier of 200 words with 70 features: windows of 3 and of 5 whole rows, 128 of each."""
    outputs = []
    net = Net(1, 200, 70, 1, channels=1)
    words = net.last
    for rows in (3, 5):
        net.last, net.channels = words, 1
        net.convolution(rows, 70, 128, padding="VALID")
        outputs.append(net.builder.add("Max", net.last, net.builder.const((1, 2))))
    return net.graph(*outputs)


def steps_in_time() -> Graph:
    """Four Conv1D of 64 channels over 400 steps: between them an axis comes and goes."""
    net = Net(1, 400, 64, channels=64)
    for _ in range(4):
        net.last = net.builder.add("ExpandDims", net.last, net.builder.const(1))
        form = {"strides": (1, 1, 1, 1), "padding": b"SAME"}
        net.last = net.builder.add("Conv2D", net.last, net.weights(1, 3, 64, 64), **form)
        net.last = net.builder.add("Squeeze", net.last, squeeze_dims=(1,))
        net.last = net.builder.add("Relu", net.builder.add("BiasAdd", net.last, net.weights(64)))
    return net.graph()


def reshapes() -> Graph:
    """Four reshapes of 8 MB in a row between two layers."""
    net = Net(1, 256, 256, 8, channels=8)
    net.convolution(1, 1, 32)
    for sizes in ((2048, 1024), (2, 1024, 1024), (64, 32, 1024), (1, 256, 256, 32)):
        net.reshape(*sizes)
    net.convolution(1, 1, 8)
    return net.graph()


def moved_axis() -> Graph:
    """A tensor of 8 MB of which an axis of size 1 moves, between two layers."""
    net = Net(1, 65536, 1, 8, channels=8)
    net.convolution(1, 1, 32)
    net.last = net.builder.add("Transpose", net.last, net.builder.const((0, 2, 1, 3)))
    net.convolution(1, 1, 8)
    return net.graph()


GRAPHS: Mapping[str, Callable[[], Graph]] = {
    "nchw_residual_3x3": lambda: residual(3),
    "nchw_residual_1x1": lambda: residual(1),
    "texts_by_windows": texts,
    "conv1d": steps_in_time,
    "reshapes": reshapes,
    "moved_axis": moved_axis,
}


def main() -> None:
    folder, wanted = pathlib.Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in GRAPHS.items():
        if not wanted or name in wanted:
            pocketgraph.save(make(), folder / f"{name}.pb")


if __name__ == "__main__":
    main()
