"""One answer to "have I seen this call before?": in this process, and on disk.

The process level knows the call that was made last (``last``, compared directly), calls as they were spelled, and plans
by ``CallKey``. The disk level (``plan_for``) has what earlier processes compiled and planned, under the model's digest
and the same key as text. What is in neither is planned, and kept in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Graph, Shape
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.feeding.feeds import FeedSpec, is_bytes
from pocketgraph.runtime.planning.call_key import CallKey, may_switch, spelled_key, switch_of
from pocketgraph.runtime.planning.execution_plan import Execution, ExecutionPlan, PlansAnySizes, Request
from pocketgraph.runtime.tensor_names import Fetched

if TYPE_CHECKING:
    from pocketgraph.runtime.engines.needed import Item

RepeatedCall: TypeAlias = "Callable[[Any, Any, Any], list[Array] | None]"
"""Takes fetches, feeds and targets as Session.run gets them; None for a call that is unlike the one it was made of."""

MOST_PLANS = 64  # that a session keeps; the oldest go, and are made again when they come back
MOST_SPELLINGS = 1024  # of calls that a session keeps: each order of feeds and each way to write a name is one


class CallCache:
    """The process level: what one session has run. Plans are changed under the session's lock; the rest needs none.

    Attributes:
        forgotten: how often the ways to run were let go: one that was found before may hold what has changed since.
        last: runs the call that was made last, when it is made again.
        plans: by key.
        fetched: which of the names that were fetched together are operations without outputs.
        outputs: the tensors that such names are, where none is an operation; values may need converting each time.
        any_sizes: by what is fetched, run and fed, in order, what runs calls of any sizes.
        specs: what values must look like that were fed together under these names.
    """

    def __init__(self) -> None:
        self.forgotten = 0
        self.last: RepeatedCall | None = None
        self.plans: dict[CallKey, ExecutionPlan] = {}
        self.fetched: dict[tuple[str, ...], Fetched] = {}
        self.outputs: dict[tuple[str, ...], tuple[Endpoint, ...]] = {}
        self.any_sizes: dict[tuple[Any, ...], PlansAnySizes] = {}
        self.specs: dict[tuple[Any, ...], tuple[FeedSpec, ...]] = {}
        self._spelled: dict[tuple[Any, ...], tuple[Execution, RepeatedCall | None]] = {}

    def __len__(self) -> int:
        return len(self._spelled)

    def seen(self, fetches: Any, feeds: Any, targets: Any) -> tuple[Execution, list[Any]] | None:
        """The way to run a call that was spelled like this before, with arrays like these, and its values."""
        if type(feeds) is not dict or type(targets) not in (tuple, str):
            return None
        names = tuple(fetches) if type(fetches) is list else fetches
        values, since = list(feeds.values()), self.forgotten
        try:
            found = self._spelled.get(spelled_key(names, feeds, targets, values))
        except TypeError:  # a name that cannot be one; whoever looks it up will say so
            return None
        if found is None:
            return None
        execution, self.last = found
        if self.forgotten != since:  # by another thread, which may have done so before ``last`` was set
            self.last = None
        return execution, values

    def remember(self, fetches: Any, feeds: Mapping[Any, Any], targets: Any, execution: Execution, since: int) -> None:
        """Notes that calls like this one run so, unless something was forgotten since there was ``since`` of that."""
        names = tuple(fetches) if isinstance(fetches, list) else fetches
        if isinstance(names, (str, tuple)) and isinstance(targets, (str, tuple)):
            self.last = repeated = repeated_call(fetches, feeds, targets, execution)
            if len(self._spelled) >= MOST_SPELLINGS:
                self._spelled.clear()
            self._spelled[spelled_key(names, feeds, targets, list(feeds.values()))] = execution, repeated
            if self.forgotten != since:  # looked at last: what is forgotten from here on, this call is among
                self._spelled.clear()
                self.last = None

    def note_fetched(self, names: tuple[str, ...], found: Fetched) -> None:
        """Notes which of these names are operations without outputs."""
        if len(self.fetched) >= MOST_SPELLINGS:
            self.fetched.clear()
        self.fetched[names] = found

    def note_outputs(self, names: tuple[str, ...], outputs: tuple[Endpoint, ...]) -> None:
        """Notes which tensors these names are; the first ones stay, whatever is forgotten."""
        if len(self.outputs) < MOST_SPELLINGS:
            self.outputs[names] = outputs

    def note_specs(self, names: tuple[Any, ...], specs: tuple[FeedSpec, ...]) -> None:
        """Notes what values fed under these names must look like, as ``note_outputs``."""
        if len(self.specs) < MOST_SPELLINGS:
            self.specs[names] = specs

    def note_any_sizes(
        self, fetches: tuple[str, ...], feeds: Iterable[Any], targets: tuple[str, ...], found: PlansAnySizes | None
    ) -> None:
        """Notes what runs calls of other sizes, with feeds of these names, if anything does."""
        if found is not None and len(self.any_sizes) < MOST_SPELLINGS:
            key = (fetches, targets, *feeds)
            self.any_sizes[key] = found

    def add_plan(self, key: CallKey, plan: ExecutionPlan) -> ExecutionPlan:
        """Adds a plan, and lets the oldest go where there are too many."""
        self.plans[key] = plan
        if len(self.plans) > MOST_PLANS:
            self.drop([next(iter(self.plans))])
        return plan

    def drop(self, keys: Iterable[CallKey]) -> None:
        """Lets plans go, and with them the ways to run them."""
        for key in keys:
            self.plans.pop(key, None)
        self.forget()

    def forget(self) -> None:
        """Lets go of the ways to run; the plans stay."""
        self.forgotten += 1  # first, so that who notes one meanwhile knows
        self._spelled.clear()
        self.fetched.clear()
        self.any_sizes.clear()
        self.last = None

    def close(self) -> None:
        """Frees all plans."""
        for plan in self.plans.values():
            for executable in plan.executables:
                executable.close()
        self.plans.clear()
        self.forget()


def repeated_call(fetches: Any, feeds: Mapping[Any, Any], targets: Any, execution: Execution) -> RepeatedCall | None:
    """What runs ``execution`` on calls like this one: the shortest way through a session.

    A small model computes for ten microseconds, and a program calls it with the same names, types and shapes each
    time. So what must be alike is compared directly, without a key for a table; anything else takes the longer way.

    Args:
        fetches, feeds, targets: a call that ``execution`` is the way to run, as Session.run got it.
        execution: computes from the fed values in the order of ``feeds``.

    Returns:
        None where such calls take the longer way: there are targets, names that are no text, values that are no arrays.
    """
    names, values = list(feeds), list(feeds.values())
    if targets != () or type(fetches) not in (list, str) or not all(type(name) is str for name in [*fetches, *names]):
        return None
    if not names or not all(type(value) is np.ndarray for value in values):
        return None
    switches = [(name, switch_of(value)) for name, value in feeds.items() if may_switch(value)]
    kind, wanted = type(fetches), fetches[:] if type(fetches) is list else fetches
    array, nothing = np.ndarray, ()  # which CPython has one of
    texts = [name for name, value in feeds.items() if value.dtype.kind == "O"]  # which may be other objects next time
    if len(names) == 1 and not switches:
        name, dtype, shape = names[0], values[0].dtype, values[0].shape
        is_text = bool(texts)

        def with_one(fetches: Any, feeds: Any, targets: Any) -> list[Array] | None:
            if (
                type(fetches) is kind
                and fetches == wanted
                and type(feeds) is dict
                and len(feeds) == 1
                and targets is nothing
            ):
                value = feeds.get(name)
                if type(value) is array and value.dtype is dtype and value.shape == shape:
                    return execution([value]) if not is_text or is_bytes(value) else None
            return None

        return with_one
    count, specs = len(names), [(name, value.dtype, value.shape) for name, value in feeds.items()]

    def with_several(fetches: Any, feeds: Any, targets: Any) -> list[Array] | None:
        if (
            type(fetches) is not kind
            or fetches != wanted
            or type(feeds) is not dict
            or len(feeds) != count
            or targets is not nothing
        ):
            return None
        values = []
        for name, dtype, shape in specs:
            value = feeds.get(name)
            if type(value) is not array or value.dtype is not dtype or value.shape != shape:
                return None
            values.append(value)
        for name, switch in switches:
            if switch_of(feeds[name]) is not switch:
                return None
        for name in texts:
            if not is_bytes(feeds[name]):
                return None
        return execution(values)

    return with_several


def plan_for(request: Request, graph: Callable[[], Graph], items: dict[str, Item] | None = None) -> ExecutionPlan:
    """What runs a request: the plan of an earlier process where there is one, else a new one.

    Args:
        request: what is to be run; its graph is not looked at.
        graph: gives the graph, which only a new plan needs.
        items: the graph's needed nodes, when the caller knows them.

    Raises:
        MissingKernelError: ops that nothing can run; all of them are named.
        RunError: the graph cannot be run as asked.
    """
    found = find(request, graph)
    if found is not None:
        return found
    from pocketgraph.graph.model_file_graph import is_model_file

    whole = graph()
    if request.strict and is_model_file(whole):
        raise RunError("this file runs as it was compiled, with no choice of values", hint="leave strict out")
    if is_model_file(whole):
        from pocketgraph.runtime.planning.model_file_plan import plan_of_model_file

        return plan_of_model_file(request, whole)
    from pocketgraph.runtime.planning.planner import prepare  # takes as long to import as all that a warm start needs

    return prepare(request.replace(graph=whole), items)


def find(request: Request, graph: Callable[[], Graph]) -> ExecutionPlan | None:
    """What an earlier process left on disk for a request: one executable for all of it, or a plan of several parts.

    Args:
        request: what is to be run; its graph is not looked at.
        graph: gives the graph, when parts are to be compared that were not yet.
    """
    if not request.key or request.call.is_traced or request.call.is_described:
        return None
    found = _whole(request, graph)
    if found is None and request.engine in (None, "auto"):
        from pocketgraph.runtime.planning import stored_plan

        found = stored_plan.find(request, graph)
    return found


def _whole(request: Request, graph: Callable[[], Graph]) -> ExecutionPlan | None:
    call = request.call
    if call.targets or len(set(call.fetches)) < len(call.fetches):
        return None
    specs: dict[str, tuple[DType, tuple[int, ...]]] = {}
    for endpoint, (dtype, shape) in call.feeds:
        if dtype is None or None in shape:
            return None
        specs[str(endpoint)] = (dtype, Shape(shape).known)
    names, fetches = sorted(specs), [str(endpoint) for endpoint in call.fetches]
    from pocketgraph.runtime.planning.part_setup import part_of_earlier

    found = part_of_earlier(request, call.of_model(request.key), names, fetches, specs, graph)
    if found is None:
        return None
    order = {name: index for index, name in enumerate(specs)}
    return ExecutionPlan(None, found, tuple([order[name] for name in names]), executables=[found])
