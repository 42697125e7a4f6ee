"""Builds the site: the pages of docs/ and those made from the code, searchable, without anything from elsewhere.

The pages are copied into build/docs-source, where links that leave docs/ are led to copies or become plain text; Sphinx
makes HTML of them and refuses links that lead nowhere.
"""

from __future__ import annotations

import base64
import json
import os
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
from typing import Any

from docs_site.blocks import NOT_RUN, ROOT, blocks, documents
from docs_site.reference import command_pages, python_page

SOURCE = ROOT / "build" / "docs-source"
SITE = ROOT / "build" / "docs"
ELSEWHERE = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
"""Pages of the site that lie outside docs/."""
MADE_FROM_CODE = """\
- [Commands](commands/index.md): every command and every option
- [Python reference](python-reference.md): every function and class
"""
"""What the site has beside the pages that are written by hand."""
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
CONFIGURATION = """
project = "pocketgraph"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_show_search_summary = False  # a page opened from a file may not read others
html_title = "pocketgraph"
smartquotes = False
html_show_sphinx = html_show_copyright = html_copy_source = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_custom_sections = ["Given", "Result"]
napoleon_use_ivar = True
pygments_style, pygments_dark_style = "friendly", "monokai"
exclude_patterns = []
"""
STYLE = """
.not-run { font-size: 80%; color: var(--color-foreground-muted); }
.highlight-output .highlight { border-left: 3px solid var(--color-foreground-border); }
.highlight-output .highlight span { color: var(--color-foreground-primary); }
table { font-size: 90%; }
code .pre { white-space: nowrap; } /* a flag stays in one line */
@media (max-width: 40em) {
  code .pre { white-space: normal; overflow-wrap: anywhere; }
  td code .pre { white-space: nowrap; } /* the table scrolls */
}
"""


def build(site: pathlib.Path = SITE, source: pathlib.Path = SOURCE) -> int:
    """Writes the site into a folder; gives what Sphinx left with."""
    for folder in (site, source):
        shutil.rmtree(folder, ignore_errors=True)
    write_pages(source)
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "html",
        "-W",
        "--keep-going",
        "-q",
        "-j",
        "2",
        str(source),
        str(site),
    ]
    return subprocess.run(command, check=False).returncode


def write_pages(source: pathlib.Path) -> None:
    """Writes what Sphinx reads."""
    places = site_places()
    for page, place in places.items():
        (source / place).parent.mkdir(parents=True, exist_ok=True)
        if page.endswith((".md", ".ipynb")):
            text = (ROOT / page).read_text("utf-8")
            text = text if page.endswith(".md") else notebook_page(json.loads(text), source / place)
            (source / place).write_text(for_site(text, page, places), "utf-8")
        else:
            shutil.copy(ROOT / page, source / place)
    (source / "commands").mkdir()
    for name, text in command_pages().items():
        (source / "commands" / name).write_text(text, "utf-8")
    (source / "python-reference.md").write_text(python_page(), "utf-8")
    (source / "conf.py").write_text(CONFIGURATION, "utf-8")
    (source / "site.css").write_text(STYLE, "utf-8")


def site_places() -> dict[str, str]:
    """Where each file of the repository that the site shows lies in it."""
    inside = [*(ROOT / "docs").glob("**/*.md"), *(ROOT / "docs").glob("*.png")]
    docs = {path.relative_to(ROOT).as_posix(): path.relative_to(ROOT / "docs").as_posix() for path in sorted(inside)}
    examples = {f"examples/{path.parent.name}/README.md": f"examples/{path.parent.name}.md"
                for path in sorted((ROOT / "examples").glob("*/README.md"))}  # fmt: skip
    notebooks = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
    pages = {path.relative_to(ROOT).as_posix(): f"examples/{path.stem}.md" for path in notebooks}
    return {**docs, **ELSEWHERE, **examples, **pages}


