"""Digests of graphs: of everything that decides what they compute."""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import struct
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from pocketgraph.formats import AS_LOADED
from pocketgraph.formats.files import is_still
from pocketgraph.graph import DType, Func, Graph, Node, Shape, Tensor
from pocketgraph.graph.attr import Opaque, Parameter
from pocketgraph.litert.cache import Folder
from pocketgraph.litert.digest import content_name

_graphs: WeakKeyDictionary[Graph, str] = WeakKeyDictionary()


def graph_digest(graph: Graph, cache_dir: Folder | None = None) -> str:
    """A digest of everything in a graph that decides what it computes; others have other digests.

    Nodes that lie unchanged in a mapped file count by the name of its content (``digest.content_name``) and their
    place, without reading them; a graph that is as ``load`` gave it has the name of its file, as a session of the file.
    """
    known = _graphs.get(graph)
    if known is None:
        whole = AS_LOADED.get(graph)
        if isinstance(whole, mmap.mmap) and all(getattr(node, "buffer", None) is whole for node in islice(graph, 1)):
            known = _mapped_digest(whole, graph.source, cache_dir)
        _graphs[graph] = known = known or content_digest(graph, cache_dir)
    return known


def content_digest(graph: Graph, cache_dir: Folder | None) -> str:
    """A digest of the graph's nodes and functions (see graph_digest)."""
    total = hashlib.blake2b(digest_size=32)
    files: dict[int, str] = {}
    for node in graph:
        stored = _stored(node, files, cache_dir)
        if stored is not None:
            total.update(stored)
        else:
            _add_node(total, node)
    for name in sorted(graph.functions):
        function = graph.functions[name]
        total.update(f"function {name} {len(function.encoded)}\0".encode() + function.encoded)
        if not function.encoded:
            for node in function.nodes:
                _add_node(total, node)
    return total.hexdigest()


def _stored(node: Node, files: dict[int, str], cache_dir: Folder | None) -> bytes | None:
    """What stands for a node that is unchanged in a mapped file, None for others."""
    source: Any = node
    buffer = getattr(source, "buffer", None)
    if not isinstance(buffer, mmap.mmap):
        return None
    if id(buffer) not in files:
        files[id(buffer)] = _mapped_digest(buffer, str(getattr(source, "file", "")), cache_dir)
    return f"{files[id(buffer)]} {source.start} {source.stop}\0".encode()


def _mapped_digest(buffer: mmap.mmap, path: str, cache_dir: Folder | None) -> str:
    """What stands for a mapped file's content."""
    with contextlib.suppress(OSError, ValueError):
        if path and is_still(buffer, path):
            name = content_name(path, cache_dir)
            if is_still(buffer, path):
                return name
    return hashlib.sha256(buffer).hexdigest()


def _add_node(total: Any, node: Node) -> None:
    total.update("\0".join((node.name, node.op, *node.inputs, "")).encode())
    for name in sorted(node.attrs):
        total.update(f"\0{name}=".encode())
        _add_value(total, node.attrs[name])
    total.update(b"\1")


def _add_value(total: Any, value: Any) -> None:
    if isinstance(value, Tensor):
        total.update(f"tensor {value.dtype.name} {value.shape} ".encode())
        array = value.numpy()
        if array.dtype == object:
            for item in array.ravel().tolist():
                total.update(struct.pack("<Q", len(item)) + item)
        elif array.size:
            total.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    elif isinstance(value, tuple):
        total.update(f"list {len(value)} ".encode())
        for item in value:
            _add_value(total, item)
    elif isinstance(value, Func):
        total.update(f"func {value.name} {len(value.attrs)} ".encode())
        for name in sorted(value.attrs):
            total.update(f"{name}=".encode())
            _add_value(total, value.attrs[name])
    elif isinstance(value, Opaque):
        total.update(b"opaque " + value.encoded)
    elif isinstance(value, bytes | str | bool | int | float | DType | Shape | Parameter):
        total.update(f"{type(value).__name__} {value!r} ".encode())
    else:
        raise TypeError(f"{type(value).__name__} is not an attribute value")
