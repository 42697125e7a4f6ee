"""Parts of pages: tables that group and sort, plots that name the worst, names that are never markup."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from itertools import combinations, pairwise

import numpy as np
import pytest

from pocketgraph.pages.document import fragment, report
from pocketgraph.pages.page_glossary import GLOSSARY
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


def test_options_in_sentences_are_not_broken_at_their_hyphens() -> None:
    page = notes(["try it with --data, a pre-trained - or `pocketgraph ship x --input_shape=a:1,2 -o out/`"])
    assert re.findall(r'<span class="option">([^<]*)</span>', page) == ["--data", "--input_shape=a:1,2"]
    assert "<code>pocketgraph ship x <span" in page
    page = notes(['pass --y="q"; then --at=<NAME>, or `x --io=uint8`'])
    assert re.findall(r'<span class="option">(.*?)</span>', page) == [
        "--y=&quot;q&quot;", "--at=&lt;NAME&gt;", "--io=uint8"
    ]  # fmt: skip
    assert "</span></code>" in page


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


def drawing(drawn: str) -> ElementTree.Element:
    """The svg of a curve."""
    return ElementTree.fromstring(re.search(r"<svg.*</svg>", drawn)[0])  # type: ignore[index]


@pytest.mark.parametrize("values", [
    [20.0 + n / 9 for n in range(12)], [60, 31, 52, 50, 30, 47, 29, 45, 44, 28, 46, 27], [0.0] * 400, [60.0] * 400,
])  # fmt: skip
def test_what_a_curve_names_stands_below_it_and_digits_in_it_apart_and_beside_the_line(values: list[float]) -> None:
    worst = sorted(range(len(values)), key=lambda at: values[at])[:5]
    points = [(f"block_{at}/{'long_' * 20}/add_1:0", value, False) for at, value in enumerate(values)]
    drawn = curve(points, 60.0, "dB", worst)
    svg = drawing(drawn)
    digits = [label for label in svg.iter("text") if label.get("class") == "worst"]
    assert [label.text for label in digits] == list("12345")
    assert re.findall(r"<li>(block_\d+)", drawn) == [f"block_{at}" for at in worst], "each whole name, in this order"
    boxes = [(x - 4, x + 4, y - 9, y) for x, y in ((float(d.attrib["x"]), float(d.attrib["y"])) for d in digits)]
    for one, other in combinations(boxes, 2):
        assert one[1] < other[0] or other[1] < one[0] or one[3] <= other[2] or other[3] <= one[2]
    (line,) = svg.iter("polyline")
    places = [tuple(map(float, place.split(","))) for place in line.attrib["points"].split()]
    for left, right, top, low in boxes:
        for (x, y), (to_x, to_y) in pairwise(places):
            along = np.linspace(0, 1, 200)
            inside_x = (x + along * (to_x - x) > left) & (x + along * (to_x - x) < right)
            inside_y = (y + along * (to_y - y) > top) & (y + along * (to_y - y) < low)
            assert not (inside_x & inside_y).any(), "the line goes through a digit"


def test_words_of_a_curve_can_be_read() -> None:
    """Between 9 and 14 pixels, however narrow the page: it scrolls before they shrink."""
    svg = drawing(curve([("a", 1.0, False)], 2.0, "dB"))
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
        assert set(used) <= set(GLOSSARY)
    assert glossary(["ms", "ms"]).count("<dt>") == 1


@pytest.mark.parametrize("body", [fragment(), fragment(table(COLUMNS, []))])
def test_fragments_have_no_script(body: str) -> None:
    assert "<script" not in body
    assert body.startswith('<div class="pocketgraph"')
