"""The LiteRT engine: says which nodes it can run, and compiles segments of them.

What only compiling needs is imported when compiling, so that opening a compiled segment stays fast.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pocketgraph.budgets import timed
from pocketgraph.errors import RunError
from pocketgraph.graph import Graph, Node, Shape, canonical
from pocketgraph.litert import cache
from pocketgraph.litert.cache import Folder, Specs
from pocketgraph.litert.cost_model import LIGHT_OPERATION, PACKED_FROM, TILED_LATER_FROM
from pocketgraph.litert.executable import (
    LITERT,
    PIECES,
    Executable,
    Opener,
    encoded,
    first_tier,
    lookup,
    open_entry,
    open_tier,
)
from pocketgraph.litert.runner import PlainRunner, Runner, prepare
from pocketgraph.litert.unsupported import Unsupported

if TYPE_CHECKING:
    from pocketgraph.litert.program import Program, Value
    from pocketgraph.litert.resizable import Resizable
    from pocketgraph.litert.static_values import Inference
    from pocketgraph.litert.trial import Trial

__all__ = ["Executable", "Specs", "Unsupported", "compile", "lookup", "lowered", "supported"]

MOST_TEXT = 1 << 20  # characters of constants that are fetched, beyond which a segment is not worth keeping

WEIGHTED = frozenset(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"))


def get_ready(size: int, ops: Iterable[str]) -> None:
    """Imports what compiling nodes of these ops takes, and starts LiteRT as it will run so many bytes of weights."""
    from pocketgraph.kernels.shapes import rules
    from pocketgraph.litert import trial, writer  # noqa: F401
    from pocketgraph.litert.lowering import LOWERINGS
    from pocketgraph.litert.rewriting import optimize  # noqa: F401

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
        The reason by node name, in the order of ``nodes``; nodes that are not named can be part of a segment.
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
    """Lowers a segment, or takes it from the cache.

    Args:
        graph: the graph that the segment is of.
        nodes: the segment's nodes; constants that they need may be left out.
        inputs: the tensor names (``n:0``) that enter, in the order in which ``run`` will be given them.
        outputs: the tensor names to compute.
        input_specs: the element type and shape of each input.
        threads: how many threads to compute with.
        cache_dir: see cache.directory.
        key: a digest of the model (see digest); None keeps the segment out of the cache.
        inferred: what is known of the tensors given these inputs; found out when None.
        trial: a trial of the graph, by which the nodes need not be lowered once more.
        without: program passes to leave out (see rewriting/optimize.py); ``key`` must tell them apart.
        strict: refuse what differs from TensorFlow at the edges, and leave out the passes that do; likewise.
        opener: makes the runner of the segment's file; LiteRT by default.
        with_program: lower the segment even when it is in the cache, so that its operations are known.
        in_tiers: leave out at first what takes long to compile (``FIRST_TIER``), where the segment is large; it has a
            ``next_tier`` then.

    Raises:
        Unsupported: LiteRT cannot run some node, or the engine refuses the segment as a whole.
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
        program = lowered(graph, nodes, inputs, outputs, input_specs, inferred, without, strict=strict)
    else:
        optimize(program, without)
    is_first = folder is not None and in_tiers and _is_slow_to_compile(program)
    optimize_for_latency(program, FIRST_TIER.union(without) if is_first else without)
    if isinstance(found, Executable):
        found.program = program
        return found
    types = [input_specs[name][0].numpy.name for name in inputs]
    kept = first_tier(name) if is_first else name
    made = _built(
        program, inputs, types, folder, kept, threads, in_memory=graph.secret, opener=opener, in_pieces=is_first
    )
    if is_first and made.kept_as is not None and folder is not None:
        made.next_tier = folder, name
    return made


FIRST_TIER = frozenset(("winograd_convolutions",))
"""Passes that a large segment's first runs do without."""


