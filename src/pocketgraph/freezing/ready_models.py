"""Models as they are used: a training or a SavedModel frozen in memory, any other file as it is read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pocketgraph.errors import FormatError, FreezeError, UsageError, option
from pocketgraph.formats import Kind, load
from pocketgraph.formats.detect import identify, of_directory
from pocketgraph.formats.meta_graph import main_signature, saved_model_file
from pocketgraph.freezing import training_dir
from pocketgraph.freezing.assigned_values import STORED_VALUE
from pocketgraph.freezing.graph_variables import is_variable
from pocketgraph.freezing.leftovers import NO_INPUT
from pocketgraph.freezing.repair.augmentation import augmentations
from pocketgraph.freezing.run_state import begun_anew, forgotten, zero_states
from pocketgraph.freezing.serving_signatures import (
    inferring_signatures,
    takes_numbers,
    takes_records,
)
from pocketgraph.freezing.subgraph import extract_sub_graph
from pocketgraph.freezing.table_contents import with_waiting_lookups
from pocketgraph.freezing.tool import Frozen, UnclearOutputsError, freeze_with_report
from pocketgraph.freezing.training_batch_norms import TrainingBatchNormError
from pocketgraph.graph import Graph, node_name
from pocketgraph.graph.entry_points import main_outputs, other_ends
from pocketgraph.graph.op_traits import CONVOLUTIONS, ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.pages.quantities import counted

_VECTOR = re.compile(r"(^|/)embeddings?(_\d+)?$", re.I)
LIKELY = 4.5  # from which an end is a head of its own, such as a sigmoid behind weights
MOST_NAMED = 3  # other outputs that a note names
_SIGNED = {
    Kind.SAVED_MODEL, Kind.CHECKPOINT_DIRECTORY, Kind.DIRECTORY, Kind.META_GRAPH, Kind.META_GRAPH_TEXT,
    Kind.TENSORFLOW_JS, Kind.MISSING,  # which is said when it is read
}  # fmt: skip
Tell = Callable[[str], None]


class Freezing(NamedTuple):
    """What has to be said for a model to be frozen: nodes to compute, unless it says them; a signature; repairs. And
    what the model then forgets, see ``Frozen``."""

    outputs: tuple[str, ...]
    signature: str | None
    repair: bool
    forgets: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReadyModel:
    """A model with constants for variables.

    Attributes:
        graph: the model.
        notes: what was done, a sentence each.
        freezing: how it was frozen; None where nothing had to be.
    """

    graph: Graph
    notes: tuple[str, ...] = ()
    freezing: Freezing | None = None


def read_model(
    path: str | os.PathLike[str],
    outputs: Sequence[str] | None = None,
    *,
    signature: str | None = None,
    notify: Tell | None = None,
) -> Graph:
    """The graph of a model; that of a SavedModel or a training with its variables as constants.

    Args:
        path: a model file, the directory of a SavedModel or a training, or a checkpoint in one.
        outputs: what is to be computed; by default what the model says, else the likeliest.
        signature: of a SavedModel or MetaGraphDef, the one that gives inputs and outputs.
        notify: told what was done, a sentence each.

    Raises:
        FormatError, FreezeError: it is none, damaged, or cannot be frozen.
        UsageError: there is no such signature.
    """
    found = ready(path, outputs, signature=signature)
    if notify is not None:
        for note in found.notes:
            notify(note)
    return found.graph


def read_directory(
    path: str | os.PathLike[str], outputs: Sequence[str] | None = None, *, notify: Tell | None = None
) -> Graph:
    """``read_model`` of a directory or a checkpoint, whose graph has no values as it is stored; a file as it is stored.

    This is for looking at graphs and rewriting them. A SavedModel that cannot be frozen is taken as it is stored.
    """
    name = training_dir.model_path(path)
    if is_training(name):
        return read_model(name, outputs, notify=notify)
    if not os.path.isdir(name):
        return load(name)
    try:
        return read_model(name, outputs, notify=notify)
    except FreezeError as error:
        graph = load(name)
        if notify is not None:
            notify(f"'{name}' is taken as it is stored, without the values of its variables: {error}")
        return graph


def is_training(path: str) -> bool:
    """Whether a path is the directory of a training, or a checkpoint in one."""
    return saved_model_file(path) is None and (os.path.isdir(path) or training_dir.names_checkpoint(path))


def for_session(
    path: str | os.PathLike[str],
    outputs: Sequence[str] | None = None,
    *,
    signature: str | None = None,
    notify: Tell | None = None,
) -> Graph | str:
    """What a Session takes: the path itself where it reads that as it is; arguments as for ``read_model``."""
    name = training_dir.model_path(path)
    if signature is None and not _is_trained(name):
        return name
    return read_model(name, outputs, signature=signature, notify=notify)


def signature_for(model: object, signature: str | None) -> str | None:
    """The signature, where the model is the path of one whose signature may be chosen, as that of a SavedModel, or its
    own file; else None. Without a signature no file is looked at."""
    if signature is None or not isinstance(model, str | os.PathLike):
        return None
    return signature if identify(training_dir.model_path(model)).kind in _SIGNED else None


def refuse_signature_of_none(signature: str | None, models: Iterable[object]) -> None:
    """Refuses a signature where no model has one to choose."""
    if signature is not None and all(signature_for(model, signature) is None for model in models):
        raise UsageError("no model here has signatures, as a SavedModel has", hint=f"leave {option('signature')} out")


def ready(
    path: str | os.PathLike[str],
    outputs: Sequence[str] | None = None,
    *,
    signature: str | None = None,
    repair: bool = False,
    allow_training_batch_norm: bool = False,
) -> ReadyModel:
    """``read_model`` with what there is to tell about it; batch norms as ``freeze`` allows them. What training left
    behind is taken out of a training, where else it does not freeze, and with ``repair`` always."""
    name = training_dir.model_path(path)
    is_saved_model = os.path.isdir(name) and saved_model_file(name) is not None
    if not is_saved_model and not _is_trained(name):
        return ReadyModel(with_waiting_lookups(load(name, signature=signature), os.path.dirname(os.path.abspath(name))))
    notes = []
    if is_saved_model:
        graph = load(name, signature=signature)
        default = main_signature(graph)
        if signature is None and not outputs and default is not None and takes_records(graph, default):
            signature = next((key for key in sorted(graph.signatures) if takes_numbers(graph, key)), None)
            if signature is not None:
                graph = load(name, signature=signature)
                notes.append(
                    f"the signature '{signature}' is taken, as '{default}' takes records of tf.Example "
                    f"({option('signature')}={default} takes it)"
                )
        if signature is None and not outputs and default is None:
            inferring = inferring_signatures(graph)
            rest = ", ".join(key for key in sorted(graph.public_signatures) if key not in inferring)
            if inferring:
                are = "s {} are" if len(inferring) > 1 else " {} is"
                notes.append(
                    f"the signature{are.format(', '.join(map(repr, inferring)))} taken, as the others train, save or "
                    f"restore: {rest} ({option('signature')}=NAME takes one)"
                )
            if len(inferring) == 1:
                graph = load(name, signature=(signature := inferring[0]))
            elif inferring:
                graph = graph.replace(signatures={key: graph.signatures[key] for key in inferring})
                outputs = [tensor for taken in graph.signatures.values() for tensor in taken.outputs.values()]
        if not any(is_variable(node) or node.op in ops_with("table") for node in graph):
            return ReadyModel(graph, tuple(notes))
    repairs = (True,) if repair else (not is_saved_model, True)
    wanted = list(outputs or ())
    for at, repaired in enumerate(repairs):
        try:
            how = {"signature": signature, "repair": repaired, "allow_training_batch_norm": allow_training_batch_norm}
            frozen, others = _frozen(name, wanted, how)
        except TrainingBatchNormError:
            if at + 1 == len(repairs):
                raise
            continue
        if repaired or next(augmentations(frozen.graph), None) is None:
            break  # a served model, too, may have been exported with what changes training's pictures at random
    names = list(frozen.graph.outputs)
    said = tuple(dict.fromkeys(map(node_name, names))) if wanted or others is not None else ()
    all_notes = (*notes, *_notes(name, frozen, others))
    if not wanted and not is_saved_model:
        all_notes += inner_results(frozen.graph)
    return ReadyModel(frozen.graph, all_notes, Freezing(said, signature, bool(frozen.repaired), frozen.forgets))


def _frozen(name: str, outputs: list[str], how: dict[str, Any]) -> tuple[Frozen, list[str] | None]:
    """The frozen model, and where its outputs are the likeliest of a graph that does not say what it computes, others
    that might be meant.

    Raises:
        FreezeError: as for freezing.
    """
    try:
        return freeze_with_report(name, outputs or None, **how), None
    except UnclearOutputsError as error:
        graph = load(training_dir.find(name).graph)
        likely = main_outputs(graph)
        if not likely:
            what = f"{option('outputs')} must name what is to be computed, as it is not clear which node is meant"
            raise FreezeError(what, where=error.where, hint=error.hint) from None
        frozen = freeze_with_report(name, likely, **how)
        return frozen, other_ends(graph, likely, least=LIKELY)[:MOST_NAMED]
    except TrainingBatchNormError:
        raise
    except FreezeError:
        inside = _frozen_inside(name, outputs, how)
        if inside is None:
            raise
        return inside, None


def _frozen_inside(name: str, outputs: list[str], how: dict[str, Any]) -> Frozen | None:
    """A SavedModel up to nodes of its functions, which are nodes of the graph once the calls are inlined; None where
    it has no such nodes."""
    if not outputs or not os.path.isdir(name) or saved_model_file(name) is None:
        return None
    try:
        whole = freeze_with_report(name, **how)
    except TrainingBatchNormError:
        raise  # it freezes when it is repaired
    except FreezeError:
        return None
    if any(node_name(output) not in whole.graph for output in outputs):
        return None
    part = extract_sub_graph(whole.graph, outputs)
    inputs = [ref for ref in part.inputs if node_name(ref) in part]
    return replace(whole, graph=part.replace(outputs=outputs, inputs=inputs, signatures={}))


def _notes(name: str, frozen: Frozen, others: Sequence[str] | None) -> list[str]:
    own = os.path.basename(frozen.checkpoint) or "the checkpoint"  # its prefix may end where its folder does
    place = own if not os.path.isdir(frozen.source) else "the SavedModel"
    count = len(frozen.variables)
    became = f": {counted(count, 'variable')} of {place} became constants" if count else ""
    notes = [f"'{name}' is frozen in memory{became}"]
    if others is not None:
        taken = list(frozen.graph.outputs)
        which = "output is" if len(taken) == 1 else "outputs are"
        such = f", such as {', '.join(others)}" if others else ""
        notes.append(f"the likeliest {which} taken, {', '.join(taken)}; {option('outputs')} names others{such}")
    if frozen.forgets:
        notes.append(forgotten(frozen.forgets))
    elif frozen.repaired:
        first, *others = frozen.repaired
        notes.append(f"repaired: {first}" + (f", and {len(others)} more of what training left" if others else ""))
    begins = ("all signatures", "the signature", "training kept", NO_INPUT)
    return notes + [line for line in frozen.warnings if line.startswith(begins) or line.endswith(STORED_VALUE)]


def inner_results(graph: Graph) -> tuple[str, ...]:
    """What of a training is easily overlooked: states that begin with zeros, and a vector in front of the classes."""
    states = zero_states(graph)
    notes = [begun_anew(states)] if states else []
    ends = {node_name(name) for name in graph.outputs}
    for name in sorted(reachable(graph, graph.outputs, data_only=True, missing_ok=True) - ends):
        if _VECTOR.search(name) and graph[name].op != "Const":
            before = reachable(graph, [name], data_only=True, missing_ok=True)
            if any(graph[one].op in CONVOLUTIONS for one in before):  # and it is no word's
                notes.append(
                    f"'{name}' in front of the classes is a vector of what is seen, by which faces and the like are "
                    f"told apart that training did not know: {option('outputs')}={name} takes that"
                )
                break
    return tuple(notes)


def _is_trained(path: str) -> bool:
    """Whether a path is a training: its directory, a checkpoint, or a graph whose variables lie in one beside it."""
    if os.path.isdir(path) and saved_model_file(path) is not None:
        return False
    try:
        found = training_dir.find(path)
        if found.checkpoint is None:
            return False
        return found.graph != path or any(map(is_variable, load(path)))
    except FreezeError:
        raise
    except FormatError:
        if os.path.isdir(path) and of_directory(path) is Kind.CHECKPOINT_DIRECTORY:
            raise  # which says what to do about the checkpoint
        return False
