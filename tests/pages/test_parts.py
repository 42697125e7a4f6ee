"""Parts of pages: tables that group and sort, plots that name the worst, names that are never markup."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest

from pocketgraph.pages.document import fragment, report
from pocketgraph.pages.page_glossary import WORDS
from pocketgraph.pages.parts import (
    Cell,
    Column,
    Row,
    Verdict,
    cards,
    curve,
    glossary,
    histogram,
    notes,
    number,
    table,
    words,
)
from pocketgraph.pages.repeats import alike

HOSTILE = "<script>alert(1)</script>\" onload='x' \u202e"
COLUMNS = (Column("layer"), Column("dB", 'more than "one" word', falls=True))


def rows(*names: str) -> list[Row]:
    return [Row([words(name), number(at)]) for at, name in enumerate(names)]


def test_names_of_a_model_are_text_in_every_part() -> None:
    cell = Cell(HOSTILE, HOSTILE)
    made = [
        Verdict("bad", HOSTILE, [HOSTILE]).html(), cards([(HOSTILE, HOSTILE)]), notes([HOSTILE]),
        table((Column(HOSTILE, HOSTILE),), [Row([cell])]), curve([(HOSTILE, 1.0, False)], 2.0, HOSTILE, [0]),
        histogram([1.0, 2.0], [HOSTILE, "b"], title=HOSTILE),
    ]  # fmt: skip
    for part in made:
        assert "<script" not in part
        assert "\u202e" not in part
        for tag in re.findall(r"<[^>]*>", part):
            assert "onload='" not in tag
    page = report(HOSTILE, *made)
    assert page.count("<script") == 1
    assert "default-src 'none'" in page


def test_rows_that_differ_in_numbers_share_one() -> None:
    page = table(COLUMNS, rows("x", *(f"step_{n}/mul" for n in range(24)), "y"), is_grouped=True)
    assert page.count('<tbody class="group">') == 1
    assert "&times; 24" in page
    assert page.count("<tbody") == 3
    assert page.count("<tr") == 1 + 1 + 25 + 1  # the head, x, the group and its rows, y


def test_alike_names() -> None:
    assert alike(["a1", "a2", "a3"]) == [[0], [1], [2]], "three are no group"
    assert alike(["a1", "b", "a2", "a3", "a40"]) == [[0, 2, 3, 4], [1]]
    assert alike([]) == []


def test_a_table_is_cut_and_says_so() -> None:
    page = table(COLUMNS, rows(*(f"layer {'ab'[n % 2] * n}" for n in range(30))), most=20)
    assert page.count("<tbody") == 20
    assert "and 10 more rows" in page


def test_what_is_not_finite_is_not_known() -> None:
    for value in (math.nan, math.inf):
        assert number(value) == Cell("", None)
    drawn = curve([("a", math.inf, False), ("b", math.nan, True), ("c", -3.0, False)], 60.0, "dB", [0, 2])
    assert "nan" not in re.sub(r"<title>.*?</title>", "", drawn)
    assert "inf" not in re.sub(r"<title>.*?</title>", "", drawn)


def test_labels_of_a_curve_are_apart() -> None:
    points = [(f"layer{'x' * n}", 20.0 + n / 9, False) for n in range(12)]
    drawn = curve(points, 60.0, "dB", [0, 1, 2, 3, 4])
    svg = ElementTree.fromstring(drawn.removeprefix('<div class="wide">').removesuffix("</div>"))
    lows = sorted(float(label.attrib["y"]) for label in svg.iter("text") if label.get("class") == "worst")
    assert len(lows) == 5
    assert all(b - a >= 12 for a, b in pairwise(lows))


def test_every_word_that_pages_use_is_explained() -> None:
    from pocketgraph.quantization.evaluation import evaluation_page
    from pocketgraph.quantization.report import html_report

    for used in (html_report.USED, evaluation_page.USED):
        assert set(used) <= set(WORDS)
    assert glossary(["ms", "ms"]).count("<dt>") == 1


@pytest.mark.parametrize("body", [fragment(), fragment(table(COLUMNS, []))])
def test_fragments_have_no_script(body: str) -> None:
    assert "<script" not in body
    assert body.startswith('<div class="pocketgraph"')