def _is_slow_to_compile(program: Program) -> bool:
    """Whether what ``FIRST_TIER`` leaves out takes long."""
    from pocketgraph.litert.rewriting.winograd import is_used, tiling_of

    if not is_used():
        return False
    large = [op for op in program.operations if op.code == "CONV_2D" and tiling_of(op) is not None]
    weights = [value for op in large if (value := op.inputs[1]) is not None]
    return bool(weights) and sum(value.size * value.dtype.size for value in weights) >= TILED_LATER_FROM


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
    """The segment in LiteRT's terms, optimized (arguments as for ``compile``).

    With ``custom`` nodes that LiteRT has no builtin operator for become custom operators; ``strict`` refuses what
    differs from TensorFlow at the edges.
    """
    from pocketgraph.litert.emitter import Emit
    from pocketgraph.litert.narrow_floats import widened
    from pocketgraph.litert.program import Program, Value
    from pocketgraph.litert.rewriting.optimize import optimize
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
    program = Program(
        entering, [emit.outcome(name) for name in leaving], emit.operations, emit.rounded_outcomes(leaving)
    )
    optimize(program, without)
    return program


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
    from pocketgraph.litert import writer
    from pocketgraph.litert.resizable import Resizable, ResizableModel

    about, model = _split(program, inputs, types, keep_shapes=True)
    about["opened"] = opened
    entry = cache.store(*kept_as, writer.pieces(model, passing=True), about) if kept_as is not None else None
    if entry is not None:
        return Resizable.of_entry(entry, threads, kept_as)
    path = _temporary(model) if about["bytes"] >= PACKED_FROM else None
    try:
        content = path if path is not None else b"".join(bytes(piece) for piece in writer.pieces(model))
        threads = 1 if about["one_thread"] else threads
        return Resizable(about, ResizableModel(content, threads), threads, None)
    finally:
        if path is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _built(
    program: Program,
    inputs: Sequence[str],
    types: Sequence[str],
    folder: str | None,
    name: str,
    threads: int,
    in_memory: bool = False,
    opener: Opener | None = None,
    in_pieces: bool = False,
) -> Executable:
    """Writes the program and loads it; its inputs are of these NumPy types.

    ``in_memory`` is without touching the disk, ``in_pieces`` with two threads where the program is large.
    """
    from pocketgraph.litert import writer

    about, model = _split(program, inputs, types)
    if sum(len(text) for text, _, _ in about["constants"]) > MOST_TEXT:
        folder = None
    if not model.operations:
        if folder is not None:
            cache.store(folder, name, [], about)
        return Executable(about, None, program, threads)
    if folder is not None and in_pieces and about["bytes"] >= PACKED_FROM and opener is None:
        made = _built_in_pieces(program, model, about, folder, name, threads)
        if made is not None:
            return made
    if folder is not None:
        entry = cache.store(folder, name, writer.pieces(model, passing=True), about)
        if entry is not None:
            by = opener or LITERT
            try:
                return Executable(about, by.open(entry, threads), program, threads, (folder, name), by.engine)
            except RunError as error:
                if by is LITERT:
                    cache.remove(folder, name)
                raise Unsupported(error.what) from error
    try:
        runner = _uncached(model, about, threads, in_memory, opener)
        return Executable(about, runner, program, threads, engine=opener.engine if opener is not None else "")
    except RunError as error:
        raise Unsupported(error.what) from error


def _built_in_pieces(
    program: Program, model: Program, about: dict[str, Any], folder: str, name: str, threads: int
) -> Executable | None:
    """As ``_built``, each piece as a segment of its own; None where that does not go."""
    from pocketgraph.litert import pieces

    found = pieces.cut(model)
    if found is None:
        return None

    def built(piece: Program, kept: str) -> Executable:
        inputs, types = [value.name for value in piece.inputs], [value.dtype.numpy.name for value in piece.inputs]
        return _built(piece, inputs, types, folder, kept, threads)

    names = pieces.names(name)
    try:
        first, second = pieces.both(lambda: built(found.first, names[0]), lambda: built(found.second, names[1]))
    except Unsupported:
        return None  # of the whole somebody will say so
    about = {**about, PIECES: found.taken}
    if first.kept_as is None or second.kept_as is None or cache.store(folder, name, [], about) is None:
        first.close()
        second.close()
        return None
    runner = pieces.PiecesRunner(first, second, found.taken, [shape for shape, _ in about["computed"]])
    return Executable(about, runner, program, threads, (folder, name))


