"""Asks TensorFlow, in processes of its own, which some graphs bring down."""

from __future__ import annotations

import pathlib
import subprocess
from collections.abc import Iterator, Sequence

from pocketgraph import formats
from pocketgraph.graph import Graph
from random_graphs.judging import WORKER


def asked(python: str, folder: pathlib.Path, names: Sequence[str], how: str = "") -> Iterator[Graph | None]:
    """TensorFlow's answer to each graph of these names; None where it brought TensorFlow down.

    Args:
        python: the interpreter of an environment that has TensorFlow.
        folder: holds what worker.py reads; the answers, NAME.out.pb, go there too.
        names: of graphs in the folder.
        how: ``--programs`` or ``--broken``, as for worker.py.
    """
    words = [python, str(WORKER), *filter(None, [how]), str(folder)]
    left = list(names)
    while left:
        subprocess.run([*words, *left], capture_output=True, check=False)
        done = [name for name in left if (folder / f"{name}.out.pb").exists()]
        left = left[len(done) + 1 :]  # the one that has no answer took the process with it
    for name in names:
        path = folder / f"{name}.out.pb"
        if not path.exists():  # alone once more: the machine may have been short of threads or memory just then
            subprocess.run([*words, name], capture_output=True, check=False)
        yield formats.from_bytes(path.read_bytes()) if path.exists() else None


def emptied(folder: pathlib.Path) -> pathlib.Path:
    """The folder without the graphs of an earlier batch."""
    for old in folder.glob("*.pb"):
        old.unlink()
    return folder
