"""Feeds from .npz and .npy files, their keys in any of the usual spellings of tensor names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from pocketgraph.errors import UsageError, did_you_mean
from pocketgraph.formats.files import near, opened
from pocketgraph.graph import Graph, canonical, node_name
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.entry_points import likely_inputs
from pocketgraph.graph.tensor import Array

ARRAY_FILES = (b"\x93NUMPY", b"PK\x03\x04")  # how .npy and .npz files begin
MOST_INPUTS = 5  # that a message names
OTHER = "it holds Python objects, or is a file of another kind"
WRITTEN = "write it with numpy.savez, or numpy.save for a single array"


def read_feeds(path: str | os.PathLike[str], graph: Graph) -> dict[str, Array]:
    """Feeds from an .npz file whose keys are tensor names.

    ``x:0`` may also be written ``x`` or ``x_0``, with or without ``in_`` before it, and ``/`` as ``_``; keys that
    begin with ``out_`` are left out. Strings are kept as arrays of bytes ('S').

    Raises:
        UsageError: it is no .npz, holds Python objects, or a key names no tensor.
    """
    where = os.fspath(path)
    with _loaded(where, ".npz") as data:
        if isinstance(data, np.ndarray):
            raise UsageError("this is one array (.npy)", where=where, hint=f"say which input it is: NAME={where}")
        arrays = {key: _member(data, key) for key in data.files}
    spellings = _spellings(graph)
    feeds: dict[str, Array] = {}
    for key, value in arrays.items():
        if key.startswith("out_") and key not in spellings:
            continue
        name = tensor_of_key(key, graph, spellings)
        if name in feeds:
            raise UsageError(f"two keys feed '{name}'", where=where, hint="leave one of them out")
        feeds[name] = value
    return feeds


def tensor_of_key(key: str, graph: Graph, spellings: Mapping[str, str]) -> str:
    """The tensor that an .npz key means.

    Raises:
        UsageError: none.
    """
    for spelling in (key, key.removeprefix("in_")):
        if node_name(spelling) in graph:
            return canonical(spelling)
        if spelling in spellings:
            return spellings[spelling]
    inputs = ", ".join(name for name, _ in likely_inputs(graph)[:MOST_INPUTS])
    hint = did_you_mean(key.removeprefix("in_"), graph.nodes) or (f"its inputs are {inputs}" if inputs else "")
    raise UsageError(f"'{key}' names no tensor of the model", hint=hint)


def _spellings(graph: Graph) -> dict[str, str]:
    """Tensor names by the ways in which file formats write them; what two tensors share is left out."""
    found: dict[str, str | None] = {}
    for name in graph.nodes:
        for port in range(4):
            tensor = f"{name}:{port}"
            for spelling in {
                f"{name}_{port}",
                f"{name}_{port}".replace("/", "_"),
                *([name.replace("/", "_")] * (not port)),
            }:
                found[spelling] = tensor if found.get(spelling, tensor) == tensor else None
    return {spelling: tensor for spelling, tensor in found.items() if tensor is not None}


def read_input(graph: Graph, name: str, path: str) -> Array:
    """What a file holds for the input ``name``: an array, or, where it takes texts, the bytes of any other file, as a
    batch of one where it takes batches.

    Raises:
        UsageError: the file cannot be read, or is no array where one is needed.
    """
    if graph.producer(name).attr("dtype", None) is not STRING:
        return read_array(path)
    try:
        with opened(path) as file:
            data = file.read()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=path) from None
    if data.startswith(ARRAY_FILES):
        return read_array(path)
    shape = graph.producer(name).shape()
    is_one = shape is not None and shape.dims is not None and all(size in (None, 1) for size in shape.dims)
    return np.array(data, object).reshape((1,) * len(shape.dims) if is_one and shape and shape.dims else ())


def read_array(path: str) -> Array:
    """One array from an .npy file, or from an .npz that holds just one.

    Raises:
        UsageError: it is neither.
    """
    with _loaded(path, ".npy or .npz") as data:
        if isinstance(data, np.ndarray):
            return data
        if len(data.files) != 1:
            raise UsageError(f"it holds {len(data.files)} arrays", where=path, hint="give the .npz without a name")
        return _member(data, data.files[0])


def _member(data: Any, key: str) -> Array:
    """An array of an .npz; NumPy alone gives the bytes of members that are none, however many they unpack to."""
    name = key if key in data.zip.namelist() else f"{key}.npy"
    with data.zip.open(name) as inside:
        found: Array = np.lib.format.read_array(inside, allow_pickle=False)
        return found


@contextmanager
def _loaded(path: str, kind: str) -> Iterator[Any]:
    """What a file holds: an array, or several by key, which are read within this.

    Raises:
        UsageError: there is no such file, or it is not of that kind.
    """
    try:
        with open(path, "rb") as file:  # a file that NumPy opens stays open when it is damaged
            data = np.load(file, allow_pickle=False)
            with nullcontext() if isinstance(data, np.ndarray) else data:
                yield data
    except UsageError:
        raise
    except FileNotFoundError:
        raise UsageError("there is no such file", where=path, hint=near(path)) from None
    except Exception as error:  # NumPy's and zipfile's, of many kinds
        said = " ".join(str(error).split())
        if "pickle" in said.lower():
            said = OTHER
        raise UsageError(f"not a readable {kind}: {said}", where=path, hint=WRITTEN) from None
