"""Loading and summarizing a large GraphDef beside TensorFlow's parse of it, and reading a checkpoint with checksums.

    python benchmarks/loading.py MODEL.pb --checkpoint PREFIX --tensorflow PYTHON [--rounds 5]

Each round starts a new process of either program, which imports what it needs, loads a small model and then, timed,
the large one once: as a tool does it. The best of the rounds is taken, the two in turn, in one run. TensorFlow's time
is its parse alone, and with reading the file, which ours includes. Memory is what the process's peak resident size
grows by.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

from measure import Worker, table

OURS = """
import resource, sys, time
import pocketgraph
from pocketgraph.inspect.summarize import original_report
path, small = sys.argv[1:]

def work(file):
    start = time.perf_counter()
    list(original_report(pocketgraph.load(file), file))
    return (time.perf_counter() - start) * 1e6

work(small)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
taken = work(path)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print("ready", flush=True)
for line in sys.stdin:
    print("us", (taken, grown)[int(line)], flush=True)
"""
THEIRS = """
import os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
path, small = sys.argv[1:]

def work(file):
    start = time.perf_counter()
    with open(file, "rb") as opened:
        data = opened.read()
    middle = time.perf_counter()
    tf.compat.v1.GraphDef().ParseFromString(data)
    end = time.perf_counter()
    return (end - middle) * 1e6, (end - start) * 1e6

work(small)
taken = work(path)
print("ready", flush=True)
for line in sys.stdin:
    print("us", taken[int(line)], flush=True)
"""
CHECKPOINT = """
import sys, time
from pocketgraph import formats
path, _ = sys.argv[1:]

def work():
    start = time.perf_counter()
    store = formats.open_checkpoint(path)
    total = sum(store[name].numpy().nbytes for name in store if store[name].dtype.size)
    return (time.perf_counter() - start) * 1e6, total

_, total = work()
print("ready", flush=True)
for line in sys.stdin:
    print("us", min(work()[0] for _ in range(int(line))) if int(line) else total, flush=True)
"""


def milliseconds(microseconds: float) -> str:
    return f"{microseconds / 1000:.1f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--checkpoint")
    parser.add_argument("--tensorflow", required=True, help="the python of an environment with TensorFlow")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    small = options.model.with_name("mobilenet_v1.pb")
    small = small if small.exists() else options.model
    rounds = []
    for _ in range(options.rounds):
        ours = Worker([sys.executable, "-c", OURS, str(options.model), str(small)])
        theirs = Worker([options.tensorflow, "-c", THEIRS, str(options.model), str(small)])
        rounds.append([ours.run(0), theirs.run(0), theirs.run(1), ours.run(1)])
        ours.close()
        theirs.close()
    mine, parse, both, grown = (min(column) for column in zip(*rounds, strict=True))
    rows = [
        ["load + summary", milliseconds(mine), f"{milliseconds(parse)} (parse alone)", f"{mine / parse:.3f}"],
        ["", milliseconds(mine), f"{milliseconds(both)} (read and parse)", f"{mine / both:.3f}"],
        ["peak memory grows by", f"{grown / 1024:.1f} MiB", "", ""],
    ]
    if options.checkpoint:
        reader = Worker([sys.executable, "-c", CHECKPOINT, options.checkpoint, ""])
        total = reader.run(0)
        seconds = min(reader.run(1) for _ in range(options.rounds)) / 1e6
        rows.append(["checkpoint with checksums", f"{total / seconds / 1e9:.2f} GB/s", "", ""])
        reader.close()
    table(options.model.name, ["", "pocketgraph", "TensorFlow", "ratio"], rows)


if __name__ == "__main__":
    main()
