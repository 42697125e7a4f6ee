"""The plan of a LiteRT file: there is nothing to decide, LiteRT runs one of its signatures as it is."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.errors import FormatError, RunError
from pocketgraph.graph import Graph, Node
from pocketgraph.graph.model_file_graph import PREFIX, SHAPES, TYPES
from pocketgraph.litert.program import Operation
from pocketgraph.runtime.description import DescribedPart, Description
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan, Request
from pocketgraph.runtime.profile import NodeTiming, StepTrace

if TYPE_CHECKING:
    from pocketgraph.litert.model_file import ModelFile

Array = np.ndarray[Any, Any]


def plan_of_model_file(request: Request, graph: Graph) -> ExecutionPlan:
    """What runs a request on the graph of a LiteRT file (see formats/tflite.py).

    The file is verified before native code sees it.

    Raises:
        FormatError: the file is damaged.
        RunError: it asks for tensors between a signature's inputs and outputs, or for the reference engine.
    """
    from pocketgraph.litert.model_file import ModelFile
    from pocketgraph.litert.untrusted.verifier import fault

    if request.engine not in (None, "auto", "litert"):
        engine = "the reference engine" if request.engine == "reference" else f"'{request.engine}'"
        raise RunError(f"a LiteRT file runs on LiteRT, not on {engine}", hint="leave the engine out")
    fed, wanted = list(map(str, request.feeds)), list(map(str, request.fetches))
    key = _signature(graph, fed, wanted)
    signature = graph.signatures[key]
    public = {tensor: name for name, tensor in signature.inputs.items()}
    results = {tensor: name for name, tensor in signature.outputs.items()}
    problem = fault(graph.extra)
    if problem:
        raise FormatError(f"LiteRT cannot run this file, it is damaged: {problem}")
    model = ModelFile(graph.extra, request.threads)
    executable = _SignatureRun(
        model, key, [public[name] for name in fed], [results[name] for name in wanted], graph, request.threads
    )
    nodes = tuple(node.name for node in graph if node.op not in ("Placeholder", "Const"))
    description = Description(
        {name: (dtype.name if dtype is not None else "?", shape) for name, (dtype, shape) in
         zip(fed, request.feeds.values(), strict=True)},
        tuple(wanted),
        (DescribedPart("litert", nodes, tuple(fed), tuple(wanted)),),
        {},
        {name: graph[name].op for name in nodes},
    )  # fmt: skip
    return ExecutionPlan(None, executable, tuple(range(len(fed))), description, [executable])


def _signature(graph: Graph, fed: Sequence[str], wanted: Sequence[str]) -> str:
    """The signature that has these outputs, and takes these inputs."""
    fitting = [
        key
        for key, signature in graph.signatures.items()
        if set(wanted) <= set(signature.outputs.values()) and set(fed) <= set(signature.inputs.values())
    ]
    if not fitting:
        outputs = sorted({name for signature in graph.signatures.values() for name in signature.outputs.values()})
        inside = [name for name in wanted if name not in outputs]
        what = f"'{inside[0]}' is no output of it" if inside else "these inputs and outputs are of no one signature"
        raise RunError(f"a LiteRT file runs as a whole: {what}", hint=f"its outputs: {', '.join(outputs)}")
    missing = [name for name in graph.signatures[fitting[0]].inputs.values() if name not in fed]
    if missing:
        raise RunError(
            f"You must feed a value for placeholder tensor '{missing[0].removesuffix(':0')}'",
            hint=f"it takes {', '.join(graph.signatures[fitting[0]].inputs.values())}",
        )
    return fitting[0]


class _SignatureRun:
    """A signature as an executable."""

    def __init__(
        self, model: ModelFile, key: str, inputs: Sequence[str], outputs: Sequence[str], graph: Graph, threads: int
    ) -> None:
        self._model: ModelFile | None = model
        self._key, self._inputs, self._outputs = key, inputs, outputs
        self._graph, self._threads = graph, threads
        self._shares: list[tuple[Node, float]] | None = None

    def watched(self, inputs: Sequence[Array], trace: StepTrace) -> list[Array]:
        """Runs, and notes what each operator took: its share of LiteRT's own profile, times the time of this run."""
        if self._shares is None:
            self._shares = self._profiled(inputs)
            trace.note("the times of operators are shares of the run by LiteRT's own profile")
        trace.begin()
        results = self.run(inputs)
        trace.finish()
        start = 0.0
        for node, share in self._shares:
            took = share * trace.total_us
            shapes = [shape.known for shape in node.attrs.get(SHAPES, ()) if shape.is_known]  # type: ignore[union-attr]
            types = [dtype.numpy for dtype in node.attrs.get(TYPES, ())]  # type: ignore[union-attr]
            sizes = list(zip((dtype.name for dtype in types), shapes, strict=False))
            size = sum(dtype.itemsize * math.prod(shape) for dtype, shape in zip(types, shapes, strict=False))
            trace.nodes.append(NodeTiming(node.name, node.op, start, took, size, "litert", tuple(sizes)))
            start += took
        return results

    def _profiled(self, inputs: Sequence[Array]) -> list[tuple[Node, float]]:
        """The share of the time that each operator of the file takes; one entry where that is not known."""
        from pocketgraph.formats.tflite import with_fixed_sizes
        from pocketgraph.litert.attribution import shared_out
        from pocketgraph.litert.profiler import profile

        operators = [node for node in self._graph if node.op.startswith(PREFIX)]
        whole = [(self._graph.producer(next(iter(self._graph.signatures[self._key].outputs.values()))), 1.0)]
        if len(self._graph.signatures) > 1 or self._graph.secret:
            return whole
        with tempfile.NamedTemporaryFile(suffix=".tflite", delete=False) as file:
            file.write(with_fixed_sizes(self._graph.extra))
        try:
            events = profile(file.name, self._threads, list(inputs))
        finally:
            os.unlink(file.name)
        operations = [Operation(node.op.removeprefix(PREFIX).upper(), [], []) for node in operators]
        took = shared_out(events, operations) if events else None
        if took is None:
            return whole
        total = sum(took)
        return [(node, part / total) for node, part in zip(operators, took, strict=True)]

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for one array an input."""
        if self._model is None:
            raise RunError("Attempted to use a closed Session", hint="make a new one")
        found = self._model.run(self._key, dict(zip(self._inputs, inputs, strict=True)))
        return [found[name] for name in self._outputs]

    def direct(self, order: Sequence[int]) -> Callable[[list[Array]], list[Array]]:
        """Runs it on arrays of which ``order`` says where each input is."""
        return lambda values: self.run([values[index] for index in order])

    def close(self) -> None:
        """Gives the memory back."""
        self._model = None

    def describe(self) -> str:
        """One line for people."""
        return f"LiteRT: the signature '{self._key}' of a .tflite file"
