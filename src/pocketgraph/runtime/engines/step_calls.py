"""What steps call: the engine's own small ops, kernels with their attributes bound, and the reading of variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from pocketgraph.errors import MissingKernelError, RunError
from pocketgraph.graph import DType, Node
from pocketgraph.kernels import registry
from pocketgraph.kernels.ranks import checked
from pocketgraph.runtime.engines.steps import DEAD, Run

INDICES = [np.asarray(index, np.int32) for index in range(8)]
"""What a Merge says of the input it took; nobody writes to them."""
for _index in INDICES:
    _index.flags.writeable = False


def same(value: Any) -> Any:
    return value


def branch_marks(predicate: Any) -> tuple[Any, Any]:
    """What a Switch's two outputs carry: DEAD on the side not taken."""
    return (DEAD, True) if predicate else (True, DEAD)


def case_marks(count: int, index: Any) -> tuple[Any, ...]:
    """What the outputs of a switch with ``count`` ways carry: DEAD on all but one, the last for any other index."""
    chosen = int(index)
    if not 0 <= chosen < count:
        chosen = count - 1
    return tuple([True if way == chosen else DEAD for way in range(count)])


def first_live(*values: Any) -> tuple[Any, Any]:
    """What a Merge gives: the first live input and its index, or DEAD twice."""
    for index, value in enumerate(values):
        if value is not DEAD:
            return value, INDICES[index] if index < len(INDICES) else np.asarray(index, np.int32)
    return DEAD, DEAD


def holding(call: Callable[..., Any]) -> Callable[..., Any]:
    """An Assert that looks no further where its condition is one number that holds."""

    def assert_(run: Run, condition: Any, *data: Any) -> Any:
        if type(condition) is np.ndarray and not condition.ndim and condition:
            return ()
        return call(run, condition, *data)

    return assert_


def not_fed(node: Node, *_: Any) -> Any:
    """Complains of a placeholder without a value."""
    dtype = node.attr("dtype")
    said = f" with dtype {dtype.name}" if isinstance(dtype, DType) else ""
    shape = node.shape()
    if shape is not None and shape.rank:
        said += f" and shape {shape}"
    raise RunError(
        f"You must feed a value for placeholder tensor '{node.name}'{said}", hint=f"add '{node.name}' to the feeds"
    )


def gatherer(slots: Sequence[int]) -> Callable[[list[Any]], Sequence[Any]]:
    """Picks these slots; at least one is given back as a sequence too."""
    if len(slots) > 1:
        return itemgetter(*slots)
    return itemgetter(slice(slots[0], slots[0] + 1)) if slots else itemgetter(slice(0, 0))


def dereferenced(call: Callable[..., Any], positions: tuple[int, ...]) -> Callable[..., Any]:
    """The call with the variables at these positions replaced by their present values."""

    def with_values(*arguments: Any) -> Any:
        changed = list(arguments)
        for position in positions:
            if changed[position] is not DEAD:
                changed[position] = changed[position].read()
        return call(*changed)

    if getattr(call, "traces_itself", False):
        with_values.traces_itself = True  # type: ignore[attr-defined]
    return with_values


def bound(node: Node, uses: Callable[[str], bool]) -> tuple[Callable[..., Any], bool]:
    """The node's kernel with its attributes, and whether it wants the Run as its first argument.

    A kernel's ``without`` are functions that compute the same without a pass, by the pass's name; ``uses`` tells
    whether one is on.
    """
    found = registry.KERNELS.row(node.op)
    if found is None:
        raise MissingKernelError(f"No OpKernel was registered to support Op '{node.op}'", where=f"node '{node.name}'")
    registry.check_count(found, node, sum(not ref.startswith("^") for ref in node.inputs))
    keywords = registry.arguments(found, node)
    plain = found.function
    for name, other in getattr(getattr(plain, "__wrapped__", plain), "without", {}).items():
        if not uses(name):
            plain = checked(node.op, other)
    function = partial(plain, **keywords) if keywords else plain
    if not found.takes_context:
        return function, False

    def with_context(run: Run, *inputs: Any) -> Any:
        return function(*inputs, context=registry.Context(node, run.state, run.step, run.rng, run.files, run.caller))

    return with_context, True


def takes_run(node: Node) -> bool:
    """Whether a node's kernel wants the Run as its first argument."""
    found = registry.KERNELS.row(node.op)
    return found is not None and found.takes_context
