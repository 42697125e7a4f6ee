"""The guides of the documentation, as the build packs them and ``pocketgraph help`` shows them.

The build (hatch_build.py) reads this file by its path: it imports the standard library alone.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Traversable

DOCS = Path(__file__).parents[4] / "docs"
"""The guides in a checkout."""
FOR_DEVELOPERS = frozenset(
    {
        "architecture",
        "testing",
        "releasing",
        "threat_model",
        "exactness",
        "performance",
        "eight-bit-arithmetic",
    }
)


INDEX = "index"
"""The document that lists the others, under headings, in the order in which they are offered."""


@lru_cache(maxsize=1)
def user_documents() -> dict[str, str]:
    """The guides by name, and the document that lists them, in Markdown."""
    from pocketgraph.data_folders import data_folder

    folder = DOCS if DOCS.joinpath("architecture.md").is_file() else data_folder("cli/guides")
    return {path.removesuffix(".md"): text.decode() for path, text in guide_files(folder).items()}


def guides() -> dict[str, str]:
    """The guides by name, in Markdown."""
    return {name: text for name, text in user_documents().items() if name != INDEX}


def guides_by_heading() -> dict[str, dict[str, str]]:
    """The index's headings, each with the names of the guides under it and what they are about."""
    found: dict[str, dict[str, str]] = {}
    known = guides()
    for part in user_documents()[INDEX].split("\n## ")[1:]:
        heading, _, lines = part.partition("\n")
        items = re.findall(r"^- \[([^\]]+)\]\(([\w-]+)\.md\)(.*)$", lines, re.MULTILINE)
        found[heading] = {name: text + rest for text, name, rest in items if name in known}
    return {heading: names for heading, names in found.items() if names}


def guide_files(folder: Traversable) -> dict[str, bytes]:
    """The guides for users and their index in the documents' folder, by file name."""
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".md")), key=lambda path: path.name)
    return {path.name: path.read_bytes() for path in paths if path.name.removesuffix(".md") not in FOR_DEVELOPERS}
