"""What a SavedModel's directory or a checkpoint holds beside the graph: values of variables, and rows of tables."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import FreezeError, PocketgraphError, RunError
from pocketgraph.formats import open_checkpoint
from pocketgraph.formats.checkpoints.checkpoint_state import find_prefix
from pocketgraph.formats.meta_graph import asset_files, init_op, read_saved_model, saved_model_file, with_tags
from pocketgraph.freezing import graph_variables
from pocketgraph.freezing.checkpoint_values import values_of
from pocketgraph.freezing.savers import saved_names
from pocketgraph.freezing.table_contents import with_stored_tables
from pocketgraph.freezing.tables import with_assets
from pocketgraph.freezing.training_dir import find, model_path
from pocketgraph.graph import Graph, Node
from pocketgraph.kernels.state.variables import Variable, variable_key
from pocketgraph.runtime.execution import Running
from pocketgraph.runtime.permissions import check_permissions
from pocketgraph.runtime.planning.execution_plan import Request
from pocketgraph.runtime.planning.session_plans import SessionPlans
from pocketgraph.runtime.resolved_call import resolve_call

ENSEMBLES = frozenset(("BoostedTreesDeserializeEnsemble", "BoostedTreesQuantileStreamResourceDeserialize"))
"""What the saver of boosted trees runs to put them back."""

FILLED_FROM = frozenset(("InitializeTableFromTextFile", "InitializeTableFromTextFileV2"))
"""The only ops that may read files here, and these only in the model's own directory."""


def restore(path: str, graph: Graph, state: dict[str, Any]) -> None:
    """Puts what a SavedModel's directory or a checkpoint holds into a session's state, as TensorFlow's loader does.

    Variables that the files lack stay uninitialized, and say so when they are read. Of a SavedModel, the node that
    fills tables runs as well; files are read for that in the directory only, and a model that wants more of it is
    left as it is.

    Args:
        path: the directory, or a checkpoint: what ``find_prefix`` takes.
        graph: the graph that was loaded from it, or whose variables the checkpoint holds.
        state: of the session.

    Raises:
        FormatError: the files are damaged, or there is neither.
        RunError: tables cannot be filled from their files, or a checkpoint has none of the graph's variables.
    """
    path = model_path(path)
    if saved_model_file(path) is None:
        checkpoint = find_prefix(path)
        if not _assign(checkpoint, graph, state, has_saver=True):
            raise RunError(
                f"holds none of the graph's {len(graph_variables.variables(graph))} variables", where=checkpoint,
                hint="load the graph that was trained (load of its .meta file), or give this graph's own checkpoint",
            )  # fmt: skip
        return
    found = find(path)
    if found.checkpoint is not None:
        _assign(found.checkpoint, graph, state, has_saver=found.has_saver)
    _fill_tables(path, graph, state)


def _assign(checkpoint: str, graph: Graph, state: dict[str, Any], *, has_saver: bool) -> int:
    """Gives variables, tables and ensembles of trees what a checkpoint has for them; how many it has."""
    store, saved = open_checkpoint(checkpoint), saved_names(graph)
    count = 0
    for name, variable in graph_variables.variables(graph).items():
        with contextlib.suppress(FreezeError):
            value = values_of([variable], store, saved, savers_first=has_saver)[name]
            key, held = _held(graph[name], variable)
            held.assign(value.numpy())
            state[key] = held
            count += 1
    filled = with_stored_tables(graph, store)
    targets = [node.name for node in filled if node.name not in graph and node.op.startswith("LookupTable")]
    if targets:
        _run(filled, {}, targets, frozenset(), "", state)
    return count + len(targets) + _fill_ensembles(checkpoint, graph, state)


def _fill_ensembles(checkpoint: str, graph: Graph, state: dict[str, Any]) -> int:
    """Runs the part of the graph's saver that reads boosted trees from the checkpoint; how many there are."""
    targets = [node.name for node in graph if node.op in ENSEMBLES]
    if not targets:
        return 0
    prefixes = {node.inputs[0] for node in graph if node.op == "RestoreV2"}
    where = np.array(os.path.abspath(checkpoint).encode(), object)
    files = os.path.dirname(os.path.abspath(checkpoint))
    try:
        _run(graph, dict.fromkeys(prefixes, where), targets, frozenset(("RestoreV2",)), files, state)
    except PocketgraphError as error:
        raise RunError(f"the trees cannot be restored: {error.what}", where=checkpoint) from error
    return len(targets)


def _held(node: Node, stored: graph_variables.VariableNode) -> tuple[str, Variable]:
    """How a session keeps the variable, and under which key."""
    container = node.attr("container", b"")
    assert isinstance(container, bytes)
    name = stored.shared_name or stored.name
    key = variable_key(container.decode("utf-8", "replace"), name)
    return key, Variable(name, stored.dtype, resource=stored.is_resource)


def _fill_tables(folder: str, graph: Graph, state: dict[str, Any]) -> None:
    from pocketgraph.runtime.engines.functions import FunctionLibrary
    from pocketgraph.runtime.engines.needed import needed

    meta = with_tags(read_saved_model(folder), None, folder)
    target = init_op(meta)
    if target is None or target not in graph:
        return
    whole = with_assets(graph, asset_files(meta))
    nodes = FunctionLibrary(whole).with_bodies(item.node for item in needed(whole, frozenset(), (), (target,)).values())
    try:
        check_permissions(nodes, FILLED_FROM)
    except RunError:
        return  # it would do more than fill tables from the model's own files
    try:
        _run(whole, {}, [target], FILLED_FROM, os.path.abspath(folder), state)
    except PocketgraphError as error:
        raise RunError(f"the tables of the SavedModel cannot be filled: {error.what}", where=folder) from error


def _run(
    graph: Graph,
    feeds: Mapping[str, Any],
    targets: Sequence[str],
    allowed: frozenset[str],
    folder: str,
    state: dict[str, Any],
) -> None:
    """Runs nodes on the reference engine for what they do to ``state``; ``allowed`` ops may read the folder."""
    plans = SessionPlans(graph, Request(engine="reference"), allowed, None, state)
    call = resolve_call(graph, [], feeds, targets)
    Running(plans, state, files_dir=folder).execution(plans.prepare(call))(call.values)
