"""Follows all ways through a pattern's NFA at once, so that time grows with the text, not with the ways.

Which steps a set of steps leads to is worked out once for each byte and kept (a deterministic automaton, made as far as
the texts need it). What groups matched is found by a second walk over the part of the text that has the match.
"""

from __future__ import annotations

from typing import TypeAlias

from pocketgraph.budgets import check_time
from pocketgraph.kernels.text.regex.nfa import Accept, Check, Fork, Nfa, Save, Take, conditions_at, following

Spans: TypeAlias = tuple[tuple[int, int], ...]
"""(begin, end) of the match and of each group; (-1, -1) of a group that has none."""

MOST_KEPT = 200_000  # steps in all kept sets together: some 20 MB
LOOKED = 0x3FF  # the clock is looked at so many bytes apart


class _State:
    """A set of steps, the better ones first.

    Attributes:
        is_searching: whether a match may begin later on.
        closed: what they lead to without a byte, by the conditions of the place.
    """

    __slots__ = ("closed", "is_searching", "steps")

    def __init__(self, steps: tuple[int, ...], is_searching: bool) -> None:
        self.steps = steps
        self.is_searching = is_searching
        self.closed: dict[int, _Closed] = {}


class _Closed:
    """A set of steps that take a byte.

    Attributes:
        is_match: whether the match ends here.
        is_searching: whether a match may begin later on.
        next: the state behind each byte, as far as it is known.
    """

    __slots__ = ("is_match", "is_searching", "next", "steps")

    def __init__(self, steps: tuple[int, ...], is_match: bool, is_searching: bool) -> None:
        self.steps = steps
        self.is_match = is_match
        self.is_searching = is_searching
        self.next: dict[int, _State] = {}


class Matcher:
    """Matches a pattern with texts.

    Args:
        nfa: the pattern.

    Attributes:
        groups: how many groups the pattern has.
    """

    def __init__(self, nfa: Nfa) -> None:
        self.groups = nfa.groups
        self._nfa = nfa
        self._states: dict[tuple[tuple[int, ...], bool], _State] = {}
        self._whole_states: dict[tuple[tuple[int, ...], bool], _State] = {}
        self._kept = 0

    def matches(self, text: bytes) -> bool:
        """Whether the pattern matches the whole of a text."""
        state = self._state((self._nfa.start,), False, self._whole_states)
        has_conditions, closed = self._nfa.has_conditions, None
        for place, byte in enumerate(text):
            conditions = conditions_at(text, place) if has_conditions else 0
            closed = state.closed.get(conditions) or self._close(state, conditions, to_end=True)
            state = closed.next.get(byte) or self._step(closed, byte, self._whole_states)
            if not state.steps:
                return False
            if not place & LOOKED:
                check_time()
        return self._close(state, conditions_at(text, len(text)), to_end=True).is_match

    def search(self, text: bytes, begin: int) -> Spans | None:
        """The first match at ``begin`` or behind it; of those at one place the one that backtracking finds first."""
        found = self._bounds(text, begin)
        return None if found is None else self._spans(text, *found)

    def _bounds(self, text: bytes, begin: int) -> tuple[int, int] | None:
        """(a place that the first match does not begin before, where it ends)."""
        state = self._state((), True, self._states)
        has_conditions = self._nfa.has_conditions
        low, end, length = begin, -1, len(text)
        for place in range(begin, length + 1):
            if not state.steps:
                if not state.is_searching:
                    break
                low = place
            conditions = conditions_at(text, place) if has_conditions else 0
            closed = state.closed.get(conditions) or self._close(state, conditions, to_end=False)
            if closed.is_match:
                end = place
            if place == length:
                break
            byte = text[place]
            state = closed.next.get(byte) or self._step(closed, byte, self._states)
            if not place & LOOKED:
                check_time()
        return None if end < 0 else (low, end)

    def _state(
        self, steps: tuple[int, ...], is_searching: bool, states: dict[tuple[tuple[int, ...], bool], _State]
    ) -> _State:
        found = states.get((steps, is_searching))
        if found is None:
            self._kept += len(steps) + 8
            if self._kept > MOST_KEPT:
                self._states.clear()
                self._whole_states.clear()
                self._kept = 0
            found = states[steps, is_searching] = _State(steps, is_searching)
        return found

    def _close(self, state: _State, conditions: int, *, to_end: bool) -> _Closed:
        nfa = self._nfa
        seen: set[int] = set()
        taking: list[int] = []
        is_match = False
        is_searching = state.is_searching
        for start in (*state.steps, nfa.start) if is_searching else state.steps:
            for at in following(nfa.steps, start, conditions, seen):
                if at:
                    taking.append(at)
                    continue
                is_match = True
                if not to_end:
                    break
            if is_match and not to_end:
                is_searching = False  # what comes later, or is worse, is no first match
                break
        closed = state.closed[conditions] = _Closed(tuple(taking), is_match, is_searching)
        self._kept += len(taking) + 8
        return closed

    def _step(self, closed: _Closed, byte: int, states: dict[tuple[tuple[int, ...], bool], _State]) -> _State:
        steps = self._nfa.steps
        found: dict[int, None] = {}
        for at in closed.steps:
            step = steps[at]
            assert isinstance(step, Take)
            for first, last, then in step.ways:
                if first <= byte <= last:
                    found[then] = None
                    break
        state = self._state(tuple(found), closed.is_searching, states)
        closed.next[byte] = state
        self._kept += 4
        return state

    def _spans(self, text: bytes, low: int, end: int) -> Spans:
        """Where the match that ends at ``end`` and the pattern's groups lie."""
        nfa = self._nfa
        steps, start, has_conditions = nfa.steps, nfa.start, nfa.has_conditions
        empty = (-1,) * (2 * nfa.groups + 2)
        threads: list[tuple[int, tuple[int, ...]]] = []
        best: tuple[int, ...] | None = None
        for place in range(low, end + 1):
            if best is None:
                threads.append((start, (place, *empty[1:])))
            conditions = conditions_at(text, place) if has_conditions else 0
            seen: set[int] = set()
            following_threads: list[tuple[int, tuple[int, ...]]] = []
            byte = text[place] if place < len(text) else -1
            for thread in threads:
                waiting = [thread]
                while waiting:
                    at, saved = waiting.pop()
                    if at in seen:
                        continue
                    seen.add(at)
                    step = steps[at]
                    if isinstance(step, Take):
                        for first, last, then in step.ways:
                            if first <= byte <= last:
                                following_threads.append((then, saved))
                                break
                    elif isinstance(step, Fork):
                        waiting += ((step.second, saved), (step.first, saved))
                    elif isinstance(step, Save):
                        waiting.append((step.then, (*saved[: step.slot], place, *saved[step.slot + 1 :])))
                    elif isinstance(step, Check):
                        if conditions & step.condition:
                            waiting.append((step.then, saved))
                    elif isinstance(step, Accept):
                        best = (saved[0], place, *saved[2:])
                        break
                else:
                    continue
                break  # all that is left is worse
            threads = following_threads
            if not place & LOOKED:
                check_time()
        assert best is not None
        return tuple(zip(best[::2], best[1::2], strict=True))
