"""The arrays of a file that belong to a model's inputs, by their names, and what its labels say."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from pocketgraph.datasets import class_labels
from pocketgraph.datasets.model_input import SERVING, ModelInput, signature_prefix
from pocketgraph.datasets.stored_arrays import SampleArray, read_arrays, whole
from pocketgraph.errors import UsageError, option, shapes_option
from pocketgraph.graph.tensor import Array
from pocketgraph.pages.quantities import counted

IN_MEMORY = "the samples"
SampleSource: TypeAlias = "str | os.PathLike[str] | Array | Mapping[str, Array]"
"""Where samples are: a path, or arrays by the inputs' names with samples along the first axis, or the only array."""
MOST_NAMED = 10  # arrays in a message
LABEL_KEYS = ("labels", "label", "y", "y_test", "targets")


def are_arrays(source: SampleSource) -> bool:
    """Whether samples are arrays, in memory or in a file, so that they have sizes."""
    if not isinstance(source, (str, os.PathLike)):
        return True
    return os.fspath(source).lower().endswith((".npz", ".npy")) and not os.path.isdir(source)


def arrays_of(source: SampleSource) -> dict[str, SampleArray]:
    """The arrays by their names; an only one that has none by "".

    Raises:
        FormatError: a file is damaged.
    """
    if isinstance(source, (str, os.PathLike)):
        return read_arrays(os.fspath(source))
    if isinstance(source, np.ndarray):
        return {"": source}
    if isinstance(source, Mapping):
        return {name: np.asarray(array) for name, array in source.items()}
    try:
        only = np.asarray(source)
    except ValueError:
        only = np.empty(0, object)
    if only.dtype.kind not in "fiub" or not only.ndim:
        hint = "give an array with samples along its first axis, such arrays by the inputs' names, or a path"
        raise UsageError(f"samples are no {type(source).__name__}", hint=hint)
    return {"": only}


def fitting_signature(source: SampleSource, signatures: Mapping[str, Collection[str]]) -> str | None:
    """The key of the signature that arrays are for: all its inputs are named like one of them, and no other such
    signature has as many; None where there is none, or samples are not arrays with names.

    Args:
        source: as for ``of_inputs``.
        signatures: the names of the inputs by the signatures' keys.

    Raises:
        FormatError: the file is damaged.
    """
    names = set(arrays_of(source)) if are_arrays(source) else set()
    counts = {key: len(set(inputs)) for key, inputs in signatures.items() if inputs and names.issuperset(inputs)}
    best = [key for key, count in counts.items() if count == max(counts.values())]
    return best[0] if len(best) == 1 else None


def without_inputs(place: str) -> UsageError:
    """The error of samples for a model that takes nothing."""
    return UsageError("the model has no inputs, so it takes no samples", where=place)


def of_inputs(
    source: SampleSource, inputs: tuple[ModelInput, ...]
) -> tuple[list[SampleArray], list[str], Array | None]:
    """One array an input, the samples along the first axis, and what the labels say: classes or numbers.

    Raises:
        UsageError: there is no array for an input, or it does not fit the model; there are fewer labels than samples;
            the model has no inputs.
        FormatError: the file is damaged.
    """
    name = os.fspath(source) if isinstance(source, (str, os.PathLike)) else IN_MEMORY
    if not inputs:
        raise without_inputs(name)
    found = arrays_of(source)
    if "" in found:
        found = {inputs[0].name: found[""]}
    taken = {item.name.split(":")[0] for item in inputs}
    key = next((key for key in LABEL_KEYS if key in found and key not in taken), None)
    labels = None if key is None else whole(found.pop(key))
    arrays = [_fitting(name, found, item, inputs) for item in inputs]
    counts = {len(array) for array in arrays}
    if len(counts) > 1:
        raise UsageError(f"the arrays have {' and '.join(map(str, sorted(counts)))} samples", where=name)
    classes: list[str] = []
    targets: Array | None = None
    if labels is not None and len(arrays[0]):
        if labels.ndim < 1 or len(labels) < len(arrays[0]):
            count = len(labels) if labels.ndim else 1
            raise UsageError(
                f"there are {counted(len(arrays[0]), 'sample')} but only {counted(count, 'label')}", where=name
            )
        classes, targets = class_labels.classes_and_numbers(labels[: len(arrays[0])])
    return arrays, classes, targets


