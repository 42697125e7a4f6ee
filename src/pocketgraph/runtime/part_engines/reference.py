"""The reference engine as an engine for parts; ``Session(engine="reference")`` makes no parts at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.runtime.part_engines.part_engine import OfferedPart, OperationTime, PartRunner
from pocketgraph.runtime.profiling.profile import StepTrace

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array
    from pocketgraph.runtime.certificates.part_reference import PartReference


class _ReferenceRunner(PartRunner):
    """The part's nodes in NumPy."""

    def __init__(self, part: OfferedPart, reference: PartReference) -> None:
        self._part = part
        self._reference = reference

    def run(self, inputs: Sequence[Array], trace: StepTrace | None = None) -> list[Array]:
        results = self._reference.run(self._part.all_inputs(inputs), trace=trace)
        return [results[place] for place in self._part.places]


class ReferenceEngine:
    """NumPy, node by node."""

    name = "reference"

    def version(self) -> str:
        return str(np.__version__)

    def refuses(self, part: OfferedPart) -> str:
        if part.is_narrow:
            return "it has 16-bit floats, which the file holds as 32-bit ones"
        return "" if part.reference is not None else "the graph was not read"

    def load(self, part: OfferedPart, threads: int) -> _ReferenceRunner:
        if part.reference is None:
            raise RunError(self.refuses(part))
        return _ReferenceRunner(part, part.reference)

    def profile(self, part: OfferedPart, threads: int, inputs: Sequence[Array]) -> list[OperationTime] | None:
        trace = StepTrace()
        self.load(part, threads).run(inputs, trace)
        return [OperationTime(node.name, node.op, node.duration_us) for node in trace.nodes if node.op != "Const"]


ENGINE = ReferenceEngine()
