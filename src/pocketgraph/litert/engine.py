"""The LiteRT engine: says which nodes it can run, and compiles parts of them.

What only compiling needs is imported when compiling, so that opening a compiled part stays fast.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from pocketgraph.budgets import timed
from pocketgraph.errors import RunError
from pocketgraph.graph import Graph, Node, Shape, canonical
from pocketgraph.litert import cache
from pocketgraph.litert.cache import Folder, Specs
from pocketgraph.litert.cached_executable import first_tier, lookup, open_entry, open_tier
from pocketgraph.litert.cost_model import PACKED_FROM, TILED_LATER_FROM
from pocketgraph.litert.executable import Executable, Opener
from pocketgraph.litert.runner import prepare
from pocketgraph.litert.unsupported import Unsupported

if TYPE_CHECKING:
    from pocketgraph.litert.program import Program
    from pocketgraph.litert.resizable import Resizable
    from pocketgraph.litert.static_values import Inference
    from pocketgraph.litert.trial import Trial

__all__ = ["Executable", "Specs", "Unsupported", "compile", "lookup", "lowered", "supported"]


def get_ready(size: int, ops: Iterable[str]) -> None:
    """Imports what compiling nodes of these ops takes, and starts LiteRT as it will run so many bytes of weights."""
    from pocketgraph.kernels.shapes import rules
    from pocketgraph.litert import trial  # noqa: F401
    from pocketgraph.litert.lowering import LOWERINGS
    from pocketgraph.litert.rewriting import optimize  # noqa: F401
    from pocketgraph.litert.writing import writer  # noqa: F401

    for op in ops:
        rules.find(op)
        LOWERINGS.find(op)
    if size >= PACKED_FROM:
        prepare()
    else:
        import ai_edge_litert.interpreter  # noqa: F401


def supported(graph: Graph, nodes: Sequence[Node], inferred: Inference) -> dict[str, str]:
    """Which of the nodes LiteRT can not run, and why.

    Args:
        graph: the graph that the nodes belong to.
        nodes: the nodes to judge.
        inferred: static shapes, types and values (kernels.shapes.infer with the feeds' shapes).

    Returns:
        The reason by node name, in the order of ``nodes``; nodes that are not named can be in a part.
    """
    from pocketgraph.litert.trial import Trial

    return Trial(graph, nodes, (), inferred, ()).reasons


def compile(
    graph: Graph,
    nodes: Sequence[Node],
    inputs: Sequence[str],
    outputs: Sequence[str],
    input_specs: Specs,
    *,
    threads: int = 1,
    cache_dir: Folder | None = None,
    key: str | None = None,
    inferred: Inference | None = None,
    trial: Trial | None = None,
    without: Collection[str] = (),
    strict: bool = False,
    opener: Opener | None = None,
    with_program: bool = False,
    in_tiers: bool = False,
) -> Executable:
    """Lowers a part, or takes it from the cache.

    Args:
        graph: the graph that the part is of.
        nodes: the part's nodes; constants that they need may be left out.
        inputs: the tensor names (``n:0``) that enter, in the order in which ``run`` will be given them.
        outputs: the tensor names to compute.
        input_specs: the element type and shape of each input.
        threads: how many threads to compute with.
        cache_dir: see cache.directory.
        key: a digest of the model (see digest); None keeps the part out of the cache.
        inferred: what is known of the tensors given these inputs; found out when None.
        trial: a trial of the graph, by which the nodes need not be lowered once more.
        without: program passes to leave out (see rewriting/optimize.py); ``key`` must tell them apart.
        strict: refuse what differs from TensorFlow at the edges, and leave out the passes that do; likewise.
        opener: makes the runner of the part's file; LiteRT by default.
        with_program: lower the part even when it is in the cache, so that its operations are known.
        in_tiers: leave out at first what takes long to compile (``FIRST_TIER``), where the part is large; it has a
            ``next_tier`` then.

    Raises:
        Unsupported: LiteRT cannot run some node, or the engine refuses the part as a whole.
    """
    name, folder, found = "", None, None
    if key is not None and not graph.secret:
        folder = cache.directory(cache_dir)
        name = cache.entry_name(key, cache.signature(inputs, input_specs, outputs))
        if folder is not None:
            try:
                opened = open_tier if in_tiers else open_entry
                found = opened(folder, name, threads, opener)
            except RunError as error:
                raise Unsupported(error.what) from error
            if found == "wrong":
                raise Unsupported("it gave other results than the reference engine")
            if found is not None and not with_program:
                return found
    from pocketgraph.litert.rewriting.optimize import optimize, optimize_for_latency
    from pocketgraph.litert.type_edges import SPREADING

    if strict:
        without = SPREADING.union(without)
    program = trial.program(nodes, inputs, outputs, input_specs) if trial is not None else None
    if program is None:
        program = _lowered(graph, nodes, inputs, outputs, input_specs, inferred, strict=strict)
    may_wait = folder is not None and in_tiers
    is_first = may_wait and _has_computed_tiles(program)
    optimize(program, FIRST_TIER.union(without) if is_first else without)
    is_first = is_first or (may_wait and _is_slow_to_compile(program))
    optimize_for_latency(program, FIRST_TIER.union(without) if is_first else without)
    if isinstance(found, Executable):
        found.program = program
        return found
    types = [input_specs[name][0].numpy.name for name in inputs]
    kept = first_tier(name) if is_first else name
    from pocketgraph.litert.program_building import build

    made = build(
        program, inputs, types, folder, kept, threads, in_memory=graph.secret, opener=opener, in_pieces=is_first
    )
    if is_first and made.kept_as is not None and folder is not None:
        made.next_tier = folder, name
    return made


FIRST_TIER = frozenset(("winograd_convolutions", "winograd_training"))
"""Passes that a large part's first runs do without."""


def _is_slow_to_compile(program: Program) -> bool:
    """Whether what ``FIRST_TIER`` leaves out takes long."""
    from pocketgraph.litert.rewriting.winograd import is_used, tiling_of

    if not is_used():
        return False
    large = [op for op in program.operations if op.code == "CONV_2D" and tiling_of(op) is not None]
    weights = [value for op in large if (value := op.inputs[1]) is not None]
    return bool(weights) and sum(value.size * value.dtype.size for value in weights) >= TILED_LATER_FROM


def _has_computed_tiles(program: Program) -> bool:
    """Likewise, of convolutions whose weights are computed: a hundred operations or more for each."""
    from pocketgraph.litert.rewriting.computed_winograd import computed_tiling_of

    return any(computed_tiling_of(operation) is not None for operation in program.operations)


def lowered(
    graph: Graph,
    nodes: Sequence[Node],
    inputs: Sequence[str],
    outputs: Sequence[str],
    input_specs: Specs,
    inferred: Inference | None = None,
    without: Collection[str] = (),
    *,
    custom: bool = False,
    strict: bool = False,
) -> Program:
    """The part in LiteRT's terms, optimized (arguments as for ``compile``).

    With ``custom`` nodes that LiteRT has no builtin operator for become custom operators; ``strict`` refuses what
    differs from TensorFlow at the edges. It has nothing that is for this processor.
    """
    from pocketgraph.litert.rewriting.optimize import TILED, optimize

    program = _lowered(graph, nodes, inputs, outputs, input_specs, inferred, custom=custom, strict=strict)
    optimize(program, TILED.union(without))
    return program


def _lowered(
    graph: Graph,
    nodes: Sequence[Node],
    inputs: Sequence[str],
    outputs: Sequence[str],
    input_specs: Specs,
    inferred: Inference | None = None,
    *,
    custom: bool = False,
    strict: bool = False,
) -> Program:
    """The same before any rewriting."""
    from pocketgraph.litert.emitter import Emit
    from pocketgraph.litert.narrow_floats import widened
    from pocketgraph.litert.program import Program, Value
    from pocketgraph.litert.static_values import Statics
    from pocketgraph.litert.trial import MALFORMED, in_order

    taken = [canonical(name) for name in inputs]
    specs = {canonical(name): spec for name, spec in input_specs.items()}
    if inferred is None:
        from pocketgraph.kernels.shapes import infer

        inferred = infer(graph, feeds={name: (dtype, Shape(shape)) for name, (dtype, shape) in specs.items()})
    emit = Emit(graph, inferred, Statics(graph, inferred, frozenset(taken)), strict=strict)
    for name in taken:
        dtype, shape = specs[name]
        emit.values[name] = Value(name, widened(dtype), tuple(shape))
    entering = [emit.values[name] for name in taken]
    for node in timed(in_order(nodes, outputs, emit.values, emit.statics)):
        try:
            emit.lower(node)
        except MALFORMED as error:
            raise Unsupported(f"{node.op} is not what it should be: {error}", node.name) from error
        except Unsupported:
            if not custom:
                raise
            from pocketgraph.litert.custom_operators import emit_custom

            emit_custom(emit, node)
    leaving = [canonical(name) for name in outputs]
    return Program(entering, [emit.outcome(name) for name in leaving], emit.operations, emit.rounded_outcomes(leaving))


def resizable(
    program: Program,
    inputs: Sequence[str],
    types: Sequence[str],
    threads: int,
    kept_as: tuple[str, str] | None,
    opened: Sequence[tuple[str, Sequence[int | None]]],
) -> Resizable:
    """A program whose open sizes are open (see open_program.py), loaded.

    Args:
        program: it; its shapes are those that it was lowered for.
        inputs: the names of its inputs.
        types: their NumPy types.
        threads: how many to compute with.
        kept_as: the folder and name under which the cache keeps it; None where it does not.
        opened: the sizes of each input by its name, None where they are open.

    Raises:
        RunError: LiteRT does not take it.
    """
    from pocketgraph.litert.program_building import temporary_file
    from pocketgraph.litert.program_record import split
    from pocketgraph.litert.resizable import Resizable, ResizableModel
    from pocketgraph.litert.writing import writer

    about, model = split(program, inputs, types, keep_shapes=True)
    about["opened"] = opened
    entry = cache.store(*kept_as, writer.pieces(model, passing=True), about) if kept_as is not None else None
    if entry is not None:
        return Resizable.of_entry(entry, threads, kept_as)
    path = temporary_file(model) if about["bytes"] >= PACKED_FROM else None
    try:
        content = path if path is not None else b"".join(bytes(piece) for piece in writer.pieces(model))
        threads = 1 if about["one_thread"] else threads
        return Resizable(about, ResizableModel(content, threads), threads, None)
    finally:
        if path is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)
