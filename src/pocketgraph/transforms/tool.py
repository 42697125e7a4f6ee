"""The rules by name, and the tool that runs a list of them over a graph.

A rule is one file of ``rules/``, named like the function inside it::

    @transform
    def round_weights(graph: Graph, *, num_steps: int = 256) -> Graph:

Its keyword arguments are its parameters in a transform string: name, type, default, and the error for a bad value all
come from the signature. A parameter is an ``int``, ``float``, ``bool`` or ``str``, maybe ``| None``; or it is a
``tuple[str, ...]``, which may be repeated. A rule finds what will be fed and fetched in ``graph.inputs`` and
``graph.outputs``.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import pkgutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from pocketgraph.errors import PocketgraphError, TransformError, UsageError, did_you_mean
from pocketgraph.graph import Graph, Versions
from pocketgraph.graph.colocation import without_colocations
from pocketgraph.graph.garbage_collection import collector_paused
from pocketgraph.graph.model_file_graph import refuse_finished
from pocketgraph.pages.quantities import listed
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.grammar import Parameters, parse_transforms
from pocketgraph.transforms.graph_verification import check
from pocketgraph.transforms.near_miss import Miss, remedies
from pocketgraph.transforms.original.numbering import one_run
from pocketgraph.transforms.rule_parameters import RuleParameter, arguments_of, ignores_errors, parameters_of
from pocketgraph.transforms.user_rules import called, installed

__all__ = ["Rule", "RuleParameter", "bind", "checked", "find", "names", "parse_transforms", "run", "transform"]

ALIASES = {"obsfucate_names": "obfuscate_names"}
Function = TypeVar("Function", bound=Callable[..., Graph])
KEEP_VERSIONS = frozenset({"add_default_attributes", "fake_quantize_training"})
"""The rules after which the original's graph still says which version wrote it."""
RULES = "pocketgraph.transforms.rules"
log = logging.getLogger("pocketgraph.transforms")

_rules: dict[str, Rule] = {}


@dataclass(frozen=True)
class Rule:
    """A rewriting rule: a function from graph to graph, and its name."""

    name: str
    function: Callable[..., Graph]

    @property
    def parameters(self) -> Mapping[str, RuleParameter]:
        """The parameters by name, from the function's signature."""
        return parameters_of(self.function)

    @property
    def context(self) -> frozenset[str]:
        """Which keyword arguments the tool fills in, rather than the transform string."""
        return frozenset({"compat"} & inspect.signature(self.function).parameters.keys())

    @property
    def takes_any(self) -> bool:
        """Whether parameters that it does not name are no error."""
        kinds = {item.kind for item in inspect.signature(self.function).parameters.values()}
        return inspect.Parameter.VAR_KEYWORD in kinds

    def near_misses(self, graph: Graph, arguments: Mapping[str, Any]) -> list[Miss]:
        """The places in a graph that the rule made that look as if they were for it, and why they are not.

        They come, in graph order, from the function ``near_misses`` of the rule's own file, where it has one.
        """
        explain = getattr(sys.modules.get(self.function.__module__), "near_misses", None)
        return [] if explain is None else list(explain(graph, arguments))

    @property
    def summary(self) -> str:
        """The first line of the function's description."""
        return (inspect.getdoc(self.function) or "").split("\n", 1)[0]


@dataclass(frozen=True)
class Applied:
    """A rule that has just run.

    Attributes:
        arguments: its keyword arguments.
        before, after: the graph that it was given and the one that it made.
        seconds: how long it took, with the checks of the result.
        steps: the rules that it ran itself, as the presets do; only where somebody observes.
    """

    rule: Rule
    arguments: Mapping[str, Any]
    before: Graph
    after: Graph
    seconds: float
    steps: tuple[Applied, ...] = ()


_collected: ContextVar[list[Applied] | None] = ContextVar("collected", default=None)
"""Where the runs inside of a rule put what they did."""
Observer = Callable[[Applied], None]


def transform(function: Function) -> Function:
    """Makes a function from graph to graph a rule of the same name."""
    _rules[function.__name__] = Rule(function.__name__, function)
    return function


def names() -> list[str]:
    """The names of all rules, of installed packages too, in alphabetical order, without loading them."""
    return sorted({*built_in(), *installed(), *_rules})


def built_in() -> list[str]:
    """The names of this package's rules, in alphabetical order, without loading them."""
    package = importlib.import_module(RULES)
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__))


def loaded() -> Mapping[str, Rule]:
    """The rules that are loaded, by name."""
    return _rules


def forget(module: str) -> None:
    """Unloads the rules of a module; a rule of this package whose name they took comes back when it is asked for."""
    for name in [name for name, rule in _rules.items() if rule.function.__module__ == module]:
        del _rules[name]
        sys.modules.pop(f"{RULES}.{name}", None)


def find(name: str) -> Rule:
    """The rule of this name, loaded now if it was not.

    Raises:
        UsageError: there is none; the message suggests near names.
    """
    name = ALIASES.get(name, name)
    if name not in _rules:
        if name in built_in():
            importlib.import_module(f"{RULES}.{name}")
        elif name in installed():
            _rules[name] = _of_package(name)
        else:
            known = names()
            hint = did_you_mean(name, known) or f"the transforms are {', '.join(known)}"
            raise UsageError(f"Transform '{name}' not recognized", hint=hint)
    return _rules[name]


