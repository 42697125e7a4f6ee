"""Names that C does not take."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketgraph.errors import UsageError
from pocketgraph.exporting.c_identifiers import KEYWORDS, checked_name, comment, identifiers, literal


@pytest.mark.parametrize("name", ["int", "class", "2x", "a-b", "", "exp", "pg_model", "x" * 41, "größe", "uint8_t"])
def test_a_library_cannot_be_called_so(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked_name(name)
    assert caught.value.hint is not None
    suggested = caught.value.hint.removeprefix("try prefix=")
    assert checked_name(suggested) == suggested


@given(st.lists(st.text(max_size=60), unique=True, max_size=20))
def test_every_name_becomes_one_of_its_own(names: list[str]) -> None:
    made = identifiers(names)
    assert len({name.lower() for name in made}) == len(names)
    for name in made:
        assert re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name)
        assert name not in KEYWORDS


def test_texts_stay_texts() -> None:
    assert literal('a"b\\c\n?é') == '"a\\042b\\134c\\012\\077\\303\\251"'
    assert comment("a */ int x; /* \n") == "/* a * / int x; / * ? */"
