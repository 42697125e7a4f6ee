"""Large parts are compiled in two tiers: quickly for the first runs, and anew, to run faster, when they have run often.

What takes long to compile is left out at first (``litert.engine.FIRST_TIER``). When a part has run some times, in this
process or a later one, it is planned again in a thread of its own, and the new program takes over between two runs. It
is kept in place of the first one, so that later processes begin with it. Results differ by rounding, as they do without
the pass that was left out; ``without=["tiered_compilation"]`` compiles everything at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from pocketgraph.graph import Graph
from pocketgraph.litert import cache, pieces
from pocketgraph.litert.cost_model import TILED_AFTER
from pocketgraph.litert.executable import Executable
from pocketgraph.runtime.background import at_work
from pocketgraph.runtime.part_engines.freed_memory import give_back
from pocketgraph.runtime.planning.execution_plan import TIERS

if TYPE_CHECKING:
    from pocketgraph.runtime.planning.execution_plan import Request


def prepare(executable: Executable, request: Request, graph: Callable[[], Graph]) -> None:
    """Sees to it that a part will be compiled anew when it has run often, and takes no time for it now.

    Args:
        executable: the part; it has a next tier.
        request: what it is of.
        graph: gives the whole graph.
    """
    checked = getattr(executable.check, "part", None)
    again = lambda: compile_again(executable, request, graph, checked)  # noqa: E731
    executable.after(TILED_AFTER, lambda: threading.Thread(target=again, name="pocketgraph tiers", daemon=True).start())


def compile_again(executable: Executable, request: Request, graph: Callable[[], Graph], checked: object = None) -> None:
    """Compiles a part anew, and lets what came of it take over; arguments as for ``prepare``.

    ``checked`` is the part in the list of those that are compared, which is not compared any more.

    The part may have been closed meanwhile, the disk may be full, the process may end: then it stays as it is.
    """
    first, better = executable.kept_as, executable.next_tier
    if request.planner is None or first is None or better is None:
        return
    with at_work():
        if not executable.is_open:
            return
        wanted = request._replace(without=request.without | {TIERS})
        taken_over = False
        for made in request.planner(wanted, graph).executables:
            if isinstance(made, Executable) and made.kept_as == better and not taken_over:
                taken_over = executable.become(made)
                if taken_over:
                    continue
            made.close()
        if taken_over:
            if request.checked is not None:
                request.checked[:] = [part for part in request.checked if part is not checked]
            for name in (first[1], *pieces.names(first[1])):
                cache.remove(first[0], name)
            give_back()