def _of_package(name: str) -> Rule:
    point = installed()[name]
    try:
        function = point.load()
    except Exception as error:  # somebody's package: anything may go wrong
        raise UsageError(f"the rule '{name}' ({point.value}) does not load: {error}") from error
    if not callable(function):
        raise UsageError(f"the rule '{name}' ({point.value}) is no function")
    return Rule(name, function)


def run(
    graph: Graph,
    transforms: str | Iterable[str],
    *,
    compat: Compat | str = Compat.FIXED,
    observe: Observer | None = None,
) -> Graph:
    """The graph after a list of rules, one after the other.

    Names and parameters of all rules are checked before the first one runs. After each rule every reference must lead
    to a node, inputs and outputs must still be there, and no cycle may have come about. ``ignore_errors=true`` among a
    rule's parameters passes over the rule when it fails. "Applying NAME" and the errors passed over go to the log
    ``pocketgraph.transforms``.

    Differs from the original: the graph's versions are kept (the original drops them, which makes runtimes read the
    graph by the oldest rules); no node asks any more to be placed with one that a rule dropped (``_class``, with which
    TensorFlow loads no graph); a parameter that the rule does not know is an error (there it is ignored), and so is a
    rule that loses an input or output of the graph or makes a cycle. Parameters of all rules are checked beforehand,
    with ``Compat.ORIGINAL``, too, but for those of a rule with ``ignore_errors=true``, which it passes over then; and a
    parameter that is given twice is always an error (there, it is none where the value is not needed).

    Args:
        graph: the graph, with its inputs and outputs.
        transforms: a transform string, or several.
        compat: "original" for exactly what the original does, or "fixed" for what is right where it goes wrong.
        observe: is told of each rule after it ran; what it raises ends the run.

    Raises:
        UsageError: the string does not follow the grammar, or names an unknown rule or parameter, or a bad value; or
            the graph is that of a LiteRT or ONNX file.
        TransformError: a rule failed, or damaged the graph.
    """
    refuse_finished(graph, "transform_graph")
    text = transforms if isinstance(transforms, str) else " ".join(transforms)
    compat = Compat.named(compat)
    steps = checked(parse_transforms(text, compat=compat), compat)
    whole = not graph.dangling()  # whether the references of the graph at hand are known to lead somewhere
    outer = _collected.get()
    with collector_paused(), one_run():
        for rule, arguments, ignore_errors in steps:
            log.info("Applying %s", rule.name)
            kept = {} if isinstance(arguments, UsageError) else arguments
            before, start = graph, time.perf_counter()
            inner: list[Applied] | None = None if observe is None and outer is None else []
            try:
                if isinstance(arguments, UsageError):
                    raise arguments
                with _collecting(inner):
                    graph = called(rule.function, graph, arguments)
                if not compat.original:
                    graph = without_colocations(graph, before.nodes.keys() - graph.nodes.keys())
                elif rule.name not in KEEP_VERSIONS:
                    graph = graph.replace(versions=Versions())
            except PocketgraphError as error:
                if not ignore_errors:
                    raise TransformError(str(error), where=rule.name) from error
                said = "" if compat.original else "; the graph is as it was before this rule"
                log.warning("%s: Ignoring error %s%s", rule.name, error, said)
            check(before, graph, rule.name, references_only=compat.original, whole=whole)
            whole = True
            if not compat.original:
                _say_what_is_missing(rule, graph, kept)
            seconds = time.perf_counter() - start
            if inner is not None:
                applied = Applied(rule, kept, before, graph, seconds, tuple(inner))
                if outer is not None:
                    outer.append(applied)
                if observe is not None:
                    observe(applied)
    return graph


@contextmanager
def _collecting(steps: list[Applied] | None) -> Iterator[None]:
    token = _collected.set(steps)
    try:
        yield
    finally:
        _collected.reset(token)


def _say_what_is_missing(rule: Rule, graph: Graph, arguments: Mapping[str, Any]) -> None:
    """Logs where the rule did not match because another one did not run before it."""
    for remedy, misses in remedies(rule.near_misses(graph, arguments)).items():
        nodes = listed([miss.node for miss in misses], 1, quoted=True)
        log.warning("%s: left %s alone, %s; run %s first", rule.name, nodes, misses[0].why, remedy)


def checked(
    steps: Iterable[tuple[str, Parameters]], compat: Compat = Compat.FIXED
) -> list[tuple[Rule, dict[str, Any] | UsageError, bool]]:
    """For each transform its rule, the rule's keyword arguments, and whether to ignore its errors.

    With ``Compat.ORIGINAL`` bad parameters of a rule whose errors are to be ignored take the place of its arguments.

    Raises:
        UsageError: a rule or parameter is unknown, or a value is bad.
    """
    found: list[tuple[Rule, dict[str, Any] | UsageError, bool]] = []
    for rule, given in [(find(name), given) for name, given in steps]:
        ignored = ignores_errors(rule.name, given)
        try:
            found.append((rule, bind(rule, given, compat), ignored))
        except UsageError as error:
            if not (ignored and compat.original):
                raise
            found.append((rule, error, ignored))
    return found


def bind(rule: Rule, given: Parameters, compat: Compat = Compat.FIXED) -> dict[str, Any]:
    """The keyword arguments that the parameters of a transform string make for a rule, and ``compat`` if it wants that.

    Raises:
        UsageError: a parameter is unknown, missing, repeated, or its value is not of its type.
    """
    context = {"compat": compat} if "compat" in rule.context else {}
    takes_any = rule.takes_any or compat.original
    return {**context, **arguments_of(rule.name, rule.parameters, given, takes_any=takes_any, compat=compat)}
