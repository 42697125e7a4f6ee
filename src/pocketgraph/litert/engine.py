"""The LiteRT engine: compiles parts of a graph.

What only compiling needs is imported when compiling, so that opening a compiled part stays fast.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from pocketgraph.errors import RunError
from pocketgraph.graph import Graph, Node
from pocketgraph.litert import cache
from pocketgraph.litert.cache import Folder, Specs
from pocketgraph.litert.cached_executable import (
    UNCUT,
    first_tier,
    lookup,
    may_be_cut,
    of_microbatches,
    of_several_threads,
    open_part,
)
from pocketgraph.litert.cost_model import MOST_OPERATORS, PACKED_FROM, TILED_LATER_FROM
from pocketgraph.litert.executable import Executable, Opener
from pocketgraph.litert.lowering import Unsupported

if TYPE_CHECKING:
    from pocketgraph.kernels.shapes import Inferred
    from pocketgraph.litert.part_lowering import Trial
    from pocketgraph.litert.program import Operation, Program
    from pocketgraph.litert.sizes.open_program import OpenProgram
    from pocketgraph.litert.sizes.resizable import Resizable, Shapes

__all__ = ["Executable", "Specs", "Unsupported", "compile", "lookup"]


def compile(
    graph: Graph,
    nodes: Sequence[Node],
    inputs: Sequence[str],
    outputs: Sequence[str],
    input_specs: Specs,
    inferred: Inferred,
    *,
    threads: int = 1,
    cache_dir: Folder | None = None,
    key: str | None = None,
    trial: Trial | None = None,
    without: Collection[str] = (),
    strict: bool = False,
    opener: Opener | None = None,
    with_program: bool = False,
    in_tiers: bool = False,
    whole: bool = False,
) -> Executable:
    """Lowers a part, or takes it from the cache.

    Args:
        graph: the graph that the part is of.
        nodes: the part's nodes; constants that they need may be left out.
        inputs: the tensor names (``n:0``) that enter, in the order in which ``run`` will be given them.
        outputs: the tensor names to compute.
        input_specs: the element type and shape of each input.
        inferred: what is known of the tensors given these inputs (kernels.shapes.infer).
        threads: how many threads to compute with.
        cache_dir: see cache.directory.
        key: a digest of the model (see digest); None keeps the part out of the cache.
        trial: a trial of the graph, by which the nodes need not be lowered once more.
        without: program passes to leave out (see rewriting/optimize.py); ``key`` must tell them apart.
        strict: refuse what differs from TensorFlow at the edges, and leave out the passes that do; likewise.
        opener: makes the runner of the part's file; LiteRT by default.
        with_program: lower the part even when it is in the cache, so that its operations are known.
        in_tiers: leave out at first what takes long to compile (``FIRST_TIER``), where the part is large; it has a
            ``next_tier`` then.
        whole: whether the part's file in the cache must hold all weights, since another engine may read it.

    Raises:
        Unsupported: LiteRT cannot run some node, or the engine refuses the part as a whole.
    """
    name, folder, found = "", None, None
    if key is not None and not graph.secret:
        folder = cache.directory(cache_dir)
        name = cache.entry_name(key, cache.signature(inputs, input_specs, outputs))
        if folder is not None:
            found = _kept(folder, name, threads, opener, input_specs, in_tiers=in_tiers, whole=whole)
            if found is None and with_program:
                found = _kept(folder, name, threads, opener, {}, in_tiers=in_tiers, whole=whole)
        if found is not None and not with_program:
            return found
    from pocketgraph.litert.part_lowering import lowered

    if strict:
        from pocketgraph.litert.nan_and_overflow import SPREADING

        without = SPREADING.union(without)
    program = trial.program(nodes, inputs, outputs, input_specs) if trial is not None else None
    if program is None:
        program = lowered(graph, nodes, inputs, outputs, input_specs, inferred, strict=strict)
    if len(program.operations) > MOST_OPERATORS:
        raise Unsupported(f"it would be {len(program.operations):,} operators, more than LiteRT opens in time")
    count = 1
    uncut = False
    if folder is not None and not with_program and may_be_cut(input_specs, opener):
        program, count = _in_microbatches(program, threads, without)
        uncut = count == 1
        name = name if uncut else of_microbatches(name, threads)
        found = _kept(folder, name, threads, opener, {}, in_tiers=in_tiers, whole=whole) if uncut else None
        if found is not None and found.kept_as is not None:
            cache.note(*found.kept_as, UNCUT, str(threads), True)
            return found
    is_first, is_of_several = _optimize(
        program, threads, without, in_tiers=folder is not None and in_tiers, is_whole=count == 1
    )
    name = of_several_threads(name) if is_of_several else name
    if found is not None:
        found.program = program
        return found
    types = [input_specs[name][0].numpy.name for name in inputs]
    kept = first_tier(name) if is_first else name
    from pocketgraph.litert.constants_ahead import AHEAD
    from pocketgraph.litert.program_building import build

    made = build(
        program,
        inputs,
        types,
        folder,
        kept,
        threads,
        in_memory=graph.secret,
        opener=opener,
        microbatches=count,
        packs=not whole and DIRECT_PACKING not in without,
        ahead=AHEAD not in without,
    )
    if uncut and made.kept_as is not None:
        cache.note(*made.kept_as, UNCUT, str(threads), True)
    if is_first and made.kept_as is not None and folder is not None:
        made.next_tier = folder, name
    return made


def _optimize(
    program: Program, threads: int, without: Collection[str], *, in_tiers: bool, is_whole: bool
) -> tuple[bool, bool]:
    """Changes a program into one that takes less time.

    Returns:
        Whether it is what its first runs take, and whether it is for several threads alone.
    """
    from pocketgraph.litert.rewriting.optimize import optimize, optimize_for_latency

    is_first = in_tiers and _has_computed_tiles(program)
    optimize(program, FIRST_TIER.union(without) if is_first else without)
    depends = is_whole and TILES not in without and _depends_on_threads(program)
    if depends:
        program.by_several = threads > 1
    is_first = is_first or (in_tiers and _is_slow_to_compile(program))
    optimize_for_latency(program, FIRST_TIER.union(without) if is_first else without)
    return is_first, depends and threads > 1


def _in_microbatches(program: Program, threads: int, without: Collection[str]) -> tuple[Program, int]:
    """What computes a part of a batch, and how many parts there are; the program itself where it stays whole."""
    from pocketgraph.litert.running.microbatch_runner import MICROBATCHES

    if MICROBATCHES in without:
        return program, 1
    from pocketgraph.litert.sizes.microbatches import in_microbatches

    return in_microbatches(program, threads) or (program, 1)


def _kept(
    folder: str, name: str, threads: int, opener: Opener | None, specs: Specs, *, in_tiers: bool, whole: bool
) -> Executable | None:
    """The part that the cache has under this name; None where it has none.

    Raises:
        Unsupported: it was tried before, and gave other results than the reference engine, or the engine refuses it.
    """
    try:
        found = open_part(folder, name, threads, opener, specs, in_tiers=in_tiers, whole=whole)
    except RunError as error:
        raise Unsupported(error.what) from error
    if isinstance(found, str):
        raise Unsupported("it gave other results than the reference engine")
    return found


DIRECT_PACKING = "direct_packing"
"""The pass by which weights are packed while they are written (see packing/direct_packing.py)."""

TILES = "winograd_convolutions"
FIRST_TIER = frozenset((TILES, "winograd_training"))
"""Passes that a large part's first runs do without."""


