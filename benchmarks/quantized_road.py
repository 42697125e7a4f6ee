"""The original eight-bit road at work: quantize_nodes' graphs on our engine, beside our own float and TensorFlow 2
running the same graph, in one run.

    python benchmarks/quantized_road.py MODELS --tensorflow PYTHON [--rounds 21] [--networks NAME …]

MODELS is a folder with NAME.pb for the networks in measure.NETWORKS; PYTHON is the interpreter of an environment that
has TensorFlow 2. ``dynamic`` finds the ranges while it runs; ``frozen`` has those that a few random images gave and
keeps the original's arithmetic to the code, which takes longer than float with depthwise convolutions (MobileNet);
there is no bound for it (docs/eight-bit-arithmetic.md).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import sys
import tempfile
from collections.abc import Iterator

import numpy as np

from measure import HERE, NETWORKS, Worker, table
from pocketgraph import Graph, Session, formats
from pocketgraph.transforms.tool import run

WORKER = str(HERE / "peers" / "worker.py")
ROAD = (
    'add_default_attributes strip_unused_nodes(type=float, shape="1,{side},{side},3")'
    " remove_nodes(op=Identity, op=CheckNumerics) fold_constants(ignore_errors=true) fold_batch_norms"
    " fold_old_batch_norms backport_concatv2 quantize_weights quantize_nodes strip_unused_nodes sort_by_execution_order"
)
LOGGING = 'insert_logging(op=RequantizationRange, show_name=true, message="__requant_min_max:")'
IMAGES = 3
TARGET_FLOAT, TARGET_TENSORFLOW = 2.5, 5.0


@contextlib.contextmanager
def stderr_in(path: pathlib.Path) -> Iterator[None]:
    """Sends what is written to stderr into a file."""
    kept = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def roads(model: pathlib.Path, side: int, folder: pathlib.Path) -> dict[str, str]:
    """The files of the dynamic and the frozen graph."""
    graph: Graph = formats.load(model).replace(inputs=["input"], outputs=["Identity"])
    dynamic = run(graph, ROAD.format(side=side))
    log = folder / "ranges.log"
    random = np.random.default_rng(0)
    with stderr_in(log), Session(run(dynamic, LOGGING), exact=True, cache_dir=folder) as session:
        for _ in range(IMAGES):
            session.run("Identity:0", {"input:0": random.random((1, side, side, 3), "f4")})
    frozen = run(dynamic, f"freeze_requantization_ranges(min_max_log_file={log}) strip_unused_nodes")
    files = {"dynamic": folder / f"{model.stem}_dynamic.pb", "frozen": folder / f"{model.stem}_frozen.pb"}
    formats.save(dynamic, files["dynamic"])
    formats.save(frozen, files["frozen"])
    return {name: str(path) for name, path in files.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--tensorflow", required=True)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS))
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        for name in arguments.networks:
            side, model = NETWORKS[name], arguments.models / f"{name}.pb"
            files = roads(model, side, folder)
            for threads in (1, 2):
                tail = [str(threads), str(side)]
                commands = {
                    "float": [sys.executable, WORKER, "pocketgraph", str(model), *tail],
                    "dynamic": [sys.executable, WORKER, "pocketgraph", files["dynamic"], *tail],
                    "frozen": [sys.executable, WORKER, "pocketgraph", files["frozen"], *tail],
                    "tensorflow": [arguments.tensorflow, WORKER, "tensorflow", files["dynamic"], *tail],
                }
                workers = {who: Worker(command) for who, command in commands.items()}
                times: dict[str, list[float]] = {who: [] for who in workers}
                for round_number in range(arguments.rounds + 1):
                    for who, worker in workers.items():
                        took = worker.run(1 if who == "tensorflow" else 4)
                        if round_number:  # the first round warms everything up
                            times[who].append(took)
                for worker in workers.values():
                    worker.close()
                best = {who: min(found) for who, found in times.items()}
                ratios = [best[who] / best["dynamic"] for who in ("float", "tensorflow")]
                rows.append(
                    [name, str(threads)]
                    + [f"{took / 1000:.2f}" for took in best.values()]
                    + [f"{ratio:.2f}" for ratio in ratios]
                    + [f"{best['float'] / best['frozen']:.2f}"]
                )
    header = ["model", "threads", "float ms", "dynamic ms", "frozen ms", "TensorFlow ms"]
    header += [f"float/dynamic (≥ {TARGET_FLOAT})", f"TensorFlow/dynamic (≥ {TARGET_TENSORFLOW:g})", "float/frozen"]
    table(f"The eight-bit road, best of {arguments.rounds} interleaved rounds", header, rows)


if __name__ == "__main__":
    main()
