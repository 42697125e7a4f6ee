"""Sessions: a graph that is ready to run, in the manner of TensorFlow's Session."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pocketgraph.errors import RunError, UsageError
from pocketgraph.graph import Graph, canonical
from pocketgraph.runtime.asked import Array, Asked, asked, asked_by_shape, likeness
from pocketgraph.runtime.files import Directory
from pocketgraph.runtime.names import TensorName, listed, spelled
from pocketgraph.runtime.permissions import allowed_ops, check_permissions
from pocketgraph.runtime.profile import StepTrace

if TYPE_CHECKING:
    from pocketgraph.runtime.engines.region import Run
    from pocketgraph.runtime.plan import Description, Prepared
    from pocketgraph.runtime.warm import Executable

Execution: TypeAlias = "Callable[[list[Any]], list[Array]]"
ENGINES = (None, "reference", "litert")
MOST_PLANS = 64  # sets of names and shapes that a session keeps; the oldest go, and are made again when they come back
STEP_LIMIT = 50_000_000  # node executions inside loops in one run: minutes, where real models take milliseconds


class Session:
    """Runs a graph.

    Args:
        graph: a Graph, or the path of a model file, which is read when it is first needed.
        threads: threads for the fast engine; as many as there are processors by default.
        engine: None for what is best (LiteRT where it can, the reference engine elsewhere), ``"reference"`` for NumPy
            only, ``"litert"`` to have an error where LiteRT cannot run everything.
        cache_dir: where compiled parts are kept; by default the user's cache directory.
        allow: what the model may do besides computing: ``"files"``, ``"code"``, or single ops of these groups.
        files_dir: the one directory in which the graph's file ops may read and write, when ``allow`` lets them.
        step_limit: how many nodes may run inside loops in one run.
        memory_limit: bytes that the tensors of one run may take; what would take more is refused beforehand.
        inter_op_threads: how many nodes of this session may compute at once, over all callers; further runs wait. Each
            run computes one node at a time, so 1 is what TensorFlow does on Android. None: no limit.
        seed: makes the random ops of unseeded nodes repeatable.
        exact: keep the integer arithmetic of eight-bit ops (Quantized…, Requantize) as TensorFlow has it, code by code.
            By default such parts run on LiteRT's eight-bit kernels, which is faster and rounds elsewhere.

    A session may be used from several threads at once. Variables live as long as the session.

    Raises:
        UsageError: an argument is none of these.
    """

    def __init__(
        self,
        graph: Graph | str | os.PathLike[str],
        threads: int | None = None,
        *,
        engine: str | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        allow: Collection[str] = (),
        files_dir: str | os.PathLike[str] | None = None,
        step_limit: int = STEP_LIMIT,
        memory_limit: int | None = None,
        inter_op_threads: int | None = None,
        seed: int | None = None,
        exact: bool = False,
    ) -> None:
        if engine not in ENGINES:
            raise UsageError(f"there is no engine '{engine}'", hint="use 'reference', 'litert' or None")
        if threads is not None and threads < 1:
            raise UsageError(f"a session needs at least 1 thread, not {threads}")
        if inter_op_threads is not None and inter_op_threads < 1:
            raise UsageError(f"a session needs at least 1 inter-op thread, not {inter_op_threads}")
        if memory_limit is not None and memory_limit < 1:
            raise UsageError(f"a memory limit is a number of bytes, not {memory_limit}")
        self.threads = threads or processors()
        self.engine = engine
        self.exact = exact
        self._path = None if isinstance(graph, Graph) else os.fspath(graph)
        if self._path is not None and not os.path.exists(self._path):
            raise RunError("there is no such file", where=self._path)
        self._graph = graph if isinstance(graph, Graph) else None
        self._cache_dir = None if cache_dir is None else os.fspath(cache_dir)
        self._allowed = allowed_ops(allow)
        self._files = None if files_dir is None else Directory(files_dir)
        self._step_limit = step_limit
        self._memory_limit = memory_limit
        self._turn = None if inter_op_threads is None else threading.BoundedSemaphore(inter_op_threads)
        self._state: dict[str, Any] = {}
        self._rng = np.random.default_rng(seed)
        self._ready: dict[tuple[Any, ...], Execution] = {}
        self._prepared: dict[tuple[Any, ...], Prepared] = {}
        self._lock = threading.RLock()
        self._executables: list[Executable] = []
        self._key: str | None = None
        self._is_open = True

    # Using it

    @property
    def graph(self) -> Graph:
        """The graph; reads the file when that was not done yet.

        Raises:
            FormatError: the file is no model.
        """
        if self._graph is None:
            with self._lock:
                if self._graph is None:
                    from pocketgraph.formats import load

                    assert self._path is not None
                    self._graph = load(self._path)
        return self._graph

    def run(
        self,
        fetches: TensorName | Sequence[TensorName],
        feeds: Mapping[Any, Any] | None = None,
        *,
        targets: TensorName | Sequence[TensorName] = (),
        trace: StepTrace | None = None,
    ) -> list[Array]:
        """Computes tensors.

        Args:
            fetches: the tensors wanted: ``"name"``, ``"name:0"`` or a Node; one or a list of them.
            feeds: values by tensor name or Node. Any tensor may be fed; what only leads to fed tensors does not run.
                Numbers and lists become arrays of the tensor's type where that loses nothing.
            targets: nodes to run without taking a value.
            trace: is filled with the times of the nodes.

        Returns:
            One array a fetch, in order; always a list, of one array for a single name. Strings come as object arrays
            of bytes. The arrays are the caller's.

        Raises:
            RunError: an unknown, missing or doubled name, a feed of wrong type or shape, a failing node, a fetch from
                a branch that was not taken, a closed session.
            MissingKernelError: ops that no engine can run; all are named.
        """
        if trace is None and type(feeds) is dict and type(targets) in (tuple, str):
            # The names and the arrays' types and shapes say whether this was run before; nothing else is looked at.
            names = tuple(fetches) if type(fetches) is list else fetches
            values = list(feeds.values())
            try:
                ready = self._ready.get(likeness(names, feeds, targets, values))
            except TypeError:  # a name that cannot be one; what follows says so
                ready = None
            if ready is not None:
                return ready(values)
        if feeds is not None and not isinstance(feeds, Mapping):
            raise RunError(f"feeds are a mapping of tensor names to values, not a {type(feeds).__name__}")
        return self._run(fetches, feeds or {}, targets, trace)

    def run_signature(
        self, inputs: Mapping[str, Any], signature: str | None = None, *, trace: StepTrace | None = None
    ) -> dict[str, Array]:
        """Computes what a named entry point of the graph gives, by the keys that the file declares.

        Args:
            inputs: a value for each input key.
            signature: which entry point; may be left out for ``serving_default`` or the only one.
            trace: as for ``run``.

        Returns:
            An array for each output key.

        Raises:
            RunError: no such signature, a missing or unknown key, and all that ``run`` raises.
        """
        from pocketgraph.runtime.signatures import chosen, feeds_of

        self._check_open()
        found = chosen(self.graph, signature)
        results = self.run(list(found.outputs.values()), feeds_of(found, inputs), trace=trace)
        return dict(zip(found.outputs, results, strict=True))

    def profile(
        self,
        fetches: TensorName | Sequence[TensorName],
        feeds: Mapping[Any, Any] | None = None,
        *,
        targets: TensorName | Sequence[TensorName] = (),
    ) -> StepTrace:
        """Runs once and gives the time of every node; see ``run`` for the arguments."""
        trace = StepTrace()
        self.run(fetches, feeds, targets=targets, trace=trace)
        return trace

    def plan(
        self,
        fetches: TensorName | Sequence[TensorName] | None = None,
        feeds: Mapping[Any, Any] | None = None,
        *,
        targets: TensorName | Sequence[TensorName] = (),
    ) -> Description:
        """Says what would run where, and why not elsewhere; nothing is computed.

        Args:
            fetches: as for ``run``; by default the graph's outputs, declared or likely.
            feeds: arrays as for ``run``, or shapes (tuples of sizes) of them; by default the graph's placeholders in
                their declared shapes, with 1 where a size is open.
            targets: as for ``run``.
        """
        from pocketgraph.runtime.samples import sample_fetches, sample_shapes

        self._check_open()
        wanted = listed(fetches) if fetches is not None else sample_fetches(self.graph)
        given: dict[Any, Any] = dict(feeds) if feeds is not None else {}
        if feeds is None:
            given.update(sample_shapes(self.graph, wanted))
        return self._prepare(asked_by_shape(self.graph, wanted, given, listed(targets))).description

    def close(self) -> None:
        """Frees what the session holds; it cannot run afterwards. Closing twice does no harm."""
        with self._lock:
            self._is_open = False
            self._ready.clear()
            for prepared in self._prepared.values():
                for executable in prepared.executables:
                    executable.close()
            for executable in self._executables:
                executable.close()
            self._executables.clear()
            self._prepared.clear()
            self._state.clear()

    def __enter__(self) -> Session:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if not self._is_open:
            raise RunError("Attempted to use a closed Session", hint="make a new one")

    # Running

    def _run(self, fetches: Any, feeds: Mapping[Any, Any], targets: Any, trace: StepTrace | None) -> list[Array]:
        """A run of names, types or shapes not seen before, or of values that need converting, or a traced one."""
        self._check_open()
        wanted, goals = listed(fetches), listed(targets)
        if not wanted and not goals:
            raise RunError("Must specify at least one target to fetch or execute")
        if trace is None:
            direct = self._from_cache(wanted, feeds, goals)
            if direct is not None:
                self._remember(fetches, feeds, targets, direct)
                return direct(list(feeds.values()))
        call = asked(self.graph, wanted, feeds, goals)
        prepared = self._prepare(call)
        if trace is not None:
            return self._traced(prepared, call, trace)
        execution = self._execution(prepared)
        if all(given is value for given, value in zip(feeds.values(), call.values, strict=True)):
            self._remember(fetches, feeds, targets, execution)
        return execution(call.values)

    def _remember(self, fetches: Any, feeds: Mapping[Any, Any], targets: Any, execution: Execution) -> None:
        names = tuple(fetches) if isinstance(fetches, list) else fetches
        if not isinstance(names, (str, tuple)) or not isinstance(targets, (str, tuple)):
            return
        self._ready[likeness(names, feeds, targets, list(feeds.values()))] = execution

    def _execution(self, prepared: Prepared) -> Execution:
        """The quickest way to run what was prepared."""
        return self._in_turn(self._directly(prepared))

    def _in_turn(self, execution: Execution) -> Execution:
        """The execution, waiting while as many as may run are running."""
        turn = self._turn
        if turn is None:
            return execution

        def waiting(values: list[Any]) -> list[Array]:
            with turn:
                return execution(values)

        return waiting

    def _directly(self, prepared: Prepared) -> Execution:
        if prepared.whole is not None and self._memory_limit is None:
            run, order = prepared.whole.run, prepared.whole_inputs
            if order == tuple(range(len(order))):
                return lambda values: run(values[: len(order)])
            return lambda values: run([values[index] for index in order])
        program = prepared.program
        assert program is not None
        return lambda values: program.run(values, self._new_run())

    def _new_run(self, trace: StepTrace | None = None) -> Run:
        from pocketgraph.runtime.engines.region import Run

        run = Run(self._state, self._rng, self._step_limit, trace=trace, files=self._files)
        if self._memory_limit is not None:
            from pocketgraph.runtime.engines.memory import Ledger

            run.ledger = Ledger(self._memory_limit)
        return run

    def _prepare(self, call: Asked, traced: bool = False) -> Prepared:
        """What ``plan.prepare`` decides, kept for the next time."""
        traced = traced or self._memory_limit is not None  # both need every part's operations
        values = tuple((name, bool(value)) for name, value in call.switches.items())
        key = (tuple(call.feeds.items()), call.outputs, call.targets, values, traced)
        found = self._prepared.get(key)
        if found is not None:
            return found
        from pocketgraph.runtime.engines.functions import Library
        from pocketgraph.runtime.engines.needed import needed
        from pocketgraph.runtime.plan import Request, prepare

        with self._lock:
            found = self._prepared.get(key)
            if found is None:
                self._check_open()
                items = needed(self.graph, frozenset(call.feeds), call.outputs, call.targets)
                nodes = Library(self.graph).with_bodies(item.node for item in items.values())
                check_permissions(nodes, self._allowed)
                digest = "" if traced or self.engine == "reference" else self._model_key()
                threads, folder, engine = self.threads, self._cache_dir, self.engine
                request = Request(
                    self.graph, call.feeds, call.outputs, call.targets, call.switches, threads, folder, digest, engine,
                    traced, self.exact,
                )  # fmt: skip
                found = prepare(request)
                self._prepared[key] = found
                if len(self._prepared) > MOST_PLANS:
                    self._prepared.pop(next(iter(self._prepared)))
                    self._ready.clear()
        return found

    def _from_cache(
        self, fetches: tuple[str, ...], feeds: Mapping[Any, Any], targets: tuple[str, ...]
    ) -> Execution | None:
        """What an earlier process compiled for this file, these names and these shapes, if anything.

        This way neither the graph is read nor anything is planned. It is only for arrays: what a number or a list
        stands for, the graph must say.
        """
        if self._graph is not None or self.engine == "reference" or targets or self._memory_limit is not None:
            return None
        arrays = {canonical(spelled(name)): value for name, value in feeds.items() if type(value) is np.ndarray}
        wanted = [canonical(name) for name in fetches]
        if (
            len(arrays) < len(feeds)
            or len(set(wanted)) < len(wanted)
            or any(a.dtype.kind == "O" for a in arrays.values())
        ):
            return None
        from pocketgraph.runtime.warm import from_cache

        found = from_cache(self._model_key(), arrays, wanted, self.threads, self._cache_dir)
        if found is None:
            return None
        executable, order = found
        with self._lock:
            self._check_open()
            self._executables.append(executable)
            if len(self._executables) > MOST_PLANS:
                self._executables.pop(0)
                self._ready.clear()
        return self._in_turn(lambda values: executable.run([values[index] for index in order]))

    def _model_key(self) -> str:
        """A digest of the model, under which compiled parts are kept; "" when there is none."""
        if self._key is None:
            from pocketgraph.runtime.engines.litert.digest import file_digest, graph_digest

            if self._path is None:
                self._key = graph_digest(self.graph, self._cache_dir)
            else:
                self._key = file_digest(self._path, self._cache_dir) if os.path.isfile(self._path) else ""
            if self.exact and self._key:
                self._key += " exact"
        return self._key

    def _traced(self, prepared: Prepared, call: Asked, trace: StepTrace) -> list[Array]:
        """Runs with node times."""
        if prepared.executables:
            # What came from the cache does not know its operations, so it is compiled again, once.
            prepared = self._prepare(call, traced=True)
        program = prepared.program
        assert program is not None

        def timed(given: list[Any]) -> list[Array]:
            trace.begin()
            results = program.run(given, self._new_run(trace))
            trace.finish()
            return results

        return self._in_turn(timed)(call.values)


def processors() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
