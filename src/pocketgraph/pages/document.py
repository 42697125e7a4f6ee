"""A whole page, and a piece of one for a notebook; a page has its style and script inside and allows no other."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape

from pocketgraph.errors import printable
from pocketgraph.package_data import text_beside


def text(words: object) -> str:
    """Words as HTML; names of a model become text and nothing else, signs that nobody sees are escaped."""
    return escape(printable(str(words)))


def document(title: str, body: str, *, script: str, style: str = "", kind: str = "report") -> str:
    """A page that works from a file and asks nobody for anything.

    Args:
        title: of the window; plain text.
        body: HTML.
        script: the only one that the page's policy lets run.
        style: rules beside the common ones.
        kind: the class of the page's body.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data: blob:"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>\n{file('style.css')}{style}</style>\n</head>\n"
        f'<body class="pocketgraph {kind}">\n{body}\n<script>{script}</script>\n</body>\n</html>\n'
    )


def report(title: str, *parts: str) -> str:
    """A page of parts below each other, with tables that sort and a button for light or dark."""
    button = '<button type="button" class="theme" aria-label="light or dark">◐</button>'
    head = f"<header><h1>{text(title)}</h1>{button}</header>"
    return document(title, "\n".join([head, *parts]), script=file("report.js"))


def fragment(*parts: str) -> str:
    """Parts for a notebook's cell, with their style and without a script."""
    style = f"<style>{file('style.css')}</style>"
    return f'<div class="pocketgraph" style="padding:.5rem">{style}{"".join(parts)}</div>'


@cache
def file(name: str) -> str:
    """The text of a file beside this one."""
    return text_beside(__file__, name)
