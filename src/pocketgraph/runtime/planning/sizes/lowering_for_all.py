"""Lowers a part so that its program can be opened: without what holds for the sizes alone that it is lowered for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import DType, Node
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.nan_and_overflow import SPREADING
from pocketgraph.litert.part_lowering import lowered
from pocketgraph.litert.program import Program
from pocketgraph.litert.rewriting.optimize import (
    FOR_FIXED_SIZES,
    FOR_THIS_PROCESSOR,
    fold_dilations,
    optimize,
    optimize_for_latency,
)
from pocketgraph.litert.rewriting.padding_and_dilation import absorb_padding
from pocketgraph.runtime.planning.execution_plan import Request


def lowered_for_all(
    request: Request,
    nodes: Sequence[Node],
    specs: Mapping[str, tuple[DType, tuple[int, ...]]],
    outputs: Sequence[str],
    inferred: Inferred,
    kept: Collection[str],
    without: Collection[str] = (),
) -> Program | None:
    """The program of a part; None where LiteRT cannot run some node.

    Args:
        request: what is to be run, with the whole graph.
        nodes: the part's, producers first.
        specs: type and shape of each input, by its name.
        outputs: the tensors to compute.
        inferred: what is known of the tensors given these inputs.
        kept: names of nodes whose operations stay, even if they do nothing for these sizes.
        without: passes to leave out besides those of the request.
    """
    without = request.without.union(without, SPREADING if request.strict else ())
    try:
        program = lowered(request.graph, nodes, list(specs), outputs, specs, inferred, strict=request.strict, kept=kept)
    except (Unsupported, PocketgraphError):
        return None
    if "fold_dilations" not in without:
        fold_dilations(program)
    if "absorb_padding" not in without:
        absorb_padding(program, any_size=True)
    optimize(program, FOR_THIS_PROCESSOR | FOR_FIXED_SIZES.union(without))
    optimize_for_latency(program, FOR_FIXED_SIZES.union(without))
    return program if program.operations else None
