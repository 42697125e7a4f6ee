"""The options of a target: the keyword arguments of its exporter, from texts."""

from __future__ import annotations

import inspect
import math
import textwrap
import typing
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from pocketgraph import errors
from pocketgraph.errors import UsageError, did_you_mean
from pocketgraph.exporting.targets import Target
from pocketgraph.pages.docstrings import meanings

BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class Option(NamedTuple):
    """An option of a target.

    Attributes:
        name: of the keyword argument.
        kind: ``bool``, ``int``, ``float`` or ``str``.
        choices: what it may be, where its type is a Literal; else empty.
        default: its value when it is not given.
        help: what the exporter's docstring says of it.
    """

    name: str
    kind: type
    choices: tuple[Any, ...]
    default: Any
    help: str


def options_of(target: Target) -> dict[str, Option]:
    """The options of a target by name, in the order of its exporter's signature."""
    write = target.function
    keywords = {n: p for n, p in inspect.signature(write).parameters.items() if p.kind is p.KEYWORD_ONLY}
    told: Any = SimpleNamespace(__annotations__={name: found.annotation for name, found in keywords.items()})
    hints = typing.get_type_hints(told, write.__globals__)  # of the options alone: those of the model load much
    documented = (inspect.getdoc(write) or "").partition("Args:\n")[2].partition("\n\n")[0]
    texts = meanings(textwrap.dedent(documented).splitlines())
    found = {}
    for name, parameter in keywords.items():
        members = [hints[name], *typing.get_args(hints[name])]
        choices = next((typing.get_args(m) for m in members if typing.get_origin(m) is typing.Literal), ())
        kind = type(choices[0]) if choices else next(m for m in members if m in (bool, int, float, str))
        found[name] = Option(name, kind, choices, parameter.default, texts.get(name, ""))
    return found


def arguments_of(target: Target, given: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments for a target's exporter.

    Args:
        given: values by option name; texts are read as the option's type.

    Raises:
        UsageError: an option is unknown, or its value is none of its type.
    """
    known = options_of(target)
    found = {}
    for spelled, value in given.items():
        name = spelled.replace("-", "_")
        if name not in known:
            hint = did_you_mean(name, known) or f"it takes {', '.join(map(errors.option, known)) or 'none'}"
            raise UsageError(f"{target.name} has no option '{errors.option(spelled)}'", hint=hint)
        found[name] = _value(known[name], value)
    return found


def _value(option: Option, value: Any) -> Any:
    try:
        if isinstance(value, str) and option.kind is not str:
            value = BOOLEANS[value.lower()] if option.kind is bool else option.kind(value)
        if option.kind is float and value is not None and not math.isfinite(value):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        wanted = "true or false" if option.kind is bool else f"a number ({option.kind.__name__})"
        raise UsageError(f"{errors.option(option.name)} is {wanted}, not '{value}'") from None
    if option.choices and value not in option.choices:
        raise UsageError(f"{errors.option(option.name)} is one of {', '.join(map(str, option.choices))}, not '{value}'")
    return value
