"""The threat model's table: every attack has something that holds it, and a test file with tests in it."""

import re

import pytest

from support import ROOT

TABLE = (ROOT / "docs/threat_model.md").read_text().partition("| attack |")[2].partition("\n\n")[0]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.splitlines()[2:]]


def test_there_are_rows() -> None:
    assert len(ROWS) > 10


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_every_row_names_tests_that_exist(row: list[str]) -> None:
    attack, holds, shown = row
    assert attack
    assert holds
    named = re.findall(r"`([^`]+)`", shown)
    assert named
    for name in named:
        assert re.search(r"^def test_", (ROOT / name).read_text(), re.MULTILINE), name


def test_no_address_is_invented() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    assert "private reporting" in text
    assert "@" not in text
