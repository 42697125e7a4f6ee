"""What is published: one version everywhere, links that lead somewhere, workflows that call targets that exist."""

from __future__ import annotations

import re
from typing import Any

import pytest

import pocketgraph
from support import ROOT, script

PROJECT = (ROOT / "pyproject.toml").read_text()


def test_the_version_has_a_section_for_users() -> None:
    assert re.search(rf"^## {re.escape(pocketgraph.__version__)}$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_the_long_description_has_whole_links() -> None:
    pytest.importorskip("hatchling", reason="the build's own package is not installed")
    module = script(ROOT / "hatch_build.py")
    metadata: dict[str, Any] = {"urls": {"Repository": "https://example.org/it"}, "version": "1.2"}
    module.LongDescription(str(ROOT), {}).update(metadata)
    links = re.findall(r"\]\(([^)\s]+)\)", metadata["readme"]["text"])
    assert links
    assert all(link.startswith("https://") for link in links)
    assert "https://example.org/it/raw/v1.2/docs/demo.png" in links
    assert "https://example.org/it/blob/v1.2/docs/shipping.md#a-project-to-begin-with" in links


def test_workflows_call_targets_that_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = [
        target
        for file in (ROOT / ".github" / "workflows").glob("*.yml")
        for target in re.findall(r"run: make (\w+)", file.read_text())
    ]
    assert {"lint", "smoke", "test", "package"} == set(called) <= targets


def test_every_python_that_is_claimed_is_tried() -> None:
    claimed = re.findall(r"Python :: (3\.\d+)", PROJECT)
    workflow = (ROOT / ".github" / "workflows" / "check.yml").read_text()
    listed = re.search(r"python: \[(.*)\]", workflow)
    assert listed is not None
    assert claimed == re.findall(r"3\.\d+", listed[1]) == ["3.10", "3.11", "3.12", "3.13", "3.14"]


def test_the_readme_names_every_extra() -> None:
    section = PROJECT.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    extras = re.findall(r"^(\w+) = \[", section, re.MULTILINE)
    rows = (ROOT / "README.md").read_text().partition("| extra | for |")[2].partition("\n\n")[0]
    named = [name for cell in re.findall(r"^\|([^|]*)\|", rows, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == sorted(extras)
