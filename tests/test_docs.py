"""The documents are true to the tree: links, the files and flags that they name, and the code that they show."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator
from functools import cache

import click
import pytest

from pocketgraph.cli.main import COMMANDS, Commands
from support import ROOT

DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("docs/**/*.md"), *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING")))
)
INVENTED = {"my_rules.py", "runtime/plan.py", "model.mlpackage.check.py"}
"""Files that stand for others, that the reader writes, or that are told of as gone."""
FLAG = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)")


def text_of(document: str) -> str:
    return (ROOT / document).read_text()


def anchors(path: pathlib.Path) -> set[str]:
    """What headings are linked by."""
    headings = re.findall(r"^#+ +(.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", text_of(document)):
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        file, _, anchor = link.partition("#")
        target = (ROOT / document).parent / file if file else ROOT / document
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@cache
def files() -> tuple[str, ...]:
    """Every file's path, with a slash in front."""
    folders = ("src", "tests", "tools", "benchmarks", "examples", "docs")
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.*"))
    return tuple(f"/{path.relative_to(ROOT).as_posix()}" for path in found)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_that_are_named_exist(document: str) -> None:
    """A name may leave the folders in front out, where it is plain which file is meant."""
    for name in set(re.findall(r"[\w./…-]*\w\.(?:py|md)\b", text_of(document))) - INVENTED:
        if "…" in name or re.search(r"(?:^|/)[A-Z_]+(?:/|\.py$)", name):  # several, or one's own
            continue
        beside = ((ROOT / document).parent / name).exists() or (ROOT / name).exists()
        assert beside or any(path.endswith(f"/{name.lstrip('/')}") for path in files()), name


@cache
def flags_of(command: str) -> frozenset[str]:
    found = Commands().get_command(None, command)  # type: ignore[arg-type]
    assert found is not None
    parts = found.commands.values() if isinstance(found, click.Group) else [found]
    parameters = [parameter for part in parts for parameter in part.get_params(click.Context(part))]
    named = [option for parameter in parameters for option in (*parameter.opts, *parameter.secondary_opts)]
    return frozenset([*named, "--help"])


def calls(document: str) -> Iterator[tuple[str, set[str]]]:
    """(command, flags) of each call of ``pocketgraph`` that the document shows."""
    for line in text_of(document).replace("\\\n", " ").splitlines():
        for part in line.split("pocketgraph ")[1:]:
            command = re.match(r"([a-z_]+)\b", part)
            if command is not None and command[1] in COMMANDS:
                rest = re.split("[`|#]", part[command.end() :])[0]
                yield command[1], set(FLAG.findall(re.sub(r"'[^']*'", "", rest)))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_calls_have_flags_that_exist(document: str) -> None:
    for command, flags in calls(document):
        assert flags <= flags_of(command), command


def test_the_readme_lists_every_command() -> None:
    first_column = "".join(re.findall(r"^\|([^|]*)\|", text_of("README.md"), re.MULTILINE))
    assert set(COMMANDS) <= set(re.findall(r"`([a-z_]+)`", first_column))


def test_the_floor_plan_is_read_in_ten_minutes() -> None:
    assert len(text_of("docs/architecture.md").splitlines()) <= 150


def test_words_of_the_code_are_used_in_it() -> None:
    """Each stands in names of the code: in a file's, or in a class's, function's or variable's."""
    found = re.findall(
        r"^- \*\*([^*]*)\*\*", text_of("docs/glossary.md").partition("## Words of the code")[2], re.MULTILINE
    )
    terms = [term for entry in found for term in entry.split(", ")]
    assert len(terms) <= 40
    code = " ".join(path.read_text() for path in (ROOT / "src").rglob("*.py")).lower() + " ".join(files())
    assert [term for term in terms if not re.search("_?".join(re.split(r"[ -]", term.lower())), code)] == []
