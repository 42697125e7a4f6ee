"""Graphs kept beside tests: NAME.graph, text that a person can read, and its weights in NAME.weights.npz.

python tests/graph_files.py FOLDER…    after a script with TensorFlow wrote NAME.pb there: makes text of each
"""

from __future__ import annotations

import pathlib
import re
from functools import partial
from typing import Any

import numpy as np

from function_text import HEAD, function_lines, with_functions
from pocketgraph import formats
from pocketgraph.graph import Function, Graph, Node, Tensor
from pocketgraph.graph.graph import Versions
from pocketgraph.graph.text_format import parse, print_node

VERSIONS = "# producer "
WEIGHT = re.compile(r"^(\S+ = Const\(\w+\[[\d,]*\])(?=[,)])")  # a tensor whose values the text leaves out
Weights = dict[str, np.ndarray[Any, Any]]


def graph_names(folder: pathlib.Path) -> list[str]:
    """The names of the graphs that a folder keeps, in order."""
    return sorted(path.stem for path in folder.glob("*.graph"))


def graph_file(folder: pathlib.Path, name: str) -> Graph:
    """The graph that a folder keeps under a name."""
    weights: Weights = {}
    if (folder / f"{name}.weights.npz").exists():
        with np.load(folder / f"{name}.weights.npz") as data:
            weights = dict(data)
    head, *lines = (folder / f"{name}.graph").read_text("utf-8").splitlines()
    producer, _, least = head.removeprefix(VERSIONS).partition(", min_consumer ")
    lines = [WEIGHT.sub(r"\1 0", line) for line in lines]
    first = next((place for place, line in enumerate(lines) if HEAD.fullmatch(line)), len(lines))
    graph = with_functions(parse("\n".join(lines[:first])), lines[first:])
    functions = {
        key: Function(key, _filled(function.nodes, weights, f"{key}/"), function.encoded)
        for key, function in graph.functions.items()
    }
    return Graph(_filled(graph, weights, ""), functions=functions, versions=Versions(int(producer), int(least)))


def keep_as_text(path: pathlib.Path) -> None:
    """Makes NAME.graph and NAME.weights.npz of NAME.pb, and deletes that.

    The graph stays the same, but for what nodes say besides their attributes (types and origins that TensorFlow noted).
    """
    name, graph = path.stem, formats.load(path)
    assert not graph.versions.bad_consumers, path
    kept: Weights = {}
    lines = [f"{VERSIONS}{graph.versions.producer}, min_consumer {graph.versions.min_consumer}"]
    lines += [_line(node, kept, "") for node in graph]
    for function in graph.functions.values():
        lines += ["", *function_lines(function, partial(_line, kept=kept, prefix=f"{function.name}/"))]
    path.with_suffix(".graph").write_text("\n".join(lines) + "\n", "utf-8")
    path.with_suffix(".weights.npz").unlink(missing_ok=True)
    if kept:
        np.savez_compressed(path.with_suffix(".weights.npz"), **kept)  # type: ignore[arg-type]
    assert _in_full(graph_file(path.parent, name)) == _in_full(graph), path
    path.unlink()


def _line(node: Node, kept: Weights, prefix: str) -> str:
    """The node in text, its attributes in order; the values of a large tensor go to ``kept``."""
    node = _ordered(node)
    short, full, value = print_node(node), print_node(node, full=True), node.attrs.get("value")
    if short == full or not isinstance(value, Tensor) or value.dtype.numpy.kind not in "fiub":
        return full
    assert WEIGHT.match(short), node.name
    kept[prefix + node.name] = value.numpy()
    return short


def _filled(nodes: Any, weights: Weights, prefix: str) -> tuple[Node, ...]:
    return tuple(
        node.replace(attrs={**node.attrs, "value": Tensor.from_numpy(weights[key], node.attrs["dtype"])})
        if (key := prefix + node.name) in weights
        else node
        for node in nodes
    )


def _ordered(node: Node) -> Node:
    return node.replace(attrs=dict(sorted(node.attrs.items())))


def _in_full(graph: Graph) -> list[str]:
    line = lambda node: print_node(_ordered(node), full=True)  # noqa: E731
    bodies = [text for function in graph.functions.values() for text in function_lines(function, line)]
    return [*map(line, graph), *bodies, str(graph.versions)]


if __name__ == "__main__":
    import sys

    for argument in sys.argv[1:]:
        for file in sorted(pathlib.Path(argument).glob("*.pb")):
            keep_as_text(file)
            print(file.with_suffix(".graph"))
