"""The plan of a LiteRT file: there is nothing to decide, LiteRT runs one of its signatures as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.errors import FormatError, RunError
from pocketgraph.graph import Graph
from pocketgraph.runtime.description import Description, Part
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan, Request

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
    from pocketgraph.litert.verifier import fault

    if request.engine == "reference":
        raise RunError("a LiteRT file runs on LiteRT, not on the reference engine", hint="leave the engine out")
    fed, wanted = list(map(str, request.feeds)), list(map(str, request.fetches))
    key = _signature(graph, fed, wanted)
    signature = graph.signatures[key]
    public = {tensor: name for name, tensor in signature.inputs.items()}
    results = {tensor: name for name, tensor in signature.outputs.items()}
    problem = fault(graph.extra)
    if problem:
        raise FormatError(f"LiteRT cannot run this file, it is damaged: {problem}")
    model = ModelFile(graph.extra, request.threads)
    executable = _SignatureRun(model, key, [public[name] for name in fed], [results[name] for name in wanted])
    nodes = tuple(node.name for node in graph if node.op not in ("Placeholder", "Const"))
    description = Description(
        {name: (dtype.name if dtype is not None else "?", shape) for name, (dtype, shape) in
         zip(fed, request.feeds.values(), strict=True)},
        tuple(wanted),
        (Part("litert", nodes, tuple(fed), tuple(wanted)),),
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

    def __init__(self, model: ModelFile, key: str, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self._model: ModelFile | None = model
        self._key, self._inputs, self._outputs = key, inputs, outputs

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
