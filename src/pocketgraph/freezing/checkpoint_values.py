"""Finds each variable's value in a checkpoint, and says which are missing or do not fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from pocketgraph.errors import FreezeError, nearest, option
from pocketgraph.formats.checkpoints.bundle_proto import Extent
from pocketgraph.formats.checkpoints.checkpoint_base import Checkpoint, resolved
from pocketgraph.formats.object_graph import keys_by_variable
from pocketgraph.freezing.graph_variables import VariableNode
from pocketgraph.freezing.savers import SavedAs
from pocketgraph.graph import Tensor

_PARTITION = re.compile(r"(?P<whole>.+)/part_(?P<number>\d+)")
MOST_LISTED = 10  # variables in a message
MOVING_AVERAGE = "/ExponentialMovingAverage"
"""What tf.train.ExponentialMovingAverage puts behind a variable's name, unless training gave it another name."""


def values_of(
    variables: Iterable[VariableNode],
    checkpoint: Mapping[str, Tensor],
    saved: Mapping[str, Sequence[SavedAs]],
    *,
    savers_first: bool = False,
    averages: bool = False,
) -> dict[str, Tensor]:
    """The value of each variable by its node name; no bytes are read.

    A variable is looked for under its own name (a resource variable: its shared name, then its node's name), under the
    keys from which the graph's savers restore it, and under the names in the checkpoint's object graph when TensorFlow
    2 wrote one.

    Args:
        saved: what savers.saved_names found.
        savers_first: ask the savers before the plain names. They differ for example where an evaluation graph restores
            moving averages into the variables.
        averages: take a variable's moving average where the checkpoint has one.

    Raises:
        FreezeError: variables are not in the checkpoint (all of them are listed), or differ in type or shape.
        FormatError: the checkpoint is damaged.
    """
    finder = _ValueFinder(checkpoint, saved, savers_first, averages)
    found: dict[str, Tensor] = {}
    missing: list[VariableNode] = []
    wrong: list[str] = []
    for variable in variables:
        tensor = finder.find(variable)
        if tensor is None:
            missing.append(variable)
            continue
        if tensor.dtype is not variable.dtype or not variable.shape.fits(tensor.shape):
            wrong.append(
                f"'{variable.name}' is {variable.dtype.name}{variable.shape} in the graph and "
                f"{tensor.dtype.name}{list(tensor.shape)} in the checkpoint"
            )
        found[variable.name] = tensor
    if missing:
        raise _missing(missing, checkpoint, saved)
    if wrong:
        raise FreezeError(
            "variables do not fit the checkpoint: " + _listed(wrong, "; "), where=_where(checkpoint),
            hint="is it the checkpoint of another model or of another version of it?",
        )  # fmt: skip
    return found


def averaged(
    variables: Iterable[str], checkpoint: Mapping[str, Tensor], saved: Mapping[str, Sequence[SavedAs]]
) -> list[str]:
    """The variables of which the checkpoint has a moving average, too."""
    keys = {name: (name, *(place.key for place in saved.get(name, ()))) for name in variables}
    return [name for name, known in keys.items() if any(key + MOVING_AVERAGE in checkpoint for key in known)]


def restores_averages(saved: Mapping[str, Sequence[SavedAs]]) -> bool:
    """Whether the graph's saver is one of evaluation, which puts moving averages into the variables."""
    return any(place.key.endswith(MOVING_AVERAGE) for places in saved.values() for place in places)


