"""A kernel's signature is its op's: the same number of inputs and outputs, the same attributes, the same defaults."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from pocketgraph.graph import opdefs
from pocketgraph.kernels import Kernel, registry
from pocketgraph.kernels.registry import plain


def all_kernels() -> list[Kernel]:
    found = (registry.KERNELS.row(op) for op in sorted(registry.KERNELS))
    return [kernel for kernel in found if kernel is not None]


KERNELS = all_kernels()


def shared_attributes() -> dict[Any, set[str]]:
    """The attributes of all ops that one function computes, which some of them may lack."""
    found: dict[Any, set[str]] = {}
    for kernel in KERNELS:
        definition = opdefs.find(kernel.op)
        found.setdefault(inspect.unwrap(kernel.function), set()).update(definition.attrs if definition else ())
    return found


SHARED = shared_attributes()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.op)
def test_signature_is_the_ops(kernel: Kernel) -> None:
    definition = opdefs.find(kernel.op)
    if definition is None:
        pytest.fail(f"no op is called {kernel.op}")
    attrs = definition.attrs
    for name in kernel.attrs:
        if name not in attrs and name in SHARED.get(inspect.unwrap(kernel.function), set()):
            continue
        assert name in attrs, f"{kernel.op} has no attribute {name}"
        default = attrs[name].default
        if default is None:
            continue
        assert name in kernel.defaults, f"{name} has the default {default!r}"
        assert same(kernel.defaults[name], plain(default)), f"{name}: {kernel.defaults[name]!r}, not {default!r}"
    for name in kernel.defaults.keys() & attrs.keys():
        assert attrs[name].default is not None or attrs[name].since, f"{kernel.op} requires {name}"
    positional = [
        p for p in inspect.signature(kernel.function).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD
    ]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(kernel.function).parameters.values())
    lists = any(a.number_attr or a.type_list_attr for a in definition.inputs)
    assert variadic or not lists, f"{kernel.op} takes a list of inputs"
    if not variadic:
        assert len(positional) == len(definition.inputs)


def same(mine: Any, theirs: Any) -> bool:
    if mine is None:  # worked out inside
        return True
    if isinstance(theirs, float):
        return abs(mine - theirs) <= 1e-6 * max(1.0, abs(theirs))
    if isinstance(theirs, list | tuple):
        return list(mine) == list(theirs)
    return bool(mine == theirs)
