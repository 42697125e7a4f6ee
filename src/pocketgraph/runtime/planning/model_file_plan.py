"""The plan of an exported file: there is nothing to decide, its engine runs it as it is.

A .tflite file runs on LiteRT, by one of its signatures; an .onnx file on ONNX Runtime, where that is installed.
"""

from __future__ import annotations

import math
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pocketgraph.errors import FormatError, RunError
from pocketgraph.graph import Graph, Node
from pocketgraph.graph.dtype import RESOURCE, STRING, VARIANT
from pocketgraph.graph.model_file_graph import ONNX_PREFIX, PREFIX, SHAPES, TYPES, is_litert_file
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Operation
from pocketgraph.runtime.description import DescribedPart, Description
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan, Request, Runnable
from pocketgraph.runtime.profiling.profile import OperationShare, StepTrace

if TYPE_CHECKING:
    from pocketgraph.runtime.onnx_runner import OnnxRunner

WHOLE = "one row stands for all {count:,} operators, whose times the engine's profile does not tell apart"


def plan_of_model_file(request: Request, graph: Graph) -> ExecutionPlan:
    """What runs a request on the graph of a LiteRT or ONNX file (see formats/tflite.py, formats/onnx_file.py).

    A LiteRT file is verified before native code sees it.

    Raises:
        FormatError: the file is damaged.
        MissingExtraError: ONNX Runtime is not installed.
        RunError: it asks for tensors between the inputs and outputs, or for another engine, or the file is refused.
    """
    fed, wanted = tuple(map(str, request.feeds)), tuple(map(str, request.fetches))
    kind = _LiteRTFile if is_litert_file(graph) else _OnnxFile
    run = kind(request, graph, fed, wanted)
    nodes = tuple(node.name for node in graph if node.op not in ("Placeholder", "Const"))
    sizes = {str(name): (d.name if d is not None else "?", shape) for name, (d, shape) in request.feeds.items()}
    part = DescribedPart(run.engine, nodes, fed, wanted)
    description = Description(sizes, wanted, (part,), {}, {name: graph[name].op for name in nodes})
    return ExecutionPlan(None, run, tuple(range(len(fed))), description, [run])


class _FileRun(Runnable, ABC):
    """A file in its engine, as an executable."""

    engine: str
    note: str
    """What a trace says of its times."""

    def __init__(self, graph: Graph, threads: int, public: Mapping[str, str], fed: Sequence[str]) -> None:
        self.graph, self.threads = graph, threads
        self.inputs = [public[name] for name in fed]
        self._shares: list[OperationShare] | None = None
        self._is_open = True

    @abstractmethod
    def computed(self, feeds: dict[str, Array]) -> list[Array]:
        """The outputs for the values of the file's own inputs."""

    @abstractmethod
    def profiled(self, inputs: Sequence[Array]) -> list[OperationShare]:
        """The share of the time that each node of the file takes; one entry where that is not known."""

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for one array an input."""
        if not self._is_open:
            raise RunError("Attempted to use a closed Session", hint="make a new one")
        return self.computed(dict(zip(self.inputs, inputs, strict=True)))

    def watched(self, inputs: Sequence[Array], trace: StepTrace) -> list[Array]:
        """Runs, and notes what each node took: its share of the engine's own profile, times the time of this run."""
        if self._shares is None:
            self._shares = self.profiled(inputs)
            count = sum(node.op not in ("Placeholder", "Const") for node in self.graph)
            trace.note(WHOLE.format(count=count) if len(self._shares) == 1 < count else self.note)
        trace.begin()
        results = self.run(inputs)
        trace.finish()
        trace.add_shares(self._shares, 0.0, trace.total_us, self.engine)
        return results

    def close(self) -> None:
        """Gives the memory back."""
        self._is_open = False


