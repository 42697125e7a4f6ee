"""The guides of the documentation, as the build packs them and ``pocketgraph help`` shows them.

The build (hatch_build.py) reads this file by its path: it imports the standard library alone.
"""

from __future__ import annotations

import gzip
import json
import re
from functools import lru_cache
from pathlib import Path

PACKED = "guides.json.gz"
"""The guides in ``pocketgraph.cli`` of an installed package; the build puts them there."""
DOCS = Path(__file__).parents[4] / "docs"
"""The guides in a checkout."""
FOR_DEVELOPERS = frozenset(
    {"architecture", "testing", "releasing", "threat_model", "exactness", "performance", "eight-bit-arithmetic"}
)


INDEX = "index"
"""The document that lists the others, under headings, in the order in which they are offered."""


@lru_cache(maxsize=1)
def user_documents() -> dict[str, str]:
    """The guides by name, and the document that lists them, in Markdown."""
    if DOCS.joinpath("architecture.md").is_file():
        return read_documents(DOCS)
    from importlib.resources import files

    found: dict[str, str] = json.loads(gzip.decompress(files("pocketgraph.cli").joinpath(PACKED).read_bytes()))
    return found


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


def read_documents(folder: Path) -> dict[str, str]:
    """The guides for users and their index out of the documents' folder, by name."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}
    return {name: text for name, text in found.items() if name not in FOR_DEVELOPERS}


def packed(folder: Path) -> bytes:
    """The guides of a documents' folder as an installed package has them, the same bytes each time."""
    return gzip.compress(json.dumps(read_documents(folder)).encode(), mtime=0)
