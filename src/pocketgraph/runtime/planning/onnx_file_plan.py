"""The plan of an ONNX file: ONNX Runtime runs it as it is, where that is installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.formats.onnx_file import FOLDER
from pocketgraph.graph import Graph
from pocketgraph.graph.model_file_graph import ONNX_PREFIX
from pocketgraph.runtime.description import DescribedPart, Description
from pocketgraph.runtime.onnx_runner import OnnxRunner, node_times
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan, Request
from pocketgraph.runtime.profile import NodeTiming, StepTrace

Array = np.ndarray[Any, Any]


def plan_of_onnx_file(request: Request, graph: Graph) -> ExecutionPlan:
    """What runs a request on the graph of an ONNX file (see formats/onnx_file.py).

    Raises:
        MissingExtraError: ONNX Runtime is not installed.
        RunError: it asks for tensors between the inputs and outputs, or ONNX Runtime refuses the file.
    """
    if request.engine not in (None, "auto"):
        raise RunError("an ONNX file runs on ONNX Runtime", hint="leave the engine out")
    (signature,) = graph.signatures.values()
    public = {tensor: name for name, tensor in signature.inputs.items()}
    results = {tensor: name for name, tensor in signature.outputs.items()}
    fed, wanted = list(map(str, request.feeds)), list(map(str, request.fetches))
    inside = next((name for name in wanted if name not in results), None)
    if inside is not None:
        raise RunError(
            f"an ONNX file runs as a whole: '{inside}' is no output of it", hint=f"its outputs: {', '.join(results)}"
        )
    missing = [name for name in public if name not in fed]
    if missing:
        raise RunError(f"You must feed a value for placeholder tensor '{missing[0].removesuffix(':0')}'")
    run = _OnnxRun(graph, request.threads, [public[name] for name in fed], [results[name] for name in wanted])
    nodes = tuple(node.name for node in graph if node.op not in ("Placeholder", "Const"))
    sizes = {str(name): (d.name if d is not None else "?", shape) for name, (d, shape) in request.feeds.items()}
    part = DescribedPart("onnxruntime", nodes, tuple(fed), tuple(wanted))
    description = Description(sizes, tuple(wanted), (part,), {}, {name: graph[name].op for name in nodes})
    return ExecutionPlan(None, run, tuple(range(len(fed))), description, [run])


class _Share(NamedTuple):
    """What part of a run a node took, by ONNX Runtime's own profile, and the bytes of its results."""

    name: str
    op: str
    share: float
    size: int


class _OnnxRun:
    """An ONNX Runtime session as an executable."""

    def __init__(self, graph: Graph, threads: int, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self._graph, self._threads = graph, threads
        self._runner: OnnxRunner | None = self._opened()
        self._inputs, self._outputs = list(inputs), list(outputs)
        self._shares: list[_Share] | None = None

    def _opened(self, profile: str = "") -> OnnxRunner:
        folders = (node.attrs[FOLDER] for node in self._graph if FOLDER in node.attrs)
        folder = next((os.fsdecode(name) or os.curdir for name in folders if isinstance(name, bytes)), "")
        return OnnxRunner(self._graph.extra[8:], self._threads, folder=folder, profile=profile)

    def watched(self, inputs: Sequence[Array], trace: StepTrace) -> list[Array]:
        """Runs, and notes what each node took: its share of ONNX Runtime's own profile, times the time of this run."""
        if self._shares is None:
            self._shares = self._profiled(inputs)
            trace.note("the times of nodes are shares of the run by ONNX Runtime's own profile, after its fusions")
        trace.begin()
        results = self.run(inputs)
        trace.finish()
        start = 0.0
        for node in self._shares:
            took = node.share * trace.total_us
            trace.nodes.append(NodeTiming(node.name, node.op, start, took, node.size, "onnxruntime"))
            start += took
        return results

    def _profiled(self, inputs: Sequence[Array]) -> list[_Share]:
        """The share of each node that ONNX Runtime runs, in the quickest of several runs."""
        feeds = dict(zip(self._inputs, inputs, strict=True))
        timed = node_times(self._opened, self._outputs, feeds)
        whole = sum(each.microseconds for each in timed) or 1
        found = []
        for each in timed:
            op = self._graph[each.name].op if each.name in self._graph else f"{ONNX_PREFIX}{each.op}"
            found.append(_Share(each.name, op, each.microseconds / whole, each.size))
        return found

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for one array an input."""
        if self._runner is None:
            raise RunError("Attempted to use a closed Session", hint="make a new one")
        return self._runner.run(self._outputs, dict(zip(self._inputs, inputs, strict=True)))

    def direct(self, order: Sequence[int]) -> Callable[[list[Array]], list[Array]]:
        """``run`` on arrays of which ``order`` says where each input is."""
        return lambda values: self.run([values[index] for index in order])

    def close(self) -> None:
        """Gives the memory back."""
        self._runner = None

    def describe(self) -> str:
        """One line for people."""
        return "ONNX Runtime: an .onnx file"
