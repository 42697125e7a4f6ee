"""Fuzzes every reader, parser and decoder of pocketgraph, each in a process of its own, one after the other.

    python fuzz [--minutes 10] [--target NAME …] [--work FOLDER]    fuzz all of them, or these, and print the figures
    python fuzz --replay FILE …                                     execute kept finds again, and show what they raise
    python fuzz --figures                                           print the figures of all runs so far
    python fuzz --list                                              print the targets

Inputs that reached something new stay in the folder, and the next run goes on from them. What is found is written to
its ``finds``: the input, and beside it what happened. What counts as a find: executing.py, and a process that dies.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import traceback
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
WORKER = ROOT / "fuzz" / "worker.py"
MEMORY = "/dev/shm"
COUNT = re.compile(r"^(?:#|stat::number_of_executed_units: )(\d+)", re.MULTILINE)
GRAPHS = "graphs"  # hostile ones, which graphs.py runs in processes of its own
SHARE_OF_GRAPHS = 5  # times the time of another target
RESTARTS = 5  # of a target whose process dies


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--target", action="append", default=[])
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / ".fuzz")
    parser.add_argument("--replay", nargs="+", type=pathlib.Path, default=[])
    parser.add_argument("--figures", action="store_true")
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    os.environ["POCKETGRAPH_CACHE"] = ""
    if asked.replay:
        return replay(asked.replay)
    if asked.list or not asked.figures:
        from fuzz.targets import all_targets

        names = [*all_targets(), GRAPHS]
        unknown = sorted(set(asked.target) - set(names))
        if unknown or asked.list:
            print(f"no targets {', '.join(unknown)}; there are" if unknown else "", *names, sep="\n")
            return 2 if unknown else 0
        chosen = asked.target or names
        shares = len(chosen) + (GRAPHS in chosen) * (SHARE_OF_GRAPHS - 1)
        for name in chosen:
            share = SHARE_OF_GRAPHS if name == GRAPHS else 1
            fuzz(name, asked.work, asked.minutes * 60 * share / shares)
    return figures(asked.work)


def fuzz(name: str, work: pathlib.Path, seconds: float) -> None:
    """Fuzzes a target for that long and adds up its figures; a process that dies is a find, and another goes on."""
    if name == GRAPHS:
        words = ["--minutes", str(seconds / 60), "--seed", str(time.time_ns() >> 20), "--work", str(work)]
        subprocess.run([sys.executable, str(WORKER.with_name("graphs.py")), *words], check=False, capture_output=True)
        return
    work.mkdir(parents=True, exist_ok=True)
    known = read(work)
    entry = known.setdefault(name, {"executions": 0, "seconds": 0.0, "deaths": 0})
    end = time.monotonic() + seconds
    for _ in range(RESTARTS):
        left = end - time.monotonic()
        if left < 1:
            break
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            environment = {**os.environ, "TMPDIR": folder}
            done = subprocess.run(
                [sys.executable, str(WORKER), name, str(work), str(left)],
                cwd=folder, env=environment, capture_output=True, text=True, errors="replace", check=False,
            )  # fmt: skip
        entry["executions"] += max(map(int, COUNT.findall(done.stderr)), default=0)
        entry["seconds"] += time.monotonic() - begun
        if done.returncode == 0:
            break
        entry["deaths"] += 1
        (work / "finds").mkdir(exist_ok=True)
        (work / "finds" / f"{name}-died-{entry['deaths']}.txt").write_text(
            f"left with {done.returncode}\n{done.stderr[-6000:]}"
        )
    measured = worker("--measure", name, str(work.resolve()))
    if measured.returncode == 0:
        entry |= json.loads(measured.stdout.splitlines()[-1])
    (work / "figures.json").write_text(json.dumps(known, indent=1))


def worker(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What a worker said; its temporary files are in memory where the system has such a place, and go with it."""
    place = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=place) as folder:
        return subprocess.run(
            [sys.executable, str(WORKER), *arguments],
            cwd=folder, env={**os.environ, "TMPDIR": folder},
            capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip


def read(work: pathlib.Path) -> dict[str, dict[str, Any]]:
    """The figures of all runs so far, by target."""
    path = work / "figures.json"
    return json.loads(path.read_text()) if path.exists() else {}


def figures(work: pathlib.Path) -> int:
    """Prints the figures; 1 where there are finds."""
    known = read(work)
    print(f"{'target':24} {'executions':>12} {'a second':>9} {'inputs':>7} {'lines reached':>16}")
    for name, entry in known.items():
        rate = entry["executions"] / max(entry["seconds"], 1e-9)
        lines = f"{entry.get('reached', 0)} of {entry.get('lines', 0)}"
        print(f"{name:24} {entry['executions']:12,} {rate:9,.0f} {entry.get('inputs', 0):7,} {lines:>16}")
    total, seconds = (sum(entry[key] for entry in known.values()) for key in ("executions", "seconds"))
    print(f"{'together':24} {total:12,} {total / max(seconds, 1e-9):9,.0f}")
    finds = sorted(path for path in (work / "finds").glob("*") if path.suffix == ".txt")
    for path in finds:
        print(f"find: {path}: {path.read_text(errors='replace').strip().splitlines()[-1:]}")
    print(f"{len(finds)} finds" if finds else "no finds")
    return 1 if finds else 0


def replay(paths: list[pathlib.Path]) -> int:
    """Executes finds again; their names begin with the target's."""
    from fuzz.targets import all_targets

    bad = 0
    for path in paths:
        name = path.name.partition("-")[0]
        begun = time.thread_time()
        try:
            all_targets()[name].read(path.read_bytes())
            said = "nothing"
        except Exception as error:
            said = "".join(traceback.format_exception(error)[-3:])
            bad += not type(error).__module__.startswith("pocketgraph.errors")
        print(f"{path.name}: {time.thread_time() - begun:.2f} s, {said}")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
