"""Large parts are compiled in two tiers: quickly for the first runs, and anew, to run faster, when they have run often.

What takes long to compile is left out at first (``litert.engine.FIRST_TIER``). When a part has run some times, in this
process or a later one, it is planned again in a thread of its own, and the new program takes over between two runs. It
is kept in place of the first one, so that later processes begin with it. Results differ by rounding, as they do without
the pass that was left out; ``without=["tiered_compilation"]`` compiles everything at once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from pocketgraph.budgets import started
from pocketgraph.litert import cache
from pocketgraph.litert.cost_model import TILED_AFTER
from pocketgraph.litert.executable import Executable


def prepare(executable: Executable, plan_again: Callable[[], Iterable[Any]], checked: list[Any] | None) -> None:
    """Sees to it that a part will be compiled anew when it has run often, and takes no time for it now.

    Args:
        executable: the part; it has a next tier.
        plan_again: gives the executables of the part's plan anew, without a first tier.
        checked: the parts that are compared with the reference engine, if anybody wants to know.
    """
    before = getattr(executable.check, "part", None)
    held = weakref.ref(executable)  # which holds this

    def again() -> None:
        living = held()
        if living is not None and compile_again(living, plan_again) and checked is not None:
            checked[:] = [part for part in checked if part is not before]

    executable.after(TILED_AFTER, lambda: started(again, "tiers"))


def compile_again(executable: Executable, plan_again: Callable[[], Iterable[Any]]) -> bool:
    """Compiles a part anew, and lets what came of it take over; arguments as for ``prepare``.

    The part may have been closed meanwhile, the disk may be full, the process may end: then it stays as it is.

    Returns:
        Whether something took over.
    """
    from pocketgraph.runtime.background import at_work

    first, better = executable.kept_as, executable.next_tier
    taken_over = False
    with at_work():
        if first is None or better is None or not executable.is_open:
            return False
        for made in plan_again():
            is_it = isinstance(made, Executable) and made.kept_as == better and not taken_over
            if is_it and executable.become(made):
                taken_over = True
            else:
                made.close()
        if taken_over:
            from pocketgraph.runtime.memory_trim import trim_memory

            cache.remove(*first)
            trim_memory()
    return taken_over
