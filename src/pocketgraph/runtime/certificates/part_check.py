"""Compares a compiled part with the reference engine, the first time that it runs, and sees to what follows from it.

What agrees is certified, beside the part in the cache. What does not is not used again: the reference engine answers in
its place, in this process and in later ones, a warning names its nodes, and a reproduction is written.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from pocketgraph.budgets import allowance, check_memory, limits, stated_memory
from pocketgraph.errors import PocketgraphError
from pocketgraph.graph.tensor import Array
from pocketgraph.litert import cache
from pocketgraph.litert.cost_model import MOST_NOTED
from pocketgraph.runtime.certificates import check_schedule

if TYPE_CHECKING:
    from pocketgraph.litert.executable import Executable
    from pocketgraph.runtime.certificates.agreement import Agreement, Precision
    from pocketgraph.runtime.certificates.part_reference import PartReference

# What comparing takes is imported when a part is compared: that is mostly put off.

FACTORS = (5.0, -5.0)  # by which floats are multiplied to see whether a part agrees on other feeds as well
REFUSALS = (PocketgraphError, MemoryError, ArithmeticError, LookupError, TypeError, ValueError)
"""What the reference engine does not compute proves nothing; the run goes on."""
MOST_UNCLEAR = 4  # feeds that do not tell, after which a part is left without a certificate in this process


class CheckedPart:
    """A part that is compared: what to call it, and the last verdict."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.verdict: Agreement | None = None

    @property
    def is_open(self) -> bool:
        """Whether no comparison has told so far."""
        if self.verdict is None:
            return True
        from pocketgraph.runtime.certificates.agreement import Agreement

        return self.verdict is Agreement.UNCLEAR


