"""Images a second in batches, and of several processes at once with what memory each takes, beside the peers.

    python benchmarks/throughput.py FOLDER [--tensorflow PYTHON] [--rounds 5] [--only batches|processes] [--names …]

FOLDER has NAME_batch.pb, NAME_batch.tflite and NAME_batch.onnx of each network in measure.NETWORKS, whose batch is open
(``PYTHON benchmarks/peers/batch_models.py FOLDER`` makes them with TensorFlow 2). Batches: 1, 8 and 32 pictures, with 2
threads, programs by turns; of each the best round. Processes: 1, 2 and 4 of a program, each with one thread and one
picture at a time; the sum of what all of them do at once, and of their memory the mean of the proportional share (a
page that n processes have mapped counts one n-th for each; Linux only). Each program has run before, so that what is
compiled and packed lies in the cache.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import statistics
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

from inference import ONNX_WORKER, OURS, PEERS, PROCESSOR_HELP, WORKER, having, ours
from measure import NETWORKS, EndedEarly, Worker, table, timed

BATCHES = (1, 8, 32)
PROCESSES = (1, 2, 4)
SHARED_RUNS = 8
"""Pictures that each of several processes computes in a round."""

Programs = Mapping[str, Sequence[str]]


def programs(folder: pathlib.Path, name: str, threads: int, size: str, other: str) -> dict[str, list[str]]:
    """How each program runs one model; ``size`` is the pictures' (worker.py)."""
    base, rest = str(folder / f"{name}_batch"), (str(threads), size)
    found = {
        **ours(WORKER, f"{base}.pb", *rest),
        "litert": [sys.executable, WORKER, "litert", f"{base}.tflite", *rest],
    }
    for who in ("onnxruntime", "openvino"):
        if other or find_spec(who) is not None:
            found[who] = [having(who, other), ONNX_WORKER, who, f"{base}.onnx", *rest]
    return found


def batches(folder: pathlib.Path, name: str, rounds: int, other: str) -> list[list[str]]:
    """A row a batch: images a second of each program; of processor time with one thread, of the clock's with two."""
    threads = 1 if os.environ.get("PROCESSOR_TIME") else 2
    rows = []
    for batch in BATCHES:
        commands = programs(folder, name, threads, f"{batch}x{NETWORKS[name]}", other)
        rates = {who: batch * 1e6 / min(times) for who, times in timed(commands, rounds).items()}
        rows.append([name, str(batch), *cells(rates, "{:.1f}")])
        print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    return rows


def processes(folder: pathlib.Path, name: str, rounds: int, other: str, counts: Sequence[int]) -> list[list[str]]:
    """A row a number of processes: images a second of all, and MB of each."""
    rows = []
    commands = programs(folder, name, 1, str(NETWORKS[name]), other)
    for count in counts:
        rates, memory = {}, {}
        for who, command in commands.items():
            try:
                rates[who], memory[who] = at_once(command, count, rounds)
            except EndedEarly:
                print(f"{who} does not run this model", file=sys.stderr)
                continue
            print(
                f"{count} of {who}: {rates[who]:.1f} images a second, {memory[who]:.0f} MB", file=sys.stderr, flush=True
            )
        rows.append([name, str(count), *cells(rates, "{:.1f}"), *(f"{memory[who]:.0f}" for who in shown(memory))])
        print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    return rows


def at_once(command: Sequence[str], count: int, rounds: int) -> tuple[float, float]:
    """The images a second of so many processes together in the best round, and the MB of each."""
    Worker(command).close()  # a second process finds the packed weights in the cache
    workers = [Worker(command) for _ in range(count)]
    best = 0.0
    with ThreadPoolExecutor(count) as pool:
        for _ in range(rounds):
            times = list(pool.map(lambda worker: worker.run(SHARED_RUNS), workers))
            best = max(best, sum(1e6 / each for each in times))
    shares = [proportional_share(worker.process.pid) for worker in workers]
    for worker in workers:
        worker.close()
    return best, statistics.mean(shares)


def proportional_share(process: int) -> float:
    """The megabytes of a process, of shared pages its share; 0 where the system does not tell."""
    path = pathlib.Path(f"/proc/{process}/smaps_rollup")
    found = re.search(r"^Pss:\s+(\d+) kB", path.read_text(), re.M) if path.exists() else None
    return int(found[1]) * 1024 / 1e6 if found else 0.0


def shown(values: Mapping[str, float]) -> list[str]:
    """The programs in the order of columns."""
    return [who for who in (*OURS, *PEERS) if who in values]


def cells(rates: Mapping[str, float], form: str) -> list[str]:
    """The rate of each program, and our rates as shares of the best peer's: without and with engine='auto'."""
    best = max((who for who in rates if who in PEERS), key=lambda who: rates[who])
    ratios = [f"{rates[who] / rates[best]:.2f}" for who in ("ours", "ours:auto")]
    return [*(form.format(rates[who]) for who in shown(rates)), PEERS[best], *ratios]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--tensorflow", default="", help="a python that has the peers which this one has not")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["batches", "processes"])
    parser.add_argument("--names", default=",".join(NETWORKS), help="comma list of networks")
    parser.add_argument("--counts", default=",".join(map(str, PROCESSES)), help="comma list of numbers of processes")
    parser.add_argument("--processor", action="store_true", help=PROCESSOR_HELP)
    options = parser.parse_args()
    if options.processor:
        os.environ["PROCESSOR_TIME"] = "1"
    first = next(iter(NETWORKS))
    whos = shown(dict.fromkeys(programs(options.models, first, 1, "1", options.tensorflow), 0.0))
    labels = [{**OURS, **PEERS}[who] for who in whos]
    ends = ["best peer", "ours, of it", "engine='auto', of it"]
    names = options.names.split(",")
    if options.only != "processes":
        rows = [row for name in names for row in batches(options.models, name, options.rounds, options.tensorflow)]
        table(f"Images a second, best of {options.rounds} rounds", ["model", "batch", *labels, *ends], rows)
    if options.only != "batches":
        counts = [int(count) for count in options.counts.split(",")]
        rows = [
            row for name in names for row in processes(options.models, name, options.rounds, options.tensorflow, counts)
        ]
        header = ["model", "processes", *labels, *ends, *(f"{label} MB" for label in labels)]
        table(f"Images a second of all processes, and memory of each, best of {options.rounds} rounds", header, rows)


if __name__ == "__main__":
    main()
