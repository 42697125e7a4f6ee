"""What a rule's docstring and signature say, taken apart for the command ``transforms`` and the manual."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

from pocketgraph.pages.docstrings import meanings
from pocketgraph.transforms.tool import Rule, RuleParameter

DIFFERS = "Differs from the original:"
HEADINGS = ("Given:", "Result:", "Args:", "Raises:", DIFFERS)


@dataclass(frozen=True)
class Page:
    """A rule's manual page.

    Attributes:
        name: the rule.
        summary: its one line.
        given, result: the example's graphs, in the text form; "" when there is none.
        call: what is run on ``given``: the transforms, with ``inputs=`` and ``outputs=`` where they matter.
        text: paragraphs of explanation.
        differs: what is done otherwise than in the original, or "".
        meanings: what each parameter means, as far as the docstring says.
        raises: the errors, as the docstring lists them.
    """

    name: str
    summary: str
    given: str
    result: str
    call: str
    text: tuple[str, ...]
    differs: str
    meanings: dict[str, str]
    parameters: tuple[RuleParameter, ...]
    raises: str


FURTHER = ("; LOG ", "; FUNCTION ")  # lines of Given that are no graph and no call: of a file, of the library


def page_of(rule: Rule) -> Page:
    """The page of a rule."""
    lines = (inspect.getdoc(rule.function) or rule.name).splitlines()
    summary = lines[0]
    parts: dict[str, list[str]] = {heading: [] for heading in HEADINGS}
    paragraphs: list[list[str]] = [[]]
    heading = ""
    for line in lines[1:]:
        found = next((h for h in HEADINGS if line.startswith(h)), "")
        if found:
            heading = found
            line = " " * len(found) + line[len(found) :]
        elif not line if heading == DIFFERS else line and not line.startswith(" "):
            heading = ""
        if heading:
            parts[heading].append(line)
        elif line:
            paragraphs[-1].append(line)
        elif paragraphs[-1]:
            paragraphs.append([])
    given = _dedented(parts["Given:"])
    given = [line[2:] if line.startswith(FURTHER) else line for line in given]
    calls = [line[1:].strip() for line in given if line.startswith(";")]
    return Page(
        rule.name,
        summary,
        "\n".join(line for line in given if not line.startswith(";")).strip("\n"),
        "\n".join(_dedented(parts["Result:"])).strip("\n"),
        " ".join(calls if re.search(rf"\b{rule.name}\b", " ".join(calls)) else [rule.name, *calls]),
        tuple(" ".join(part.strip() for part in paragraph) for paragraph in paragraphs if paragraph),
        " ".join(line.strip() for line in parts[DIFFERS]).strip(),
        meanings(_dedented(parts["Args:"])),
        tuple(rule.parameters.values()),
        "\n".join(_dedented(parts["Raises:"])).strip("\n"),
    )


def spelled(parameter: RuleParameter) -> str:
    """A parameter as it is written in a transform string, with its default."""
    if parameter.repeated:
        return f"{parameter.name}=… (may be repeated)"
    if parameter.required:
        return f"{parameter.name}=…"
    default = parameter.default
    shown = "" if default is None else str(default).lower() if isinstance(default, bool) else str(default)
    return f"{parameter.name}={shown}" if shown else f"[{parameter.name}=…]"


def _dedented(lines: list[str]) -> list[str]:
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    return [line[min(indents, default=0) :] for line in lines]
