"""Files beside modules, as the package reads those of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pocketgraph import package_data


def test_a_text_reads_alike_however_a_checkout_ends_its_lines(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "lists.txt").write_bytes("[one]\r\n# why\r\nä b\r\nc\r\n\r\n[two]\r\nd\r\n".encode())
    module = str(tmp_path / "module.py")
    assert package_data.text_beside(module, "inside/lists.txt") == "[one]\n# why\nä b\nc\n\n[two]\nd\n"
    assert package_data.section_beside(module, "inside/lists.txt", "one") == ["ä b", "c"]
    assert package_data.section_beside(module, "inside/lists.txt", "two") == ["d"]
    with pytest.raises(OSError, match="other"):
        package_data.content_beside(module, "other.txt")


def test_tables_that_modules_read_when_imported_load_no_more_of_the_library() -> None:
    """importlib.resources brings tempfile and zipfile along, several times what the tables themselves take."""
    words = "import sys, pocketgraph.inspect.flop_formulas; print('importlib.resources' in sys.modules)"
    made = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert made.stdout == "False\n"
