"""A description of what runs where, from what the plan decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pocketgraph.runtime.description import DescribedPart, Description
from pocketgraph.runtime.engines.compilation_units import PartCall
from pocketgraph.runtime.engines.needed import Item
from pocketgraph.runtime.planning.compiled_part import CompiledPart
from pocketgraph.runtime.planning.execution_plan import Request
from pocketgraph.runtime.planning.partitioning import CutPart


def described(
    request: Request,
    items: Mapping[str, Item],
    cuts: Mapping[CutPart, CompiledPart],
    later: Sequence[PartCall],
    reasons: Mapping[str, str],
    passes: tuple[str, ...] = (),
) -> Description:
    """What runs where.

    Args:
        request: what was asked for.
        items: the needed nodes.
        cuts: the parts that are compiled, by the cuts that they are of.
        later: the parts that will be compiled when they run.
        reasons: why a node is in none of them.
        passes: the graph passes that changed something.
    """
    inside = {name for part in cuts for name in part.nodes} | {name for part in later for name in part.members}
    parts = [
        DescribedPart(
            runs_on, part.nodes, tuple(map(str, part.inputs)), tuple(map(str, part.outputs)), measured=measured
        )
        for part, (runs_on, measured) in {part: _engine(request, each) for part, each in cuts.items()}.items()
    ]
    for part in later:
        members = tuple(name for name in items if name in part.members)
        parts.append(
            DescribedPart("litert", members, tuple(map(str, part.inputs)), tuple(map(str, part.outputs)), True)
        )
    rest = tuple(name for name, item in items.items() if name not in inside and item.node.op != "Const")
    if cuts or later:
        rest = tuple(name for name in rest if name in reasons)
    if rest:
        parts.append(DescribedPart("reference", rest))
    return Description(
        {str(e): (dtype.name if dtype else "?", shape) for e, (dtype, shape) in request.feeds.items()},
        tuple(map(str, request.fetches)),
        tuple(parts),
        {name: reason for name, reason in reasons.items() if name in items and name not in inside},
        {name: item.node.op for name, item in items.items()},
        passes,
        tuple(sorted(request.without)),
    )


def _engine(request: Request, part: CompiledPart) -> tuple[str, tuple[str, ...]]:
    """The engine that runs a part, or will after some runs, and what is known of others."""
    if request.engine != "auto":
        return part.runs_on, ()
    from pocketgraph.runtime.part_engines.engine_choice import told

    return told(part.executable)
