"""Docstrings of public functions: their examples give what they say, and each argument is explained."""

from __future__ import annotations

import doctest
import inspect
import pathlib
import re
from collections.abc import Callable
from importlib import import_module

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
    "pocketgraph.quantization.quantizer",
    "pocketgraph.runtime.verification",
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


def public_functions() -> dict[str, Callable[..., object]]:
    """The functions of the package, the classes that it exports, and the methods of these, by name."""
    found: dict[str, Callable[..., object]] = {}
    for name in pocketgraph.__all__:
        value = getattr(pocketgraph, name)
        if inspect.isfunction(value) or inspect.isclass(value):
            found[name] = value
        for method, function in vars(value).items() if inspect.isclass(value) else ():
            if inspect.isfunction(function) and not method.startswith("_"):
                found[f"{name}.{method}"] = function
    return found


@pytest.mark.parametrize("name", public_functions())
def test_each_argument_is_explained(name: str) -> None:
    function = public_functions()[name]
    text = inspect.getdoc(function) or ""
    arguments = [argument for argument in inspect.signature(function).parameters if argument != "self"]
    unnamed = [argument for argument in arguments if not re.search(rf"\b{argument}\b", text)]
    assert text
    assert not unnamed
