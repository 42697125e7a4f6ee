"""Files that a graph reads and writes: checkpoints and plain files, always through what the session allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Tensor
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.registry import Context, kernel


class Files(Protocol):
    """The files that a session lets its graph reach; names are as the graph spells them.

    Every method raises RunError for a name outside of the allowed directory, and PocketgraphError for what a file
    system refuses.
    """

    def read(self, name: str) -> bytes:
        """A whole file."""

    def write(self, name: str, contents: bytes, *, make_folders: bool = False) -> None:
        """Writes a whole file."""

    def matching(self, patterns: Sequence[str]) -> list[str]:
        """The names that fit one of the patterns, sorted, each once."""

    def save(self, prefix: str, tensors: Sequence[tuple[str, str, Tensor]]) -> None:
        """Writes a V2 checkpoint of (name, shape and slice, value)."""

    def save_v1(self, name: str, tensors: Sequence[tuple[str, str, Tensor]]) -> None:
        """Writes a V1 checkpoint, one file, of (name, shape and slice, value)."""

    def restore(self, prefix: str, wanted: Sequence[tuple[str, str]]) -> list[Tensor]:
        """Reads tensors by (name, shape and slice) from a checkpoint of either form."""

    def merge(self, prefixes: Sequence[str], destination: str, *, delete: bool, allow_missing: bool) -> None:
        """Makes one checkpoint out of several, and takes those away."""


def files_of(context: Context) -> Files:
    """What the session allows.

    Raises:
        RunError: it has no directory for files.
    """
    if context.files is None:
        raise RunError(
            f"a {context.node.op} needs a directory, and the session has none",
            where=f"node '{context.node.name}'",
            hint="pass allow='files' and files_dir=DIRECTORY to Session",
        )
    found: Files = context.files
    return found


def text(value: Array) -> str:
    """A scalar string.

    Raises:
        RunError: it is no scalar, or no text.
    """
    if value.size != 1:
        raise RunError(f"one file name is wanted, not a tensor of shape {list(value.shape)}")
    try:
        found: str = value.reshape(()).item().decode()
        return found
    except UnicodeDecodeError:
        raise RunError("a file name is not UTF-8") from None


def texts(value: Array) -> list[str]:
    """The strings of a tensor, in row-major order."""
    return [text(np.asarray(item, object)) for item in value.ravel()]


def string(value: str) -> Array:
    """A scalar string tensor."""
    return np.asarray(value.encode(), object)


@kernel("ReadFile")
def read_file(filename: Array, *, context: Context) -> Array:
    return np.asarray(files_of(context).read(text(filename)), object)


@kernel("WriteFile")
def write_file(filename: Array, contents: Array, *, context: Context) -> tuple[()]:
    files_of(context).write(text(filename), contents.reshape(()).item(), make_folders=True)
    return ()


@kernel("MatchingFiles")
def matching_files(pattern: Array, *, context: Context) -> Array:
    found = [name.encode() for name in files_of(context).matching(texts(pattern))]
    names: Array = np.empty(len(found), object)
    names[:] = found
    return names


@kernel("ShardedFilename")
def sharded_filename(basename: Array, shard: Array, num_shards: Array) -> Array:
    return string(f"{text(basename)}-{int(shard):05d}-of-{int(num_shards):05d}")


kernel("ShardedFilespec")(lambda basename, num_shards: string(f"{text(basename)}-?????-of-{int(num_shards):05d}"))


@kernel("SaveV2")
def save_v2(
    prefix: Array, tensor_names: Array, shape_and_slices: Array, *tensors: Array, dtypes: tuple[DType, ...],
    context: Context,
) -> tuple[()]:  # fmt: skip
    files_of(context).save(text(prefix), _named(tensor_names, shape_and_slices, tensors, dtypes))
    return ()


def _named(
    tensor_names: Array, shapes_and_slices: Array, tensors: Sequence[Array], dtypes: Sequence[DType]
) -> list[tuple[str, str, Tensor]]:
    """(name, shape and slice, value) of what is saved."""
    names, slices = texts(tensor_names), texts(shapes_and_slices)
    if not len(names) == len(slices) == len(tensors):
        raise RunError(f"{len(names)} names and {len(slices)} slices for {len(tensors)} tensors")
    values = [Tensor.from_numpy(np.array(v), d.base) for v, d in zip(tensors, dtypes, strict=True)]
    return list(zip(names, slices, values, strict=True))


@kernel("Save")
def save(filename: Array, tensor_names: Array, *data: Array, T: tuple[DType, ...], context: Context) -> tuple[()]:
    """A V1 checkpoint of whole tensors."""
    slices = np.full(tensor_names.size, b"", object)
    return save_slices(filename, tensor_names, slices, *data, T=T, context=context)


@kernel("SaveSlices")
def save_slices(
    filename: Array, tensor_names: Array, shapes_and_slices: Array, *data: Array, T: tuple[DType, ...],
    context: Context,
) -> tuple[()]:  # fmt: skip
    """A V1 checkpoint of tensors and slices of tensors."""
    files_of(context).save_v1(text(filename), _named(tensor_names, shapes_and_slices, data, T))
    return ()


@kernel("RestoreV2")
def restore_v2(
    prefix: Array, tensor_names: Array, shape_and_slices: Array, *, dtypes: tuple[DType, ...], context: Context
) -> tuple[Array, ...]:
    names, slices = texts(tensor_names), texts(shape_and_slices)
    if not len(names) == len(slices) == len(dtypes):
        raise RunError(f"{len(names)} names and {len(slices)} slices for {len(dtypes)} tensors")
    return restored(files_of(context), text(prefix), names, slices, dtypes)


@kernel("Restore")
def restore(file_pattern: Array, tensor_name: Array, *, dt: DType, context: Context) -> Array:
    return restored(files_of(context), text(file_pattern), [text(tensor_name)], [""], [dt])[0]


@kernel("RestoreSlice")
def restore_slice(
    file_pattern: Array, tensor_name: Array, shape_and_slice: Array, *, dt: DType, context: Context
) -> Array:
    found = restored(files_of(context), text(file_pattern), [text(tensor_name)], [text(shape_and_slice)], [dt])
    return found[0]


def restored(
    files: Files, prefix: str, names: Sequence[str], slices: Sequence[str], dtypes: Sequence[DType]
) -> tuple[Array, ...]:
    """The tensors of a checkpoint by name and slice, each of the type that the graph wants.

    Raises:
        RunError: a tensor is missing or of another type.
    """
    tensors = files.restore(prefix, list(zip(names, slices, strict=True)))
    for name, tensor, dtype in zip(names, tensors, dtypes, strict=True):
        if tensor.dtype is not dtype.base:
            raise RunError(f"tensor '{name}' of '{prefix}' is {tensor.dtype.name}, the graph wants {dtype.base.name}")
    return tuple(tensor.numpy() for tensor in tensors)


@kernel("MergeV2Checkpoints")
def merge_v2_checkpoints(
    checkpoint_prefixes: Array, destination_prefix: Array, *, delete_old_dirs: bool = True,
    allow_missing_files: bool = False, context: Context,
) -> tuple[()]:  # fmt: skip
    files_of(context).merge(
        texts(checkpoint_prefixes), text(destination_prefix), delete=delete_old_dirs, allow_missing=allow_missing_files
    )
    return ()
