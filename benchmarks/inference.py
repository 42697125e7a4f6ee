"""Session latency, time to the first result and peak memory, beside LiteRT with the official converter's file and
TensorFlow 2's session, in one run.

    python benchmarks/inference.py MODELS --tensorflow PYTHON [--rounds 15]

MODELS is a folder with NAME.pb and NAME.tflite for each of the networks in measure.NETWORKS; PYTHON is the interpreter
of an environment that has TensorFlow 2. LiteRT runs in this environment.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import sys
import tempfile

from measure import HERE, NETWORKS, Whole, Worker, paired, table, whole_process

WORKER = str(HERE / "peers" / "worker.py")


def latency(models: pathlib.Path, tensorflow: str, rounds: int) -> None:
    rows = []
    for name, side in NETWORKS.items():
        for threads in (1, 2):
            commands = {
                "ours": [sys.executable, WORKER, "pocketgraph", str(models / f"{name}.pb")],
                "litert": [sys.executable, WORKER, "litert", str(models / f"{name}.tflite")],
                "tensorflow": [tensorflow, WORKER, "tensorflow", str(models / f"{name}.pb")],
            }
            workers = {who: Worker([*command, str(threads), str(side)]) for who, command in commands.items()}
            times: dict[str, list[float]] = {who: [] for who in workers}
            for round_number in range(rounds + 1):
                for who, worker in workers.items():
                    took = worker.run(5)
                    if round_number:  # the first round warms everything up
                        times[who].append(took)
            for worker in workers.values():
                worker.close()
            rows.append(
                [
                    name,
                    str(threads),
                    *(f"{statistics.median(times[who]) / 1000:.2f}" for who in times),
                    f"{paired(times['ours'], times['litert']):.3f}",
                    f"{paired(times['ours'], times['tensorflow']):.3f}",
                ]
            )
    header = ["model", "threads", "ours ms", "LiteRT ms", "TensorFlow ms", "ours/LiteRT", "ours/TensorFlow"]
    table(f"Session latency, median of {rounds} interleaved rounds of 5 runs", header, rows)


def first_result(models: pathlib.Path, tensorflow: str, rounds: int) -> None:
    rows = []
    for name, side in NETWORKS.items():
        model = str(models / f"{name}.pb")
        ours = [sys.executable, WORKER, "pocketgraph", model, "2", str(side), "once"]
        theirs = [tensorflow, WORKER, "tensorflow", model, "2", str(side), "once"]
        cold: list[Whole] = []
        warm: list[Whole] = []
        peer: list[Whole] = []
        with tempfile.TemporaryDirectory() as kept:
            whole_process(ours, {"POCKETGRAPH_CACHE": kept})
            whole_process(theirs)
            for _ in range(rounds):
                with tempfile.TemporaryDirectory() as fresh:
                    cold.append(whole_process(ours, {"POCKETGRAPH_CACHE": fresh}))
                warm.append(whole_process(ours, {"POCKETGRAPH_CACHE": kept}))
                peer.append(whole_process(theirs))
        rows.append(
            [
                name,
                *(f"{statistics.median(w.seconds for w in group):.2f}" for group in (cold, warm, peer)),
                f"{paired([w.seconds for w in cold], [w.seconds for w in peer]):.3f}",
                f"{paired([w.seconds for w in warm], [w.seconds for w in peer]):.3f}",
                *(f"{max(w.peak for w in group) / 1e6:.0f}" for group in (cold, warm, peer)),
                f"{paired([w.peak for w in cold], [w.peak for w in peer]):.3f}",
                f"{paired([w.peak for w in warm], [w.peak for w in peer]):.3f}",
            ]
        )
    header = ["model", "cold s", "warm s", "TensorFlow s", "cold ratio", "warm ratio"]
    header += ["cold MB", "warm MB", "TensorFlow MB", "cold memory ratio", "warm memory ratio"]
    table(f"First result in a new process, from the .pb, 2 threads, median of {rounds} rounds", header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--tensorflow", required=True, help="the python of an environment with TensorFlow 2")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", choices=["latency", "first"])
    options = parser.parse_args()
    if options.only != "first":
        latency(options.models, options.tensorflow, options.rounds)
    if options.only != "latency":
        first_result(options.models, options.tensorflow, min(5, options.rounds))


if __name__ == "__main__":
    main()
