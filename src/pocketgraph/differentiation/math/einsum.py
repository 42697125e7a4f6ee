"""Gradient of Einsum: another Einsum for each operand."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.errors import GraphError

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@gradient("Einsum")
def einsum(op: NodeGradient) -> Sequence[str]:
    """Of "ab,bc->ac" with the gradient G: G·Yᵀ as "ac,bc->ab", and Xᵀ·G as "ab,ac->bc".

    What is summed over and only one operand has is repeated.
    """
    operands, result = _labels(op)
    found = []
    for place, own in enumerate(operands):
        if len(set(own)) < len(own):
            raise GraphError("an Einsum with a diagonal has no gradient here")
        pairs = list(zip(operands, op.inputs, strict=True))
        others = pairs[:place] + pairs[place + 1 :]
        known = set(result).union(*(set(labels) for labels, _ in others))
        kept = "".join(label for label in own if label in known)
        equation = ",".join([result, *(labels for labels, _ in others)]) + "->" + kept
        value = op.add("Einsum", [op.grad, *(ref for _, ref in others)], equation=equation.encode())
        if kept != own:
            for axis, label in enumerate(own):
                if label not in known:
                    value = op.add("ExpandDims", value, op.const(axis))
            value = op.add("BroadcastTo", value, op.shape_of_input(place))
        found.append(value)
    return found


def _labels(op: NodeGradient) -> tuple[list[str], str]:
    """The labels of each operand and of the result, a letter an axis."""
    left, _, result = str(op.attr("equation")).replace(" ", "").partition("->")
    operands = left.split(",")
    if "." not in left + result:
        return operands, result
    letters = [letter for letter in LETTERS if letter not in left + result]
    ranks = [
        op.rank(ref) - len(labels.replace("...", "")) if "." in labels else 0
        for labels, ref in zip(operands, op.inputs, strict=True)
    ]
    shapes = {
        tuple(op.static(ref))[labels.index(".") : labels.index(".") + rank]
        for labels, ref, rank in zip(operands, op.inputs, ranks, strict=True) if rank
    }  # fmt: skip
    if len(shapes) > 1 or (shapes and None in next(iter(shapes)) and sum(map(bool, ranks)) > 1):
        raise GraphError("an Einsum that broadcasts has no gradient here")
    return (
        [labels.replace("...", "".join(letters[:rank])) for labels, rank in zip(operands, ranks, strict=True)],
        result.replace("...", "".join(letters[: max(ranks)])),
    )