def _depends_on_threads(program: Program) -> bool:
    """Whether it is another program where several threads compute it."""
    if not _may_have_tiles(program):
        return False
    from pocketgraph.litert.rewriting.winograd import depends_on_threads

    return depends_on_threads(program)


def _may_have_tiles(program: Program) -> bool:
    from pocketgraph.litert.rewriting.optimize import may_have_tiles

    if not may_have_tiles(program):
        return False
    from pocketgraph.litert.rewriting.winograd import is_used

    return is_used()


def _is_slow_to_compile(program: Program) -> bool:
    """Whether what ``FIRST_TIER`` leaves out takes long."""
    weights = [value for op in _to_tile(program) if (value := op.inputs[1]) is not None]
    return bool(weights) and sum(value.size * value.dtype.size for value in weights) >= TILED_LATER_FROM


def _to_tile(program: Program) -> list[Operation]:
    """The convolutions that a program of fixed sizes computes in tiles."""
    if not _may_have_tiles(program):
        return []
    from pocketgraph.litert.rewriting.winograd import tiling_of

    by_several = bool(program.by_several)
    return [op for op in program.operations if op.code == "CONV_2D" and tiling_of(op, by_several=by_several)]


def _has_computed_tiles(program: Program) -> bool:
    """Likewise, of convolutions whose weights are computed: a hundred operations or more for each."""
    marked = [operation for operation in program.operations if operation.convolution is not None]
    if not marked:
        return False
    from pocketgraph.litert.rewriting.computed_winograd import computed_tiling_of

    return any(computed_tiling_of(operation) is not None for operation in marked)


def resizable(
    open_program: OpenProgram,
    inputs: Sequence[str],
    types: Sequence[str],
    threads: int,
    kept_as: tuple[str, str] | None,
    opened: Sequence[tuple[str, Sequence[int | None]]],
    tell: Callable[[Sequence[tuple[int, ...]]], Shapes] | None = None,
    ahead: bool = True,
) -> Resizable:
    """A program whose open sizes are open (see open_program.py), loaded.

    Args:
        open_program: it; its shapes are those that it was lowered for.
        inputs: the names of its inputs.
        types: the NumPy types of what they are given.
        threads: how many to compute with.
        kept_as: the folder and name under which the cache keeps it; None where it does not.
        opened: the sizes of each input by its name, None where they are open.
        tell: says the numbers that it is told for inputs of these shapes; raises RunError where there are none.
        ahead: whether another thread makes large constants.

    Raises:
        RunError: LiteRT does not take it.
    """
    from pocketgraph.litert.program_building import temporary_file
    from pocketgraph.litert.program_record import split
    from pocketgraph.litert.sizes.resizable import Resizable, least_sizes
    from pocketgraph.litert.writing import writer

    operands = open_program.size_inputs
    about, model = split(
        open_program.program, [*inputs, *operands], [*types, *("int32" for _ in operands)], keep_shapes=True
    )
    about["opened"] = opened
    about["lacks_tiles"] = bool(_to_tile(open_program.program))
    if open_program.is_limited and kept_as is not None:
        about["least"] = least_sizes(open_program, [tuple(sizes) for _, sizes in opened])
    resized = open_program.resized
    entry = (
        cache.store(*kept_as, writer.pieces(model, open_shapes=resized, passing=True, ahead=ahead), about)
        if kept_as is not None
        else None
    )
    if entry is not None:
        return Resizable.of_entry(entry, threads, kept_as)
    path = temporary_file(model, resized, ahead=ahead) if about["bytes"] >= PACKED_FROM else None
    try:
        pieces = () if path is not None else writer.pieces(model, open_shapes=resized, ahead=ahead)
        content = path if path is not None else b"".join(map(bytes, pieces))
        return Resizable(about, content, threads, None, open_program.fits, tell)
    finally:
        if path is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)
