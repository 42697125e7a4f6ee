"""Rules of the user's own from a Python file that was named."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Collection, Mapping
from importlib.machinery import SourceFileLoader
from types import ModuleType

from pocketgraph.errors import UsageError
from pocketgraph.formats.files import near
from pocketgraph.transforms import tool


def load_file(path: str | os.PathLike[str]) -> list[str]:
    """Runs a Python file and makes its ``@transform`` functions rules; only call it for a file that the user named.

    Returns:
        The names of the new rules.

    Raises:
        UsageError: the file is not there, does not run, defines no rule, or defines one of a name that is taken.
    """
    where = os.fspath(path)
    if not os.path.isfile(where):
        hint = near(where) or "name a .py file with @transform functions"
        raise UsageError("there is no such file", where=where, hint=hint)
    taken = set(tool.names())
    module_name = f"pocketgraph_rules_{len(tool.loaded())}_{os.path.basename(where).partition('.')[0]}"
    loader = SourceFileLoader(module_name, where)
    spec = importlib.util.spec_from_loader(module_name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # the rules' annotations are looked up there
    try:
        _run(loader, module, where)
        new = {name: rule for name, rule in tool.loaded().items() if rule.function.__module__ == module_name}
        _check(new, taken, where)
    except UsageError:
        tool.forget(module_name)
        sys.modules.pop(module_name, None)
        raise
    return sorted(new)


def _run(loader: SourceFileLoader, module: ModuleType, where: str) -> None:
    """Runs the file, which makes its functions rules."""
    try:
        loader.exec_module(module)
    except Exception as error:  # anything may go wrong in somebody's code
        raise UsageError(f"the file does not run: {type(error).__name__}: {error}", where=where) from error


def _check(new: Mapping[str, tool.Rule], taken: Collection[str], where: str) -> None:
    """Refuses a file without rules, names that are taken, and rules whose parameters are of no type for a string."""
    if not new:
        raise UsageError("the file defines no rule", where=where, hint="put @transform on a function of a graph")
    for name, rule in new.items():
        if name in taken:
            raise UsageError(f"there is a rule '{name}' already", where=where, hint="call it something else")
        try:
            _ = rule.parameters
        except (TypeError, NameError, KeyError) as error:
            raise UsageError(f"the rule '{name}' cannot be used: {error}", where=where) from error
