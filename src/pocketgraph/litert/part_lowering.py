"""Lowers a part: for itself, or as a piece of a trial, which lowers all nodes of a graph to see which LiteRT can run.

A node's operations depend on its operands only, so that those of a trial are those of the program, as long as the
program takes what the trial took for given, and holds everything else that its operations read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from pocketgraph.budgets import timed
from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.litert.cache import Specs
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import Lowering, Unsupported
from pocketgraph.litert.narrow_floats import widened
from pocketgraph.litert.program import Program, Value
from pocketgraph.litert.static_values import Statics

MALFORMED = (ValueError, TypeError, IndexError, KeyError, OverflowError, ZeroDivisionError)
"""What a lowering runs into when a node's attributes or operands contradict each other."""


class Trial:
    """Nodes lowered in the order in which the graph's outputs need them, but for those that are refused.

    Attributes:
        reasons: why LiteRT cannot run a node, by its name, in the order of the nodes given.
    """

    def __init__(
        self,
        graph: Graph,
        nodes: Sequence[Node],
        outputs: Sequence[str],
        inferred: Inferred,
        fed: Sequence[str],
        strict: bool = False,
    ) -> None:
        """Lowers the nodes to see which of them LiteRT can run; ``engine.compile`` goes on from what became of it.

        Args:
            graph: the graph that the nodes belong to.
            nodes: the nodes to judge.
            outputs: the tensors that are wanted of the whole graph.
            inferred: static shapes, types and values (kernels.shapes.infer with the feeds' shapes).
            fed: tensors whose values come from outside.
            strict: refuse what differs from TensorFlow at the edges (see nan_and_overflow.py).
        """
        entering = frozenset(map(canonical, fed))
        self._whole = list(map(canonical, outputs)), entering
        emit = Emit(graph, inferred, Statics(graph, inferred, entering), trial=True, strict=strict)
        self._emit: Emit | None = emit
        self._spans: dict[str, tuple[int, int]] = {}
        reasons: dict[str, str] = {}
        computing = [node for node in nodes if node.op != "Const"]
        wanted = [*outputs, *(f"{node.name}:0" for node in computing)]
        self._order = lowering_order(computing, wanted, entering, emit.statics)
        for node in timed(self._order):
            start = len(emit.operations)
            try:
                emit.lower(node)
            except Unsupported as refusal:
                reasons[node.name] = refusal.reason
            except (PocketgraphError, *MALFORMED) as error:
                reasons[node.name] = f"{node.op} is not what it should be: {error}"
            else:
                self._spans[node.name] = start, len(emit.operations)
        self.reasons = {node.name: reasons[node.name] for node in nodes if node.name in reasons}

    def program(
        self, nodes: Sequence[Node], inputs: Sequence[str], outputs: Sequence[str], specs: Specs
    ) -> Program | None:
        """The program of some of the nodes, before any rewriting; None where they must be lowered for themselves.

        It is given once: its operations are the caller's to change.

        Args:
            nodes, inputs, outputs, specs: as for engine.compile.
        """
        emit, self._emit = self._emit, None
        if emit is None:
            return None
        taken = [canonical(name) for name in inputs]
        found = Program([], [])
        for ref, (dtype, shape) in zip(taken, (specs[name] for name in inputs), strict=True):
            dtype = widened(dtype)
            value = emit.values.get(ref) or Value(ref, dtype, tuple(shape))
            is_plain = value.constant is None and value.quantization is None
            if not is_plain or (value.name, value.dtype, value.shape) != (ref, dtype, tuple(shape)):
                return None
            found.inputs.append(value)
        is_whole = (list(map(canonical, outputs)), frozenset(taken)) == self._whole and not self.reasons
        is_whole = is_whole and {node.name for node in self._order} <= {node.name for node in nodes}
        order = self._order if is_whole else lowering_order(nodes, outputs, frozenset(taken), emit.statics)
        for node in order:
            if node.name not in self._spans:
                return None
            start, stop = self._spans[node.name]
            found.operations += emit.operations[start:stop]
        found.outputs = [emit.outcome(canonical(ref)) for ref in outputs]
        found.rounded = emit.rounded_outcomes([canonical(ref) for ref in outputs])
        return found if _is_closed(found) else None


