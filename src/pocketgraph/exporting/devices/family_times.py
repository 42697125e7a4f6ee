"""How long a model takes on this machine, by family of operations: where an estimate for another machine begins.

Machines differ in how fast each family is, so one machine's times are turned into another's family by family. A small
network, the yardstick, is timed beside the model: it says how fast this machine is beside that of
published_models.toml.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.graph import DType, Graph, Node, Shape, Tensor
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.inspect.flops import count_graph
from pocketgraph.inspect.op_families import family
from pocketgraph.runtime import Session

FAMILIES = ("convolution", "depthwise", "matrix product", "other")
YARDSTICK = "mobilenet_v1_0.5_160"
"""The published model that the yardstick is."""
ENOUGH = 0.6  # seconds of runs
FEWEST, MOST = 3, 100  # runs
PROFILES = 8  # runs that are taken apart
SHORTEST = 0.001  # seconds: shorter runs are timed several at once
MOST_AT_ONCE = 256  # runs between two looks at the clock
REST = ""  # in place of a node's name: what a run takes besides its nodes
SIDE, WIDTH = 160, 0.5
BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))
"""Channels and stride of MobileNet v1's blocks at width 1."""

Milliseconds = dict[str, float]
"""By family."""


def cost_family(op: str) -> str:
    """The family of an op that machines have a speed for.

    >>> [cost_family(op) for op in ("Conv2D", "DepthwiseConv2dNative", "tfl.fully_connected", "Softmax")]
    ['convolution', 'depthwise', 'matrix product', 'other']
    """
    if "depthwise" in op.lower():
        return "depthwise"
    found = family(op)
    return found if found in FAMILIES else "other"


class LocalTimes(NamedTuple):
    """Milliseconds of one run here, on one thread.

    Attributes:
        families: by family.
        nodes: by node, with its op.
    """

    families: Milliseconds
    nodes: Mapping[str, tuple[str, float]]


def measured_times(graph: Graph, fetches: Sequence[str], feeds: Mapping[str, np.ndarray[Any, Any]]) -> LocalTimes:
    """Runs a model on one thread for half a second and more; the processor's time of the quickest run is shared out.

    Others on the machine only make runs longer, so that the quickest times are nearest to those of an idle one.

    Raises:
        RunError: it does not run.
    """
    least: dict[str, float] = {}
    with Session(graph, threads=1) as session:
        session.run(list(fetches), dict(feeds))
        for _ in range(PROFILES):
            trace = session.profile(list(fetches), dict(feeds))
            took: dict[str, float] = {}
            for timing in trace.nodes:
                took[timing.name] = took.get(timing.name, 0.0) + timing.duration_us
            took[REST] = max(0.0, trace.total_us - sum(took.values()))
            least = {name: min(least.get(name, microseconds), microseconds) for name, microseconds in took.items()}
        whole = _processor_seconds(lambda: session.run(list(fetches), dict(feeds)))
    if not any(least.values()):
        least = {REST: 1.0}  # a file that runs as a whole, and tells no times of its operators
    scale = whole * 1e3 / sum(least.values())
    ops = {timing.name: timing.op for timing in trace.nodes} | {node.name: node.op for node in graph}
    times, nodes = dict.fromkeys(FAMILIES, 0.0), {}
    times["other"] += least.pop(REST) * scale
    for name, microseconds in least.items():
        times[cost_family(ops[name])] += microseconds * scale
        nodes[name] = ops[name], microseconds * scale
    return LocalTimes(times, nodes)


def _processor_seconds(run: Callable[[], object]) -> float:
    """What the quickest of many runs has the processor do, in seconds; what others do meanwhile does not count."""
    start, best, runs, times = time.perf_counter(), float("inf"), 0, 1
    while runs < FEWEST or (time.perf_counter() - start < ENOUGH and runs < MOST):
        begin = time.process_time()
        for _ in range(times):
            run()
        took = time.process_time() - begin
        if took < SHORTEST and times < MOST_AT_ONCE:
            times *= 4
            continue
        best, runs = min(best, took / times), runs + 1
    return best


def yardstick() -> Graph:
    """MobileNet v1 of half width for pictures of 160 x 160, without batch norms, with made-up weights."""
    rng = np.random.default_rng(7)
    nodes = [Node("input", "Placeholder", (), {"dtype": FLOAT, "shape": Shape((1, SIDE, SIDE, 3))})]

    def held(name: str, shape: tuple[int, ...]) -> str:
        values = rng.standard_normal(shape).astype(np.float32) / np.float32(np.sqrt(np.prod(shape[:-1])))
        nodes.append(Node(name, "Const", (), {"dtype": FLOAT, "value": Tensor.from_numpy(values)}))
        return name

    def layer(name: str, op: str, source: str, weights: tuple[int, ...], stride: int) -> str:
        channels = weights[2] if op == "DepthwiseConv2dNative" else weights[3]
        attrs: dict[str, Any] = {"T": FLOAT, "strides": (1, stride, stride, 1), "padding": b"SAME"}
        nodes.append(Node(name, op, (source, held(f"{name}/weights", weights)), attrs))
        nodes.append(Node(f"{name}/add", "BiasAdd", (name, held(f"{name}/bias", (channels,))), {"T": FLOAT}))
        nodes.append(Node(f"{name}/relu", "Relu6", (f"{name}/add",), {"T": FLOAT}))
        return f"{name}/relu"

    channels = int(32 * WIDTH)
    last = layer("conv", "Conv2D", "input", (3, 3, 3, channels), 2)
    for number, (width, stride) in enumerate(BLOCKS):
        last = layer(f"depthwise_{number}", "DepthwiseConv2dNative", last, (3, 3, channels, 1), stride)
        wider = int(width * WIDTH)
        last = layer(f"pointwise_{number}", "Conv2D", last, (1, 1, channels, wider), 1)
        channels = wider
    axes = Tensor.from_numpy(np.array([1, 2], np.int32))
    int32 = DType.named("int32")
    nodes += [
        Node("axes", "Const", (), {"dtype": int32, "value": axes}),
        Node("mean", "Mean", (last, "axes"), {"T": FLOAT, "Tidx": int32, "keep_dims": False}),
        Node("scores", "MatMul", ("mean", held("classes", (channels, 1000))), {"T": FLOAT}),
        Node("output", "Softmax", ("scores",), {"T": FLOAT}),
    ]
    return Graph(nodes)


def yardstick_times() -> LocalTimes:
    """The yardstick's times on this machine."""
    feeds = {"input": np.random.default_rng(7).uniform(-1, 1, (1, SIDE, SIDE, 3)).astype(np.float32)}
    return measured_times(yardstick(), ["output"], feeds)


@cache
def yardstick_operations() -> Mapping[str, int]:
    """The yardstick's operations by family, of convolutions."""
    found = dict.fromkeys(("convolution", "depthwise"), 0)
    for op, count in count_graph(yardstick(), {"input": (1, SIDE, SIDE, 3)}).by_op.items():
        if cost_family(op) in found:
            found[cost_family(op)] += count
    return found
