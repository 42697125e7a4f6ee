"""Parts of pages: tables that group and sort, plots that name the worst, names that are never markup."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from itertools import combinations

import pytest

from pocketgraph.pages.document import fragment, report
from pocketgraph.pages.page_glossary import WORDS
from pocketgraph.pages.parts import (
    Cell,
    Column,
    Row,
    Verdict,
    alike,
    cards,
    commands,
    curve,
    glossary,
    histogram,
    notes,
    number,
    table,
    words,
)

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
    boxes = []
    for label in (label for label in svg.iter("text") if label.get("class") == "worst"):
        x, width = float(label.attrib["x"]), 6 * len(label.text or "")
        left = x if label.get("text-anchor") == "start" else x - width
        boxes.append((left, left + width, float(label.attrib["y"])))
    assert len(boxes) == 5
    for (left, right, low), (other_left, other_right, other_low) in combinations(boxes, 2):
        assert right < other_left or other_right < left or abs(low - other_low) >= 12


def test_words_of_a_curve_can_be_read() -> None:
    """Between 9 and 14 pixels, however narrow the page: it scrolls before they shrink."""
    svg = ElementTree.fromstring(
        curve([("a", 1.0, False)], 2.0, "dB").removeprefix('<div class="wide">').removesuffix("</div>")
    )
    wide = float(svg.attrib["viewBox"].split()[2])
    most, least = (11 * float(size) / wide for size in re.findall(r"width:(\d+)px", svg.attrib["style"]))
    assert 9 <= least <= most <= 14


def test_what_is_typed_is_shown_as_such() -> None:
    assert "<code>pocketgraph verify</code>" in Verdict("fair", "so", ["run `pocketgraph verify` too"]).html()
    assert "<code>&lt;b&gt;</code>" in notes(["`<b>`"])
    shown = commands(["pocketgraph view 'a b.pb' --measure"])
    assert "<span>--measure</span>" in shown
    assert "".join(ElementTree.fromstring(shown).itertext()) == "pocketgraph view 'a b.pb' --measure"


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
