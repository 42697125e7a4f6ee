"""freeze: a training graph and its checkpoint become one graph whose variables are constants."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pocketgraph.errors import FreezeError, UsageError
from pocketgraph.formats.checkpoint_v2 import open_checkpoint
from pocketgraph.freezing import training_dir
from pocketgraph.freezing.constants import variables_to_constants
from pocketgraph.freezing.initializers import initialized, refuse_computed
from pocketgraph.freezing.leftovers import leftovers
from pocketgraph.freezing.savers import SavedAs, saved_names
from pocketgraph.freezing.subgraph import extract_sub_graph
from pocketgraph.freezing.values import values_of
from pocketgraph.freezing.variables import is_variable, variables
from pocketgraph.graph import Graph, Node, Signature, Tensor, node_name
from pocketgraph.graph.endpoints import likely_outputs, sole_outputs

PathLike = str | os.PathLike[str]
Checkpoint = PathLike | Mapping[str, Tensor]
TWICE = (
    "No variables were found in this model. It is likely the model was frozen previously. You cannot freeze a graph "
    "twice."
)
MOST_LISTED = 8


@dataclass(frozen=True)
class Frozen:
    """What freezing gave.

    Attributes:
        graph: the frozen graph; its ``outputs`` are those that were asked for or found.
        source: the graph's file, "" for a graph from memory.
        checkpoint: the checkpoint's prefix, "" for one from memory.
        variables: the names of the variables that became constants.
        warnings: what will not run or not do what it seems to, a line each; see leftovers.py.
    """

    graph: Graph
    source: str
    checkpoint: str
    variables: tuple[str, ...]
    warnings: tuple[str, ...]


def freeze(
    graph_or_path: Graph | PathLike,
    outputs: str | Sequence[str] | None = None,
    checkpoint: Checkpoint | None = None,
    *,
    variable_names_whitelist: Collection[str] | None = None,
    variable_names_blacklist: Collection[str] | None = None,
    initializer_nodes: Sequence[str] = (),
    clear_devices: bool = True,
    saver: str | None = None,
) -> Graph:
    """The part of a graph that its outputs need, with every variable replaced by its value in a checkpoint.

    Values stay in the checkpoint's files until somebody reads or saves them; damaged ones are found then.

    Args:
        graph_or_path: a graph, a graph file (GraphDef or MetaGraphDef, binary or text), a training directory or a
            checkpoint in one, or the directory of a SavedModel (functions of TensorFlow 2 stay functions).
        outputs: names of nodes or tensors, as a list or with commas. By default those that the graph states, or the
            one that stands out; see graph.endpoints.
        checkpoint: a checkpoint in any of the ways that formats.open_checkpoint takes, or tensors by name. By default
            the one beside the graph.
        variable_names_whitelist: freeze only these variables.
        variable_names_blacklist: do not freeze these variables.
        initializer_nodes: ops that would be run after restoring. Constants that they assign to variables are used;
            lookup tables keep their initializers only when these are among the outputs.
        clear_devices: drop the device of every node (not of those inside functions).
        saver: the scope of the graph's saver that wrote the checkpoint, such as ``save``: what it says of names and
            slices comes before variables' own names. "" means all savers. By default they come first for a
            MetaGraphDef and a SavedModel, as in the original, and last otherwise.

    Raises:
        FreezeError: an output is unknown or cannot be guessed; a variable is missing in the checkpoint or differs in
            type or shape; there are no variables; a variable goes where a constant cannot.
        FormatError: a file is damaged or of another kind.
    """
    return freeze_and_tell(
        graph_or_path,
        outputs,
        checkpoint,
        variable_names_whitelist=variable_names_whitelist,
        variable_names_blacklist=variable_names_blacklist,
        initializer_nodes=initializer_nodes,
        clear_devices=clear_devices,
        saver=saver,
    ).graph


def freeze_and_tell(
    graph_or_path: Graph | PathLike,
    outputs: str | Sequence[str] | None = None,
    checkpoint: Checkpoint | None = None,
    *,
    variable_names_whitelist: Collection[str] | None = None,
    variable_names_blacklist: Collection[str] | None = None,
    initializer_nodes: Sequence[str] = (),
    clear_devices: bool = True,
    saver: str | None = None,
    tags: str | None = None,
) -> Frozen:
    """freeze(), with what there is to tell about it. ``tags`` chooses the graph of a SavedModel."""
    graph, source, store, has_saver = _opened(graph_or_path, checkpoint, tags)
    if not source.has_own_values and not any(is_variable(node) for node in graph):
        raise FreezeError(TWICE, where=source.graph, hint="use it as it is")
    names = _names(outputs) or _guessed(graph, source.graph)
    part = extract_sub_graph(graph, names)
    wanted = {
        name: variable
        for name, variable in variables(part).items()
        if (variable_names_whitelist is None or name in variable_names_whitelist)
        and (variable_names_blacklist is None or name not in variable_names_blacklist)
    }
    values = refuse_computed(initialized(graph, initializer_nodes), set(wanted)) if initializer_nodes else {}
    rest = [variable for name, variable in wanted.items() if name not in values]
    if rest and store is None:
        raise FreezeError(
            f"the graph has {len(rest)} variables and no checkpoint was given", where=source.graph,
            hint="name the checkpoint's prefix, such as model.ckpt-1000 (--input_checkpoint)",
        )  # fmt: skip
    if rest and store is not None:
        saved = _of_saver(saved_names(graph), saver)
        savers_first = has_saver if saver is None else True
        values |= values_of(rest, store, saved, savers_first=savers_first)
    frozen = _signed(variables_to_constants(part, values), names)
    if clear_devices:
        frozen = frozen.map_nodes(_without_device)
    warnings = leftovers(frozen, graph)
    return Frozen(frozen, source.graph, source.checkpoint, tuple(values), tuple(warnings))


@dataclass(frozen=True)
class _Source:
    graph: str
    checkpoint: str
    has_own_values: bool


def _opened(
    graph_or_path: Graph | PathLike, checkpoint: Checkpoint | None, tags: str | None
) -> tuple[Graph, _Source, Mapping[str, Tensor] | None, bool]:
    """The graph, where it comes from, its values, and whether its savers have the first word."""
    if isinstance(graph_or_path, Graph):
        if checkpoint is None or isinstance(checkpoint, Mapping):
            return graph_or_path, _Source("", "", False), checkpoint, False
        store = open_checkpoint(checkpoint)
        return graph_or_path, _Source("", store.prefix, False), store, False
    from pocketgraph import formats

    if isinstance(checkpoint, Mapping):
        return formats.load(graph_or_path), _Source(os.fspath(graph_or_path), "", False), checkpoint, False
    found = training_dir.find(graph_or_path, checkpoint)
    saved_model = os.path.isdir(found.graph)
    graph = _of_saved_model(found.graph, tags) if saved_model else formats.load(found.graph)
    if found.checkpoint is None:
        return graph, _Source(found.graph, "", saved_model), None, found.has_saver
    return (
        graph, _Source(found.graph, found.checkpoint, saved_model), open_checkpoint(found.checkpoint), found.has_saver
    )  # fmt: skip


def _of_saved_model(folder: str, tags: str | None) -> Graph:
    from pocketgraph.formats.meta_graph import read_saved_model, with_signature, with_tags

    return with_signature(with_tags(read_saved_model(folder), tags, folder).graph, None, folder)


def _names(outputs: str | Sequence[str] | None) -> list[str]:
    if outputs is None:
        return []
    names = outputs.split(",") if isinstance(outputs, str) else list(outputs)
    return [name.strip() for name in names if name.strip()]


def _guessed(graph: Graph, where: str) -> list[str]:
    """The outputs, where there is no doubt about them."""
    found = sole_outputs(graph)
    if found:
        return found
    ranked = likely_outputs(graph)[:MOST_LISTED]
    listed = ", ".join(f"{name} ({why})" for name, why in ranked)
    raise FreezeError(
        "You need to supply the name of a node to --output_node_names, as it is not clear which is meant",
        where=where, hint=f"likely ones are {listed}" if ranked else "no node of the graph looks like an output",
    )  # fmt: skip


def _of_saver(saved: dict[str, list[SavedAs]], scope: str | None) -> dict[str, list[SavedAs]]:
    if not scope:
        return saved
    chosen = {name: [place for place in places if place.saver == scope] for name, places in saved.items()}
    if not any(chosen.values()):
        scopes = sorted({place.saver for places in saved.values() for place in places})
        raise UsageError(
            f"the graph has no saver '{scope}'", hint=f"it has {', '.join(scopes)}" if scopes else "it has none"
        )
    return chosen


def _signed(graph: Graph, outputs: Sequence[str]) -> Graph:
    """The graph with these outputs, and those inputs and signatures that are still in it."""

    def whole(signature: Signature) -> bool:
        return all(node_name(ref) in graph for ref in [*signature.inputs.values(), *signature.outputs.values()])

    return graph.replace(
        outputs=outputs,
        inputs=[name for name in graph.inputs if node_name(name) in graph],
        signatures={name: signature for name, signature in graph.signatures.items() if whole(signature)},
    )


def _without_device(node: Node) -> Node:
    return node.replace(device="") if node.device else node