def _split(
    program: Program, inputs: Sequence[str], types: Sequence[str], *, keep_shapes: bool = False
) -> tuple[dict[str, Any], Program]:
    """What must be known beside the model file, and the program of what is really computed.

    LiteRT does not pass inputs or constants straight through, so those are seen to here; nor, unless their shapes are
    to be kept, last reshapes.
    """
    from pocketgraph.litert.program import Program
    from pocketgraph.litert.rewriting.deduplication import bytes_repeated

    computed = [v for v in dict.fromkeys(program.outputs) if v.constant is None and v not in program.inputs]
    constants = [v for v in dict.fromkeys(program.outputs) if v.constant is not None]
    read = program.uses()
    fed = [index for index, value in enumerate(program.inputs) if read[value] > program.outputs.count(value)]
    sources: list[tuple[str, int]] = []
    for value in program.outputs:
        if value.constant is not None:
            sources.append(("constant", constants.index(value)))
        elif value in program.inputs:
            sources.append(("input", program.inputs.index(value)))
        else:
            sources.append(("computed", computed.index(value)))
    given = computed if keep_shapes else _unshaped(program, computed)
    model = Program([program.inputs[index] for index in fed], given, program.operations)
    model.drop_unused()
    size = sum(value.constant.nbytes for value in _constants(model))
    work = _work(model)  # of light operations, handing work to a second thread takes longer than doing it
    about = {
        "inputs": [(name, type, value.shape) for name, type, value in zip(inputs, types, program.inputs, strict=True)],
        "computed": [(value.shape, value.dtype.numpy.name) for value in computed],
        "sources": sources,
        "fed": fed,
        "constants": [
            (encoded(value.constant.numpy()), value.dtype.numpy.name, value.shape)
            for value in constants
            if value.constant is not None
        ],
        "operations": len(model.operations),
        "bytes": size,
        "repeated": bytes_repeated(model),
        "one_thread": work < LIGHT_OPERATION * len(model.operations),
        "work": work,
        "eight_bit": any(value.quantization is not None for each in model.operations for value in each.outputs),
        "rounded": {str(place): dtype.numpy.name for place, dtype in program.rounded.items()},
    }
    return about, model


def _unshaped(program: Program, computed: Sequence[Value]) -> list[Value]:
    """What LiteRT gives in the place of these values: the same elements before a last reshape, which would copy them.

    Whoever runs the model gives them the shapes that are wanted.
    """
    producers, read = program.producers(), program.uses()
    given: list[Value] = []
    for value in computed:
        last = producers[value]
        source = last.inputs[0] if last.code == "RESHAPE" and read[value] == 1 else None
        is_free = source is not None and source in producers and source not in (*computed, *given)
        given.append(source if source is not None and is_free else value)
    return given


def _work(model: Program) -> int:
    """About how many multiplications, or other steps for an element, a run takes."""
    work = 0
    for operation in model.operations:
        made = sum(value.size for value in operation.outputs)
        weights = operation.inputs[1] if operation.code in WEIGHTED and len(operation.inputs) > 1 else None
        if weights is not None and weights.shape:
            across = weights.shape[-1] if operation.code == "DEPTHWISE_CONV_2D" else weights.shape[0]
            made *= max(1, weights.size // max(1, across))
        work += made
    return work


def _constants(program: Program) -> list[Any]:
    found = (value for operation in program.operations for value in operation.inputs if value is not None)
    return [value for value in dict.fromkeys(found) if value.constant is not None]


def _uncached(
    model: Program, about: dict[str, Any], threads: int, in_memory: bool = False, opener: Opener | None = None
) -> Runner:
    """Runs a program without leaving files behind, ``in_memory`` without even making one.

    Raises:
        RunError: the engine does not take it, or it is another one than LiteRT and wants a file.
    """
    from pocketgraph.litert import writer

    shapes = [shape for shape, _ in about["computed"]]
    path = None if in_memory else _temporary(model)
    if path is None:
        if opener is not None:
            raise RunError(
                "what other engines read is a file, and there is no place for one, or it would be a secret's"
            )
        return PlainRunner(b"".join(bytes(piece) for piece in writer.pieces(model)), threads, shapes)
    try:
        if opener is not None:
            return opener.open(cache.CacheEntry(path, "", False, about), threads)
        return PlainRunner(path, threads, shapes)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _temporary(model: Program) -> str | None:
    """The program in a file in the temporary folder, whose weights need no memory; None where that has no room."""
    import tempfile

    from pocketgraph.litert import writer

    path = None
    try:
        handle, path = tempfile.mkstemp(suffix=".tflite")
        with os.fdopen(handle, "wb") as file:
            for piece in writer.pieces(model, passing=True):
                file.write(piece)
    except OSError:
        if path is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)
        return None
    return path