def sized_by_arrays(
    source: SampleSource,
    shapes: Mapping[str, tuple[int, ...]],
    open_axes: Mapping[str, Sequence[int]],
    keys: Mapping[str, Sequence[str]],
) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs with the sizes of the samples' arrays on axes that the model leaves open.

    Args:
        source: an ``.npz`` or ``.npy`` file, or arrays.
        shapes: of the inputs, of one sample: the first size is 1.
        open_axes: for each input the axes, but the first, whose size the model does not tell.
        keys: what else the array of each input may be called.

    Raises:
        UsageError: there is no array for an input.
        FormatError: the file is damaged.
    """
    place = os.fspath(source) if isinstance(source, (str, os.PathLike)) else IN_MEMORY
    found = arrays_of(source)
    if "" in found:
        found = {next(iter(shapes)): found[""]}
    taken = {name.split(":")[0] for name in shapes}.union(*keys.values())
    found = {key: array for key, array in found.items() if key in taken or key not in LABEL_KEYS}
    result = dict(shapes)
    for name, shape in shapes.items():
        axes = open_axes.get(name, ())
        array = found[_key_of(place, found, name, list(shapes), keys[name])] if axes else None
        if array is not None and array.ndim == len(shape):
            result[name] = tuple(array.shape[at] if at in axes and at else size for at, size in enumerate(shape))
        elif array is not None and len(shape) == 1 and array.ndim == 2:  # a series a sample, in no batch
            result[name] = (array.shape[1],)
    return result


def other_sizes_hint(name: str, taken: Sequence[int], given: Sequence[int]) -> str:
    """What helps where a sample has other sizes than a model takes.

    Args:
        name: of the input.
        taken: the sizes that the model takes.
        given: those of the sample.
    """
    return (
        f"cut or fill the samples to {list(taken)}, or, where the graph leaves sizes open, make the file anew with "
        f"{shapes_option({name: given})}"
    )


def _fitting(
    place: str, found: Mapping[str, SampleArray], item: ModelInput, inputs: Sequence[ModelInput]
) -> SampleArray:
    """The array for an input, its samples along the first axis."""
    name = item.name
    key = _key_of(place, found, name, [other.name for other in inputs], item.keys)
    array = found[key]
    size = int(np.prod(item.shape))
    if array.ndim < 1 or not len(array):
        raise UsageError("there are no samples here", where=place)
    if array.dtype.kind not in "fiub":
        raise UsageError(f"the array '{key}' holds {array.dtype}, not numbers", where=place)
    numbers = math.prod(array.shape[1:])
    batches = {other.shape[0] for other in inputs if len(other.shape) > 1}  # a number a row is no series beside these
    has_batch = len(item.shape) > 1 or (bool(item.shape) and batches.issuperset(item.shape))
    batch = item.shape[0] if has_batch else 1
    if numbers not in (size, size // batch) and array.shape == item.shape:
        return whole(array)[np.newaxis]  # one sample, as it is fed
    if numbers != size and numbers * batch != size:
        raise UsageError(
            f"the array '{key}' is {list(array.shape)}, and each of its {counted(len(array), 'sample')} has {numbers} "
            f"numbers; the model takes {list(item.shape)}",
            where=place,
            hint=other_sizes_hint(name, item.shape, (1, *array.shape[1:])),
        )
    given, taken = ([size for size in shape if size != 1] for shape in (array.shape[1:], item.shape))
    if given != taken and sorted(given) == sorted(taken):
        raise UsageError(
            f"the array '{key}' is {list(array.shape)}, the model takes {list(item.shape)}: axes are in another order",
            where=place, hint="transpose the array",
        )  # fmt: skip
    return array


def _key_of(
    place: str, found: Mapping[str, SampleArray], name: str, inputs: Sequence[str], others: Sequence[str]
) -> str:
    """The name of the array that is named like an input, or of the only one there is."""
    keys = [key for key in found if key in (name, name.split(":")[0], name.replace(":", "_"), name.replace("/", "_"))]
    tensor = name.removesuffix(":0")
    tensors = (tensor, tensor.removeprefix(SERVING), SERVING + tensor)
    keys += [key for key in found if key.removesuffix(":0") in tensors]
    plain = name.replace("/", "_")
    keys += [
        key
        for key in found
        if key.removeprefix("in_").replace("/", "_") in (plain.replace(":", "_"), plain.removesuffix(":0"))
    ]
    keys += [key for key in found if key.removesuffix(":0") in {other.removesuffix(":0") for other in others}]
    prefix = "" if keys else signature_prefix(inputs, found)
    if prefix:
        keys = [tensor.removeprefix(prefix)]
    elif not keys and len(inputs) == len(found) == 1:
        keys = list(found)
    if not keys:
        names = ", ".join(list(found)[:MOST_NAMED]) + " …" * (len(found) > MOST_NAMED)
        there = f"there {'are' if len(found) != 1 else 'is'} {names or 'none'}"
        fixed = f"; {option('feed', 'feeds')} {tensor}=1 sets it to one number" if len(inputs) > 1 else ""
        raise UsageError(f"there is no array for the input '{name}'", where=place, hint=f"{there}{fixed}")
    return keys[0]
