"""A Core ML package read back and computed here: each operator by coremltools' own value inference, or its definition.

Core ML runs on Apple's systems alone. What this shows is that the package says what the graph says; how Core ML
computes it, a Mac shows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.exporting.coreml.definitions import DEFINITIONS
from pocketgraph.graph.tensor import Array

DATA = os.path.join("Data", "com.apple.CoreML")


class Package:
    """A package on the disk.

    Attributes:
        inputs: the names of what goes in.

    Raises:
        RunError: coremltools cannot read it.
    """

    def __init__(self, path: str) -> None:
        import coremltools as ct
        from coremltools.converters.mil.frontend.milproto.load import load

        try:
            spec = ct.utils.load_spec(path)
            folder = os.path.join(path, DATA, "weights")
            program = load(spec, specification_version=spec.specificationVersion, file_weights_dir=folder)
        except Exception as error:
            raise RunError(f"coremltools does not read what was written: {error}", where=path) from error
        self._main = program.functions["main"]
        self.inputs: tuple[str, ...] = tuple(self._main.inputs)

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name; the scores of a classifier under the name of the tensor that they are.

        Raises:
            RunError: there is an operator that cannot be computed here.
        """
        values: dict[Any, Any] = {variable: np.asarray(feeds[name]) for name, variable in self._main.inputs.items()}
        results: dict[str, Array] = {}
        for operation in self._main.operations:
            if operation.op_type == "const":
                values[operation.outputs[0]] = operation.outputs[0].val
                continue
            if operation.op_type == "classify":
                results[operation.inputs["probabilities"].name] = values[operation.inputs["probabilities"]]
                continue
            given = {
                name: [values[one] for one in item] if isinstance(item, list | tuple) else values[item]
                for name, item in operation.inputs.items() if item is not None
            }  # fmt: skip
            made = self._computed(operation, given)
            values.update(zip(operation.outputs, made, strict=True))
        for variable in self._main.outputs:
            if variable in values:
                results[variable.name] = np.asarray(values[variable])
        return results

    def _computed(self, operation: Any, given: Mapping[str, Any]) -> tuple[Any, ...]:
        kind = operation.op_type
        definition = DEFINITIONS.get(kind)
        try:
            with np.errstate(all="ignore"):
                made = definition(**given) if definition is not None else self._inferred(kind, given)
        except IndexError as error:
            raise RunError(f"Core ML's {kind} has no answer: {error}", where=f"operator '{operation.name}'") from error
        made = tuple(made) if isinstance(made, tuple | list) else (made,)
        if any(value is None for value in made):
            raise RunError(f"Core ML's {kind} cannot be computed here", where=f"operator '{operation.name}'")
        return tuple(
            value if isinstance(value, str) else np.asarray(value).reshape([int(size) for size in variable.shape])
            for value, variable in zip(made, operation.outputs, strict=True)
        )

    def _inferred(self, kind: str, given: Mapping[str, Any]) -> Any:
        """What coremltools itself says that comes out of an operator of constants."""
        from coremltools.converters.mil import Builder
        from coremltools.converters.mil.mil import Function

        with Function({}, opset_version=self._main.opset_version):
            made = getattr(Builder, kind)(**given)
        return [one.val for one in made] if isinstance(made, tuple | list) else made.val
