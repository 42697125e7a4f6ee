"""What a session has prepared to run: planned once per set of names and shapes, or found from an earlier process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.errors import GraphError, RunError
from pocketgraph.graph import DType, Graph, canonical, node_name, parse_ref
from pocketgraph.graph.collector import collector_paused
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.runtime.feeds import is_switch
from pocketgraph.runtime.permissions import check_permissions
from pocketgraph.runtime.tensor_names import spelled

if TYPE_CHECKING:
    from pocketgraph.runtime.engines.needed import Item
    from pocketgraph.runtime.planning.prepared import Prepared
    from pocketgraph.runtime.resolved_call import ResolvedCall

Array = np.ndarray[Any, Any]

MOST_PLANS = 64  # sets of names and shapes that a session keeps; the oldest go, and are made again when they come back
MOST_STRINGS = 1024  # elements of a string feed that are worth looking at before the graph is read


class Preparing:
    """The plans of one session, and the graph that they are of; safe for several threads.

    Args:
        graph: the graph, or the path of the file to read it from when it is first needed.
        threads, engine, cache_dir, exact: as for Session.
        allowed: the ops that may touch files or run code.
        by_steps: plans are to know each part's operations (a memory limit needs them).
        state: the session's variables and tables.
        forget: called when a plan is let go.
    """

    def __init__(
        self,
        graph: Graph | str,
        threads: int,
        engine: str | None,
        cache_dir: str | None,
        allowed: frozenset[str],
        exact: bool,
        by_steps: bool,
        state: Mapping[str, Any],
        forget: Callable[[], None],
    ) -> None:
        self.threads = threads
        self.engine = engine
        self.exact = exact
        self.prepared: dict[tuple[Any, ...], Prepared] = {}
        self.lock = threading.RLock()
        self._path = graph if isinstance(graph, str) else None
        self._graph = None if isinstance(graph, str) else graph
        self._cache_dir = cache_dir
        self._allowed = allowed
        self._by_steps = by_steps
        self._state = state
        self._of_values: set[tuple[Any, ...]] = set()  # the plans that hold values of variables
        self._forget = forget
        self._key: str | None = None
        self._is_open = True
        self._declared: set[str] = set()

    @property
    def graph(self) -> Graph:
        """The graph; reads the file when that was not done yet.

        Raises:
            FormatError: the file is no model.
        """
        if self._graph is None:
            with self.lock:
                if self._graph is None:
                    from pocketgraph.formats import load

                    assert self._path is not None
                    self._graph = load(self._path)
        return self._graph

    def check_open(self) -> None:
        """Raises:
        RunError: the session is closed.
        """
        if not self._is_open:
            raise RunError("Attempted to use a closed Session", hint="make a new one")

    def close(self) -> None:
        """Frees all plans."""
        with self.lock:
            self._is_open = False
            for prepared in self.prepared.values():
                for executable in prepared.executables:
                    executable.close()
            self.prepared.clear()

    def prepare(self, call: ResolvedCall, traced: bool = False, described: bool = False) -> Prepared:
        """What ``plan.prepare`` decides, kept for the next time."""
        traced = traced or self._by_steps
        values = tuple((name, bool(value)) for name, value in call.switches.items())
        key = (tuple(call.feeds.items()), call.outputs, call.targets, values, traced, described)
        found = self.prepared.get(key)
        if found is not None:
            return found
        from pocketgraph.runtime.engines.functions import Library
        from pocketgraph.runtime.engines.needed import needed
        from pocketgraph.runtime.planning.deferred_reads import defer_reads
        from pocketgraph.runtime.planning.planner import planned
        from pocketgraph.runtime.planning.prepared import Request

        with self.lock:
            found = self.prepared.get(key)
            if found is None:
                self.check_open()
                items = needed(self.graph, frozenset(call.feeds), call.outputs, call.targets)
                nodes = Library(self.graph).with_bodies(item.node for item in items.values())
                check_permissions(nodes, self._allowed)
                graph, items = self._settled(call, items, key)
                digest = "" if traced or self.engine == "reference" or key in self._of_values else self._model_key()
                graph, items = defer_reads(graph, items, frozenset(call.feeds))
                request = Request(
                    graph, call.feeds, call.outputs, call.targets, call.switches, self.threads, self._cache_dir,
                    digest, self.engine, traced, self.exact, described, planned,
                )  # fmt: skip
                found = planned(request, lambda: graph, items)
                self._kept(key, found)
        return found

    def _settled(
        self, call: ResolvedCall, items: dict[str, Item], key: tuple[Any, ...]
    ) -> tuple[Graph, dict[str, Item]]:
        """The graph and its needed nodes, with constants for variables that do not change."""
        if self.engine == "reference" or not self._state:
            return self.graph, items
        from pocketgraph.runtime.engines.functions import Library
        from pocketgraph.runtime.engines.needed import needed
        from pocketgraph.runtime.planning.constant_variables import freeze_constant_variables

        nodes = Library(self.graph).with_bodies(item.node for item in items.values())
        kept = (*call.feeds, *call.outputs)
        graph = freeze_constant_variables(self.graph, items, nodes, kept, self._state, self._let_go)
        if graph is self.graph:
            return graph, items
        self._of_values.add(key)
        return graph, needed(graph, frozenset(call.feeds), call.outputs, call.targets)

    def _let_go(self) -> None:
        """Forgets the plans that hold values of variables, one of which has changed."""
        with self.lock:
            for key in self._of_values:
                self.prepared.pop(key, None)
            self._of_values.clear()
            self._forget()

    def earlier(
        self, fetches: Sequence[str], feeds: Mapping[Any, Any], targets: Sequence[str]
    ) -> tuple[Prepared, list[Array]] | None:
        """What an earlier process prepared for this file, these names and these shapes, if anything; and the values.

        This way neither the graph is read nor anything is planned. What a number, a list or an array of another type
        stands for, the graph must say, or have said to an earlier process.
        """
        if self._graph is not None or self.engine == "reference" or self._by_steps:
            return None
        labels = {canonical(text): text for text in map(spelled, feeds)}
        wanted = [canonical(name) for name in fetches]
        if len(labels) < len(feeds) or len(set(wanted)) < len(wanted):
            return None
        values = dict(zip(labels, feeds.values(), strict=True))
        with self.lock, collector_paused():
            self.check_open()
            found = self._found(values, wanted, targets) if all(map(_is_certain, values.values())) else None
            if found is None:
                converted = self._converted(values, labels)
                if converted is not None:
                    found, values = self._found(converted, wanted, targets), converted
        return None if found is None else (found, list(values.values()))

    def _found(self, arrays: Mapping[str, Array], wanted: Sequence[str], targets: Sequence[str]) -> Prepared | None:
        """What was prepared for arrays of these types and shapes, by this session or an earlier process."""
        try:
            sized = {name: (DType.of_numpy(array.dtype), array.shape) for name, array in arrays.items()}
        except GraphError:
            return None  # no tensor has such a type; whoever looks at the graph will say so
        key: tuple[Any, ...] = ("earlier", tuple(sized.items()), tuple(wanted), tuple(targets))
        key += tuple((name, bool(array)) for name, array in arrays.items() if is_switch(array))
        found = self.prepared.get(key)
        if found is None:
            found = self._whole(arrays, wanted) if not targets else None
            found = found or self._planned(arrays, sized, wanted, targets)
            if found is not None:
                self._kept(key, found)
        return found

    def _converted(self, values: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Array] | None:
        """The values as arrays of the declared types; None where these are not known, or all are such already."""
        from pocketgraph.runtime.planning import declared_feeds

        specs = declared_feeds.find(self._model_key(), self._cache_dir, labels)
        if specs is None:
            return None
        try:
            converted = {name: spec.array(values[name]) for name, spec in specs.items()}
        except RunError:
            return None  # whoever looks at the graph will say so
        return converted if any(converted[name] is not value for name, value in values.items()) else None

    def keep_declared(self, feeds: Iterable[Any]) -> None:
        """Notes for later processes what the graph declares of these tensors, whose values had to be converted."""
        names = {spelled(feed) for feed in feeds} - self._declared
        if not names or self.engine == "reference" or self._by_steps:
            return
        from pocketgraph.runtime.feeds import FeedSpec
        from pocketgraph.runtime.planning import declared_feeds

        self._declared |= names
        specs = {canonical(name): FeedSpec.of(self.graph, _endpoint(canonical(name)), name) for name in names}
        declared_feeds.keep(self._model_key(), self._cache_dir, specs)

    def _whole(self, arrays: Mapping[str, Array], wanted: Sequence[str]) -> Prepared | None:
        """One executable that does it all."""
        from pocketgraph.runtime.planning.prepared import Prepared
        from pocketgraph.runtime.warm_start import from_cache

        found = from_cache(self._model_key(), arrays, wanted, self.threads, self._cache_dir)
        return None if found is None else Prepared(None, *found, executables=[found[0]])

    def _planned(
        self,
        arrays: Mapping[str, Array],
        sized: Mapping[str, tuple[DType, tuple[int, ...]]],
        wanted: Sequence[str],
        targets: Sequence[str],
    ) -> Prepared | None:
        """A plan of several parts."""
        key = self._model_key()
        if self.engine is not None or not key:
            return None
        from pocketgraph.runtime.planning.plan_cache import find
        from pocketgraph.runtime.planning.planner import planned
        from pocketgraph.runtime.planning.prepared import Request

        request = Request(
            Graph(()),
            {_endpoint(name): size for name, size in sized.items()},
            tuple(_endpoint(name) for name in wanted),
            tuple(node_name(name) for name in targets),
            {name: array for name, array in arrays.items() if is_switch(array)},
            self.threads,
            self._cache_dir,
            key,
            exact=self.exact,
            planner=planned,
        )
        return find(request)

    def _kept(self, key: tuple[Any, ...], prepared: Prepared) -> Prepared:
        self.prepared[key] = prepared
        if len(self.prepared) > MOST_PLANS:
            self.prepared.pop(next(iter(self.prepared)))
            self._forget()
        return prepared

    def _model_key(self) -> str:
        """A digest of the model and of what a session lets it do, under which plans and compiled parts are kept; ""
        when there is none."""
        if self._key is None:
            if self._path is None:
                from pocketgraph.litert.graph_content import graph_digest

                key = graph_digest(self.graph, self._cache_dir)
            else:
                from pocketgraph.litert.digest import file_digest

                key = file_digest(self._path, self._cache_dir) if os.path.isfile(self._path) else ""
            if key:
                key += " exact" * self.exact + "".join(f" {op}" for op in sorted(self._allowed))
            self._key = key
        return self._key


def _is_certain(value: Any) -> bool:
    """Whether a value is an array whose tensor type is clear without the graph."""
    if type(value) is not np.ndarray:
        return False
    if value.dtype.kind != "O":
        return value.dtype.kind not in "SUT"
    return value.size <= MOST_STRINGS and all(type(item) is bytes for item in value.flat)


def _endpoint(name: str) -> Endpoint:
    ref = parse_ref(name)
    return Endpoint(ref.name, ref.port)