class _ValueFinder:
    def __init__(
        self,
        checkpoint: Mapping[str, Tensor],
        saved: Mapping[str, Sequence[SavedAs]],
        savers_first: bool,
        averages: bool,
    ) -> None:
        self._checkpoint = checkpoint
        self._saved = saved
        self._savers_first = savers_first
        self._endings = (MOVING_AVERAGE, "") if averages else ("",)
        keys: dict[str, set[str]] = {}
        for places in saved.values():
            for place in places:
                keys.setdefault(place.saver, set()).add(place.key)
        self._whole_savers = {saver for saver, names in keys.items() if all(name in checkpoint for name in names)}
        self._objects: Mapping[str, str] | None = None

    def find(self, variable: VariableNode) -> Tensor | None:
        plain = [SavedAs(name, None, "") for name in (variable.shared_name, variable.name) if name]
        # A saver whose every key is in the checkpoint is the one that wrote it.
        said = sorted(self._saved.get(variable.name, ()), key=lambda place: place.saver not in self._whole_savers)
        places = [*said, *plain] if self._savers_first else [*plain, *said]
        for ending in self._endings:
            for place in places:
                if place.key + ending in self._checkpoint:
                    return self._read(place.key + ending, place.extents, variable)
        return self._partition(variable) or self._object(variable)

    def _read(self, key: str, extents: Sequence[Extent] | None, variable: VariableNode) -> Tensor:
        if extents is None:
            return self._checkpoint[key]
        if isinstance(self._checkpoint, Checkpoint):
            return self._checkpoint.part(key, extents)
        whole = self._checkpoint[key]
        bounds = resolved(extents, whole.shape)
        if bounds is None:
            raise FreezeError(
                f"the slice {list(extents)} of '{key}' is not inside its shape {list(whole.shape)}",
                where=f"variable '{variable.name}'",
            )
        cut = tuple(slice(start, start + length) for start, length in bounds)
        return Tensor(whole.dtype, tuple(length for _, length in bounds), read=lambda: whole.numpy()[cut].view())

    def _partition(self, variable: VariableNode) -> Tensor | None:
        """``v/part_1`` as the second slice that the checkpoint has of ``v``, for graphs without their saver."""
        match = _PARTITION.fullmatch(variable.name)
        if match is None or not isinstance(self._checkpoint, Checkpoint) or match["whole"] not in self._checkpoint:
            return None
        slices = sorted(self._checkpoint.entry(match["whole"]).slices)
        number = int(match["number"])
        return self._checkpoint.part(match["whole"], slices[number]) if number < len(slices) else None

    def _object(self, variable: VariableNode) -> Tensor | None:
        if self._objects is None:
            self._objects = keys_by_variable(self._checkpoint)
        for name in (variable.shared_name, variable.name):
            key = self._objects.get(name)
            if key is not None and key in self._checkpoint:
                return self._checkpoint[key]
        return None


def _missing(
    variables: Sequence[VariableNode], checkpoint: Mapping[str, Tensor], saved: Mapping[str, Sequence[SavedAs]]
) -> FreezeError:
    lines = []
    for variable in variables[:MOST_LISTED]:
        near = nearest(variable.name, checkpoint, 1) if len(checkpoint) < 5000 else []
        lines.append(f"'{variable.name}'" + (f" (near: '{near[0]}')" if near else ""))
    count = len(variables)
    what = f"{count} variable{'s are' if count > 1 else ' is'} not in the checkpoint: {', '.join(lines)}"
    if count > MOST_LISTED:
        what += f" and {count - MOST_LISTED} more"
    hint = f"the checkpoint holds {_listed(list(checkpoint)[:6], ', ')}" + (" …" if len(checkpoint) > 6 else "")
    if any(_partitioned(variable, checkpoint) for variable in variables):
        hint = (
            "models containing partition variables need their saver to be converted: give the .meta file that was "
            f"written beside the checkpoint ({option('input_meta_graph', 'graph_or_path')})"
        )
    elif any(key.endswith(".ATTRIBUTES/VARIABLE_VALUE") for key in checkpoint):
        hint = "TensorFlow 2 wrote this checkpoint with object names that this graph does not know"
    elif saved and not any(variable.name in saved for variable in variables):
        names = ",".join(variable.name for variable in variables)
        begins = ",".join(f"{variable.name}/Assign" for variable in variables)
        denied = option("variable_names_denylist", "variable_names_blacklist")
        hint = (
            "the graph's saver does not save them, so the program around the graph fills them, as with what an "
            f"environment shows; {option('initializer_nodes')}={begins} takes the constants that they begin with; or "
            f"{denied}={names} freezes the others, and the rules remove_control_dependencies and strip_unused_nodes "
            "then make an input of a node that reads one"
        )
    return FreezeError(what, where=_where(checkpoint), hint=hint)


def _partitioned(variable: VariableNode, checkpoint: Mapping[str, Tensor]) -> bool:
    match = _PARTITION.fullmatch(variable.name)
    return match is not None and match["whole"] in checkpoint


def _where(checkpoint: Mapping[str, Tensor]) -> str:
    return checkpoint.prefix if isinstance(checkpoint, Checkpoint) else "the checkpoint"


def _listed(items: Sequence[str], separator: str) -> str:
    more = len(items) - MOST_LISTED
    return separator.join(items[:MOST_LISTED]) + (f"{separator}and {more} more" if more > 0 else "")
