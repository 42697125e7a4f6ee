"""What a rule's signature says of its parameters, and the values that a transform string's texts make for them."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pocketgraph.errors import UsageError, did_you_mean
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.grammar import Parameters

Int32 = Annotated[int, 32]
"""The type of a parameter that holds a number of 32 bits, as most of the original's do."""
FIRST_COUNTS = frozenset({("rename_attribute", "op_name"), ("sparsify_gather", "group_init_node")})
"""Of these parameters the original takes the first and passes over others."""


@dataclass(frozen=True)
class RuleParameter:
    """One parameter of a rule.

    Attributes:
        name: as in a transform string.
        kind: what a value is: int, float, bool or str.
        repeated: whether it may be given more than once; the rule gets a tuple.
        default: the value when it is not given.
        required: whether there is no default.
        bits: how many an int may take, with its sign.
    """

    name: str
    kind: type
    repeated: bool
    default: Any
    required: bool
    bits: int = 64


def parameters_of(function: Callable[..., Any]) -> dict[str, RuleParameter]:
    """The parameters of a rule by name: its keyword arguments but ``compat``.

    Raises:
        TypeError: one has a type that no text can be made into.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    found = {}
    for name, item in inspect.signature(function).parameters.items():
        if item.kind is inspect.Parameter.KEYWORD_ONLY and name != "compat":
            kind, repeated, bits = _kind(hints[name])
            required = item.default is inspect.Parameter.empty
            found[name] = RuleParameter(name, kind, repeated, None if required else item.default, required, bits)
    return found


def arguments_of(
    rule: str,
    known: Mapping[str, RuleParameter],
    given: Parameters,
    *,
    takes_any: bool = False,
    compat: Compat = Compat.FIXED,
) -> dict[str, Any]:
    """The keyword arguments that the parameters of a transform string make.

    Args:
        rule: its name, for errors.
        known: its parameters.
        given: the texts.
        takes_any: pass over parameters that are not known.
        compat: with ORIGINAL, of some parameters the first counts.

    Raises:
        UsageError: a parameter is unknown, missing, repeated, or its value is not of its type.
    """
    arguments: dict[str, Any] = {}
    for name, texts in given.items():
        if name == "ignore_errors" or (name not in known and takes_any):
            continue
        if name not in known:
            all_names = [*known, "ignore_errors"]
            hint = did_you_mean(name, all_names) or f"it takes {', '.join(all_names)}"
            raise UsageError(f"unknown parameter '{name}'", where=rule, hint=hint)
        parameter = known[name]
        if parameter.repeated:
            arguments[name] = tuple(texts)
        elif len(texts) > 1 and not (compat.original and (rule, name) in FIRST_COUNTS):
            raise UsageError(f"expected a single '{name}' parameter but found {len(texts)} occurrences", where=rule)
        else:
            arguments[name] = _value(parameter, texts[0], rule)
    missing = [name for name, parameter in known.items() if parameter.required and name not in arguments]
    if missing:
        example = ", ".join(f"{name}=…" for name in missing)
        raise UsageError(f"expects at least one '{missing[0]}' parameter", where=rule, hint=f"write {rule}({example})")
    return arguments


def ignores_errors(rule: str, given: Parameters) -> bool:
    """Whether ``ignore_errors`` says so.

    Raises:
        UsageError: it says neither true nor false.
    """
    text = given.get("ignore_errors", ["false"])[0]
    if text.lower() not in ("true", "false"):
        raise UsageError(f"ignore_errors should be true or false, found '{text}'", where=rule)
    return text.lower() == "true"


def _value(parameter: RuleParameter, text: str, where: str) -> Any:
    name = parameter.name
    if parameter.kind is bool:
        if text not in ("true", "1", "false", "0"):
            what = f"couldn't interpret the {name} argument as a boolean: '{text}' (expected true, false, 0 or 1)"
            raise UsageError(what, where=where)
        return text in ("true", "1")
    if parameter.kind is int:
        limit = 1 << (parameter.bits - 1)
        if not re.fullmatch(r"[ \t\n\v\f\r]*-?[0-9]{1,19}[ \t\n\v\f\r]*", text) or not -limit <= int(text) < limit:
            raise UsageError(f"couldn't interpret the {name} argument as a number: '{text}'", where=where)
        return int(text)
    if parameter.kind is float:
        try:
            return float.fromhex(text) if "x" in text.lower() else float(text.replace("_", "?"))
        except (ValueError, OverflowError):
            what = f"couldn't interpret the {name} argument as a float number: '{text}'"
            raise UsageError(what, where=where) from None
    return text


def _kind(hint: Any) -> tuple[type, bool, int]:
    """The type of one value, whether the parameter may be repeated, and the bits of an int."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(member for member in typing.get_args(hint) if member is not type(None))
    repeated = typing.get_origin(hint) in (tuple, list, Sequence)
    if repeated:
        hint = typing.get_args(hint)[0]
    hint, bits = typing.get_args(hint)[:2] if typing.get_origin(hint) is Annotated else (hint, 64)
    if hint not in (int, float, bool, str):
        raise TypeError(f"a rule's parameter cannot be of type {hint}")
    return hint, repeated, bits
