"""What runs where, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

LATE = "which is only known when running"  # how a reason ends that names a tensor and its open shape
OPEN_SHAPE = "the shape of what it reads or makes is only known when running"


class DescribedPart(NamedTuple):
    """A part of the needed graph and where it runs.

    Attributes:
        runs_on: the name of the engine: ``litert``, ``reference`` or another.
        nodes: its nodes.
        inputs: the tensors that it takes from other parts or from the caller.
        outputs: the tensors that it gives.
        is_dynamic: it is compiled when it first runs with a shape, because only the run tells its shapes.
        measured: how it is run besides, or what is known of other engines for it, a line each.
    """

    runs_on: str
    nodes: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    is_dynamic: bool = False
    measured: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Where it runs, in words."""
        return f"{self.runs_on} when it runs" if self.is_dynamic else self.runs_on


class Description(NamedTuple):
    """What runs where, for people.

    Attributes:
        feeds: each fed tensor with its dtype and shape.
        fetches: the tensors that come back.
        parts: the parts, LiteRT's first.
        reasons: why a node does not run on LiteRT, by node name.
        ops: the op of each node named above.
        passes: the graph passes that changed something, in order.
        without: the passes that were switched off.
        checked: of compiled parts that were compared with the reference engine, their place and ``right``, ``wrong`` or
            ``unclear``.
    """

    feeds: Mapping[str, tuple[str, tuple[int | None, ...]]]
    fetches: tuple[str, ...]
    parts: tuple[DescribedPart, ...]
    reasons: Mapping[str, str]
    ops: Mapping[str, str]
    passes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    checked: tuple[tuple[str, str], ...] = ()

    def grouped(self) -> list[tuple[int, str, str]]:
        """(number of nodes, op, reason) of what LiteRT does not run, constants left out; the most frequent first.

        Which tensor has a shape that only the run knows is left to ``reasons``.
        """
        pairs = Counter(
            (self.ops.get(n, "?"), OPEN_SHAPE if r.endswith(LATE) else r)
            for n, r in self.reasons.items()
            if self.ops.get(n) != "Const"
        )
        return [(count, op, reason) for (op, reason), count in pairs.most_common()]

    def __str__(self) -> str:
        """A line a part, and a line for each reason why nodes are not on LiteRT."""
        feeds = ", ".join(f"{name} {dtype}{list(shape)}" for name, (dtype, shape) in self.feeds.items())
        lines = [f"{', '.join(self.fetches)} from {feeds or 'no inputs'}"]
        for part in self.parts:
            lines.append(f"{part.place}: {len(part.nodes)} node{'s' * (len(part.nodes) > 1)}")
            if part.inputs or part.outputs:
                lines[-1] += f", {', '.join(part.inputs) or 'nothing'} -> {', '.join(part.outputs)}"
            lines += [f"  {line}" for line in part.measured]
        lines += [f"not on litert: {count} {op}: {reason}" for count, op, reason in self.grouped()]
        lines += [f"{part}: {verdict}, beside the reference engine" for part, verdict in self.checked]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)
