"""How long freezing takes for 10 to 10,000 variables: whole, and per variable, which should not grow.

    python benchmarks/freeze_scaling.py [--rounds 9] [--tensorflow PYTHON]

Each graph adds up that many variables of 16 floats from a checkpoint on the disk (references, since TensorFlow's tool
cannot restore resources without a saver); reading the graph and the checkpoint and encoding the frozen graph count.
Each time is of a call in a warm process. What it takes to put the file on the disk is a column of its own, because most
of it is waiting for the disk (TensorFlow's tool does not wait). From the medians of all counts come the straight line
``fixed + each * variables`` that fits best in relative terms, and the exponent of growth, the slope of
log(time - fixed) over log(variables): 1 is "twice the variables, twice the time".

With ``--tensorflow``, the python of an environment with TensorFlow 1.15 or 2.x, its freeze_graph does the same work on
the same files in the same run, its import not counted; the ratio is of our time with the writing to its time.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence

import numpy as np

from measure import table
from pocketgraph import formats
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.formats.files import write_atomically
from pocketgraph.freezing import freeze
from pocketgraph.graph import DType, Graph, Node, Shape, Tensor

COUNTS = (10, 100, 1000, 10_000)
ELEMENTS = 16
FLOAT = DType.named("float")
THEIRS = """
import os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
from tensorflow.python.tools import freeze_graph
if tf.__version__[0] == "2":
    tf.compat.v1.disable_eager_execution()
folder, output = sys.argv[1:3]
for _ in range(int(sys.argv[3])):
    start = time.perf_counter()
    with tf.Graph().as_default():
        freeze_graph.freeze_graph(
            folder + "/graph.pb", "", True, folder + "/model.ckpt", output, "", "", folder + "/theirs.pb", True, ""
        )
    print("took", time.perf_counter() - start)
"""


def write_model(folder: pathlib.Path, count: int) -> str:
    """graph.pb and model.ckpt of that many variables; gives the output's name."""
    nodes = [Node("x0", "Placeholder", (), {"dtype": FLOAT, "shape": Shape([ELEMENTS])})]
    for i in range(count):
        nodes.append(Node(f"v{i}", "VariableV2", (), {"dtype": FLOAT, "shape": Shape([ELEMENTS])}))
        nodes.append(Node(f"v{i}/read", "Identity", [f"v{i}"], {"T": FLOAT}))
        nodes.append(Node(f"x{i + 1}", "Add", [f"x{i}", f"v{i}/read"], {"T": FLOAT}))
    formats.save(Graph(nodes), folder / "graph.pb")
    values = {f"v{i}": Tensor.from_numpy(np.full(ELEMENTS, i, np.float32)) for i in range(count)}
    write_checkpoint(folder / "model.ckpt", values)
    return f"x{count}"


def ours(folder: pathlib.Path, output: str, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of each round in a warm process: freezing and encoding, and writing the file."""
    freezing, writing = [], []
    for number in range(rounds + 1):
        start = time.perf_counter()
        encoded = formats.to_bytes(freeze(folder / "graph.pb", output, folder / "model.ckpt"))
        between = time.perf_counter()
        write_atomically(folder / "ours.pb", encoded)
        if number:
            freezing.append(between - start)
            writing.append(time.perf_counter() - between)
    return freezing, writing


def line(counts: Sequence[int], seconds: Sequence[float]) -> tuple[float, float]:
    """(fixed, each): the line fixed + each * count whose relative errors have the least squares."""
    weights = 1 / np.array(seconds)
    columns = np.stack([np.ones(len(counts)), np.array(counts, float)], axis=1)
    fixed, each = np.linalg.lstsq(columns * weights[:, None], np.ones(len(counts)), rcond=None)[0]
    return float(fixed), float(each)


def exponent(counts: Sequence[int], seconds: Sequence[float], fixed: float) -> float:
    """The power of the count that the time without its fixed part grows with."""
    return float(np.polyfit(np.log(counts), np.log(np.maximum(np.array(seconds) - fixed, 1e-9)), 1)[0])


def theirs(python: str, folder: pathlib.Path, output: str, rounds: int) -> list[float]:
    """Seconds of each round of TensorFlow's; none when it does not get through."""
    command = [python, "-c", THEIRS, str(folder), output, str(rounds)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return [float(line.split()[1]) for line in result.stdout.splitlines() if line.startswith("took ")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--counts", type=int, nargs="*", default=COUNTS)
    parser.add_argument("--tensorflow", default="", help="the python of an environment with TensorFlow")
    options = parser.parse_args()
    rows, medians = [], []
    for count in options.counts:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            output = write_model(folder, count)
            freezing, writing = ours(folder, output, options.rounds)
            seconds, disk = statistics.median(freezing), statistics.median(writing)
            medians.append(seconds)
            row = [f"{count:,}", f"{seconds * 1e3:.2f}", f"{seconds / count * 1e6:.1f}"]
            row += [f"{min(freezing) / count * 1e6:.1f}", f"{disk * 1e3:.2f}"]
            if options.tensorflow:
                times = theirs(options.tensorflow, folder, output, max(1, options.rounds if count < 5000 else 1))
                peer = statistics.median(times) if times else float("nan")
                row += [f"{peer * 1e3:.1f}", f"{peer / count * 1e6:.0f}", f"{(seconds + disk) / peer:.3f}"]
            rows.append(row)
    heads = ["variables", "freezing ms", "µs a variable", "at best", "writing ms"]
    if options.tensorflow:
        heads += ["TensorFlow ms", "µs a variable", "ratio"]
    table(f"freezing in a warm process, median of {options.rounds} rounds", heads, rows)
    if len(medians) > 2:
        fixed, each = line(options.counts, medians)
        growth = exponent(options.counts, medians, min(fixed, min(medians) / 2))
        print(f"\n{fixed * 1e3:.2f} ms + {each * 1e6:.1f} µs a variable; grows with the power {growth:.3f}")


if __name__ == "__main__":
    main()
