"""Writes docs/transforms/: one page a rule, from its docstring and signature, and an index.

    python tools/build_transform_docs.py [--check]

``--check`` writes nothing and fails when a page is not up to date.
"""

from __future__ import annotations

import inspect
import pathlib
import sys
from collections.abc import Callable

from pocketgraph.inspect.rule_page import Page, page_of
from pocketgraph.transforms import tool

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs" / "transforms"
NOTE = "<!-- Written by tools/build_transform_docs.py from the rule's docstring; edit that. -->\n"


def main() -> None:
    pages = build()
    if "--check" in sys.argv[1:]:
        stale = out_of_date(pages)
        if stale:
            raise SystemExit(f"not up to date: {', '.join(stale)}; run python tools/build_transform_docs.py")
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text, "utf-8")


def build() -> dict[str, str]:
    """The text of every page by file name."""
    pages = [page_of(tool.find(name)) for name in tool.built_in()]
    return {
        **{f"{page.name}.md": written(page) for page in pages},
        "README.md": index(pages),
        "differences.md": differences(pages),
    }


def out_of_date(pages: dict[str, str]) -> list[str]:
    """The names of files that are missing, differ, or should not be there."""
    have = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.md")}
    return sorted(name for name in pages.keys() | have.keys() if pages.get(name) != have.get(name))


def differences(pages: list[Page]) -> str:
    """What is not as TensorFlow 1.15's tool has it, rule by rule."""
    about_tool, about_text = (_differs(function) for function in (tool.run, tool.parse_transforms))
    parts = [
        "# Where the transforms differ from the original", NOTE.rstrip("\n"),
        "By default, `--compat=fixed`, the rules make the same nodes as TensorFlow 1.15.5's Graph Transform Tool, but "
        "do the right thing where it aborts or damages the graph, and more than it could; this page lists every such "
        "difference. `--compat=original` (in Python `compat=\"original\"`) is the same to the letter, and passes over "
        "the same mistakes in the call; where the original aborts or never ends, it is an error or the right thing. "
        "`make oracle` compares with the original afresh, `make oracle MODEL=x.pb INPUTS=… OUTPUTS=…` on a model of "
        "yours.",
        "## The tool", about_tool, "## The transform string", about_text,
    ]  # fmt: skip
    for page in pages:
        if page.differs:
            parts += [f"## [{page.name}]({page.name}.md)", plain(page.differs[:1].upper() + page.differs[1:])]
    same = ", ".join(page.name for page in pages if not page.differs)
    return "\n\n".join([*parts, "## No differences", f"{same}."]) + "\n"


def _differs(function: Callable[..., object]) -> str:
    """The paragraph of a function's description that begins with "Differs from the original:"."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    text = next(part for part in paragraphs if part.startswith("Differs from the original:"))
    text = " ".join(text.split()).removeprefix("Differs from the original: ")
    return plain(text[:1].upper() + text[1:])


def index(pages: list[Page]) -> str:
    """The list of all rules."""
    rows = [f"| [{page.name}]({page.name}.md) | {plain(page.summary)} |" for page in pages]
    head = ["# All transforms", "", "How to put them together: [the guide](../transforms.md).", ""]
    head += ["What is not as in TensorFlow's tool: [differences](differences.md).", ""]
    return "\n".join([*head, "| transform | what it does |", "|---|---|", *rows, ""])


def written(page: Page) -> str:
    """One rule's page."""
    parts = [f"# {page.name}", "", plain(page.summary)]
    for paragraph in page.text:
        parts += ["", plain(paragraph)]
    if page.parameters:
        parts += ["", "## Parameters", "", "| name | type | default | meaning |", "|---|---|---|---|"]
        for p in page.parameters:
            default = "required" if p.required else "none" if p.default in (None, (), "") else str(p.default).lower()
            kind = p.kind.__name__ + (", may be repeated" if p.repeated else "")
            parts.append(f"| `{p.name}` | {kind} | {default} | {plain(page.meanings.get(p.name, ''))} |")
    if page.given:
        parts += ["", "## Example", "", "Given", "", "```text", page.given, "```"]
        parts += ["", "after", "", "```text", page.call, "```"]
        parts += ["", "it is", "", "```text", page.result, "```"]
    if page.differs:
        parts += ["", "## Differs from the original", "", plain(page.differs[:1].upper() + page.differs[1:])]
    if page.raises:
        parts += ["", "## Errors", "", plain(" ".join(page.raises.split()))]
    return "\n".join([parts[0], "", NOTE.rstrip("\n"), *parts[1:], ""])


def plain(text: str) -> str:
    """Docstring text as Markdown."""
    return text.replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    main()
