"""Tells two graphs apart node by node, for a picture of both: what vanished, came and changed, and by which rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pocketgraph.graph import Graph, Node, Tensor, canonical
from pocketgraph.graph.groups import by_key
from pocketgraph.graph.text_printer import print_attr

KINDS = VANISHED, CAME, CHANGED, REWIRED = "vanished", "came", "changed", "rewired"
LONGEST = 120  # letters of an attribute


@dataclass(frozen=True)
class Change:
    """What became of a node.

    Attributes:
        kind: ``vanished``, ``came``, ``changed`` (op, attributes, or weights that it reads) or ``rewired``.
        how: in words.
        rule: the rules that did it, "" where that is not known.
    """

    kind: str
    how: str = ""
    rule: str = ""


@dataclass(frozen=True)
class AppliedRule:
    """A rule that ran: its name with parameters, and the graphs before and after it."""

    rule: str
    before: Graph
    after: Graph


def changes(before: Graph, after: Graph) -> dict[str, Change]:
    """What is different, by name of node; nodes that are the same are left out."""
    found = {name: Change(VANISHED) for name in before.nodes if name not in after}
    for node in after:
        old = before.nodes.get(node.name)
        if old is None:
            found[node.name] = Change(CAME)
            continue
        said = _attributes(old, node) if old is not node else []
        weights = _weights(old, node, before, after)
        if said or weights:
            found[node.name] = Change(CHANGED, "; ".join([*said, *weights]))
        elif old.inputs != node.inputs and list(map(canonical, old.inputs)) != list(map(canonical, node.inputs)):
            found[node.name] = Change(REWIRED, _inputs(old, node))
    return found


def changes_of_chain(steps: Sequence[AppliedRule], by_step: Sequence[Mapping[str, Change]]) -> dict[str, Change]:
    """What is different between the first graph and the last, with the rules that did it.

    Args:
        steps: in order.
        by_step: ``changes`` of each.
    """
    blamed = by_key((name, step.rule) for step, found in zip(steps, by_step, strict=True) for name in found)
    return {
        name: Change(change.kind, change.how, ", ".join(dict.fromkeys(_blame(change, blamed.get(name, [])))))
        for name, change in changes(steps[0].before, steps[-1].after).items()
    }


def _blame(change: Change, rules: list[str]) -> list[str]:
    """Who removed it, who made it, or all who changed it."""
    return rules[-1:] if change.kind == VANISHED else rules[:1] if change.kind == CAME else rules


def _attributes(old: Node, new: Node) -> list[str]:
    said = [f"op: {old.op} → {new.op}"] if old.op != new.op else []
    if old.device != new.device:
        said.append(f"device: '{old.device}' → '{new.device}'")
    for key in dict.fromkeys([*old.attrs, *new.attrs]):
        a, b = old.attrs.get(key), new.attrs.get(key)
        if not _are_same(a, b):
            said.append(f"{key}: {_said(old.attrs, key)} → {_said(new.attrs, key)}")
    return said


def _are_same(a: object, b: object) -> bool:
    if a is b:
        return True
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.same_values(b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_are_same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a.hex() == b.hex()  # NaN is NaN, and -0.0 is not 0.0
    return a == b and all(isinstance(a, kind) == isinstance(b, kind) for kind in (bool, float))


def _said(attributes: Mapping[str, Any], key: str) -> str:
    if key not in attributes:
        return "none"
    text = print_attr(attributes[key], key)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _weights(old: Node, new: Node, before: Graph, after: Graph) -> list[str]:
    """The constants that a node reads and that have other values now."""
    if old.op == "Const" or len(old.inputs) != len(new.inputs):
        return []
    said = []
    for a, b in zip(old.inputs, new.inputs, strict=True):
        was, now = before.constant(a), after.constant(b)
        if was is not None and now is not None and not _are_same(was, now):
            said.append(f"other values in '{b}'")
    return said


def _inputs(old: Node, new: Node) -> str:
    lost = [ref for ref in old.inputs if ref not in new.inputs]
    got = [ref for ref in new.inputs if ref not in old.inputs]
    if len(lost) == len(got) == 1:
        return f"reads '{got[0]}' in place of '{lost[0]}'"
    said = [f"no more {', '.join(lost[:5])}"] if lost else []
    return "; ".join([*said, *([f"now {', '.join(got[:5])}"] if got else [])]) or "inputs in another order"
