"""Which inputs and outputs of ops are variables themselves, not their values: references, of TensorFlow 1."""

from __future__ import annotations

from functools import lru_cache

PLAIN: set[str] = set()
"""Ops that take and give values only, as far as that was found out before (reading the table takes long)."""


@lru_cache(maxsize=4096)
def reference_inputs(op: str, count: int) -> frozenset[int]:
    """The positions at which an op takes a variable itself, not its value."""
    if op in PLAIN:
        return frozenset()
    from pocketgraph.graph import opdefs  # which a warm start does without

    found = opdefs.find(op)
    if found is None or not any(arg.is_ref for arg in found.inputs):
        return frozenset()
    if found.inputs[-1].is_ref and found.inputs[-1].number_attr:  # a list of variables takes all places that are left
        return frozenset(range(len(found.inputs) - 1, count))
    return frozenset(index for index, arg in enumerate(found.inputs) if arg.is_ref)


@lru_cache(maxsize=4096)
def is_reference_output(op: str, port: int) -> bool:
    """Whether an op's output is a variable itself."""
    if op in PLAIN:
        return False
    from pocketgraph.graph import opdefs  # which a warm start does without

    found = opdefs.find(op)
    return found is not None and port < len(found.outputs) and found.outputs[port].is_ref


def is_plain(op: str) -> bool:
    """Whether an op takes and gives values only."""
    from pocketgraph.graph import opdefs  # which a warm start does without

    found = opdefs.find(op)
    return found is not None and not any(arg.is_ref for arg in (*found.inputs, *found.outputs))
