"""The plan of an ONNX file: ONNX Runtime runs it as it is, where that is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from pocketgraph.errors import MissingExtraError, RunError
from pocketgraph.graph import Graph
from pocketgraph.runtime.description import DescribedPart, Description
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan, Request

Array = np.ndarray[Any, Any]


def plan_of_onnx_file(request: Request, graph: Graph) -> ExecutionPlan:
    """What runs a request on the graph of an ONNX file (see formats/onnx_file.py).

    Raises:
        MissingExtraError: ONNX Runtime is not installed.
        RunError: it asks for tensors between the inputs and outputs, or ONNX Runtime refuses the file.
    """
    if find_spec("onnxruntime") is None:
        raise MissingExtraError(
            "to run an ONNX file needs the package 'onnxruntime'", hint="pip install 'pocketgraph[onnx]'"
        )
    if request.engine is not None:
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
    run = _OnnxRun(graph.extra[8:], request.threads, [public[name] for name in fed], [results[name] for name in wanted])
    nodes = tuple(node.name for node in graph if node.op not in ("Placeholder", "Const"))
    sizes = {str(name): (d.name if d is not None else "?", shape) for name, (d, shape) in request.feeds.items()}
    part = DescribedPart("onnxruntime", nodes, tuple(fed), tuple(wanted))
    description = Description(sizes, tuple(wanted), (part,), {}, {name: graph[name].op for name in nodes})
    return ExecutionPlan(None, run, tuple(range(len(fed))), description, [run])


class _OnnxRun:
    """An ONNX Runtime session as an executable."""

    def __init__(self, content: bytes, threads: int, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        try:
            self._session: Any = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's exceptions have no family of their own
            raise RunError(f"ONNX Runtime does not take this file: {' '.join(str(error).split())[:300]}") from error
        self._inputs, self._outputs = list(inputs), list(outputs)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for one array an input."""
        if self._session is None:
            raise RunError("Attempted to use a closed Session", hint="make a new one")
        try:
            found = self._session.run(self._outputs, dict(zip(self._inputs, inputs, strict=True)))
        except Exception as error:
            raise RunError(f"ONNX Runtime failed: {' '.join(str(error).split())[:300]}") from error
        return [np.asarray(array) for array in found]

    def direct(self, order: Sequence[int]) -> Callable[[list[Array]], list[Array]]:
        """``run`` on arrays of which ``order`` says where each input is."""
        return lambda values: self.run([values[index] for index in order])

    def close(self) -> None:
        """Gives the memory back."""
        self._session = None

    def describe(self) -> str:
        """One line for people."""
        return "ONNX Runtime: an .onnx file"
