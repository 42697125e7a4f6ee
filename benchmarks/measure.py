"""What every benchmark shares: workers that are timed in turn, whole processes with their peak memory, tables."""

from __future__ import annotations

import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
NETWORKS = {"mobilenet_v1": 224, "resnet50": 224, "inception_v3": 299}
"""The speed models (random weights) and the side of their square input."""


class EndedEarly(SystemExit):
    """A worker that ended before it said what was asked; ``who`` is the program's name in the table."""

    who = ""


class Worker:
    """A process that holds one loaded model and, asked for n runs, says how long each took on average."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self._expect("ready")

    def run(self, count: int) -> float:
        """The median time of ``count`` runs, in microseconds."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return float(self._expect("us"))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)

    def _expect(self, word: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(word):
                return line[len(word) :].strip()
        raise EndedEarly(f"worker {self.process.args} ended early")


@dataclass(frozen=True)
class Whole:
    """One whole process: wall seconds, the largest resident size in bytes, seconds of processor time."""

    seconds: float
    peak: int
    busy: float


def whole_process(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Whole:
    """Runs a command to its end and measures it from outside.

    Python may keep the bytecode of what it imports, as that of an installed package is kept: else each process would
    compile every module that was changed since, and TensorFlow's would not.
    """
    surroundings = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    process = subprocess.Popen(
        list(command),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**surroundings, **(environment or {})},
    )
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{errors.decode()[-2000:]}")
    return Whole(time.perf_counter() - start, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime)


ENOUGH = 0.3  # seconds that a program computes in one round, at least: short runs are repeated
MOST_RUNS = 200  # in a round


def timed(commands: Mapping[str, Sequence[str]], rounds: int, fewest: int = 1) -> dict[str, list[float]]:
    """Microseconds of each program in each round, the programs in turn; ``fewest`` runs of it are one round."""
    workers: dict[str, Worker] = {}
    counts: dict[str, int] = {}
    for who, command in commands.items():
        try:
            workers[who] = Worker(command)
            counts[who] = max(fewest, min(MOST_RUNS, round(ENOUGH * 1e6 / workers[who].run(3))))
        except EndedEarly as error:
            error.who = who
            for worker in workers.values():
                worker.process.kill()
            raise
    times: dict[str, list[float]] = {who: [] for who in workers}
    for _ in range(rounds):
        for who, worker in workers.items():
            times[who].append(worker.run(counts[who]))
    for worker in workers.values():
        worker.close()
    return times


def paired(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios ours/theirs, round by round, so that a drifting machine cancels out."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a Markdown table, ready for docs/performance.md."""
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    print(f"\n{title}\n")
    for row in [header, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)) + " |")
    sys.stdout.flush()
