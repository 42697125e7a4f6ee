"""The examples in the docstrings of public functions run, and give what they say."""

from __future__ import annotations

import doctest
import pathlib
from importlib import import_module

import pytest

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
