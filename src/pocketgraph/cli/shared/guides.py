"""The guides of the documentation, as the build packs them and ``pocketgraph help`` shows them.

The build (hatch_build.py) reads this file by its path: it imports the standard library alone.
"""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from pathlib import Path

PACKED = Path(__file__).parents[1] / "guides.json.gz"
"""The guides in an installed package; the build puts them there."""
DOCS = Path(__file__).parents[4] / "docs"
"""The guides in a checkout."""
FOR_DEVELOPERS = frozenset(
    {
        "architecture",
        "testing",
        "releasing",
        "threat_model",
        "index",
        "exactness",
        "performance",
        "eight-bit-arithmetic",
    }
)


@lru_cache(maxsize=1)
def guides() -> dict[str, str]:
    """The guides by name, in Markdown."""
    if DOCS.joinpath("architecture.md").is_file():
        return read_guides(DOCS)
    found: dict[str, str] = json.loads(gzip.decompress(PACKED.read_bytes()))
    return found


def read_guides(folder: Path) -> dict[str, str]:
    """The guides for users out of the documents' folder, by name."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}
    return {name: text for name, text in found.items() if name not in FOR_DEVELOPERS}


def packed(folder: Path) -> bytes:
    """The guides of a documents' folder as an installed package has them, the same bytes each time."""
    return gzip.compress(json.dumps(read_guides(folder)).encode(), mtime=0)
