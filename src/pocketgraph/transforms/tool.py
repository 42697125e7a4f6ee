"""The rules by name, and the tool that runs a list of them over a graph.

A rule is one file of this package, named like the function inside it::

    @transform
    def round_weights(graph: Graph, *, num_steps: int = 256) -> Graph:

Its keyword arguments are its parameters in a transform string: name, type, default, and the error for a bad value all
come from the signature. A parameter is an ``int``, ``float``, ``bool`` or ``str``, maybe ``| None``; or it is a
``tuple[str, ...]``, which may be repeated. A rule finds what will be fed and fetched in ``graph.inputs`` and
``graph.outputs``. Files whose name begins with ``_``, and this one, are no rules.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import logging
import pkgutil
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from pocketgraph.errors import PocketgraphError, TransformError, UsageError, did_you_mean
from pocketgraph.graph import Graph
from pocketgraph.transforms._grammar import Parameters, parse_transforms

__all__ = ["Parameter", "Rule", "bind", "checked", "find", "names", "parse_transforms", "run", "transform"]

ALIASES = {"obsfucate_names": "obfuscate_names"}
Function = TypeVar("Function", bound=Callable[..., Graph])
log = logging.getLogger("pocketgraph.transforms")

_rules: dict[str, Rule] = {}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a rule.

    Attributes:
        name: as in a transform string.
        kind: what a value is: int, float, bool or str.
        repeated: whether it may be given more than once; the rule gets a tuple.
        default: the value when it is not given.
        required: whether there is no default.
    """

    name: str
    kind: type
    repeated: bool
    default: Any
    required: bool


@dataclass(frozen=True)
class Rule:
    """A rewriting rule: a function from graph to graph, and its name."""

    name: str
    function: Callable[..., Graph]

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters by name, from the function's signature."""
        hints = typing.get_type_hints(self.function)
        found = {}
        for name, item in inspect.signature(self.function).parameters.items():
            if item.kind is inspect.Parameter.KEYWORD_ONLY:
                kind, repeated = _kind(hints[name])
                required = item.default is inspect.Parameter.empty
                found[name] = Parameter(name, kind, repeated, None if required else item.default, required)
        return found

    @property
    def summary(self) -> str:
        """The first line of the function's description."""
        return (inspect.getdoc(self.function) or "").split("\n", 1)[0]


def transform(function: Function) -> Function:
    """Makes a function from graph to graph a rule of the same name."""
    _rules[function.__name__] = Rule(function.__name__, function)
    return function


def names() -> list[str]:
    """The names of all rules, in alphabetical order, without loading them."""
    package = importlib.import_module("pocketgraph.transforms")
    files = {module.name for module in pkgutil.iter_modules(package.__path__)}
    return sorted({name for name in files if not name.startswith("_") and name != "tool"} | _rules.keys())


def find(name: str) -> Rule:
    """The rule of this name, loaded now if it was not.

    Raises:
        UsageError: there is none; the message suggests near names.
    """
    name = ALIASES.get(name, name)
    if name not in _rules:
        known = names()
        if name not in known:
            hint = did_you_mean(name, known) or f"the transforms are {', '.join(known)}"
            raise UsageError(f"Transform '{name}' not recognized", hint=hint)
        importlib.import_module(f"pocketgraph.transforms.{name}")
    return _rules[name]


def run(graph: Graph, transforms: str | Iterable[str]) -> Graph:
    """The graph after a list of rules, one after the other.

    Names and parameters of all rules are checked before the first one runs. After each rule every reference must lead
    to a node. ``ignore_errors=true`` among a rule's parameters passes over the rule when it fails. "Applying NAME" and
    the errors passed over go to the log ``pocketgraph.transforms``.

    Differs from the original: the graph's versions are kept (the original drops them, which makes runtimes read the
    graph by the oldest rules), and a parameter that the rule does not know is an error (there it is ignored).

    Args:
        graph: the graph, with its inputs and outputs.
        transforms: a transform string, or several.

    Raises:
        UsageError: the string does not follow the grammar, or names an unknown rule or parameter, or a bad value.
        TransformError: a rule failed, or left a reference to a node that is not there.
    """
    text = transforms if isinstance(transforms, str) else " ".join(transforms)
    steps = checked(parse_transforms(text))
    with _collector_paused():
        for rule, arguments, ignore_errors in steps:
            log.info("Applying %s", rule.name)
            try:
                graph = rule.function(graph, **arguments)
            except PocketgraphError as error:
                if not ignore_errors:
                    raise TransformError(str(error), where=rule.name) from error
                log.warning("%s: Ignoring error %s", rule.name, error)
            check(graph, rule.name)
    return graph


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Nodes hold no cycles, but there are so many that Python's search for cycles would take half of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def checked(steps: Iterable[tuple[str, Parameters]]) -> list[tuple[Rule, dict[str, Any], bool]]:
    """For each transform its rule, the rule's keyword arguments, and whether to ignore its errors.

    Raises:
        UsageError: a rule or parameter is unknown, or a value is bad.
    """
    rules = [(find(name), parameters) for name, parameters in steps]
    return [(rule, bind(rule, parameters), _ignores_errors(rule, parameters)) for rule, parameters in rules]


