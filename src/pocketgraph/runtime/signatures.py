"""Named entry points of a graph: which one is meant, and the feeds that its keys stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pocketgraph.errors import RunError, did_you_mean
from pocketgraph.graph import Graph
from pocketgraph.graph.graph import DEFAULT_SIGNATURE, Signature

INITIALIZER = "__saved_model_init_op"  # TensorFlow 2 notes the loader's own step as a signature


def chosen(graph: Graph, name: str | None = None) -> Signature:
    """The signature of this name; without a name ``serving_default`` or the only one that computes something.

    Raises:
        RunError: there is no such signature, or it is not clear which one.
    """
    found = {key: signature for key, signature in graph.signatures.items() if signature.outputs and key != INITIALIZER}
    if name is not None:
        if name not in found:
            hint = did_you_mean(name, found) or (f"it has {', '.join(map(repr, found))}" if found else "it has none")
            raise RunError(f"the graph has no signature '{name}'", hint=hint)
        return found[name]
    if DEFAULT_SIGNATURE in found:
        return found[DEFAULT_SIGNATURE]
    if not found:
        raise RunError(
            "the graph has no signature", hint="load a SavedModel, or use run(fetches, feeds) with tensor names"
        )
    if len(found) > 1:
        raise RunError(f"which signature: {', '.join(map(repr, found))}?", hint="pass signature=NAME")
    return next(iter(found.values()))


def feeds_of(signature: Signature, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Feeds by tensor name for values by input key.

    Raises:
        RunError: keys are missing or unknown.
    """
    if not isinstance(inputs, Mapping):
        raise RunError(f"inputs are a mapping of keys to values, not a {type(inputs).__name__}")
    unknown = [key for key in inputs if key not in signature.inputs]
    if unknown:
        has = ", ".join(map(repr, signature.inputs)) or "none"
        raise RunError(f"the signature has no input {', '.join(map(repr, unknown))}", hint=f"its inputs: {has}")
    missing = [key for key in signature.inputs if key not in inputs]
    if missing:
        raise RunError(f"the signature's input {', '.join(map(repr, missing))} is missing")
    return {signature.inputs[key]: value for key, value in inputs.items()}
