"""Training steps beside TensorFlow 2's session on the same graph: processor time on one core, programs by turns.

    python benchmarks/training_steps.py --tensorflow PYTHON [--rounds 15] [--names mlp,small_cnn] [--optimizer adam]
    python benchmarks/training_steps.py --without gradients_in_numpy,winograd_training [--names …]
    python benchmarks/training_steps.py --folder FOLDER --tensorflow PYTHON --names mnist,cifar,resnet
    python benchmarks/training_steps.py --profile [--names …]
    python benchmarks/training_steps.py --products [--names …]

Each graph is made here, with drawn weights: layers, a softmax cross entropy, gradients and an optimizer. PYTHON is the
interpreter of an environment that has TensorFlow 2. Prints the lower quartile of each program's rounds and of their
ratios. ``--without`` measures a session without the passes that are named beside one with all. ``--profile`` prints
what runs in a step, by op or compiled part, with its milliseconds (the least of ten runs). ``--products`` prints what a
step's arithmetic alone takes in NumPy: products of matrices of its sizes (those of convolutions with all windows laid
out already), windows of depthwise convolutions, and the optimizer.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import math
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import pocketgraph
from measure import HERE, table, timed
from pocketgraph import Session
from pocketgraph.differentiation.node_builder import GraphBuilder
from pocketgraph.graph import Graph, Shape
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.kernels.nn.convolution import convolve_depthwise
from pocketgraph.kernels.nn.convolution_gradients import depthwise_backprop_filter
from pocketgraph.kernels.state.variables import Variable
from pocketgraph.kernels.training.optimizers import adam
from pocketgraph.kernels.windows import window

WORKER = str(HERE / "peers" / "catalogue_worker.py")
CLASSES = 10
OPS = {"dense": "MatMul", "conv": "Conv2D", "depthwise": "DepthwiseConv2dNative"}
RUNS_PROFILED = 10
THREADS = "OPENBLAS_NUM_THREADS"

Layers = Sequence[tuple[Any, ...]]
NETWORKS: Mapping[str, tuple[tuple[int, ...], Layers]] = {
    "mlp": ((256, 784), [("dense", 512), ("dense", 256)]),
    "small_cnn": ((128, 28, 28, 1), [("conv", 3, 32), ("pool",), ("conv", 3, 64), ("pool",), ("dense", 128)]),
    "six_layers": (
        (32, 32, 32, 3),
        [each for count in (32, 64, 128) for each in (("conv", 3, count), ("conv", 3, count), ("pool",))],
    ),
    "five_by_five": ((128, 28, 28, 1), [("conv", 5, 32), ("pool",), ("conv", 5, 64), ("pool",), ("dense", 128)]),
    "few_channels": (
        (32, 32, 32, 3),
        [each for count in (16, 24) for each in (("conv", 3, count), ("conv", 3, count), ("pool",))],
    ),
    "depthwise": (
        (32, 32, 32, 3),
        [("conv", 3, 32)]
        + [each for count in (64, 64, 128, 128, 128) for each in (("depthwise", 3), ("conv", 1, count))],
    ),
}  # fmt: skip
"""The shape of a batch and the layers; each has a bias and a rectifier, pools are of the largest of 2x2."""


def network(name: str) -> Graph:
    """A graph with constant weights, from ``x`` to logits, its output."""
    batch, layers = NETWORKS[name]
    builder, random = GraphBuilder(Graph([])), np.random.default_rng(7)
    last, sizes = builder.add("Placeholder", name="x", dtype=FLOAT, shape=Shape(batch)), batch
    window: dict[str, Any] = {"strides": (1, 1, 1, 1), "padding": b"SAME"}
    for kind, *numbers in (*layers, ("dense", CLASSES)):
        if kind == "pool":
            last = builder.add("MaxPool", last, ksize=(1, 2, 2, 1), strides=(1, 2, 2, 1), padding=b"SAME")
            sizes = (sizes[0], -(-sizes[1] // 2), -(-sizes[2] // 2), sizes[3])
            continue
        if kind == "dense" and len(sizes) > 2:
            sizes = (sizes[0], math.prod(sizes[1:]))
            last = builder.add("Reshape", last, builder.const(sizes))
        count = sizes[-1] if kind == "depthwise" else numbers[-1]
        side = numbers[:1] * 2 if kind != "dense" else []
        shape = (*side, sizes[-1], 1 if kind == "depthwise" else count)
        drawn = random.normal(scale=(2 / math.prod(shape[:-1])) ** 0.5, size=shape).astype(np.float32)
        last = builder.add(OPS[kind], last, builder.const(drawn, FLOAT, name="weights"), **(window if side else {}))
        bias = builder.const(np.full(count, 0.01, np.float32), FLOAT, name="bias")
        last, sizes = builder.add("Relu", builder.add("BiasAdd", last, bias)), (*sizes[:-1], count)
    logits = builder.added[last].data_inputs[0]  # the last layer has no rectifier
    return builder.finished([logits]).replace(outputs=[logits])


def step(name: str, optimizer: str) -> tuple[Graph, dict[str, np.ndarray[Any, Any]]]:
    """A training graph, whose outputs are the loss and the operation that trains, and a batch."""
    graph = pocketgraph.trainable(network(name))
    graph = pocketgraph.add_loss(graph, graph.outputs[0])
    graph = pocketgraph.minimize(graph, graph.outputs[0], optimizer, learning_rate=1e-4)
    batch, random = NETWORKS[name][0], np.random.default_rng(3)
    drawn = random.normal(size=batch).astype(np.float32)
    return graph, {"x:0": drawn, "labels:0": random.integers(0, CLASSES, batch[0])}


def write(folder: pathlib.Path, name: str, optimizer: str) -> None:
    """What the worker reads: the graph, how it is run, and a batch."""
    graph, feeds = step(name, optimizer)
    pocketgraph.save(graph, folder / "step.pb")
    info = {
        "file": "step.pb",
        "inputs": dict.fromkeys(feeds),
        "outputs": list(graph.outputs),
        "pre_run": [{"targets": ["init"], "feeds": {}}],
    }
    (folder / "model.json").write_text(json.dumps(info))
    arrays: dict[str, Any] = {"in_" + key.replace(":", "_"): value for key, value in feeds.items()}
    np.savez(folder / "golden.npz", **arrays)


def compared(
    names: Sequence[str], commands: Mapping[str, Sequence[str]], optimizer: str, rounds: int, given: str | None
) -> None:
    """A row a graph: milliseconds of both programs, and the first's as a ratio to the second's."""
    rows = []
    for name in names:
        with contextlib.nullcontext(f"{given}/{name}") if given else tempfile.TemporaryDirectory() as folder:
            if given is None:
                write(pathlib.Path(folder), name, optimizer)
            times = timed({who: [*command, folder, "1"] for who, command in commands.items()}, rounds)
        one, two = times.values()
        ratios = [a / b for a, b in zip(one, two, strict=True)]
        least = [float(np.quantile(each, 0.25)) for each in (one, two)]
        rows.append([name, *(f"{each / 1000:.2f}" for each in least), f"{least[0] / least[1]:.2f}",
                     f"{np.median(ratios):.2f}"])  # fmt: skip
        print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    title = f"Training steps ({optimizer}), ms of processor time, lower quartiles of {rounds} rounds"
    table(title, ["graph", *commands, "ratio", "median of ratios"], rows)


def profile(name: str, optimizer: str) -> None:
    """Prints what one run takes, by op or part."""
    graph, feeds = step(name, optimizer)
    with Session(graph, threads=1) as session:
        session.run([], targets=["init"])
        fetches = list(graph.outputs)
        for _ in range(3):
            session.run(fetches, feeds)
        runs = []
        for _ in range(RUNS_PROFILED):
            took: dict[tuple[str, str], float] = collections.defaultdict(float)
            for node in session.profile(fetches, feeds).nodes:
                took[node.op, node.name] += node.duration_us
            runs.append(took)
    least = {key: min(run[key] for run in runs) for key in runs[0]}
    by_op: dict[str, float] = collections.defaultdict(float)
    for (op, part), each in least.items():
        by_op[f"{op} {part}" if op == "litert" else op] += each
    table(
        name,
        ["op", "ms"],
        [[op, f"{each / 1000:.2f}"] for op, each in sorted(by_op.items(), key=lambda pair: -pair[1])[:20]],
    )


def arithmetic(name: str) -> tuple[float, float, float, float]:
    """What a step's arithmetic alone takes, in ms of processor time: (products of matrices, their 10⁹ operations,
    depthwise windows, Adam)."""
    batch, layers = NETWORKS[name]
    random = np.random.default_rng(5)
    products, operations, windows, weights, sizes = 0.0, 0.0, 0.0, 0, batch
    for number, (kind, *numbers) in enumerate((*layers, ("dense", CLASSES))):
        if kind == "pool":
            sizes = (sizes[0], -(-sizes[1] // 2), -(-sizes[2] // 2), sizes[3])
            continue
        if kind == "depthwise":
            x, w = random.normal(size=sizes).astype(np.float32), random.normal(size=(3, 3, sizes[3], 1))
            spans = [window(size, 3, 1, "SAME") for size in sizes[1:3]]
            windows += 2 * least_of(partial(convolve_depthwise, x, w.astype(np.float32), spans))
            windows += least_of(partial(depthwise_backprop_filter, x, w.shape, x, spans))
            weights += w.size
            continue
        if kind == "dense" and len(sizes) > 2:
            sizes = (sizes[0], math.prod(sizes[1:]))
        count, inner = numbers[-1], sizes[-1] * (numbers[0] ** 2 if kind == "conv" else 1)
        shapes = (math.prod(sizes[:-1]), inner), (inner, count), (math.prod(sizes[:-1]), count)
        a, b, c = (random.normal(size=shape).astype(np.float32) for shape in shapes)
        calls = [
            partial(np.matmul, a, b),
            partial(np.matmul, a.T, c),
            *([partial(np.matmul, c, b.T)] if number else []),
        ]
        products += sum(map(least_of, calls))
        operations += len(calls) * 2 * a.size * count / 1e9
        weights, sizes = weights + b.size, (*sizes[:-1], count)
    value, mean, square = (Variable(each) for each in ("value", "mean", "square"))
    for variable in (value, mean, square):
        variable.assign(np.ones(weights, np.float32))
    one, two, rate, tiny = (np.asarray(each, np.float32) for each in (0.9, 0.999, 1e-4, 1e-8))
    gradient = random.normal(size=weights).astype(np.float32)
    return (
        products,
        operations,
        windows,
        least_of(lambda: adam(value, mean, square, one, two, rate, one, two, tiny, gradient)),
    )


def least_of(call: Callable[[], object]) -> float:
    """Milliseconds of processor time, the least of ten calls."""
    times = []
    for _ in range(RUNS_PROFILED):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times) * 1000


def alone(names: Sequence[str]) -> None:
    """Prints what the arithmetic of steps takes alone."""
    rows = []
    for name in names:
        products, operations, windows, optimizer = arithmetic(name)
        speed, sums = operations / products * 1000, products + windows + optimizer
        rows.append([name, f"{products:.2f}", f"{speed:.0f}", f"{windows:.2f}", f"{optimizer:.2f}", f"{sums:.2f}"])
    heads = ["graph", "products", "their 10⁹ operations a second", "depthwise windows", "Adam", "in all"]
    table("A step's arithmetic alone in NumPy, ms of processor time, one core", heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tensorflow", help="the python of an environment with TensorFlow 2")
    parser.add_argument("--without", default="", help="comma list of passes")
    parser.add_argument("--profile", action="store_true", help="what each step of a run takes")
    parser.add_argument("--products", action="store_true", help="what the arithmetic alone takes in NumPy")
    parser.add_argument("--names", default=",".join(NETWORKS), help="comma list of graphs")
    parser.add_argument("--folder", help="what peers/tutorial_nets.py wrote, for --tensorflow and --without")
    parser.add_argument("--optimizer", default="adam")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    names = options.names.split(",")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if options.products and os.environ.get(THREADS) != "1":  # NumPy reads it when it is loaded
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, THREADS: "1"})
    os.environ.update({"PROCESSOR_TIME": "1", THREADS: "1"})
    ours = [sys.executable, WORKER, "pocketgraph"]
    if options.profile:
        for name in names:
            profile(name, options.optimizer)
    elif options.products:
        alone(names)
    elif options.without:
        without = ["env", f"POCKETGRAPH_WITHOUT={options.without}", *ours]
        compared(names, {"without": without, "ours": ours}, options.optimizer, options.rounds, options.folder)
    elif options.tensorflow:
        commands = {"ours": ours, "TensorFlow": [options.tensorflow, WORKER, "tensorflow"]}
        compared(names, commands, options.optimizer, options.rounds, options.folder)
    else:
        parser.error("--tensorflow, --without, --profile or --products is needed")


if __name__ == "__main__":
    main()
