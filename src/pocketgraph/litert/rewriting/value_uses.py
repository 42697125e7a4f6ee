"""Who makes and who reads each value, while operations are being merged."""

from __future__ import annotations

from collections import Counter

from pocketgraph.litert.program import Operation, Program, Value


class ValueUses:
    """The producers and the number of readers of a program's values, kept up by ``absorb``."""

    def __init__(self, program: Program) -> None:
        self.producers = program.producers()
        self.uses: Counter[Value] = program.uses()
        self.outputs = set(program.outputs)

    def only_source(self, value: Value | None) -> Operation | None:
        """The operation that makes ``value`` for one reader only."""
        if value is None or self.uses[value] != 1 or value in self.outputs:
            return None
        return self.producers.get(value)

    def absorb(self, operation: Operation, follower: Operation) -> None:
        """``operation`` yields what ``follower`` did."""
        operation.outputs = follower.outputs
        operation.nodes = tuple(dict.fromkeys(operation.nodes + follower.nodes))
        for value in follower.outputs:
            self.producers[value] = operation
