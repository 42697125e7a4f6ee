"""What may be added is added through a table, and the files that CONTRIBUTING.md names are all it takes."""

from __future__ import annotations

import pathlib
import re
import sys
import types
from typing import Any

import numpy as np
import pytest

import pocketgraph
from pocketgraph.cli.main import COMMANDS, module_of
from pocketgraph.errors import FormatError, RunError, UsageError
from pocketgraph.exporting import targets
from pocketgraph.exporting.model import ExportModel, Written
from pocketgraph.exporting.target_options import options_of
from pocketgraph.formats import forms
from pocketgraph.formats.content import Kind
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.kernels import registry
from pocketgraph.kernels.shapes import infer, rules
from pocketgraph.litert.lowering import LOWERINGS, lowers
from pocketgraph.runtime import Session
from pocketgraph.transforms import tool
from pocketgraph.transforms.tool import transform
from support import ROOT

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
GRAPH = """
    x = Placeholder(dtype=float, shape=[2])
    y = Neg(x, T=float)
"""


def files_for(thing: str) -> list[str]:
    """The files that CONTRIBUTING.md names for one thing to add, FAMILY, MODULE and such standing for its own."""
    (row,) = re.findall(rf"^- \*\*{thing}\*\*(.*?)(?=^- \*\*|^\S)", CONTRIBUTING, re.MULTILINE | re.DOTALL)
    return re.findall(r"`((?:src|tests|tools|docs|README|CHANGELOG)[^`\s]*)`", row)


@pytest.mark.parametrize(
    ("thing", "most"),
    [
        ("an op", 8),
        ("a rule", 3),
        ("a pass", 4),
        ("a file form", 3),
        ("a command", 4),
        ("a kernel of your own", 0),
        ("an export target", 4),
        ("an engine", 1),
        ("a step of quantization", 4),
        ("a kind of project", 3),
    ],
)
def test_the_files_that_are_touched_are_few_and_are_where_it_says(thing: str, most: int) -> None:
    named = files_for(thing)
    assert len(named) <= most
    assert bool(named) == bool(most)
    for name in named:
        known = re.split(r"/(?=[A-Z_]+(?:\.|/|$))", name)[0]
        assert (ROOT / known).exists(), f"{name}: there is no {known}"


EXAMPLE_OP = "Batch"
"""An op that TensorFlow has and nobody computes here."""


def test_an_op_is_a_row_in_each_table() -> None:
    tables = (registry.KERNELS, rules.SHAPE_RULES, LOWERINGS)
    assert not any(EXAMPLE_OP in table for table in tables)
    try:

        @registry.kernel(EXAMPLE_OP)
        def batch(*in_tensors: Any) -> Any:
            return (*in_tensors, np.zeros((1, 3), np.int64), np.int64(0))

        @rules.shape_rule(EXAMPLE_OP)
        def of_batch(call: Any) -> Any:
            return [*call.inputs, pocketgraph.graph.Shape((1, 3)), pocketgraph.graph.Shape(())]

        @lowers(EXAMPLE_OP)
        def lowered(emit: Any, node: Any) -> None:
            raise emit.unsupported("an example")

        graph = parse("""
            x = Placeholder(dtype=float, shape=[2])
            y = Batch(x, T=[float], num_batch_threads=1, max_batch_size=1, batch_timeout_micros=0,
                      grad_timeout_micros=0)
        """)
        assert infer(graph).shape("y") == pocketgraph.graph.Shape((2,))
        with Session(graph) as session:
            assert session.run("y", {"x": [1.0, 2.0]})[0].tolist() == [1.0, 2.0]
            assert "an example" in str(session.plan())
    finally:
        for table in tables:
            table._rows.pop(EXAMPLE_OP, None)


def test_a_rule_is_a_function() -> None:
    try:

        @transform
        def turn_around(graph: Graph, *, times: int = 1) -> Graph:
            """Turns the order of the nodes around.

            Given:   a graph
            Result:  its nodes in the other order
            """
            return graph.replace(list(graph)[:: -1 if times % 2 else 1])

        turned = pocketgraph.transform(parse(GRAPH), "turn_around(times=3)", inputs="x", outputs="y")
        assert [node.name for node in turned] == ["y", "x"]
    finally:
        tool._rules.pop("turn_around", None)


def test_a_file_form_is_a_row(tmp_path: pathlib.Path) -> None:
    def write(graph: Graph, path: Any) -> None:
        pathlib.Path(path).write_bytes(b"LINES\n" + print_graph(graph).encode())

    def read(buffer: Any, name: str, tags: Any, signature: Any) -> Graph:
        return parse(bytes(buffer[6:]).decode())

    form = forms.FileForm("lines", write, read, (".lines",), magic=b"LINES\n")
    forms.add_form(form)
    try:
        path = tmp_path / "graph.lines"
        pocketgraph.save(parse(GRAPH), path)
        assert path.read_bytes().startswith(b"LINES\n")
        assert print_graph(pocketgraph.load(path)) == print_graph(parse(GRAPH))
        pocketgraph.save(parse(GRAPH), tmp_path / "other", form="lines")
        assert print_graph(pocketgraph.load(tmp_path / "other")) == print_graph(parse(GRAPH))
        with pytest.raises(UsageError, match="'lines'"):
            forms.add_form(form)
        with pytest.raises(UsageError, match="'mine' is the form 'graphdef'"):
            forms.add_form(forms.FileForm("mine", write, kinds=(Kind.GRAPH_DEF,)))
        with pytest.raises(UsageError, match="lines"):
            pocketgraph.save(parse(GRAPH), path, form="nonsense")
    finally:
        del forms.FORMS["lines"]
    with pytest.raises(FormatError):
        pocketgraph.load(path)
    with pytest.raises(UsageError, match="there is no form 'lines'"):
        pocketgraph.save(parse(GRAPH), path, form="lines")


def test_an_export_target_is_a_row(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(model: ExportModel, path: Any, *, full: bool = False) -> Written:
        """Writes the nodes as text.

        Args:
            full: all elements of constants as well.
        """
        (port,) = model.entries[0].inputs
        (result,) = model.entries[0].outputs
        pathlib.Path(path).write_text(print_graph(model.graph))

        def run(entry: str, feeds: Any) -> dict[str, Any]:
            with Session(parse(pathlib.Path(path).read_text())) as session:
                return {result.name: session.run(result.tensor, {port.tensor: feeds[port.name]})[0] + shift}

        return Written(run=run)

    module = types.ModuleType("listing_exporter")
    module.write = write  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "listing_exporter", module)
    listing = targets.Target("listing", (".listing",), "listing_exporter", "the nodes as text")
    monkeypatch.setitem(targets.TARGETS, "listing", listing)
    assert [option.help for option in options_of(listing).values()] == ["all elements of constants as well."]
    shift, path = 0, tmp_path / "net.listing"
    made = pocketgraph.export(parse(GRAPH), path, full=True)
    assert made.target == "listing"
    assert "y = Neg(x, T=float)" in path.read_text()
    shift = 1
    with pytest.raises(RunError, match="past the tolerance"):
        pocketgraph.export(parse(GRAPH), tmp_path / "other.listing")


def test_a_command_is_a_line_and_a_file() -> None:
    for command in COMMANDS:
        assert (ROOT / "src" / f"{module_of(command).replace('.', '/')}.py").exists()
