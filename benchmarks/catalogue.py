"""Every model of a catalogue beside TensorFlow 2's session on the same graph: latency, and the first result.

    python benchmarks/catalogue.py MODELS --tensorflow PYTHON [--kinds recurrent,speech] [--rounds 9] [--only first]
    python benchmarks/catalogue.py MODELS --only checks

MODELS is a folder of folders, each with ``model.json`` and ``golden.npz`` (see peers/catalogue_worker.py); PYTHON is
the interpreter of an environment that has TensorFlow 2. Prints a table a kind of model, with the geometric mean of its
ratios. ``--only checks`` needs no TensorFlow: what comparing compiled parts with the reference engine adds to a first
result, without a cache and with one that has the certificates, as ratios of processor time to sessions that do not.
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
from collections.abc import Mapping
from typing import Any

from measure import HERE, Whole, paired, table, timed, whole_process

WORKER = str(HERE / "peers" / "catalogue_worker.py")
KINDS = ("speech", "recurrent", "detection", "training", "image", "table")


def kind_of(info: Mapping[str, Any]) -> str:
    """What sort of model it is, by its ops."""
    ops = info.get("ops", {})
    if "DecodeWav" in ops:
        return "speech"
    if any(op.startswith("NonMaxSuppression") for op in ops):
        return "detection"
    if "Enter" in ops or (ops.get("Tanh", 0) >= 4 and ops.get("Sigmoid", 0) >= 4):
        return "recurrent"
    if "pre_run" in info or "unfrozen" in info.get("kind", ""):
        return "training"
    return "image" if any("Conv2D" in op or op == "DepthwiseConv2dNative" for op in ops) else "table"


def chosen(models: pathlib.Path, kinds: set[str], names: set[str]) -> dict[str, list[pathlib.Path]]:
    """The folders of each kind that can be run."""
    found: dict[str, list[pathlib.Path]] = {}
    for file in sorted(models.glob("*/model.json")):
        info = json.loads(file.read_text())
        if not info.get("runs_in_tf_2_21") or not (file.parent / "golden.npz").exists():
            continue
        if kind_of(info) in kinds and (not names or file.parent.name in names):
            found.setdefault(kind_of(info), []).append(file.parent)
    return found


def latency(folder: pathlib.Path, tensorflow: str, threads: int, rounds: int) -> tuple[float, float, float]:
    """(our microseconds, TensorFlow's, the ratio) of one model, the two in turn."""
    commands = {
        "ours": [sys.executable, WORKER, "pocketgraph", str(folder), str(threads)],
        "theirs": [tensorflow, WORKER, "tensorflow", str(folder), str(threads)],
    }
    times = timed(commands, rounds)
    return *(statistics.median(each) for each in times.values()), paired(times["ours"], times["theirs"])  # type: ignore[return-value]


def latencies(folders: list[pathlib.Path], kind: str, tensorflow: str, rounds: int, threads_of: list[int]) -> None:
    rows, ratios = [], []
    for folder in folders:
        row = [folder.name]
        for threads in threads_of:
            ours, theirs, ratio = latency(folder, tensorflow, threads, rounds)
            row += [f"{ours / 1000:.3f}", f"{theirs / 1000:.3f}", f"{ratio:.2f}"]
            ratios.append(ratio)
        rows.append(row)
    header = ["model"]
    for threads in threads_of:
        header += [f"{threads} thread{'s' * (threads > 1)}: ours ms", "TensorFlow ms", "ratio"]
    title = f"{kind}: latency, {rounds} interleaved rounds; geometric mean {mean(ratios):.2f}, worst {max(ratios):.2f}"
    table(title, header, rows)


def first_results(folders: list[pathlib.Path], kind: str, tensorflow: str, rounds: int) -> None:
    rows, colds, warms = [], [], []
    for folder in folders:
        ours = [sys.executable, WORKER, "pocketgraph", str(folder), "2", "once"]
        theirs = [tensorflow, WORKER, "tensorflow", str(folder), "2", "once"]
        cold: list[Whole] = []
        warm: list[Whole] = []
        peer: list[Whole] = []
        with tempfile.TemporaryDirectory() as kept:
            whole_process(ours, {"POCKETGRAPH_CACHE": kept})
            for _ in range(rounds):
                with tempfile.TemporaryDirectory() as fresh:
                    cold.append(whole_process(ours, {"POCKETGRAPH_CACHE": fresh}))
                warm.append(whole_process(ours, {"POCKETGRAPH_CACHE": kept}))
                peer.append(whole_process(theirs))
        colds.append(paired([w.seconds for w in cold], [w.seconds for w in peer]))
        warms.append(paired([w.seconds for w in warm], [w.seconds for w in peer]))
        rows.append(
            [
                folder.name,
                *(f"{statistics.median(w.seconds for w in group):.2f}" for group in (cold, warm, peer)),
                f"{colds[-1]:.3f}",
                f"{warms[-1]:.3f}",
                f"{paired([w.peak for w in cold], [w.peak for w in peer]):.3f}",
            ]
        )
    header = ["model", "cold s", "warm s", "TensorFlow s", "cold ratio", "warm ratio", "memory ratio"]
    title = f"{kind}: first result of a new process; worst cold {max(colds):.3f}, worst warm {max(warms):.3f}"
    table(title, header, rows)


def checks(folders: list[pathlib.Path], kind: str, rounds: int) -> None:
    """First results with certificates beside those without, the programs in turn."""
    rows, all_colds, all_warms = [], [], []
    for folder in folders:
        cold: dict[str, list[float]] = {"pocketgraph": [], "unchecked": []}
        warm: dict[str, list[float]] = {"pocketgraph": [], "unchecked": []}
        with tempfile.TemporaryDirectory() as kept:
            commands = {who: [sys.executable, WORKER, who, str(folder), "1", "once"] for who in cold}
            for _ in range(2):
                whole_process(commands["pocketgraph"], {"POCKETGRAPH_CACHE": kept})
            for _ in range(rounds):
                for who, command in commands.items():
                    with tempfile.TemporaryDirectory() as fresh:
                        cold[who].append(whole_process(command, {"POCKETGRAPH_CACHE": fresh}).busy)
                    warm[who].append(whole_process(command, {"POCKETGRAPH_CACHE": kept}).busy)
        all_colds.append(paired(cold["pocketgraph"], cold["unchecked"]))
        all_warms.append(paired(warm["pocketgraph"], warm["unchecked"]))
        rows.append([folder.name, f"{all_colds[-1]:.3f}", f"{all_warms[-1]:.3f}"])
    title = f"{kind}: first result with certificates beside without; mean {mean(all_colds):.3f}, {mean(all_warms):.3f}"
    table(title, ["model", "cold ratio", "warm ratio"], rows)


def mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--tensorflow", help="the python of an environment with TensorFlow 2")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"some of {', '.join(KINDS)}")
    parser.add_argument("--names", default="", help="only these models")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=["latency", "first", "checks"])
    parser.add_argument("--threads", default="1,2", help="1, 2 or both; by default both")
    parser.add_argument("--processor", action="store_true", help="latency as time of the processor, not on the clock")
    options = parser.parse_args()
    threads = [int(number) for number in options.threads.split(",")]
    if options.processor:
        os.environ["PROCESSOR_TIME"] = "1"
    kinds, names = set(options.kinds.split(",")), {name for name in options.names.split(",") if name}
    if options.only != "checks" and not options.tensorflow:
        parser.error("--tensorflow is needed")
    for kind, folders in chosen(options.models, kinds, names).items():
        if options.only == "checks":
            checks(folders, kind, options.rounds)
            continue
        if options.only != "first":
            latencies(folders, kind, options.tensorflow, options.rounds, threads)
        if options.only != "latency":
            first_results(folders, kind, options.tensorflow, min(5, options.rounds))


if __name__ == "__main__":
    main()
