"""Sessions: a graph that is ready to run, in the manner of TensorFlow's Session."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pocketgraph.budgets import usable_processors
from pocketgraph.errors import RunError
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.execution import STEP_LIMIT, Running
from pocketgraph.runtime.pass_registry import INEXACT, switched_off
from pocketgraph.runtime.permissions import allowed_ops
from pocketgraph.runtime.planning.execution_plan import Request
from pocketgraph.runtime.planning.session_plans import SessionPlans
from pocketgraph.runtime.session_arguments import check_arguments, model_path
from pocketgraph.runtime.tensor_names import TensorName, fetched, listed

if TYPE_CHECKING:
    from pocketgraph.runtime.description import Description
    from pocketgraph.runtime.profiling.profile import StepTrace
    from pocketgraph.runtime.run_options import RunOptions
    from pocketgraph.runtime.tensor_specs import GraphSpecs, SignatureSpec, TensorSpecs


class Session:
    """Runs a graph.

    Args:
        graph: a Graph, or the path of a model file, which is read when it is first needed.
        threads: threads for the fast engine; as many as there are processors by default.
        engine: None for LiteRT where it can and the reference engine elsewhere, ``"reference"`` for NumPy only,
            ``"auto"`` for the fastest installed engine of each large part, as measured once on this machine; or the
            name of one engine, such as ``"litert"`` or ``"openvino"``, to have an error where it cannot run everything.
        cache_dir: where compiled parts are kept; by default the user's cache directory.
        allow: what the model may do besides computing: ``"files"``, ``"code"``, or single ops of these groups.
        files_dir: the one directory in which the graph's file ops may read and write, when ``allow`` lets them.
        step_limit: how many nodes may run inside loops, and in functions that functions call, in one run.
        memory_limit: bytes that the tensors of one run may take; what would take more is refused beforehand.
        inter_op_threads: how many nodes of this session may compute at once, over all callers; further runs wait. Each
            run computes one node at a time, so 1 is what TensorFlow does on Android. None: no limit.
        seed: makes the random ops of unseeded nodes repeatable.
        exact: keep the integer arithmetic of eight-bit ops (Quantized…, Requantize) as TensorFlow has it, code by code.
            By default such parts run on LiteRT's eight-bit kernels, which is faster and rounds elsewhere.
        strict: give TensorFlow's values for NaN, infinities and the largest numbers too: what LiteRT computes otherwise
            there (see ``pocketgraph.litert.nan_and_overflow``) runs on the reference engine, and eight-bit ops are
            ``exact``.
        check: when a compiled part is compared with the reference engine: ``"first"``, once, on its first feeds where
            that takes little beside compiling, else when the process is idle; ``"always"``, each time it runs; or
            ``"never"``. One that is found wrong is not used, and a warning says so.
        without: passes that are switched off, by their names (see ``pocketgraph.runtime.pass_registry``), besides those
            that ``POCKETGRAPH_WITHOUT`` names; results are the same, but come later.

    A session may be used from several threads at once. Variables live as long as the session.

    >>> from pocketgraph import Session
    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse('''
    ...     x = Placeholder(dtype=float, shape=[?])
    ...     y = Relu(x, T=float)
    ... ''')
    >>> with Session(graph, threads=1) as session:
    ...     (y,) = session.run(["y:0"], {"x:0": [-1.0, 2.0]})
    ...     session.run("y", {"x": y - 1})
    [array([0., 1.], dtype=float32)]

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
        strict: bool = False,
        check: str = "first",
        without: Collection[str] = (),
    ) -> None:
        check_arguments(engine, threads, inter_op_threads, memory_limit, step_limit, seed, check)
        self.threads = threads or usable_processors()
        self.engine = engine
        self.exact = exact
        source = graph if isinstance(graph, Graph) else model_path(graph)
        self._state: dict[str, Any] = {}
        names = switched_off(without) | (INEXACT if engine == "reference" else frozenset())
        if "recycled_arrays" in names:
            from pocketgraph.kernels import recycled_arrays

            recycled_arrays.switch_off(self._state)
        self._saved = source if isinstance(source, str) and os.path.isdir(source) else None
        options = Request(
            threads=self.threads,
            cache_dir=None if cache_dir is None else os.fspath(cache_dir),
            engine=engine,
            exact=exact or strict,
            strict=strict,
            check=check,
            without=names,
        )
        self._plans = SessionPlans(source, options, allowed_ops(allow), memory_limit, self._state)
        self._calls = self._plans.calls
        self._running = Running(
            self._plans, self._state, step_limit=step_limit, memory_limit=memory_limit, files_dir=files_dir,
            inter_op_threads=inter_op_threads, seed=seed,
        )  # fmt: skip

    @property
    def graph(self) -> Graph:
        """The graph; reads the file when that was not done yet.

        Raises:
            FormatError: the file is no model.
        """
        return self._plans.graph

    @cached_property
    def _specs(self) -> GraphSpecs:
        from pocketgraph.runtime.tensor_specs import GraphSpecs

        return GraphSpecs(self.graph)

    @property
    def inputs(self) -> TensorSpecs:
        """What ``outputs`` need to be fed, by name: name, element type, shape.

        Raises:
            FormatError: the file is no model.
            UsageError: the graph has no likely output.
        """
        return self._specs.inputs

    @property
    def outputs(self) -> TensorSpecs:
        """What the graph is for, declared or likely, by name; errors as for ``inputs``."""
        return self._specs.outputs

    @property
    def signatures(self) -> dict[str, SignatureSpec]:
        """The named entry points that ``run_signature`` knows, and what each takes and gives by its keys."""
        return self._specs.signatures

    def run(
        self,
        fetches: TensorName | Sequence[TensorName],
        feeds: Mapping[Any, Any] | None = None,
        *,
        targets: TensorName | Sequence[TensorName] = (),
        trace: StepTrace | None = None,
        options: RunOptions | None = None,
    ) -> list[Array]:
        """Computes tensors.

        Args:
            fetches: the tensors wanted: ``"name"``, ``"name:0"`` or a Node; one or a list of them. An operation
                without outputs, such as ``"init"``, is run.
            feeds: values by tensor name or Node. Any tensor may be fed; what only leads to fed tensors does not run.
                Numbers and lists become arrays of the tensor's type where that loses nothing.
            targets: nodes to run without taking a value.
            trace: is filled with the times of the nodes.
            options: how long the run may take, and whether a trace is filled.

        Returns:
            One array a fetch, in order; always a list, of one array for a single name. Strings come as object arrays
            of bytes. The arrays are the caller's. For an operation without outputs there is None, as in TensorFlow.

        Raises:
            RunError: an unknown, missing or doubled name, a feed of wrong type or shape, a failing node, a fetch from
                a branch that was not taken, a closed session.
            DeadlineError: the run took longer than ``options`` allow; the node that was reached is named.
            MissingKernelError: ops that no engine can run; all are named.
        """
        try:
            if trace is None and options is None:
                last = self._calls.last
                if last is not None:
                    results = last(fetches, feeds, targets)
                    if results is not None:
                        return results
                seen = self._calls.seen(fetches, feeds, targets)
                if seen is not None:
                    return seen[0](seen[1])
            if feeds is not None and not isinstance(feeds, Mapping):
                raise RunError(f"feeds are a mapping of tensor names to values, not a {type(feeds).__name__}")
            self._plans.check_open()
            if self._saved is not None:
                self._restore()
            return self._running.run(self.run, fetches, feeds or {}, targets, trace, options)
        except Exception:
            self._plans.check_open()  # closed while it ran; what else failed of that is no news
            raise

    def run_signature(
        self,
        inputs: Mapping[str, Any],
        signature: str | None = None,
        *,
        trace: StepTrace | None = None,
        options: RunOptions | None = None,
    ) -> dict[str, Array]:
        """Computes what a named entry point of the graph gives, by the keys that the file declares.

        Args:
            inputs: a value for each input key.
            signature: which entry point; may be left out for ``serving_default`` or the only one.
            trace, options: as for ``run``.

        Returns:
            An array for each output key.

        Raises:
            RunError: no such signature, a missing or unknown key, and all that ``run`` raises.
        """
        from pocketgraph.runtime.signatures import chosen, feeds_of

        self._plans.check_open()
        if isinstance(inputs, str) or not (signature is None or isinstance(signature, str)):
            raise RunError(
                "inputs are a mapping of keys to values, and a signature is a name",
                hint="call run_signature(inputs, signature)",
            )
        found = chosen(self.graph, signature)
        results = self.run(list(found.outputs.values()), feeds_of(found, inputs), trace=trace, options=options)
        return dict(zip(found.outputs, results, strict=True))

    def profile(
        self,
        fetches: TensorName | Sequence[TensorName],
        feeds: Mapping[Any, Any] | None = None,
        *,
        targets: TensorName | Sequence[TensorName] = (),
    ) -> StepTrace:
        """Runs once and takes the time of every node.

        Args:
            fetches, feeds, targets: as for ``run``.

        Returns:
            The nodes in the order in which they ran, each with its time.

        Raises:
            RunError: as for ``run``.
        """
        from pocketgraph.runtime.profiling.profile import StepTrace

        trace = StepTrace()
        self.run(fetches, feeds, targets=targets, trace=trace)
        return trace

    def plan(
        self,
        fetches: TensorName | Sequence[TensorName] | None = None,
        feeds: Mapping[Any, Any] | None = None,
        *,
        targets: TensorName | Sequence[TensorName] = (),
        measure: bool = False,
    ) -> Description:
        """Says what would run where, and why not elsewhere; nothing is computed but what ``measure`` asks for.

        Args:
            fetches: as for ``run``; by default the graph's outputs, declared or likely.
            feeds: arrays as for ``run``, or shapes (tuples of sizes) of them; by default the graph's placeholders in
                their declared shapes, with 1 where a size is open, 224 x 224 where a picture's size is.
            targets: as for ``run``.
            measure: with ``engine="auto"``, measure now, and anew, which engine is the fastest for each large part.

        Returns:
            The parts, the engine of each, and reasons; it prints as text.

        Raises:
            RunError: an unknown name, a shape that does not fit, or a closed session.
        """
        from pocketgraph.runtime.feeding.default_tensors import default_fetches
        from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_shapes
        from pocketgraph.runtime.resolved_call import resolve_call_by_shape

        self._plans.check_open()
        if self._saved is not None:
            self._restore()  # which variables change decides what is a constant
        wanted = listed(fetches) if fetches is not None else default_fetches(self.graph)
        found = fetched(self.graph, wanted)
        given: dict[Any, Any] = dict(feeds) if feeds is not None else {}
        if feeds is None:
            given.update(synthetic_shapes(self.graph, found.tensors))
        call = resolve_call_by_shape(self.graph, found.tensors, given, (*listed(targets), *found.operations))
        description = self._plans.prepare(call, described=True, measure=measure).description
        assert description is not None
        return description

    def checked_parts(self) -> list[tuple[str, str]]:
        """The compiled parts of this session that are compared with the reference engine, and what came of it.

        Returns:
            A part's place, and ``"right"``, ``"wrong"``, ``"unclear"`` (the feeds do not tell) or ``"not run"``.
        """
        checked = self._plans.checked
        return [(part.place, "not run" if part.verdict is None else part.verdict.value) for part in checked]

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Gives variables and tables what a SavedModel's directory or a checkpoint holds for them.

        Only a session of a SavedModel's directory, not of a Graph that was loaded, does this by itself.

        Args:
            path: the directory, or the checkpoint: its prefix, a file of it, or the directory of the training.

        Raises:
            FormatError: the files are damaged, or there is no checkpoint.
            RunError: it has no variable of the graph, tables cannot be filled from files, or the session is closed.
        """
        from pocketgraph.runtime.saved_state import restore

        self._plans.check_open()
        with self._plans.lock:  # so that no plan is made meanwhile of what was there before
            self._plans.let_go()
            restore(os.fspath(path), self.graph, self._state)

    def variables(self) -> dict[str, Array]:
        """The present values of variables.

        Returns:
            The values of the variables that have one, by their shared names, or else by their nodes'.

        Raises:
            RunError: the session is closed.
        """
        from pocketgraph.runtime.variable_values import values_of

        self._plans.check_open()
        self._restore()
        return values_of(self._state)

    def assign(self, values: Mapping[str, Any]) -> None:
        """Gives variables that have a value other ones, by the names that ``variables`` has.

        Args:
            values: of the variables' shapes and types.

        Raises:
            RunError: a variable is not there or has no value yet, a value does not fit, or the session is closed.
        """
        from pocketgraph.runtime.variable_values import assign

        self._plans.check_open()
        self._restore()
        assign(self._state, values)

    def __repr__(self) -> str:
        from pocketgraph.runtime.session_html import as_text

        return "<Session, closed>" if self._plans.is_closed else as_text(self.graph, self.engine, self.threads)

    def _repr_html_(self) -> str:
        from pocketgraph.runtime.session_html import as_html

        return as_html(self.graph, self.engine, self.threads)

    def close(self) -> None:
        """Frees what the session holds; it cannot run afterwards. Closing twice does no harm."""
        self._plans.close()
        self._state.clear()

    def __enter__(self) -> Session:
        self._plans.check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> Any:
        """Pickling and copying, which would need two owners of the variables, threads and compiled parts.

        Raises:
            TypeError: always, as pickle's own refusals are.
        """
        raise TypeError("a Session cannot be pickled or copied: give its model's path and make a new Session there")

    def _restore(self) -> None:
        """Gives variables and tables what the model's directory holds for them; once, before the first run."""
        from pocketgraph.formats.meta_graph import saved_model_file

        with self._plans.lock:
            if self._saved is not None and saved_model_file(self._saved) is not None:
                self.restore(self._saved)
            self._saved = None
