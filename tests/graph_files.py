"""Graphs kept beside tests: as text where a person can read them, else as the file that TensorFlow wrote.

python tests/graph_files.py FOLDER…    after a script with TensorFlow wrote NAME.pb there: makes NAME.graph of each
"""

from __future__ import annotations

import pathlib

from pocketgraph import formats
from pocketgraph.graph import Graph
from pocketgraph.graph.graph import Versions
from pocketgraph.graph.text_format import parse, print_graph

HEAD = "# producer "
MOST = 24_000  # characters of a text that is still read


def graph_names(folder: pathlib.Path) -> list[str]:
    """The names of the graphs that a folder keeps, in order."""
    return sorted(path.stem for path in folder.iterdir() if path.suffix in (".graph", ".pb"))


def graph_file(folder: pathlib.Path, name: str) -> Graph:
    """The graph that a folder keeps under a name: NAME.graph, or NAME.pb where it is large or has functions."""
    path = folder / f"{name}.graph"
    if not path.exists():
        return formats.load(folder / f"{name}.pb")
    head, _, text = path.read_text("utf-8").partition("\n")
    producer, _, least = head.removeprefix(HEAD).partition(", min_consumer ")
    return parse(text).replace(versions=Versions(int(producer), int(least)))


def keep_as_text(path: pathlib.Path) -> bool:
    """Makes NAME.graph of NAME.pb where that can be read, and deletes the latter; the graph stays the same."""
    graph = formats.load(path)
    text = print_graph(graph, full=True)
    if graph.functions or len(text) > MOST or graph.versions.bad_consumers:
        return False
    versions = graph.versions
    path.with_suffix(".graph").write_text(
        f"{HEAD}{versions.producer}, min_consumer {versions.min_consumer}\n{text}", "utf-8"
    )
    assert print_graph(graph_file(path.parent, path.stem), full=True) == text, path
    path.unlink()
    return True


if __name__ == "__main__":
    import sys

    for argument in sys.argv[1:]:
        for file in sorted(pathlib.Path(argument).glob("*.pb")):
            print(file, "is text" if keep_as_text(file) else "stays")
