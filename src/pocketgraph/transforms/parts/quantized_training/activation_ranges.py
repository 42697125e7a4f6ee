"""Finds the range of an input from the activation that it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from pocketgraph.errors import TransformError
from pocketgraph.transforms.parts.constant_folding.flow import FlowStep

Activation: TypeAlias = tuple[float, float] | None
"""The range of an input, or None where it has to be watched."""

FIXED: dict[str, Activation] = {"Relu6": (0.0, 6.0), "Sigmoid": (0.0, 1.0), "Tanh": (-1.0, 1.0)}
WATCHED = frozenset({"Const", "Variable", "VariableV2", "Relu"})
"""Not a trait: the original's list of what gets a range of its own."""
PASSING = frozenset({
    "Reshape", "ConcatV2", "Identity", "MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D",
})  # fmt: skip
"""Not a trait: the original's list of ops whose results have the range of their first input."""
MOST_UNKNOWN = 2  # inputs of products that may be the model's own


def activation_of(steps: Mapping[str, FlowStep], name: str, unknown: list[str]) -> Activation:
    """The range of what a step gives.

    Args:
        unknown: gets the name when it comes from an op that says nothing of ranges; it is taken for the model's input.

    Raises:
        TransformError: that makes more than two.
    """
    passed: set[str] = set()
    current = steps[name].node
    while current.op in PASSING and current.name not in passed and steps[current.name].data:
        passed.add(current.name)
        current = steps[steps[current.name].data[0][0]].node
    if current.op in FIXED:
        return FIXED[current.op]
    if current.op not in WATCHED:
        unknown.append(name)
        if len(unknown) > MOST_UNKNOWN:
            node = steps[name].node
            raise TransformError(
                f"Found an unknown op: {node.name} with type: {node.op}; Unknown ops are considered as model input for "
                f"now and only {MOST_UNKNOWN} inputs are supported currently"
            )
    return None
