"""Our ONNX exporter beside tf2onnx: how long each export takes, and how fast the files run in ONNX Runtime.

    python benchmarks/export_onnx.py MODELS --oracle PYTHON [--rounds 9] [--only mobilenet]

MODELS is a folder of folders, each with ``model.json`` and ``golden.npz``; PYTHON is the interpreter of an environment
that has TensorFlow 2 and tf2onnx. The two exports, and the two files in ONNX Runtime, take turns. Prints a table with
both ratios (ours to theirs) and their geometric means; models that either does not export are named.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence

import numpy as np
import onnxruntime

from measure import HERE, Worker, table

WORKER = str(HERE / "peers" / "onnx_exporter.py")
LEAST = 0.05  # seconds that the runs of one round take at least


def main() -> int:
    parser = argparse.ArgumentParser(description="Our ONNX exporter beside tf2onnx.")
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--oracle", required=True, help="a Python with TensorFlow 2 and tf2onnx")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="parts of names, with commas between")
    arguments = parser.parse_args()
    rows, exports, runs, left = [], [], [], []
    for file in sorted(arguments.models.glob("*/model.json")):
        folder = file.parent
        parts = arguments.only.split(",")
        if not (folder / "golden.npz").exists() or not any(part in folder.name for part in parts):
            continue
        with tempfile.TemporaryDirectory() as place:
            found = compared(folder, arguments.oracle, arguments.rounds, place)
        if isinstance(found, str):
            left.append(f"{folder.name} ({found})")
            continue
        ours, theirs, fast, slow, ratio = found
        exports.append(ours / theirs)
        runs.append(ratio)
        rows.append(
            [folder.name, f"{ours / 1e3:.1f}", f"{theirs / 1e3:.1f}", f"{ours / theirs:.3f}",
             f"{fast * 1e3:.3f}", f"{slow * 1e3:.3f}", f"{ratio:.3f}"]
        )  # fmt: skip
        print(*rows[-1], file=sys.stderr, flush=True)
    header = ["model", "export ms", "tf2onnx ms", "ratio", "run ms", "tf2onnx's ms", "ratio"]
    table(f"ONNX: export {mean(exports):.3f}, run {mean(runs):.3f} (geometric means)", header, rows)
    if left:
        print("left out:", ", ".join(left))
    return 0


def compared(
    folder: pathlib.Path, oracle: str, rounds: int, place: str
) -> tuple[float, float, float, float, float] | str:
    """(our microseconds for an export, theirs, our seconds for a run, theirs, the ratio of runs), or why not."""
    files = [os.path.join(place, name) for name in ("ours.onnx", "theirs.onnx")]
    workers: list[Worker] = []
    try:
        for python, program, out in ((sys.executable, "pocketgraph", files[0]), (oracle, "tf2onnx", files[1])):
            try:
                workers.append(Worker([python, WORKER, program, str(folder), out]))
            except SystemExit:
                return f"{program} does not export it"
        times: list[list[float]] = [[], []]
        for _ in range(max(3, rounds // 3)):
            for worker, kept in zip(workers, times, strict=True):
                kept.append(worker.run(1))
    finally:
        for worker in workers:
            worker.close()
    ours, theirs = (statistics.median(each) for each in times)
    try:
        seconds = in_turn(folder, files, rounds)
    except Exception as error:
        return f"does not run: {str(error)[:80]}"
    ratio = statistics.median(a / b for a, b in zip(*seconds, strict=True))
    return ours, theirs, statistics.median(seconds[0]), statistics.median(seconds[1]), ratio


def in_turn(folder: pathlib.Path, files: Sequence[str], rounds: int) -> list[list[float]]:
    """The seconds of a run of each file, round by round."""
    feeds = inputs_of(folder)
    calls = []
    for file in files:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(file, options, ["CPUExecutionProvider"])
        given = {item.name: feeds[item.name if ":" in item.name else f"{item.name}:0"] for item in session.get_inputs()}
        calls.append((session, given))
    counts = []
    for session, given in calls:
        session.run(None, given)
        start = time.perf_counter()
        session.run(None, given)
        counts.append(max(1, int(LEAST / max(time.perf_counter() - start, 1e-6))))
    count = min(max(counts), 2000)
    times: list[list[float]] = [[] for _ in files]
    for turn in range(rounds):
        order = list(enumerate(calls))
        for index, (session, given) in order if turn % 2 else order[::-1]:
            start = time.perf_counter()
            for _ in range(count):
                session.run(None, given)
            times[index].append((time.perf_counter() - start) / count)
    return times


def inputs_of(folder: pathlib.Path) -> dict[str, np.ndarray]:
    """The recorded inputs by tensor name."""
    info = json.loads((folder / "model.json").read_text())
    with np.load(folder / "golden.npz", allow_pickle=False) as data:
        return {name: data["in_" + name.replace(":", "_")] for name in info.get("inputs") or {}}


def mean(ratios: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else math.nan


if __name__ == "__main__":
    sys.exit(main())
