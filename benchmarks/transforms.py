"""The transforms beside TensorFlow 1.15's Graph Transform Tool in one run, and how each grows with the graph.

    python benchmarks/transforms.py [--graph inception_v3.pb --tensorflow1 PYTHON] [--rounds 7] [--sizes 1000,10000,…]

1. The eight-bit pipeline of docs/transforms.md on GRAPH, here and in the Python of an environment with TensorFlow 1.15.
   Attributes that TensorFlow 1.15 does not know are taken off first.
2. quantize_weights on 95 MB of weights, on one core.
3. Each rule on graphs of 1,000 to 200,000 nodes: seconds of the processor, the exponent of the growth, and memory for
   each node of the graph that goes in (the bound is 2,000 bytes) and of the one that comes out. Of small graphs so many
   are taken in turn that they do not fit into the processor's caches either.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import math
import os
import pathlib
import statistics
import sys
import tempfile
import time
import tracemalloc

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np

from measure import HERE, Worker, paired, table
from pocketgraph import formats
from pocketgraph.graph import Graph, Node, Shape, Versions, const, opdefs
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.transforms import TransformGraph, transform

EIGHT_BIT = (
    'add_default_attributes;strip_unused_nodes(type=float, shape="1,299,299,3");'
    "remove_nodes(op=Identity, op=CheckNumerics);fold_constants(ignore_errors=true);fold_batch_norms;"
    "fold_old_batch_norms;quantize_weights;quantize_nodes;strip_unused_nodes;sort_by_execution_order"
)
RULES = (
    "add_default_attributes", "backport_concatv2", "backport_tensor_array_v3", "flatten_atrous_conv",
    "fold_batch_norms", "fold_constants", "fold_old_batch_norms", "fuse_pad_and_conv", "fuse_resize_and_conv",
    "fuse_resize_pad_and_conv", "insert_logging(op=Relu)", "merge_duplicate_nodes", "obfuscate_names",
    "quantize_nodes", "quantize_weights(minimum_size=16)", "remove_attribute(attribute_name=T)",
    "remove_control_dependencies", "remove_device", "remove_nodes(op=Identity)",
    "rename_attribute(old_attribute_name=T, new_attribute_name=TT)", "rename_node(old_node_name=y, new_node_name=z)",
    "rename_op(old_op_name=Relu, new_op_name=Relu6)", "round_weights", "set_device(device=gpu)",
    "sort_by_execution_order", "sparsify_gather", "strip_unused_nodes", "mobile", "smallest",
)  # fmt: skip
SIZES = (1_000, 10_000, 50_000, 200_000)
LONG = 3.0  # seconds; longer calls are made once
COLD = 100_000  # nodes of all graphs of one size together, some 100 MB
BLOCK = 12  # nodes of one layer of the made-up network


def network(nodes: int) -> Graph:
    """About so many nodes: convolutions with biases, normalizations, factors and activations, one behind the other."""
    weights, vector = np.full((1, 1, 4, 4), 0.1, np.float32), np.full(4, 0.9, np.float32)
    made = [Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape((1, 4, 4, 4))})]
    source = "x"
    attrs = {"T": FLOAT, "strides": (1, 1, 1, 1), "padding": b"SAME", "data_format": b"NHWC"}
    for i in range(max(1, nodes // BLOCK)):
        at = f"layer_{i}/"
        made += [
            const(f"{at}w", weights),
            Node(f"{at}read", "Identity", (f"{at}w",), {"T": FLOAT}),
            Node(f"{at}conv", "Conv2D", (source, f"{at}read"), attrs),
            const(f"{at}gamma", vector),
            const(f"{at}beta", vector),
            const(f"{at}mean", vector),
            const(f"{at}variance", vector),
            Node(
                f"{at}norm",
                "FusedBatchNorm",
                (f"{at}conv", *(at + part for part in ("gamma", "beta", "mean", "variance"))),
                {"T": FLOAT, "epsilon": 0.001, "is_training": False, "data_format": b"NHWC"},
            ),
            const(f"{at}factor", vector),
            Node(f"{at}scaled", "Mul", (f"{at}norm", f"{at}factor"), {"T": FLOAT}),
            Node(f"{at}relu", "Relu", (f"{at}scaled",), {"T": FLOAT}),
            Node(f"{at}out", "Identity", (f"{at}relu",), {"T": FLOAT}, "/device:CPU:0"),
        ]
        source = f"{at}out"
    made.append(Node("y", "Relu", (source,), {"T": FLOAT}))
    return Graph(made, inputs=["x"], outputs=["y"])


def for_tensorflow1(graph: Graph) -> Graph:
    """The graph without the attributes that came after TensorFlow 1.15."""

    def older(node: Node) -> Node:
        known = opdefs.definition(node.op).attrs
        kept = {
            k: v for k, v in node.attrs.items() if k.startswith("_") or (k in known and known[k].since == opdefs.OLD)
        }
        return node if len(kept) == len(node.attrs) else node.replace(attrs=kept)

    return graph.map_nodes(older).replace(versions=Versions(134, 12))


def beside_the_original(path: pathlib.Path, python: str, inputs: str, outputs: str, rounds: int) -> None:
    """The eight-bit pipeline in turn here and there, after one call each that is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "graph.pb"
        formats.save(for_tensorflow1(formats.load(path)), file)
        data = file.read_bytes()
        peer = Worker([python, str(HERE / "peers" / "transform_tf1.py"), str(file), inputs, outputs, EIGHT_BIT])
        ours: dict[str, list[float]] = {"fixed": [], "original": []}
        theirs: list[float] = []
        for _ in range(rounds + 1):
            for compat, times in ours.items():
                start = time.perf_counter()
                TransformGraph(data, inputs, outputs, EIGHT_BIT.split(";"), compat=compat)
                times.append(time.perf_counter() - start)
            theirs.append(peer.run(1) / 1e6)
        peer.close()
    rows = [
        [f"ours, compat={compat}", f"{statistics.median(times[1:]):.3f}", f"{paired(times[1:], theirs[1:]):.3f}"]
        for compat, times in ours.items()
    ]
    rows.append(["TensorFlow 1.15.5", f"{statistics.median(theirs[1:]):.3f}", "1"])
    title = (
        f"Eight-bit pipeline on {path.name}, median of {rounds} rounds (ours reads and writes the file's bytes, too)"
    )
    table(title, ["program", "seconds", "ratio"], rows)


