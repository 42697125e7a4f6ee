"""The documents as a site: built without a warning, with nothing from elsewhere, and its search finds."""

from __future__ import annotations

import pathlib

import pytest

from browsers import browser, watched

pytest.importorskip("furo", reason="furo is not installed (extra docs)")
pytest.importorskip("myst_parser", reason="myst-parser is not installed (extra docs)")

from docs_site import build, reference


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The site; links and anchors that lead nowhere are errors of the builder."""
    folder = tmp_path_factory.mktemp("site")
    assert build.build(folder / "html", folder / "source") == 0
    return folder / "html"


def test_pages_load_nothing_from_elsewhere(site: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert build.outside(site) == []
    (tmp_path / "page.html").write_text(
        '<script src="https://cdn.example/x.js"></script><a href="https://example">x</a>'
    )
    (tmp_path / "style.css").write_text(
        "@import '//fonts.example/a.css'; p { background: url(https://x.example/y.png) }"
    )
    assert [found.split(":")[0] for found in build.outside(tmp_path)] == ["page.html", "style.css", "style.css"]


def test_a_broken_link_ends_the_build(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_pages(source: pathlib.Path) -> None:
        source.mkdir()
        (source / "conf.py").write_text(build.CONFIGURATION.replace('"site.css"', ""))
        (source / "index.md").write_text("# Title\n\n[there](index.md#nothing-of-the-kind)\n")

    monkeypatch.setattr(build, "write_pages", write_pages)
    assert build.build(tmp_path / "html", tmp_path / "source") != 0


def test_every_command_and_public_name_has_its_place(site: pathlib.Path) -> None:
    import pocketgraph
    from pocketgraph.cli.main import COMMANDS

    assert all((site / "commands" / f"{name}.html").exists() for name in COMMANDS)
    page = (site / "python-reference.html").read_text("utf-8")
    missing = [name for name in pocketgraph.__all__ if f'id="pocketgraph.{name}"' not in page]
    assert missing == ["__version__", "formats"]
    assert "--max_accuracy_drop" in (site / "commands" / "ship.html").read_text("utf-8")
    assert reference.escaped("a|b <c> `d_e` _f_") == "a\\|b \\<c\\> `d_e` \\_f\\_"


def test_the_search_finds_in_pages_opened_from_files(site: pathlib.Path) -> None:
    with browser() as chromium:
        for width, scheme in ((400, "light"), (1200, "dark")):
            page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            wrong = watched(page)
            page.goto((site / "search.html").as_uri() + "?q=calibrate")
            # Results appear one by one: wait for this one, not for the first.
            page.wait_for_selector('ul.search a[href*="quantization.html"]')
            page.goto((site / "commands" / "quantize.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 20, 22)"
            assert dark == (scheme == "dark")
            assert wrong == []


def test_flags_in_tables_stay_whole_on_a_phone(site: pathlib.Path) -> None:
    """The table scrolls, and the page does not."""
    broken = "[...document.querySelectorAll('td code .pre')].filter((word) => word.getClientRects().length > 1)"
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 360, "height": 800})
        page.goto((site / "coming-from.html").as_uri())
        assert page.evaluate("document.querySelectorAll('td code .pre').length") > 50
        assert page.evaluate(f"{broken}.map((word) => word.textContent)") == []
        assert page.evaluate("document.documentElement.scrollWidth") == 360
