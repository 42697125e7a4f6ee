"""The files that go with every project of a kind, with the project's own words in their places.

A template has ``@word@`` where something goes, in its content and in its path. The ending ``.txt`` behind ``.py`` keeps
tools from taking a template for a module of ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from pocketgraph.exporting.templates import filled

PLACEHOLDER = re.compile(r"@[a-z_]+@")


def project_files(kind: str, words: Mapping[str, str], leave: frozenset[str] = frozenset()) -> dict[str, bytes]:
    """The files of a kind by their path in the project.

    Args:
        kind: the kind's name.
        words: what goes into each place.
        leave: templates that this project does without, by their path before anything is filled in.

    Raises:
        ValueError: a template asks for a word that is not there.
    """
    made: dict[str, bytes] = {}
    waiting: list[tuple[str, Any]] = [("", files("pocketgraph.apps.projects").joinpath("files").joinpath(kind))]
    while waiting:
        place, found = waiting.pop()
        if found.is_dir():
            waiting.extend((f"{place}/{item.name}" if place else item.name, item) for item in found.iterdir())
            continue
        if place in leave:
            continue
        path = filled(place, words).removesuffix(".txt") if place.endswith(".py.txt") else filled(place, words)
        text = filled(found.read_text("utf-8"), words)
        left = PLACEHOLDER.search(found.read_text("utf-8"))
        if left is not None and left[0][1:-1] not in words:
            raise ValueError(f"{kind}/{place} asks for {left[0]}, which the project does not have")
        made[path] = text.encode()
    return made
