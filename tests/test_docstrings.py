"""Docstrings of public functions: their examples give what they say, and each argument is explained."""

from __future__ import annotations

import ast
import doctest
import inspect
import pathlib
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

import pocketgraph

MODULES = (
    "pocketgraph",
    "pocketgraph.formats",
    "pocketgraph.freezing.tool",
    "pocketgraph.graph.graph",
    "pocketgraph.graph.node",
    "pocketgraph.graph.tensor",
    "pocketgraph.graph.text_format",
    "pocketgraph.inspect.summarize",
    "pocketgraph.apps.quantizing",
    "pocketgraph.runtime.comparison.verification",
    "pocketgraph.runtime.interface",
    "pocketgraph.runtime.session",
    "pocketgraph.runtime.user_kernels",
    "pocketgraph.transforms",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testmod(import_module(name))
    assert tried, "no example"
    assert not failed


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function and class, and the public methods of the classes."""
    for name in pocketgraph.__all__:
        found = getattr(pocketgraph, name)
        if callable(found):
            yield name, found
        if isinstance(found, type):
            fields = getattr(found, "__dataclass_fields__", ())
            own = [key for key in vars(found) if not key.startswith("_") and key not in fields]
            methods = [(key, getattr(found, key)) for key in own]
            yield from ((f"{name}.{key}", value) for key, value in methods if inspect.isfunction(value))


@pytest.mark.parametrize(("name", "function"), list(public()))
def test_docstrings_tell_of_arguments_and_results(name: str, function: Callable[..., Any]) -> None:
    text = inspect.getdoc(function) or ""
    signature = inspect.signature(function)
    taken = [parameter for parameter in signature.parameters if parameter != "self"]
    if isinstance(function, type) and "Attributes:" in text:
        text = text.replace("Attributes:", "Args:")  # a dataclass: its fields are its arguments
    elif not isinstance(function, type):
        assert "Returns:" in text or signature.return_annotation in ("None", None, "Iterator[None]")
    told = re.search(r"Returns:\n +(.*)", text)
    assert told is None or ": " not in told[1]  # what stands before a colon is taken for a type
    assert "Args:" in text or not taken
    hidden = {"QuantizedModel": {"progress", "resume"}}.get(name, set())
    missing = [one for one in taken if not any(f"{one}{end}" in text for end in (":", ",", "``"))]
    assert set(missing) <= hidden


def unexplained_limits(text: str) -> list[str]:
    """The numbers MOST_… and LEAST_… of a module that neither a comment nor a docstring says the unit of."""
    body, lines = ast.parse(text).body, text.splitlines()
    found = []
    for statement, after in zip(body, [*body[1:], None], strict=False):
        if isinstance(statement, ast.Assign) and re.search(
            r"\b_?(MOST|LEAST)_", name := ast.unparse(statement.targets[0])
        ):
            is_told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            beside = lines[max(statement.lineno - 2, 0) : statement.end_lineno]
            if not is_told and not beside[0].startswith("#") and not any(" # " in line for line in beside[1:]):
                found.append(name)
    return found


def test_limits_say_of_what_they_are() -> None:
    assert unexplained_limits('"""It."""\nMOST_RUNS = 3\nLEAST = 1\nMOST_BYTES = 4  # of a file\n') == ["MOST_RUNS"]
    source = pathlib.Path(pocketgraph.__file__).parent
    texts = {path: path.read_text("utf-8") for path in source.rglob("*.py")}
    found = {
        str(path.relative_to(source)): names
        for path, text in texts.items()
        if re.search("(MOST|LEAST)_", text) and (names := unexplained_limits(text))
    }
    assert found == {}