def weights_per_second() -> None:
    """quantize_weights on as much as Inception v3 has, on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rng = np.random.default_rng(0)
    graph = Graph([const(f"w{i}", rng.normal(size=(512, 512)).astype(np.float32)) for i in range(91)])
    size = 91 << 20
    rows = []
    for options in ("", "symmetric=true", "per_channel=true"):
        times = []
        for _ in range(5):
            start = time.perf_counter()
            transform(graph, f"quantize_weights({options})")
            times.append(time.perf_counter() - start)
        rows.append(
            [
                options or "as the original",
                f"{statistics.median(times):.3f}",
                f"{size / statistics.median(times) / 1e6:.0f}",
            ]
        )
    table("quantize_weights on 95 MB, one core", ["parameters", "seconds", "MB/s"], rows)


def memory(graph: Graph, rule: str) -> tuple[float, float]:
    """How many bytes one call allocates beyond what is there, at its peak: for each node of the graph that goes in, and
    for each of the one that comes out. In a process of its own, for counting slows the rest of it down."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            gc.disable()
            tracemalloc.start()
            made = len(transform(graph, rule))
            peak = tracemalloc.get_traced_memory()[1]
            os.write(send, f"{peak / len(graph)} {peak / made}".encode())
        os._exit(0)
    os.close(send)
    with os.fdopen(receive) as pipe:
        said = pipe.read().split()
    os.waitpid(child, 0)
    return (float(said[0]), float(said[1])) if said else (math.nan, math.nan)


def fastest(graphs: list[Graph], rule: str) -> float:
    """Seconds of the processor for one graph, in the fastest of three rounds, or of one where it takes long. The
    results are kept until the clock stands: to free them is no part of the rule's time."""
    times: list[float] = []
    while not times or (len(times) < 3 and times[0] * len(graphs) < LONG):
        start = time.process_time()
        made = [transform(graph, rule) for graph in graphs]
        times.append((time.process_time() - start) / len(graphs))
        del made
    return min(times)


def growth(sizes: list[int], rules: list[str]) -> None:
    """Seconds at each size, the slope of log(seconds) over log(nodes), and memory at the largest size."""
    logging.disable(logging.WARNING)
    small = network(BLOCK)
    times: dict[str, list[float]] = {rule: [] for rule in rules}
    nodes = []
    for size in sizes:
        graphs = [network(size) for _ in range(max(1, COLD // size))]
        nodes.append(len(graphs[0]))
        for rule in rules:
            transform(small, rule)  # loads the rule's module
            times[rule].append(fastest(graphs, rule))
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    rows = []
    for rule in rules:
        logs = [(math.log(count), math.log(t)) for count, t in zip(nodes, times[rule], strict=True)]
        exponent = float(np.polyfit(*zip(*logs, strict=True), 1)[0]) if len(logs) > 1 else math.nan
        given, made = memory(graphs[-1], rule)
        seconds = (f"{t:.4f}" for t in times[rule])
        rows.append([rule.partition("(")[0], *seconds, f"{exponent:.2f}", f"{given:.0f}", f"{made:.0f}"])
    headings = ["rule", *(f"{s:,} nodes" for s in sizes), "exponent", "B a node given", "B a node made"]
    table("Growth with the number of nodes", headings, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", type=pathlib.Path)
    parser.add_argument("--input", default="input")
    parser.add_argument("--output", default="Identity")
    parser.add_argument("--tensorflow1", help="the python of an environment with TensorFlow 1.15")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--rules", default="", help="only these, with semicolons between")
    options = parser.parse_args()
    if options.graph and options.tensorflow1:
        beside_the_original(options.graph, options.tensorflow1, options.input, options.output, options.rounds)
    growth([int(size) for size in options.sizes.split(",")], options.rules.split(";") if options.rules else list(RULES))
    weights_per_second()


if __name__ == "__main__":
    main()