def lowered(
    graph: Graph,
    nodes: Sequence[Node],
    inputs: Sequence[str],
    outputs: Sequence[str],
    input_specs: Specs,
    inferred: Inferred,
    *,
    fallback: Callable[[Emit, Node], None] | None = None,
    strict: bool = False,
    kept: Collection[str] = (),
    emit_all: Callable[[Emit], None] | None = None,
) -> Program:
    """The program of a part, before any rewriting (arguments as for ``engine.compile``).

    ``fallback`` emits nodes that LiteRT has no builtin operator for (see lowerings/custom_operators.py);
    ``strict`` refuses what differs from TensorFlow at the edges; ``kept`` is as Emit's; ``emit_all`` emits the nodes
    where that is not done one by one.

    Raises:
        Unsupported: LiteRT cannot run some node.
    """
    taken = [canonical(name) for name in inputs]
    specs = {canonical(name): spec for name, spec in input_specs.items()}
    emit = Emit(graph, inferred, Statics(graph, inferred, frozenset(taken)), strict=strict)
    emit.kept = kept
    for name in taken:
        dtype, shape = specs[name]
        emit.values[name] = Value(name, widened(dtype), tuple(shape))
    entering = [emit.values[name] for name in taken]
    if emit_all is not None:
        emit_all(emit)
    else:
        for node in timed(lowering_order(nodes, outputs, emit.values, emit.statics)):
            lower_one(emit, node, fallback)
    leaving = [canonical(name) for name in outputs]
    return Program(entering, [emit.outcome(name) for name in leaving], emit.operations, emit.rounded_outcomes(leaving))


def lower_one(
    emit: Emit, node: Node, fallback: Callable[[Emit, Node], None] | None, lowering: Lowering | None = None
) -> None:
    """Emits one node, by the fallback where LiteRT has no builtin operator for it.

    Raises:
        Unsupported: LiteRT cannot run it.
    """
    try:
        emit.lower(node, lowering)
    except MALFORMED as error:
        raise Unsupported(f"{node.op} is not what it should be: {error}", node.name) from error
    except Unsupported:
        if fallback is None:
            raise
        fallback(emit, node)


def _is_closed(program: Program) -> bool:
    """Whether everything that is read is a constant, or goes in, or was made before; and what goes in is not made."""
    there: set[Value | None] = {None, *program.inputs}
    if len(there) <= len(program.inputs):
        return False
    for operation in program.operations:
        if any(value not in there and (value is None or value.constant is None) for value in operation.inputs):
            return False
        if not there.isdisjoint(operation.outputs):
            return False
        there.update(operation.outputs)
    return all(value in there or value.constant is not None for value in program.outputs)


def lowering_order(
    nodes: Sequence[Node], outputs: Sequence[str], entering: Collection[str], statics: Statics
) -> list[Node]:
    """The nodes that the outputs need and that are not static, each after those it needs.

    Args:
        nodes: those that may be taken.
        outputs: the tensor names wanted, the first one's nodes first.
        entering: tensor names (``n:0``) that come from outside.
        statics: which tensors are known beforehand.
    """
    inside = {node.name: node for node in nodes}
    ordered: list[Node] = []
    seen: set[str] = set()
    stack = [(canonical(ref), node_name(ref)) for ref in reversed(outputs)]
    while stack:
        ref, name = stack.pop()
        if not ref:
            ordered.append(inside[name])
        elif name not in seen and name in inside and ref not in entering and not is_static(ref, statics):
            seen.add(name)
            stack.append(("", name))  # when what it needs is there
            for text in reversed(inside[name].data_inputs):
                source = node_name(text)
                if source not in seen and source in inside:
                    stack.append((canonical(text), source))
    return ordered


def is_static(ref: str, statics: Statics) -> bool:
    """Whether a tensor is known when compiling; one that is damaged is not."""
    try:
        return statics.constant(ref) is not None
    except (PocketgraphError, *MALFORMED):
        return False  # lowering the node runs into it again, and says so
