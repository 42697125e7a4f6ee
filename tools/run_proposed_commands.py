"""Runs every command that ``pocketgraph summarize`` proposes, on all models of the catalogue, as it is printed.

    python tools/run_proposed_commands.py FOLDER [MODEL …] [--seconds 300]

FOLDER has a directory for each model (a ``model.json`` that names its file, or a SavedModel). Prints the commands that
fail, with what they say, and exits with 1 when there are some. tests/cli/test_summarize.py runs those of a few models.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator

PROGRAM = [sys.executable, "-m", "pocketgraph"]
SHORTER = {"benchmark_model": ["--max_num_runs=2", "--max_time=1"]}
"""Flags that make a command quick, and change nothing else."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--seconds", type=float, default=300, help="that a command may take")
    arguments = parser.parse_args()
    count = failed = 0
    for folder in sorted(arguments.folder.resolve().iterdir()):
        model = file_of(folder)
        if model is None or (arguments.models and folder.name not in arguments.models):
            continue
        with tempfile.TemporaryDirectory() as place:
            for command in proposed(model, place):
                count += 1
                problem = run(command, place, arguments.seconds)
                if problem:
                    failed += 1
                    print(f"{folder.name}: {shlex.join(['pocketgraph', *command])}\n    {problem}", flush=True)
    print(f"{count - failed} of {count} commands run as printed")
    sys.exit(1 if failed else 0)


def file_of(folder: pathlib.Path) -> pathlib.Path | None:
    """The model of a directory; None where it has none."""
    description = folder / "model.json"
    if not description.exists():
        return None
    named = folder / str(json.loads(description.read_text()).get("file", ""))
    if named.is_file():
        return named
    return next((path.parent for path in sorted(folder.rglob("saved_model.pb"))), None)


def proposed(model: pathlib.Path, place: str) -> Iterator[list[str]]:
    """The arguments of the commands that summarize prints for a model."""
    done = subprocess.run([*PROGRAM, "summarize", str(model)], capture_output=True, text=True, cwd=place, check=True)
    for line in done.stdout.partition("next:\n")[2].splitlines():
        yield shlex.split(line)[1:]


def run(command: list[str], place: str, seconds: float) -> str:
    """What goes wrong with a command; "" for nothing."""
    call = [*PROGRAM, *command, *SHORTER.get(command[0], [])]
    try:
        done = subprocess.run(call, capture_output=True, text=True, cwd=place, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"takes longer than {seconds:g} seconds"
    return "" if done.returncode == 0 else f"exit {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}"


if __name__ == "__main__":
    main()