def notebook_page(notebook: dict[str, Any], place: pathlib.Path) -> str:
    """A notebook as a page: its cells and what they gave, pictures beside it."""
    parts = []
    for number, cell in enumerate(notebook["cells"]):
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                picture = place.with_name(f"{place.stem}-{number}.png")
                picture.write_bytes(base64.b64decode(data["image/png"]))
                parts.append(f"![What the cell shows]({picture.name})")
            elif "text/html" in data:
                parts.append(f"```{{raw}} html\n{''.join(data['text/html'])}\n```")
            else:
                parts.append(f"```text\n{''.join(output.get('text') or data['text/plain']).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def for_site(text: str, page: str, places: dict[str, str]) -> str:
    """A page's text with links as the site has them, its list of pages, and a note on blocks that no test runs."""

    def led(link: re.Match[str]) -> str:
        target, hash_sign, anchor = link["target"].partition("#")
        if not target or ":" in target:
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        path = path if path in places else f"{path}/README.md"
        if path not in places and link["picture"]:  # of a notebook's cell, which lies beside the page
            return link[0]
        if path not in places:
            return link["text"] if "`" in link["text"] else f"{link['text']} (`{path.removesuffix('/README.md')}`)"
        place = posixpath.relpath(places[path], posixpath.dirname(places[page]) or ".")
        return f"{link['picture']}[{link['text']}]({place}{hash_sign}{anchor})"

    text = re.sub(
        NOT_RUN.pattern.removesuffix(r"\n+\Z"), r"[Not run by the tests: \g<why>.]{.not-run}", LINK.sub(led, text)
    )
    if page == "docs/index.md":
        text = text.replace("## Look up\n\n", f"## Look up\n\n{MADE_FROM_CODE}")
        return text + counted() + tables_of_contents(text)
    if page == "CHANGELOG.md":
        return f"---\nnosearch: true\n---\n{text}"  # it names everything, and would come first whatever is looked for
    if page == "docs/transforms/README.md":
        rules = sorted(
            pathlib.PurePosixPath(place).stem for name, place in places.items() if name.startswith("docs/transforms/")
        )
        return text + toctree("", [rule for rule in rules if rule != "README"])
    return text


def tables_of_contents(index: str) -> str:
    """The site's list of pages: what the front page links, under its headings."""
    text = ""
    for part in index.split("\n## ")[1:]:
        heading, _, rest = part.partition("\n")
        text += toctree(heading, [link["target"].removesuffix(".md") for link in LINK.finditer(rest)])
    return text


def toctree(caption: str, pages: list[str]) -> str:
    """A hidden list of pages, each once."""
    head = f":caption: {caption}\n" if caption else ""
    return "\n```{toctree}\n:hidden:\n" + head + "\n" + "\n".join(dict.fromkeys(pages)) + "\n```\n"


def counted() -> str:
    """How many blocks of the pages tests run, and how many not."""
    every = [block for page in documents() for block in blocks((ROOT / page).read_text("utf-8"))]
    run, left = sum(block.runs for block in every), sum(bool(block.why_not) for block in every)
    return (
        f"\n{run} blocks of commands and Python on these pages are run by tests, and what they print is compared with "
        f"what is shown. {left} are not run (a phone, a camera, an installation); each of them says so.\n"
    )


def outside(site: pathlib.Path) -> list[str]:
    """What pages of the site would load from elsewhere: scripts, styles, pictures, fonts."""
    loads = re.compile(
        r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?((?:https?:)?//[^"'\s>]+)"""
        r"""|<link\b(?=[^>]*rel=["']?(?:stylesheet|preload|icon|preconnect))[^>]*href=["']?((?:https?:)?//[^"'\s>]+)"""
        r"""|(?:@import|url\()\s*["']?((?:https?:)?//[^"')\s]+)"""
    )
    found = []
    for path in sorted(site.rglob("*")):
        if path.suffix in (".html", ".css"):
            found += [f"{path.name}: {''.join(hit.groups(''))}" for hit in loads.finditer(path.read_text("utf-8"))]
    return found


def main() -> int:
    """Builds the site and says where it is."""
    code = build()
    strangers = outside(SITE) if code == 0 else []
    if strangers:
        print("\n".join(["pages load from elsewhere:", *strangers]), file=sys.stderr)
    if code or strangers:
        return 1
    print(f"{len(list(SITE.rglob('*.html')))} pages: {os.path.relpath(SITE / 'index.html')}")
    return 0
