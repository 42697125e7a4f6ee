"""Each rule's Given and Result are run: what the manual says is what happens."""

from __future__ import annotations

import inspect
import pathlib
import re

import pytest

from function_text import with_functions
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.transforms import tool, transform


def example(name: str) -> tuple[str, str, str, str, str]:
    """Given, inputs, outputs, transforms and Result of a rule's docstring.

    The lines of Given that begin with ``;`` hold ``inputs=…``, ``outputs=…`` and the transforms; with ``; LOG`` a line
    of the file that the transforms call $LOG, with ``; FUNCTION`` a line of a function's definition.
    """
    text = inspect.getdoc(tool.find(name).function) or ""
    block = re.search(r"^Given:(.*?)^Result:(.*?)(?:^\S|\Z)", text, re.DOTALL | re.MULTILINE)
    assert block, f"{name} has no Given and Result"
    given, result = block[1], block[2].split("\n\n")[0]
    calls = " ".join(line.strip()[1:] for line in given.splitlines() if re.match(r" *;(?! (LOG|FUNCTION) )", line))
    graph = "\n".join(line for line in given.splitlines() if not line.strip().startswith(";"))
    found = dict(re.findall(r"\b(inputs|outputs)=(\S+)", calls))
    transforms = re.sub(r"\b(inputs|outputs)=\S+", "", calls).strip() or name
    return graph, found.get("inputs", ""), found.get("outputs", ""), transforms, result


def more_lines(name: str, kind: str) -> list[str]:
    """The lines of a rule's Given that begin with ``; KIND``, without that."""
    text = inspect.getdoc(tool.find(name).function) or ""
    return re.findall(rf"^ *; {kind} (.*)$", text, re.MULTILINE)


@pytest.mark.parametrize("name", tool.names())
def test_the_example_of_a_rule_is_true(name: str, tmp_path: pathlib.Path) -> None:
    graph, inputs, outputs, transforms, result = example(name)
    assert name in transforms
    (tmp_path / "log").write_text("\n".join(more_lines(name, "LOG")))
    transforms = transforms.replace("$LOG", str(tmp_path / "log"))
    before = with_functions(parse(graph), more_lines(name, "FUNCTION"))
    changed = transform(before, transforms, inputs, outputs)
    assert print_graph(changed, full=True) == print_graph(parse(result), full=True)
