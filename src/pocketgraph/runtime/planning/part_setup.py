"""Sets a compiled part up to answer: compared with the reference engine, on the fastest engine, and compiled anew when
it has run often.

A part comes here when a plan is made (``set_up``), or when an earlier process compiled it (``part_of_earlier``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pocketgraph.graph import Graph
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.litert.cache import Specs
from pocketgraph.litert.cached_executable import PACKED, UNPACKED, lookup
from pocketgraph.litert.executable import Check, Executable, Opener
from pocketgraph.runtime.planning.execution_plan import TIERS, Request

if TYPE_CHECKING:
    from pocketgraph.runtime.certificates.part_reference import PartReference
    from pocketgraph.runtime.planning.compiled_part import CompiledPart


def set_up(request: Request, part: CompiledPart, graph: Graph) -> None:
    """Sets a part up that was just compiled.

    Args:
        request: what it was compiled for.
        part: it.
        graph: the graph that its nodes are in.
    """
    executable, inputs, outputs = part.executable, part.inputs, part.outputs

    def nodes() -> PartReference:  # which the executable's check holds, and so nothing that holds the executable
        return reference_of(request, graph, inputs, outputs)

    def check() -> Check:
        from pocketgraph.runtime.certificates.part_check import CheckedPart, PartCheck

        checked = CheckedPart(part.place)
        if request.checked is not None:
            request.checked.append(checked)
        is_always, kept_as = request.check == "always", executable.kept_as
        return PartCheck(nodes, checked, always=is_always, cache_dir=request.cache_dir, kept_as=kept_as)

    executable.switch_off(request.without)
    if not _trusts(request, executable):
        executable.check = check()
    _choose_engine(request, executable, lambda: graph, nodes, check)
    _compile_again_later(request, executable, lambda: request.graph)


def part_of_earlier(
    request: Request, key: str, inputs: Sequence[str], outputs: Sequence[str], specs: Specs, graph: Callable[[], Graph]
) -> Executable | None:
    """A part that an earlier process compiled, on the engine that is to run it; None where it has to be compiled.

    Args:
        request: what is to be run; its graph is not looked at.
        key, inputs, outputs, specs: as for litert/cached_executable.lookup.
        graph: gives the graph, when the part is to be compared that was not yet.
    """
    found = lookup(
        key,
        inputs,
        outputs,
        specs,
        threads=request.threads,
        cache_dir=request.cache_dir,
        opener=opener(request),
        in_tiers=request.is_tiered,
        whole=request.engine == "auto",
    )
    if found is None:
        return None
    if not _may_answer(request, found, graph):
        found.close()
        return None  # planned anew, the nodes are known with which it is compared
    found.switch_off(request.without)
    _choose_engine(request, found, graph)
    _compile_again_later(request, found, graph)
    return found


def opener(request: Request, nodes: Callable[[], PartReference] | None = None) -> Opener | None:
    """What opens a request's parts; None for LiteRT as it is opened by default.

    Args:
        request: what is to be run.
        nodes: makes what computes a part's nodes on the reference engine, where the graph was read.
    """
    if not request.wants_one_engine or request.engine in (None, "litert"):
        return UNPACKED if PACKED in request.without else None
    from pocketgraph.runtime.part_engines import available_engines

    return available_engines.opener(request.engine, nodes)


def reference_of(
    request: Request, graph: Graph, inputs: Sequence[Endpoint], outputs: Sequence[Endpoint]
) -> PartReference:
    """What computes a part's nodes on the reference engine."""
    from pocketgraph.runtime.certificates.part_reference import PartReference

    without = request.without
    if request.strict:
        from pocketgraph.litert.nan_and_overflow import SPREADING

        without = without | SPREADING
    return PartReference(graph, inputs, outputs, without)


def _trusts(request: Request, executable: Executable) -> bool:
    """Whether a compiled part need not be compared with the reference engine."""
    return request.check == "never" or (request.check == "first" and executable.is_certified)


def _may_answer(request: Request, executable: Executable, graph: Callable[[], Graph]) -> bool:
    """Whether a part that an earlier process compiled may answer: it is trusted, or comparing it takes so long that
    it is left to a time at which the process is idle; ``graph`` is read then."""
    if _trusts(request, executable):
        return True
    if request.check == "always" or request.planner is None:
        return False
    if not executable.is_put_off:
        from pocketgraph.runtime.certificates import check_schedule

        if check_schedule.allows(executable.check_time):
            return False
    if executable.check is None:
        _check_later(request, executable, graph)
    return True


def _check_later(request: Request, executable: Executable, graph: Callable[[], Graph]) -> None:
    from pocketgraph.runtime.certificates.warm_check import WarmCheck

    executable.check = WarmCheck(lambda: _planned_again(request.replace(check="always"), graph))


def _choose_engine(
    request: Request,
    executable: Executable,
    graph: Callable[[], Graph],
    nodes: Callable[[], PartReference] | None = None,
    check: Callable[[], Check] | None = None,
) -> None:
    """Lets a part run on the fastest engine where the session leaves that open (see part_engines/engine_choice.py).

    Args:
        request: what is to be run.
        executable: the part.
        graph: gives the graph, to compare the part after another engine has taken over.
        nodes: as for ``opener``.
        check: makes what compares it, where the graph was read.
    """
    if request.engine != "auto" or request.strict:
        return
    from pocketgraph.runtime.part_engines.engine_choice import consider

    def certify() -> None:
        if _trusts(request, executable):
            return
        if check is not None:
            executable.check = check()
        elif request.planner is not None:
            _check_later(request, executable, graph)

    if nodes is None and request.planner is not None:

        def nodes() -> PartReference:
            return _nodes_of(request, executable, graph)

    consider(executable, nodes, certify, measure=request.measure, at_once=request.call.is_traced)


def _compile_again_later(request: Request, executable: Executable, graph: Callable[[], Graph]) -> None:
    """Lets a part that was compiled for its first runs be compiled anew when it has run often; ``graph`` gives the
    whole graph."""
    if executable.next_tier is not None and request.planner is not None:
        from pocketgraph.runtime.planning.tiered_compilation import prepare

        wanted = request.replace(without=request.without | {TIERS})
        prepare(executable, lambda: _planned_again(wanted, graph), request.checked)


def _nodes_of(request: Request, executable: Executable, graph: Callable[[], Graph]) -> PartReference:
    """What computes a part's nodes on the reference engine, where an earlier process compiled it: all is planned
    anew, since the cache does not say which nodes a part is of.

    Raises:
        LookupError: the plan has another part by now.
    """
    made = _planned_again(request.replace(check="always", engine=None), graph)
    found = {getattr(each, "kept_as", None): getattr(each, "check", None) for each in made}
    for each in made:
        each.close()
    check: Any = found[executable.kept_as]
    reference: PartReference = check.reference
    return reference


def _planned_again(request: Request, graph: Callable[[], Graph]) -> Sequence[Any]:
    """The executables of a plan made anew."""
    assert request.planner is not None
    return request.planner(request, graph).executables
