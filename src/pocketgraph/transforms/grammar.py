"""The transform string: ``strip_unused_nodes(type=float, shape="1,299,299,3") fold_constants``, taken apart."""

from __future__ import annotations

import re

from pocketgraph.errors import UsageError
from pocketgraph.transforms.compat import Compat

Parameters = dict[str, list[str]]
"""Values by parameter name, in order of appearance."""

_SPACE = re.compile(r"(?:[ \t\n\v\f\r]|\\\r?\n)*")
_SPACE_ALONE = re.compile(r"[ \t\n\v\f\r]*")
_NAME = re.compile(r"[A-Za-z0-9_]+")
_BARE = re.compile(r"[A-Za-z0-9_./-]+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


def parse_transforms(text: str, *, compat: Compat = Compat.FIXED) -> list[tuple[str, Parameters]]:
    """The transforms that a string names, in order, with their parameters as they are written.

    The grammar is that of TensorFlow's Graph Transform Tool: between parameters stands one comma or none and then any
    white space; there is none around ``=`` and before ``)``; a value of other characters than ``A-Za-z0-9_./-`` goes
    between double quotes, where a backslash keeps the next character from ending the value and stays in it.

    Differs from the original: a parameter list without its ``)`` is an error (the original drops that transform
    silently), and a backslash at the end of a line counts as white space (there it is an error). With
    ``Compat.ORIGINAL`` there is no difference.

    Raises:
        UsageError: the string does not follow the grammar.
    """
    found: list[tuple[str, Parameters]] = []
    space = _SPACE_ALONE if compat.original else _SPACE
    at = _skip(space, text, 0)
    while at < len(text):
        name = _NAME.match(text, at)
        if not name:
            raise _error("transform name", text, at)
        at = name.end()
        parameters: Parameters = {}
        if text.startswith("(", at):
            at = _parameters(text, at + 1, parameters, space, may_end=compat.original)
        if at > len(text):
            break
        found.append((name[0], parameters))
        at = _skip(space, text, at)
    return found


def _parameters(text: str, at: int, parameters: Parameters, space: re.Pattern[str], *, may_end: bool) -> int:
    """Reads ``name=value`` pairs into ``parameters`` and gives the place after the closing parenthesis.

    With ``may_end`` the text may end between pairs or in front of a value; the place is one behind the end then.
    """
    while not text.startswith(")", at):
        if at == len(text) and may_end:
            break
        if text.startswith(",", at):
            at += 1
        at = _skip(space, text, at)
        name = _NAME.match(text, at)
        if not name:
            raise _error("parameter name", text, at)
        at = name.end()
        if not text.startswith("=", at):
            raise _error("=", text, at)
        at += 1
        if at == len(text) and may_end:
            break
        value = _QUOTED.match(text, at) or _BARE.match(text, at)
        if not value:
            raise _error("parameter value", text, at)
        parameters.setdefault(name[0], []).append(value[1] if value.re is _QUOTED else value[0])
        at = value.end()
        at += text.startswith('"', at)  # what shells and copied command lines leave behind
        at += text.startswith("'", at)
    return at + 1


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _error(wanted: str, text: str, at: int) -> UsageError:
    rest = " ".join(text[at:].split())
    shown = f"'{rest[:40]}{'…' if len(rest) > 40 else ''}'" if rest else "the end of the string"
    hint = ""
    if at >= len(text):
        hint = "close the parameters with ')'"
    elif wanted == "transform name" and text[at] in "),;:":
        hint = "separate transforms with spaces, and parameters with commas inside parentheses"
    elif wanted == "transform name" and text[at] == "(":
        hint = "write the parentheses right behind the name"
    elif wanted == "parameter name" and text[at] in "),":
        hint = "no space or second comma goes before ')' or ','"
    elif wanted == "parameter value":
        hint = "put a value with other characters than letters, digits and _./- between double quotes"
    return UsageError(f"Looking for {wanted}, but found {shown}", where="transforms", hint=hint)
