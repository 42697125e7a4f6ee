"""Which models are exported with their variables, and the values that those begin with."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph.differentiation.variable_nodes import INIT
from pocketgraph.errors import UsageError, did_you_mean
from pocketgraph.exporting.model import Source
from pocketgraph.exporting.training.stateless_signatures import StatelessSignature, stateless
from pocketgraph.formats import load
from pocketgraph.freezing.training_dir import find, model_path
from pocketgraph.graph import Graph, Shape
from pocketgraph.graph.op_traits import VARIABLES
from pocketgraph.pages.quantities import counted
from pocketgraph.runtime.feeding.default_tensors import side_effects
from pocketgraph.runtime.session import Session


@dataclass(frozen=True)
class TrainingModel:
    """A model whose signatures read and change variables.

    Attributes:
        graph: computes all functions, without variables.
        functions: what each signature computes.
        variables: the first values of those that are read or changed.
        original: opens a session of the model as it was given, with the first values.
    """

    graph: Graph
    functions: Mapping[str, StatelessSignature]
    variables: Mapping[str, np.ndarray[Any, Any]]
    original: Callable[[], Session]


def training_model(source: Source, signatures: Sequence[str] | None) -> TrainingModel | None:
    """The model, if it is to keep its variables: a graph that has some, with signatures; or a SavedModel of which
    signatures are named that change them.

    Raises:
        UsageError: there are no such signatures, or a variable that they read has no value.
    """
    graph = _with_variables(source, signatures)
    if graph is None:
        return None
    found = {key: s for key, s in graph.public_signatures.items() if s.outputs}
    for key in signatures or ():
        if key not in found:
            raise UsageError(
                f"the graph has no signature '{key}'", hint=did_you_mean(key, found) or f"it has {', '.join(found)}"
            )
    chosen = {key: found[key] for key in signatures or found}

    def original() -> Session:
        session = Session(source if isinstance(source, Graph) else os.fspath(source), engine="reference")
        if isinstance(source, Graph) and INIT in source:
            session.run([INIT])
        return session

    with original() as session:
        values = session.variables()
    shapes = {name: Shape(value.shape) for name, value in values.items()}
    pure, functions = stateless(graph, chosen, shapes)
    used = list(dict.fromkeys(name for f in functions.values() for name in (*f.reads, *f.writes)))
    lost = sorted(name for name in used if name not in values)
    if lost:
        listed = ", ".join(f"'{name}'" for name in lost[:10]) + (" and more" if len(lost) > 10 else "")
        raise UsageError(
            f"{counted(len(lost), 'variable has', 'variables have')} no first value: {listed}",
            hint=f"the operation '{INIT}' gives it to them",
        )
    ordered = dict(sorted(functions.items(), key=lambda item: bool(item[1].writes or item[1].saves)))
    return TrainingModel(pure, ordered, {name: values[name] for name in used}, original)


def _with_variables(source: Source, signatures: Sequence[str] | None) -> Graph | None:
    """The graph with its variables, where they are to stay."""
    if isinstance(source, Graph):
        has_variables = any(node.op in VARIABLES for node in source)
        return source if has_variables and source.signatures else None
    path = model_path(source)
    if not os.path.isdir(path) or not os.path.exists(os.path.join(path, "saved_model.pb")):
        return None
    graph = load(path)
    if not any(node.op in VARIABLES for node in _all_nodes(graph)):
        return None
    if find(path).checkpoint is None and INIT in graph:
        return graph
    named = [graph.signatures[key] for key in signatures or () if key in graph.signatures]
    return graph if any(side_effects(graph, list(signature.outputs.values())) for signature in named) else None


def _all_nodes(graph: Graph) -> list[Any]:
    return [*graph, *(node for function in graph.functions.values() for node in function.nodes)]
