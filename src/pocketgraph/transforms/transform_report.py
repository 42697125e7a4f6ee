"""Records what each rule did: nodes removed, added and rewired, bytes, time, and where it did not match and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pocketgraph import formats
from pocketgraph.graph import Graph, Node
from pocketgraph.transforms.near_miss import Miss
from pocketgraph.transforms.tool import Applied


@dataclass(frozen=True)
class RuleEntry:
    """What one rule did.

    Attributes:
        rule: its name.
        arguments: its parameters.
        seconds: how long it took.
        nodes: how many nodes there were before and after.
        bytes: the size of the GraphDef before and after.
        removed, added: names of nodes, in graph order.
        rewired: names of nodes that are there before and after and have other inputs.
        changed: names of nodes that have another op or other attributes.
        misses: where it did not match and why.
        steps: the same of the rules that it ran itself, as the presets do.
    """

    rule: str
    arguments: Mapping[str, Any]
    seconds: float
    nodes: tuple[int, int]
    bytes: tuple[int, int]
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    rewired: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    misses: tuple[Miss, ...] = ()
    steps: tuple[RuleEntry, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The entry for programs."""
        return {
            "rule": self.rule,
            "arguments": {key: list(v) if isinstance(v, tuple) else v for key, v in self.arguments.items()},
            "seconds": round(self.seconds, 6),
            "nodes_before": self.nodes[0],
            "nodes_after": self.nodes[1],
            "bytes_before": self.bytes[0],
            "bytes_after": self.bytes[1],
            "removed": list(self.removed),
            "added": list(self.added),
            "rewired": list(self.rewired),
            "changed": list(self.changed),
            "near_misses": [miss._asdict() for miss in self.misses],
            **({"steps": [step.as_dict() for step in self.steps]} if self.steps else {}),
        }


@dataclass
class Recorder:
    """Hand it to ``tool.run`` as ``observe``; then ``entries`` has one for each rule, in order."""

    entries: list[RuleEntry] = field(default_factory=list)
    _sizes: tuple[Graph, int] | None = None

    def __call__(self, applied: Applied) -> None:
        self.entries.append(self._entry(applied))

    def _entry(self, applied: Applied) -> RuleEntry:
        before, after = applied.before, applied.after
        steps = tuple(self._entry(step) for step in applied.steps)
        sizes = (self._size(before), self._size(after))
        both = [(before[node.name], node) for node in after if node.name in before]
        same = [(old, new) for old, new in both if old is not new]
        return RuleEntry(
            applied.rule.name,
            {key: value for key, value in applied.arguments.items() if key in applied.rule.parameters},
            applied.seconds,
            (len(before), len(after)),
            sizes,
            tuple(name for name in before.nodes if name not in after),
            tuple(name for name in after.nodes if name not in before),
            tuple(new.name for old, new in same if old.inputs != new.inputs),
            tuple(new.name for old, new in same if _differs(old, new)),
            tuple(applied.rule.near_misses(after, applied.arguments)),
            steps,
        )

    def _size(self, graph: Graph) -> int:
        """The size of the graph's file in bytes; the last one is remembered, as the next rule starts from it."""
        if self._sizes is None or self._sizes[0] is not graph:
            self._sizes = (graph, len(formats.to_bytes(graph)))
        return self._sizes[1]


def _differs(old: Node, new: Node) -> bool:
    if old.op != new.op or old.device != new.device or old.attrs.keys() != new.attrs.keys():
        return True
    return any(value is not old.attrs[key] and value != old.attrs[key] for key, value in new.attrs.items())
