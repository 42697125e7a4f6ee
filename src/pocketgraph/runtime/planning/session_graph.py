"""The graph of a session: read when it is first needed, and the key under which is kept what is planned for it."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from itertools import chain

from pocketgraph.formats import load
from pocketgraph.formats.files import version_of
from pocketgraph.graph import Graph
from pocketgraph.graph.op_traits import user_ops


class SessionGraph:
    """A graph, or the file that it is in.

    Args:
        graph: the graph, or the path of its file.
        engine, cache_dir: as for Session.
        permits: what plans depend on beside the graph: what a session lets it do, and the passes that are off.

    Attributes:
        lock: is held while the file is read.
    """

    def __init__(self, graph: Graph | str, engine: str | None, cache_dir: str | None, permits: str) -> None:
        self.lock = threading.Lock()
        self._path = graph if isinstance(graph, str) else None
        self._graph = None if isinstance(graph, str) else graph
        self._engine = engine
        self._cache_dir = cache_dir
        self._permits = permits
        self._key: str | None = None
        self._was: tuple[int, ...] | None = None  # the file, when it was read or named
        self._looked_for: frozenset[str] = frozenset()
        self._has_them = False

    @property
    def is_read(self) -> bool:
        """Whether the graph is at hand."""
        return self._graph is not None

    @property
    def graph(self) -> Graph:
        """The graph.

        Raises:
            FormatError: the file is no model.
        """
        if self._graph is None:
            with self.lock:
                if self._graph is None:
                    assert self._path is not None
                    was = self._was or _state(self._path)
                    self._graph = load(self._path)
                    if os.path.isdir(self._path):
                        _warn_of_augmentation(self._graph, self._path)
                    if self._key and _state(self._path) != was:
                        self._key = ""
                    self._was = was
        return self._graph

    def key(self) -> str:
        """A digest of the model and of what a session lets it do, under which plans and compiled parts are kept; ""
        when there is none, when the model has ops whose kernels are a user's, of which nobody knows the version, or
        when another file lay at the path when the graph was read."""
        if (ops := user_ops()) and self._has_ops(ops):
            return ""
        if self._key is None:
            if self._path is None or _has_weights_beside(self._path):
                from pocketgraph.litert.graph_content import graph_digest

                key = graph_digest(self.graph, self._cache_dir)
            else:
                from pocketgraph.litert.digest import content_name

                is_file = os.path.isfile(self._path)
                was = self._was = self._was or _state(self._path)
                key = content_name(self._path, self._cache_dir) if is_file else ""
                if _state(self._path) != was:
                    key = ""
            self._key = key and key + self._permits
        return self._key

    def hash_when_idle(self) -> None:
        """Hashes the file of the graph when the process is idle, if what is kept for it still needs that."""
        if self._path is not None:
            from pocketgraph.runtime.planning.idle_hashing import hash_when_idle

            hash_when_idle(self._path, self._cache_dir)

    def _has_ops(self, ops: frozenset[str]) -> bool:
        """Whether the graph, or a function of it, has one of these ops; found out once for each set of them."""
        if self._looked_for is not ops:
            graph = self.graph
            bodies = (node for function in graph.functions.values() for node in function.nodes)
            self._has_them = any(node.op in ops for node in chain(graph, bodies))
            self._looked_for = ops
        return self._has_them


def _has_weights_beside(path: str) -> bool:
    """Whether a file is JSON, as the descriptions of networks are that TensorFlow.js and Keras keep beside the weights:
    it may stay the same when these change."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read(64).lstrip()[:1] in (b"{", b'"')
    return False


def _state(path: str) -> tuple[int, ...] | None:
    """What is another one when another file lies at a path; None where none does."""
    try:
        return version_of(os.stat(path))
    except OSError:
        return None


def _warn_of_augmentation(graph: Graph, path: str) -> None:
    """Says where a model that was exported as it works in training changes what it is fed at random."""
    from pocketgraph.freezing.repair.augmentation import stored_augmentations

    if scopes := stored_augmentations(graph):
        warnings.warn(
            f"'{path}' changes what it is fed at random, as in training ('{scopes[0]}'); "
            f"`pocketgraph freeze_graph --repair -o frozen.pb {path}` takes that out",
            stacklevel=2,
        )
