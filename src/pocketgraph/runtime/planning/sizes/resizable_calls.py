"""Calls that differ in sizes alone, and the LiteRT programs that serve several of them (see opened_programs.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from pocketgraph.errors import RunError
from pocketgraph.graph import parse_ref
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.litert import cache
from pocketgraph.litert.cost_model import ANSWERED_AGAIN
from pocketgraph.runtime.planning.call_key import SMALLEST_OPEN, CallKey
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan, FixedPlan, Request
from pocketgraph.runtime.planning.sizes.served_calls import AnySizes, Pays, PlanItsOwn, ServedCalls, served_by

if TYPE_CHECKING:
    from pocketgraph.litert.sizes.resizable import Shapes
    from pocketgraph.runtime.planning.reference_answers import ReferenceAnswer

ANSWERED = "first_on_reference"
"""The pass that lets the reference engine answer."""
SECOND_SHARE = 0.5  # of the first plan's time, that comparing a program for the second sizes may take
MOST_TRIES = 6  # programs that could not be opened, after which no more are tried
ANEW = 3.0  # times as long as plans had taken when one could not be: when it is tried anew


class ResizableCalls:
    """Calls of a session that differ in sizes alone. Is asked under the session's lock.

    Attributes:
        own: the shapes of what is fed to calls that get a plan of their own.
    """

    def __init__(self) -> None:
        self._served: dict[CallKey, ServedCalls] = {}
        self._refused: dict[CallKey, float] = {}  # until plans have taken so many seconds
        self._tries = 0
        self.own: set[Shapes] = set()
        self._is_new = True
        self._may_answer = True
        self._answering: tuple[ExecutionPlan, ReferenceAnswer] | None = None  # what may do it once more
        self._answer: ReferenceAnswer | None = None
        self._estimates: dict[CallKey, float] = {}  # by plan: how long NumPy would take, in microseconds

    @property
    def is_untried(self) -> bool:
        """Whether no program was opened so far, nor one found that cannot be."""
        return not self._served and not self._refused

    def plan(self, key: CallKey, compiled: Sequence[FixedPlan], request: Request, spent: float) -> ExecutionPlan | None:
        """A plan for these sizes that needs no compiling; None where there cannot be one.

        Args:
            key: of the call.
            compiled: plans that were made for fixed sizes.
            request: what is to be run, with the whole graph where there are such plans.
            spent: seconds that all such plans took so far.
        """
        if key.shapes in self.own:
            return None
        if self._is_new:
            self._is_new = False
            kept = _kept(key, request)
            if kept is not None:
                self._served[kept[0]] = kept[1]
        opened = next((known for known in self._served if fits(key, known)), None)
        if opened is None and compiled and ANSWERED not in request.without:
            answered = self._answered(key, compiled[-1], request)
            if answered is not None:
                return answered
        if opened is None:
            opened = self._opened(key, compiled, request, spent)
        if opened is None:
            return None
        served = self._served[opened]
        if served.is_undecided:  # another thread's call is at the first run
            return None
        if not served.is_trusted:
            del self._served[opened]
            self._refused[opened] = math.inf
            return None
        return served.for_all if served.takes(key.shapes) else None

    def answer_no_more(self) -> None:
        """Has a program made for the next call of other sizes, however quick the reference engine is."""
        self._may_answer, self._answering = False, None

    def _answered(self, key: CallKey, compiled: FixedPlan, request: Request) -> ExecutionPlan | None:
        """What runs this call, once: the first one of other sizes, and one more that takes little."""
        earlier, self._answering = self._answering, None
        if self._may_answer:
            self._may_answer = False
            from pocketgraph.runtime.planning.reference_answers import answered_by_reference

            self._answering = answered_by_reference(key, compiled, request.replace(graph=compiled.graph))
            if self._answering is None:
                return None
            plan, self._answer = self._answering
            return plan
        if earlier is None or not earlier[1].is_quick(key, ANSWERED_AGAIN * compiled.seconds):
            return None
        return earlier[0]

    def _opened(self, key: CallKey, compiled: Sequence[FixedPlan], request: Request, spent: float) -> CallKey | None:
        """Opens the program for the sizes that are the most like these, and says for which calls.

        Comparing it takes at most as long as plans for fixed sizes have taken so far: twice the best at worst. Of small
        sizes it may not be certain which they are (the middle row of three is the second from either border): where the
        program for some could not be opened, that for others is tried later.
        """
        for plan in sorted(compiled, key=lambda plan: (len(key.differing(plan.key)), -plan.check_time)):
            opened = key.with_open(key.differing(plan.key))
            if spent < self._refused.get(opened, 0.0) or not (fits(key, opened) and fits(plan.key, opened)):
                continue
            if self._tries >= MOST_TRIES:
                return None
            most = spent * (1e6 if len(compiled) > 1 else 1e6 * SECOND_SHARE)
            if plan.check_time > most and self._numpy_time(plan) > most:
                continue
            from pocketgraph.runtime.planning.sizes.opened_programs import opened_program

            request = request.replace(graph=plan.graph)
            served = opened_program(opened, plan, request, entry_of(opened, request))
            if served is not None:
                self._served[opened] = served
                self._compare(served, opened, plan.key)
                return opened
            self._tries += 1
            self._refused[opened] = ANEW * spent
        return None

    def _numpy_time(self, plan: FixedPlan) -> float:
        """About how long NumPy takes for the sizes of a plan, in microseconds: what it took, or what it would take."""
        if self._answer is not None:
            return self._answer.seconds * 1e6
        if plan.key not in self._estimates:
            from pocketgraph.runtime.planning.numpy_time import numpy_time

            self._estimates[plan.key] = numpy_time([item.node for item in plan.items.values()], plan.inferred)
        return self._estimates[plan.key]

    def _compare(self, served: ServedCalls, opened: CallKey, lowered: CallKey) -> None:
        """Compares with what the reference engine answered, where it did, and all open sizes are others than those that
        the program was lowered for."""
        answer = self._answer
        if answer is None or not answer.results or not fits(answer.key, opened):
            return
        if answer.key.with_open(answer.key.differing(lowered)) == opened:
            served.compare(answer)
            self._answer = None

    def timed(
        self, plan: ExecutionPlan, key: CallKey, pays: Pays, plan_its_own: PlanItsOwn, *, tiles: bool
    ) -> ExecutionPlan:
        """What ``plan`` gave for a call, whose runs are counted, and which says what runs calls of other sizes.

        Args:
            plan: it.
            key: of the call.
            pays, plan_its_own: as for AnySizes.
            tiles: whether a plan for single sizes may have tiles that the program lacks.
        """
        for opened, served in self._served.items():
            if served.for_all is plan:
                lacks_tiles = tiles and getattr(plan.whole, "about", {}).get("lacks_tiles")
                gains = pays if plan.whole is None or lacks_tiles else None
                runs = AnySizes(opened, served, self.own, gains, plan_its_own)
                found = plan.timed(partial(runs.ran, key.shapes))
                found.any_sizes = runs
                return found
        return plan

    def wants_its_own(self, key: CallKey) -> None:
        """Notes that a call has waited so long for others' sizes that it gets a plan of its own."""
        self.own.add(key.shapes)