def check(graph: Graph, after: str) -> None:
    """Raises TransformError when a reference leads nowhere."""
    missing = graph.dangling()
    if missing:
        shown = ", ".join(f"'{source}' (read by '{node}')" for node, source in missing[:3])
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise TransformError(f"the graph has inputs that refer to nonexistent nodes: {shown}{more}", where=after)


def bind(rule: Rule, given: Parameters) -> dict[str, Any]:
    """The keyword arguments that the parameters of a transform string make for a rule.

    Raises:
        UsageError: a parameter is unknown, missing, repeated, or its value is not of its type.
    """
    known = rule.parameters
    arguments: dict[str, Any] = {}
    for name, texts in given.items():
        if name == "ignore_errors":
            continue
        if name not in known:
            all_names = [*known, "ignore_errors"]
            hint = did_you_mean(name, all_names) or f"it takes {', '.join(all_names)}"
            raise UsageError(f"unknown parameter '{name}'", where=rule.name, hint=hint)
        parameter = known[name]
        if parameter.repeated:
            arguments[name] = tuple(texts)
        elif len(texts) > 1:
            raise UsageError(
                f"expected a single '{name}' parameter but found {len(texts)} occurrences", where=rule.name
            )
        else:
            arguments[name] = _value(parameter, texts[0], rule.name)
    missing = [name for name, parameter in known.items() if parameter.required and name not in arguments]
    if missing:
        example = ", ".join(f"{name}=…" for name in missing)
        raise UsageError(
            f"expects at least one '{missing[0]}' parameter", where=rule.name, hint=f"write {rule.name}({example})"
        )
    return arguments


def _value(parameter: Parameter, text: str, where: str) -> Any:
    name = parameter.name
    if parameter.kind is bool:
        if text not in ("true", "1", "false", "0"):
            what = f"couldn't interpret the {name} argument as a boolean: '{text}' (expected true, false, 0 or 1)"
            raise UsageError(what, where=where)
        return text in ("true", "1")
    if parameter.kind is int:
        if (
            not re.fullmatch(r"[ \t\n\v\f\r]*-?[0-9]{1,19}[ \t\n\v\f\r]*", text)
            or not -(1 << 63) <= int(text) < 1 << 63
        ):
            raise UsageError(f"couldn't interpret the {name} argument as a number: '{text}'", where=where)
        return int(text)
    if parameter.kind is float:
        try:
            return float.fromhex(text) if "x" in text.lower() else float(text.replace("_", "?"))
        except (ValueError, OverflowError):
            what = f"couldn't interpret the {name} argument as a float number: '{text}'"
            raise UsageError(what, where=where) from None
    return text


def _ignores_errors(rule: Rule, given: Parameters) -> bool:
    text = given.get("ignore_errors", ["false"])[0]
    if text.lower() not in ("true", "false"):
        raise UsageError(f"ignore_errors should be true or false, found '{text}'", where=rule.name)
    return text.lower() == "true"


def _kind(hint: Any) -> tuple[type, bool]:
    """The type of one value, and whether the parameter may be repeated."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(member for member in typing.get_args(hint) if member is not type(None))
    repeated = typing.get_origin(hint) in (tuple, list, Sequence)
    if repeated:
        hint = typing.get_args(hint)[0]
    if hint not in (int, float, bool, str):
        raise TypeError(f"a rule's parameter cannot be of type {hint}")
    return hint, repeated
