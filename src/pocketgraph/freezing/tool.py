"""freeze: a training graph and its checkpoint become one graph whose variables are constants."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pocketgraph.errors import FreezeError, option, path_of
from pocketgraph.formats.files import PathLike
from pocketgraph.freezing import repair as repairs
from pocketgraph.freezing.assigned_values import with_assigned_values
from pocketgraph.freezing.binding import bound
from pocketgraph.freezing.checkpoint_values import MOVING_AVERAGE, averaged, restores_averages, values_of
from pocketgraph.freezing.constant_substitution import variables_to_constants
from pocketgraph.freezing.dead_updates import without_dead_updates
from pocketgraph.freezing.decided_branches import with_decided_branches, without_redundant_control_inputs
from pocketgraph.freezing.graph_variables import VariableNode, is_variable, variables
from pocketgraph.freezing.initializers import initial_values
from pocketgraph.freezing.leftovers import leftovers, unknown_variables
from pocketgraph.freezing.repair.updates import has_updates
from pocketgraph.freezing.run_state import forgotten, run_state
from pocketgraph.freezing.savers import of_saver, saved_names
from pocketgraph.freezing.serving_signatures import left_signatures
from pocketgraph.freezing.stored_tables import has_stored_tables
from pocketgraph.freezing.subgraph import extract_sub_graph
from pocketgraph.freezing.table_contents import lookups_without_filler, with_table_contents
from pocketgraph.freezing.trained_model import Checkpoint, holds_values, opened
from pocketgraph.freezing.training_batch_norms import (
    TrainingBatchNormError,
    refuse_training_batch_norms,
    untrained_batch_norms,
)
from pocketgraph.freezing.training_dir import TrainedModel, names_checkpoint
from pocketgraph.freezing.tree_ensembles import with_tree_ensembles
from pocketgraph.graph import Graph, Signature, Tensor, node_name
from pocketgraph.graph.entry_points import contenders, main_outputs, sole_outputs
from pocketgraph.graph.garbage_collection import collector_paused
from pocketgraph.graph.graph import DEFAULT_SIGNATURE
from pocketgraph.pages.quantities import counted, listed
from pocketgraph.passes.dropout_removal import without_dropout
from pocketgraph.passes.inlining import ControlFlow

TWICE = (
    "No variables were found in this model. It is likely the model was frozen previously. You cannot freeze a graph "
    "twice."
)
MOST_LISTED = 8  # nodes in a message


class UnclearOutputsError(FreezeError):
    """Nobody said what is to be computed, and the graph does not tell."""


@dataclass(frozen=True)
class Frozen:
    """What freezing gave.

    Attributes:
        graph: the frozen graph; its ``outputs`` are those that were asked for or found.
        source: the graph's file, "" for a graph from memory.
        checkpoint: the checkpoint's prefix, "" for one from memory.
        variables: the names of the variables that became constants.
        warnings: what will not run or not do what it seems to, a line each; see leftovers.py.
        repaired: what was repaired on request, a line each; see repair/.
        forgets: the variables in which the model kept what it was given, from run to run; see run_state.py.
    """

    graph: Graph
    source: str
    checkpoint: str
    variables: tuple[str, ...]
    warnings: tuple[str, ...]
    repaired: tuple[str, ...] = ()
    forgets: tuple[str, ...] = ()


@collector_paused()
def freeze_with_report(
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
    signature: str | None = None,
    bind: Mapping[str, Any] | None = None,
    repair: bool | str | Collection[str] = False,
    control_flow: ControlFlow | None = None,
    allow_training_batch_norm: bool = False,
    moving_averages: bool = False,
) -> Frozen:
    """``freeze``, with what there is to tell about it: arguments and errors are those listed there."""
    graph, source, store = opened(graph_or_path, checkpoint, tags, signature)
    wanted_repairs = repairs.chosen(repair)
    if not (source.is_saved_model or _is_open(graph, store)):
        if checkpoint is None and not isinstance(graph_or_path, Graph) and names_checkpoint(path_of(graph_or_path)):
            raise FreezeError(
                "the graph beside this checkpoint has no variables, so it is another one's", where=source.graph,
                hint=f"say where the checkpoint's own is with {option('input_graph', 'graph_or_path')}",
            )  # fmt: skip
        if not (bind or wanted_repairs or holds_values(source.graph)):
            mends = f", or with {option('repair')} mend what training left" if leftovers(graph, graph) else ""
            raise FreezeError(TWICE, where=source.graph, hint=f"use it as it is{mends}")
    taken = () if _names(outputs) or graph.outputs else tuple(sorted(graph.public_signatures))
    names = _names(outputs) or _guessed(graph, source.graph)
    before: dict[str, str] = {}
    whole = bound(graph, _by_tensor(graph, bind or {}, signature))
    if "batch_norms" in wanted_repairs:  # what updates their averages is not needed by the outputs
        whole, before = repairs.repaired(whole, "batch_norms")
    part = extract_sub_graph(whole, names).replace(outputs=names)
    kept = set(part.nodes)
    if control_flow is None and source.is_saved_model:
        control_flow = "lower"
    repairs_made = [line for name, line in before.items() if name in kept]
    white = None if variable_names_whitelist is None else _names(variable_names_whitelist)
    lists = (white, _names(variable_names_blacklist))
    part, lines, state, unordered = _repaired(part, names, wanted_repairs, control_flow, lists, is_bound=bool(bind))
    if bind:
        part = extract_sub_graph(without_dropout(part, only_noop=True)[0], names)
    if source.is_saved_model:
        part, dropped = without_dead_updates(part, names)
        lines |= dropped
    wanted = _listed(part, *lists)
    values, plain = _values(wanted, graph, source, store, initializer_nodes, saver, moving_averages)
    frozen = _signed(variables_to_constants(part, values), names)
    if clear_devices:
        frozen = frozen.map_nodes(lambda node: node.replace(device="") if node.device else node)
    if control_flow is not None:
        frozen = extract_sub_graph(without_redundant_control_inputs(frozen), names)
    frozen = with_table_contents(frozen, graph, _folder_of(source.graph), store)
    frozen = with_tree_ensembles(frozen, graph, store)
    if not allow_training_batch_norm:
        _refuse_training_batch_norms(frozen, graph, taken, is_repaired="batch_norms" in wanted_repairs)
    warnings = unknown_variables(graph, part, listed_by_user=[name for names in lists for name in names or ()])
    if len(taken) > 1:
        warnings.append(f"all signatures were taken: {', '.join(taken)}; {option('signature')}=NAME takes one")
    elif source.is_saved_model and not (signature or _names(outputs)):
        warnings += filter(None, [left_signatures(graph)])
    warnings += [*_unread(frozen, graph, {*(bind or ()), *lines}), *unordered, *leftovers(frozen, graph)]
    warnings += [*untrained_batch_norms(frozen), *([forgotten(state)] if state else [])]
    return Frozen(
        frozen, source.graph, source.checkpoint or "", tuple(values), (*warnings, *plain),
        (*repairs_made, *lines.values()), tuple(state),
    )  # fmt: skip


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
    tags: str | None = None,
    signature: str | None = None,
    bind: Mapping[str, Any] | None = None,
    repair: bool | str | Collection[str] = False,
    control_flow: ControlFlow | None = None,
    allow_training_batch_norm: bool = False,
    moving_averages: bool = False,
) -> Graph:
    """The part of a graph that its outputs need, with every variable replaced by its value in a checkpoint.

    Values stay in the checkpoint's files until somebody reads or saves them; damaged ones are found then.

    >>> import numpy as np
    >>> from pocketgraph import Tensor, freeze
    >>> from pocketgraph.graph.text_format import parse, print_graph
    >>> graph = parse('''
    ...     x = Placeholder(dtype=float, shape=[2])
    ...     w = VariableV2(dtype=float, shape=[2])
    ...     seen = Identity(w, T=float)
    ...     y = Mul(x, seen, T=float)
    ... ''')
    >>> print(print_graph(freeze(graph, "y", {"w": Tensor.from_numpy(np.float32([3, 4]))})), end="")
    x = Placeholder(dtype=float, shape=[2])
    w = Const(float [3.0, 4.0])
    seen = Identity(w, T=float)
    y = Mul(x, seen, T=float)

    Args:
        graph_or_path: a graph, a graph file (GraphDef or MetaGraphDef, binary or text), a training directory or a
            checkpoint in one, or the directory of a SavedModel.
        outputs: names of nodes or tensors, as a list or with commas. By default those that the graph states, or the
            one that stands out; see graph.endpoints.
        checkpoint: a checkpoint in any of the ways that formats.open_checkpoint takes, or tensors by name. By default
            the one beside the graph, for a Graph beside the file that it was loaded from.
        variable_names_whitelist: freeze only these variables, as a list or with commas.
        variable_names_blacklist: do not freeze these variables, likewise.
        initializer_nodes: ops that would be run after restoring. Constants that they assign to variables are used;
            lookup tables keep their initializers only when these are among the outputs.
        clear_devices: drop the device of every node (not of those inside functions).
        saver: the scope of the graph's saver that wrote the checkpoint, such as ``save``: what it says of names and
            slices comes before variables' own names. "" means all savers. By default they come first for a
            MetaGraphDef and a SavedModel, as in the original, and last otherwise.
        tags: which graph of a SavedModel, with commas; by default the one for serving.
        signature: which signature of a SavedModel or MetaGraphDef gives the inputs and outputs; by default
            ``serving_default`` or the only one.
        bind: values of inputs that are fixed from now on, as in ``{"phase_train": False, "keep_prob": 1.0}``; branches
            that they decide are taken out. An input may also be called by its key in the signature.
        repair: what training left behind and is to be repaired: True for all, or names from freezing.repair.REPAIRS.
        control_flow: what becomes of the functions of TensorFlow 2. "lower": calls are inlined, and If, Case and While
            become the Switch, Merge, Enter and Exit of TensorFlow 1; "keep": calls are inlined, and If, Case and While
            stay unless what is bound decides them. The default is "lower" for a SavedModel, "keep" for another graph
            when something is bound; else functions stay as they are, as in the original.
        allow_training_batch_norm: do not refuse batch norms that use the statistics of the batch.
        moving_averages: take the averages that tf.train.ExponentialMovingAverage kept of variables in training.

    Returns:
        A graph of what the outputs need, without variables.

    Raises:
        FreezeError: an output is unknown or cannot be guessed; a variable is missing in the checkpoint or differs in
            type or shape; there are no variables; a variable goes where a constant cannot; a function calls itself; a
            batch norm would go on training; no moving averages were kept.
        FormatError: a file is damaged or of another kind.
        UsageError: there is no such signature or repair, or a value does not fit what it is bound to.
    """
    return freeze_with_report(**locals()).graph


def _is_open(graph: Graph, store: Mapping[str, Tensor] | None) -> bool:
    """Whether a graph holds variables or tables to freeze."""
    has_nodes = any(is_variable(node) for node in graph) or bool(lookups_without_filler(graph))
    return has_nodes or has_stored_tables(graph, store)


def _listed(graph: Graph, white: Collection[str] | None, black: Collection[str] | None) -> dict[str, VariableNode]:
    """The variables that become constants, by name."""
    return {
        name: variable
        for name, variable in variables(graph).items()
        if (white is None or name in white) and (black is None or name not in black)
    }


def _values(
    wanted: Mapping[str, VariableNode],
    graph: Graph,
    source: TrainedModel,
    store: Mapping[str, Tensor] | None,
    initializer_nodes: Sequence[str],
    saver: str | None,
    moving_averages: bool,
) -> tuple[dict[str, Tensor], list[str]]:
    """The values of variables: what initializers assign, and of the others what the checkpoint holds; a line
    where it holds averages of them that were not asked for, or a loader would compute others.

    Raises:
        FreezeError: a variable has no value; averages were asked for, and there are none.
    """
    values, lines = initial_values(
        graph, initializer_nodes, source.initializer, set(wanted), has_checkpoint=store is not None
    )
    rest = [variable for name, variable in wanted.items() if name not in values]
    if rest and store is None:
        raise FreezeError(
            f"the graph has {len(rest)} variables and no checkpoint was given", where=source.graph,
            hint=f"name the checkpoint's prefix, such as model.ckpt-1000 ({option('input_checkpoint', 'checkpoint')})",
        )  # fmt: skip
    if rest and store is not None:
        saved = of_saver(saved_names(graph), saver)
        first = source.has_saver or saver is not None
        values |= values_of(rest, store, saved, savers_first=first, averages=moving_averages)
        kept = averaged([variable.name for variable in rest], store, saved)
        if moving_averages and not kept:
            raise FreezeError(
                f"the checkpoint has no moving averages (NAME{MOVING_AVERAGE}) of these variables",
                where=source.checkpoint or "", hint=f"leave {option('moving_averages')} out",
            )  # fmt: skip
        if kept and not moving_averages and not (first and restores_averages(saved)):
            lines = [
                *lines,
                f"training kept moving averages of {counted(len(kept), 'variable')}, by which such models are "
                f"mostly evaluated, and their last values are taken; freeze_graph takes the averages with "
                f"{option('moving_averages')}",
            ]
    return values, lines


def _refuse_training_batch_norms(frozen: Graph, graph: Graph, taken: Sequence[str], *, is_repaired: bool) -> None:
    """As ``refuse_training_batch_norms``; where several signatures were ``taken``, one of them may do without."""
    try:
        refuse_training_batch_norms(frozen, graph, is_repaired=is_repaired)
    except TrainingBatchNormError as error:
        if len(taken) < 2:
            raise
        hint = f"take one of the signatures {', '.join(taken)}, as in {option('signature')}={taken[0]}; or {error.hint}"
        raise TrainingBatchNormError(error.what, where=error.where, hint=hint) from None


def _repaired(
    part: Graph,
    names: Sequence[str],
    wanted: Sequence[str],
    control_flow: ControlFlow | None,
    lists: tuple[Collection[str] | None, Collection[str] | None],
    *,
    is_bound: bool,
) -> tuple[Graph, dict[str, str], list[str], list[str]]:
    """The part with its repairs made and its functions settled; a line for each node that was repaired; the variables
    in which the model kept what it was given; a line for each that is read in no order with an assignment.

    Flags come first, for they decide branches as bound inputs do; the rest looks at what these leave.
    """
    lines: dict[str, str] = {}
    unordered: list[str] = []
    if "flags" in wanted:
        part, repairs_made = repairs.repaired(part, "flags")
        lines |= repairs_made
    if control_flow is not None and has_updates(part):
        kept = with_decided_branches(part, names, "keep")
        wanted_values = _listed(kept, *lists)
        assigned, unordered = with_assigned_values(kept, names, wanted_values, out_of_calls=control_flow == "keep")
        part = part if assigned is kept else extract_sub_graph(assigned, names)
    if control_flow is not None or is_bound or lines:
        part = with_decided_branches(part, names, control_flow or "keep")
    state = run_state(part, names)
    for name in wanted:
        if name != "flags":  # batch norms once more: those of functions are seen now
            part, repairs_made = repairs.repaired(part, name)
            part = extract_sub_graph(part, names)
            lines |= repairs_made
    return part, lines, state, unordered


def _names(given: str | Collection[str] | None) -> list[str]:
    names = given.split(",") if isinstance(given, str) else given or ()
    return [name.strip() for name in names if name.strip()]


def _guessed(graph: Graph, where: str) -> list[str]:
    """The outputs, where there is no doubt about them."""
    found = sole_outputs(graph)
    if found:
        return found
    ranked = contenders(graph)[:MOST_LISTED]
    listed = ", ".join(f"{name} ({why})" for name, why in ranked)
    names = option("output_node_names", "outputs")
    best = f"; {names}={','.join(main_outputs(graph))} takes the likeliest" if ranked else ""
    raise UnclearOutputsError(
        f"You need to supply the name of a node to {names}, as it is not clear which is meant",
        where=where, hint=f"likely ones are {listed}{best}" if ranked else "no node of the graph looks like an output",
    )  # fmt: skip


def _by_tensor(graph: Graph, bind: Mapping[str, Any], signature: str | None) -> dict[str, Any]:
    """What is bound, by the names of tensors or nodes where it was given by a key of the signature."""
    chosen = graph.signatures.get(signature or DEFAULT_SIGNATURE)
    keys = chosen.inputs if chosen is not None else {}
    return {name if node_name(name) in graph else keys.get(name, name): value for name, value in bind.items()}


def _signed(graph: Graph, outputs: Sequence[str]) -> Graph:
    """The graph with these outputs, and those signatures whose outputs are still in it; inputs that are gone or bound
    to a value are none any more."""

    def stays(ref: str) -> bool:
        node = graph.find_producer(ref)
        return node is not None and node.op != "Const"

    signatures = {
        name: Signature(
            {key: ref for key, ref in signature.inputs.items() if stays(ref)}, signature.outputs, signature.method
        )
        for name, signature in graph.signatures.items()
        if all(node_name(ref) in graph for ref in signature.outputs.values())
    }
    inputs = [name for name in graph.inputs if stays(name)]
    return graph.replace(outputs=outputs, inputs=inputs, signatures=signatures, source="")


def _unread(frozen: Graph, graph: Graph, decided: set[str]) -> list[str]:
    """That inputs are gone which the signatures of a frozen graph had, but for those that were bound or repaired."""
    gone = sorted({
        key
        for name, signature in frozen.signatures.items()
        for key, ref in graph.signatures[name].inputs.items()
        if key not in signature.inputs
        and decided.isdisjoint({key, ref, node_name(ref)})
    })  # fmt: skip
    are, them = ("is no input", "it") if len(gone) == 1 else ("are no inputs", "them")
    said = f"the signature's {listed(gone, quoted=True)} {are} of what is made: no output needs {them}"
    return [said] if gone else []


def _folder_of(path: str) -> str:
    """Where the files of a model's lookup tables may be: its directory, or that of its file; "" where it is no file."""
    if os.path.isdir(path):
        return path
    return os.path.dirname(os.path.abspath(path)) if os.path.isfile(path) else ""