def fits(key: CallKey, opened: CallKey) -> bool:
    """Whether a key is ``opened`` with sizes in the open places at which nothing is repeated or left out."""
    if key._replace(feeds=()) != opened._replace(feeds=()):
        return False
    pairs: list[tuple[int | None, int | None]] = []
    for (end, (dtype, own)), (other, (kind, sizes)) in zip(key.feeds, opened.feeds, strict=True):
        if (end, dtype, len(own)) != (other, kind, len(sizes)):
            return False
        pairs += zip(sizes, own, strict=True)
    return all(n == size if size is not None else n is not None and n >= SMALLEST_OPEN for size, n in pairs)


def entry_of(key: CallKey, request: Request) -> tuple[str, str] | None:
    """Where the cache keeps the program for calls like this one, whatever their sizes; None where it does not."""
    folder = cache.directory(request.cache_dir) if request.key else None
    if folder is None:
        return None
    ranks = sorted((str(end), dtype.name if dtype else "?", len(sizes)) for end, (dtype, sizes) in key.feeds)
    return folder, cache.entry_name(key.of_model(request.key), f"all sizes of {ranks} for {key.wanted}")


def _kept(key: CallKey, request: Request) -> tuple[CallKey, ServedCalls] | None:
    """What an earlier process left for calls like this one, and found right on this kind of processor."""
    place = entry_of(key, request)
    entry = cache.find(*place) if place is not None else None
    if entry is None or cache.certificate(entry.about) != "right":
        return None
    from pocketgraph.litert.sizes.resizable import Resizable

    try:
        sizes = {name: tuple(own) for name, own in entry.about["opened"]}
        opened = key._replace(feeds=tuple([(end, (dtype, sizes[str(end)])) for end, (dtype, _) in key.feeds]))
        if not fits(key, opened):
            return None
        inputs = [Endpoint(*parse_ref(name)[:2]) for name, _, _ in entry.about["inputs"]]
        return opened, served_by(Resizable.of_entry(entry, request.threads, place), opened, inputs)
    except (RunError, LookupError, TypeError, ValueError):
        return None