class PartCheck:
    """What an executable is given as its ``check``.

    Args:
        nodes: makes what computes the part's nodes.
        part: is told the verdicts.
        always: compare each run, certified or not.
        cache_dir: as for Session; reproductions are written there.
        kept_as: the folder and name under which the cache keeps what is compared; what an executable has computed by
            something else is not.
    """

    def __init__(
        self,
        nodes: Callable[[], PartReference],
        part: CheckedPart,
        *,
        always: bool,
        cache_dir: str | None,
        kept_as: tuple[str, str] | None = None,
    ) -> None:
        self._nodes = nodes
        self.part = part
        self.always = always
        self.cache_dir = cache_dir
        self.kept_as = kept_as
        self._memory = stated_memory()
        self._unclear = 0
        self._lock = threading.Lock()

    @cached_property
    def reference(self) -> PartReference:
        """Computes the part's nodes."""
        return self._nodes()

    def __call__(self, executable: Executable, feeds: Sequence[Array], results: list[Array]) -> list[Array]:
        """What to answer in place of these results: themselves, or what the reference engine computes."""
        engine = executable.engine
        if self.part.is_open and not self.always and not check_schedule.allows(executable.check_time):
            self._later(executable, feeds, results)
            return results
        from pocketgraph.runtime.certificates.agreement import Agreement

        with self._lock:
            if self.part.verdict is Agreement.RIGHT and not self.always:
                return results
            began = time.thread_time()
            right = self.compare(executable, feeds, results, engine)
            if not self.always:
                check_schedule.spend(time.thread_time() - began)
        return results if right is None or self.part.verdict is not Agreement.WRONG else right

    def compare(
        self,
        executable: Executable,
        feeds: Sequence[Array],
        results: Sequence[Array],
        engine: str,
        *,
        varies: bool = True,
        known: Sequence[Array] | None = None,
    ) -> list[Array] | None:
        """Compares one run, and sees to what follows.

        Args:
            executable: what ran.
            feeds: what went in.
            results: what came out.
            engine: which one computed them, by name and version; "" for LiteRT.
            varies: whether other feeds than these are tried as well.
            known: the reference engine's results, where somebody has them.

        Returns:
            The reference engine's results; None where it refuses the feeds.
        """
        memory = self._memory if stated_memory() is None else None  # what a run has left is less than what it had
        with limits(memory=memory), np.errstate(all="ignore"):
            return self._compared(executable, feeds, results, engine, varies, known)

    def compare_idle(
        self, executable: Executable, feeds: Sequence[Array], results: Sequence[Array], engine: str
    ) -> None:
        """As ``compare``, some time after the run: not where the model's file was written over meanwhile."""
        from pocketgraph.formats.files import is_overwritten

        if not is_overwritten(self.reference.graph):
            self.compare(executable, feeds, results, engine)

    def _compared(
        self,
        executable: Executable,
        feeds: Sequence[Array],
        results: Sequence[Array],
        engine: str,
        varies: bool,
        known: Sequence[Array] | None,
    ) -> list[Array] | None:
        if self.kept_as not in (None, executable.kept_as):
            return None
        from pocketgraph.runtime.certificates.agreement import EIGHT_BITS, Agreement, varied

        right: list[Array] | None
        precision = EIGHT_BITS if executable.about.get("eight_bit") else self.reference.precision
        shown = feeds
        try:
            right = list(known) if known is not None else self.reference.run(feeds)
            found = self._judged(feeds, results, right, precision)
            varies &= self.part.verdict is not found and precision is not EIGHT_BITS
            if found is Agreement.RIGHT and varies:
                for factor in FACTORS:
                    others = varied(feeds, factor)
                    if self._varied(executable, others, precision) is Agreement.WRONG:
                        found, shown = Agreement.WRONG, others
                        break
        except REFUSALS:
            right, found = None, Agreement.UNCLEAR
        if found is Agreement.UNCLEAR:
            self._unclear += 1
            self.part.verdict = self.part.verdict or found
            if self._unclear >= MOST_UNCLEAR and not self.always:
                executable.check = None
            return right
        is_news, self.part.verdict = self.part.verdict is not found, found
        if found is Agreement.WRONG:
            executable.replace(self.reference.run)
        elif not self.always and executable.engine == engine:
            executable.check = None
        if is_news and executable.kept_as is not None:
            cache.certify(*executable.kept_as, found.value, engine)
        if is_news and found is Agreement.WRONG:
            self._tell(shown)
        return right

    def _judged(
        self, feeds: Sequence[Array], results: Sequence[Array], right: Sequence[Array], precision: Precision
    ) -> Agreement:
        from pocketgraph.runtime.certificates.agreement import judged
        from pocketgraph.runtime.certificates.part_reference import WIDE

        held = sum(array.nbytes for array in (*feeds, *results, *right))
        check_memory(held + WIDE * sum(array.size for array in right), "comparing results")
        return judged(results, right, feeds, partial(self.reference.noisy, feeds), precision)

    def _varied(self, executable: Executable, feeds: Sequence[Array], precision: Precision) -> Agreement:
        """The verdict on other feeds than those that came, which need not make sense."""
        from pocketgraph.runtime.certificates.agreement import Agreement

        try:
            return self._judged(feeds, executable.computed(feeds), self.reference.run(feeds), precision)
        except PocketgraphError:
            return Agreement.UNCLEAR

    def _later(self, executable: Executable, feeds: Sequence[Array], results: Sequence[Array]) -> None:
        """Leaves the comparison to a time at which the process has nothing to do."""
        executable.check, engine = None, executable.engine
        if executable.kept_as is not None and not executable.is_put_off:
            cache.certify(*executable.kept_as, "later", engine)
        if sum(array.nbytes for array in (*feeds, *results)) > min(MOST_NOTED, allowance()):
            return
        taken, given = [array.copy() for array in feeds], [array.copy() for array in results]
        check_schedule.add(lambda: self.compare_idle(executable, taken, given, engine), executable.check_time)

    def _tell(self, feeds: Sequence[Array]) -> None:
        from pocketgraph.runtime.certificates.reproduction import write_reproduction

        where = write_reproduction(self.reference, feeds, self.cache_dir)
        report = f"; to report it, send {where}.pb and {where}.npz" if where else ""
        said = f"{self.part.place} gives other numbers compiled than on the reference engine, which computes it{report}"
        warnings.warn(said, RuntimeWarning, stacklevel=2)