class _LiteRTFile(_FileRun):
    engine = "litert"
    note = "the times of operators are shares of the run by LiteRT's own profile"

    def __init__(self, request: Request, graph: Graph, fed: Sequence[str], wanted: Sequence[str]) -> None:
        from pocketgraph.litert.model_file import ModelFile
        from pocketgraph.litert.untrusted.verifier import fault

        if request.engine not in (None, "auto", "litert"):
            engine = "the reference engine" if request.engine == "reference" else f"'{request.engine}'"
            raise RunError(f"a LiteRT file runs on LiteRT, not on {engine}", hint="leave the engine out")
        self._key = _signature(graph, fed, wanted)
        signature = graph.signatures[self._key]
        results = {tensor: name for name, tensor in signature.outputs.items()}
        self._outputs = [results[name] for name in wanted]
        super().__init__(graph, request.threads, {tensor: name for name, tensor in signature.inputs.items()}, fed)
        kept = request.files if holds_variables(graph) and request.files is not None else {}
        if self.engine not in kept:
            problem = fault(graph.extra)
            if problem:
                raise FormatError(f"LiteRT cannot run this file, it is damaged: {problem}")
            kept[self.engine] = ModelFile(graph.extra, request.threads)
        self._model: ModelFile | None = kept[self.engine]

    def computed(self, feeds: dict[str, Array]) -> list[Array]:
        assert self._model is not None
        found = self._model.run(self._key, feeds)
        return [found[name] for name in self._outputs]

    def profiled(self, inputs: Sequence[Array]) -> list[OperationShare]:
        from pocketgraph.formats.tflite import with_fixed_sizes
        from pocketgraph.litert.native.attribution import shared_out
        from pocketgraph.litert.native.profiler import profile

        operators = [node for node in self.graph if node.op.startswith(PREFIX)]
        last = self.graph.producer(next(iter(self.graph.signatures[self._key].outputs.values())))
        if len(self.graph.signatures) > 1 or self.graph.secret:
            return [share_of(last, 1.0)]
        with tempfile.NamedTemporaryFile(suffix=".tflite", delete=False) as file:
            file.write(with_fixed_sizes(self.graph.extra))
        try:
            events = profile(file.name, self.threads, list(inputs))
        finally:
            os.unlink(file.name)
        operations = [Operation(node.op.removeprefix(PREFIX).upper(), [], []) for node in operators]
        took = shared_out(events, operations) if events else None
        if took is None:
            return [share_of(last, 1.0)]
        total = sum(took)
        return [share_of(node, part / total) for node, part in zip(operators, took, strict=True)]

    def close(self) -> None:
        super().close()
        self._model = None


def holds_variables(graph: Graph) -> bool:
    """Whether a LiteRT file remembers something from run to run, so that one interpreter has to run all its ways."""
    return any(
        node.op == f"{PREFIX}assign_variable" or (node.op == f"{PREFIX}pseudo_const" and _is_state(node))
        for node in graph
    )


def _is_state(node: Node) -> bool:
    """Whether a tensor without content is an operator's memory, as that of a recurrent one, and not just empty."""
    shape = node.shape()
    return node.dtype("dtype") is not STRING and shape is not None and math.prod(shape.known) > 0


def share_of(node: Node, part: float) -> OperationShare:
    """An operator's share of a run, with the types, shapes and bytes of its results but for handles of variables."""
    results = zip(node.attrs.get(TYPES, ()), node.attrs.get(SHAPES, ()), strict=False)  # type: ignore[arg-type]
    held = [
        (dtype.numpy, shape.known) for dtype, shape in results if shape.is_known and dtype not in (RESOURCE, VARIANT)
    ]
    size = sum(dtype.itemsize * math.prod(shape) for dtype, shape in held)
    return OperationShare(node.name, node.op, part, size, tuple((dtype.name, shape) for dtype, shape in held))


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


class _OnnxFile(_FileRun):
    engine = "onnxruntime"
    note = "the times of nodes are shares of the run by ONNX Runtime's own profile, after its fusions"

    def __init__(self, request: Request, graph: Graph, fed: Sequence[str], wanted: Sequence[str]) -> None:
        if request.engine not in (None, "auto"):
            raise RunError("an ONNX file runs on ONNX Runtime", hint="leave the engine out")
        (signature,) = graph.signatures.values()
        public = {tensor: name for name, tensor in signature.inputs.items()}
        results = {tensor: name for name, tensor in signature.outputs.items()}
        inside = next((name for name in wanted if name not in results), None)
        if inside is not None:
            hint = f"its outputs: {', '.join(results)}"
            raise RunError(f"an ONNX file runs as a whole: '{inside}' is no output of it", hint=hint)
        missing = [name for name in public if name not in fed]
        if missing:
            raise RunError(f"You must feed a value for placeholder tensor '{missing[0].removesuffix(':0')}'")
        super().__init__(graph, request.threads, public, fed)
        self._outputs = [results[name] for name in wanted]
        self._runner: OnnxRunner | None = self._opened()

    def _opened(self, profile: str = "") -> OnnxRunner:
        from pocketgraph.formats.onnx_file import FOLDER
        from pocketgraph.runtime.onnx_runner import OnnxRunner

        folders = (node.attrs[FOLDER] for node in self.graph if FOLDER in node.attrs)
        folder = next((os.fsdecode(name) or os.curdir for name in folders if isinstance(name, bytes)), "")
        return OnnxRunner(self.graph.extra[8:], self.threads, folder=folder, profile=profile)

    def computed(self, feeds: dict[str, Array]) -> list[Array]:
        assert self._runner is not None
        return self._runner.run(self._outputs, feeds)

    def profiled(self, inputs: Sequence[Array]) -> list[OperationShare]:
        from pocketgraph.runtime.onnx_runner import node_times

        timed = node_times(self._opened, self._outputs, dict(zip(self.inputs, inputs, strict=True)))
        whole = sum(each.microseconds for each in timed) or 1
        found = []
        for each in timed:
            op = self.graph[each.name].op if each.name in self.graph else f"{ONNX_PREFIX}{each.op}"
            found.append(OperationShare(each.name, op, each.microseconds / whole, each.size))
        return found

    def close(self) -> None:
        super().close()
        self._runner = None
