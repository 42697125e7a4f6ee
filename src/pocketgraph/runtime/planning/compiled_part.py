"""A compiled part: what it takes and gives, and how a later process finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pocketgraph.graph import Node
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.engines.compilation_units import PartCall
from pocketgraph.runtime.planning.partitioning import CutPart
from pocketgraph.runtime.segment_call import SegmentCall
from pocketgraph.runtime.warm_start import Executable


@dataclass(frozen=True)
class CompiledPart:
    """A compiled part.

    Attributes:
        cut: the part.
        inputs, outputs: what the executable takes and gives, in its order.
        executable: runs it.
        is_whole: whether it is everything between the feeds and the fetches.
        found_by: the key, inputs (name, type, shape) and outputs by which a later process finds it; none: it does not.
    """

    cut: CutPart
    inputs: tuple[Endpoint, ...]
    outputs: tuple[Endpoint, ...]
    executable: Executable
    is_whole: bool
    found_by: tuple[str, list[tuple[str, str, tuple[int, ...]]], list[str]] | None = None

    def part_call(self, index: int, ops: Mapping[str, str]) -> PartCall:
        """It as a step of the reference engine's program; ``ops`` gives each node's op."""
        name = f"litert segment {index + 1}"
        call = SegmentCall(self.executable, {node: ops[node] for node in self.cut.nodes}, name)
        return PartCall(Node(name, "LiteRT"), frozenset(self.cut.nodes), self.inputs, self.outputs, call)
