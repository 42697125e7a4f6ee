"""The layers of a graph as one LiteRT program, which is told the sizes of each call; the rest runs in NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pocketgraph.errors import RunError
from pocketgraph.graph import Graph, Node, Shape, canonical, node_name, parse_ref
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import HEAVY
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.litert import engine
from pocketgraph.litert.constants_ahead import AHEAD
from pocketgraph.litert.sizes.open_program import Origins, SizeOperand
from pocketgraph.litert.sizes.open_program import opened as with_open_sizes
from pocketgraph.litert.sizes.operator_sizes import Sizes
from pocketgraph.litert.sizes.wide_pixels import widened_for_all
from pocketgraph.runtime.certificates.first_comparison import FirstComparison
from pocketgraph.runtime.certificates.part_reference import PartReference
from pocketgraph.runtime.engines.functions import FunctionLibrary
from pocketgraph.runtime.engines.needed import Item, needed
from pocketgraph.runtime.engines.step_program import StepProgram
from pocketgraph.runtime.missing_kernels import check_kernels
from pocketgraph.runtime.planning.call_key import CallKey
from pocketgraph.runtime.planning.compiled_part import CompiledPart
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan, FixedPlan, Request
from pocketgraph.runtime.planning.part_nodes import PartNodes
from pocketgraph.runtime.planning.sizes.lowering_for_all import lowered_for_all
from pocketgraph.runtime.planning.sizes.open_layers import OpenCall, OpenLayers, open_shapes
from pocketgraph.runtime.planning.sizes.operand_numbers import OperandNumbers
from pocketgraph.runtime.planning.sizes.served_calls import ServedCalls
from pocketgraph.runtime.planning.sizes.sized_executables import SizedExecutables

if TYPE_CHECKING:
    from pocketgraph.litert.sizes.resizable import Resizable
    from pocketgraph.runtime.planning.reference_answers import ReferenceAnswer


class ProgramLayers:
    """The layers that become a program.

    Attributes:
        nodes: they, and the constants between them, producers first.
        ops: the op of each node that is in the program, by name.
        inputs: the tensors that it takes.
        outputs: those that others take of it.
        inferred: what is known of the graph while sizes are open.
        is_possible: whether what goes in can be computed without it.
    """

    def __init__(self, opened: CallKey, layers: OpenLayers, nodes: Sequence[Node], inferred: Inferred) -> None:
        self._layers = layers
        self.inferred = inferred
        self._fed = layers.fed
        by_name = {node.name: node for node in nodes}
        outside = self._with_producers(by_name, layers.before)
        self.is_possible = not any(by_name[name].op in HEAVY for name in outside)
        last = [node for node in nodes if node.name in layers.after]
        taken = [*map(str, opened.fetches), *(ref for node in last for ref in node.data_inputs)]
        wanted = self._behind_sizes(by_name, list(map(canonical, taken)))
        inside: dict[str, Node] = {}
        inputs: dict[str, None] = {}
        waiting = list(wanted)
        while waiting:
            ref = waiting.pop()
            name = parse_ref(ref)[0]
            if name in inside or name in layers.after or ref in layers.from_sizes or self._is_known(ref):
                continue
            if ref in self._fed or name in outside:
                continue
            inside[name] = by_name[name]
            waiting += [ref for ref in map(canonical, by_name[name].data_inputs) if not self._is_told(name, ref)]
        self.nodes = [node for node in nodes if node.name in inside and node.op != "Const"]
        self.ops = {node.name: node.op for node in self.nodes if self._is_open(node)}
        for node in self.nodes:
            for ref in map(canonical, node.data_inputs):
                name = parse_ref(ref)[0]
                enters = ref in self._fed or (name in outside and not self._is_known(ref))
                is_told = self._is_told(node.name, ref)
                if enters and ref not in layers.from_sizes and node.name in self.ops and not is_told:
                    inputs[ref] = None
        self.inputs = tuple(inputs)
        self.outputs = tuple(dict.fromkeys(ref for ref in wanted if parse_ref(ref)[0] in self.ops))

    def origins(self, fixed: Inferred) -> Origins | None:
        """What the program is lowered from; None where numbers that it takes are not known for its own sizes."""
        operands: dict[str, dict[int, SizeOperand]] = {}
        for node in self.nodes:
            for place, ref in self._layers.size_operands.get(node.name, {}).items():
                numbers = fixed.value(ref)
                if numbers is None:
                    return None
                known = self.inferred.elements(ref)
                all_open = (None,) * numbers.size
                operands.setdefault(node.name, {})[place] = SizeOperand(
                    ref, tuple(map(int, numbers.reshape(-1))), all_open if known is None else tuple(known)
                )
        names = {node.name: node for node in self.nodes}
        return Origins(names, operands, self._layers.cuts & names.keys(), self.inferred.value)

    def _behind_sizes(self, by_name: Mapping[str, Node], refs: Sequence[str]) -> list[str]:
        """These tensors; for numbers that follow from sizes, which are computed without the program, what has these."""
        found: dict[str, None] = {}
        waiting, seen = list(reversed(refs)), set[str]()
        while waiting:
            ref = waiting.pop()
            if ref in self._fed or ref not in self._layers.from_sizes or self._is_known(ref):
                found[ref] = None
            elif ref not in seen:
                seen.add(ref)
                waiting += map(canonical, by_name[parse_ref(ref)[0]].data_inputs)
        return list(found)

    def _with_producers(self, by_name: Mapping[str, Node], names: Mapping[str, Node]) -> set[str]:
        """These nodes, and the layers that they depend on, be it for their shapes."""

        def producers(name: str) -> list[str]:
            return [parse_ref(ref)[0] for ref in by_name[name].data_inputs if canonical(ref) not in self._fed]

        from_sizes = self._layers.from_sizes
        is_open = lambda name: self._is_open(by_name[name]) or f"{name}:0" in from_sizes  # noqa: E731
        return set(closure(names, producers, is_open))

    def _is_told(self, name: str, ref: str) -> bool:
        """Whether a layer is told these numbers, or does without them."""
        return ref in self._layers.size_operands.get(name, {}).values() or self._layers.unread.get(name) == ref

    def _is_known(self, ref: str) -> bool:
        return self.inferred.value(ref) is not None

    def _is_open(self, node: Node) -> bool:
        """Whether a node gives something else for other sizes or values."""
        return node.name in self._layers.computing


KEPT_AS_THEY_ARE = ("turn_transposed_convolutions",)
"""Passes that are left out where a part makes no program for all sizes with them."""


def opened_part(call: OpenCall, layers: OpenLayers, inferred: Inferred) -> ServedCalls | None:
    """What serves calls of any sizes; None where the layers make no program that does.

    Args:
        call: the calls.
        layers: the graph's nodes, sorted.
        inferred: what is known of the graph while sizes are open.
    """
    opened, compiled, request, nodes = call.key, call.compiled, call.request, call.nodes
    graph = request.graph
    part = ProgramLayers(opened, layers, nodes, inferred)
    if not part.is_possible or not any(op in HEAVY for op in part.ops.values()):
        return None
    if any(node_name(name) not in compiled.graph.nodes for name in (*part.inputs, *part.outputs)):
        return None
    part.inputs += _others_fed(part, compiled.graph, request)
    given = {str(e): (dtype, Shape(sizes)) for e, (dtype, sizes) in compiled.key.feeds if dtype is not None}
    wanted = [*map(str, opened.fetches)]
    fixed = compiled.inferred  # of the graph after its passes, some of which leave nodes out
    if any(not fixed.shape(name).is_known for name in part.inputs):
        fixed = infer(graph, given, request.values, wanted, before=fixed)
    taken = {name: (fixed.dtype(name), fixed.shape(name)) for name in part.inputs}
    specs = {name: (dtype, shape.known) for name, (dtype, shape) in taken.items() if dtype and shape.is_known}
    sizes = [inferred.shape(name).dims for name in part.inputs]
    if len(specs) < len(taken) or None in sizes or any(dtype.numpy.kind not in "biuf" for dtype, _ in specs.values()):
        return None
    feeds = {**given, **{name: (dtype, Shape(shape)) for name, (dtype, shape) in specs.items()}}
    of_sizes = infer(graph, feeds, request.values, before=fixed, nodes=nodes)
    opened_sizes = [own for own in sizes if own is not None]
    origins, open_now = part.origins(fixed), open_shapes(part.nodes, inferred, fixed)
    if origins is None:
        return None
    found = None
    for form in ((), KEPT_AS_THEY_ARE):
        program = lowered_for_all(request, part.nodes, specs, part.outputs, of_sizes, origins.following, without=form)
        found = with_open_sizes(program, opened_sizes, open_now, origins) if program is not None else None
        if found is not None or not layers.size_operands:
            break
    if found is None:
        return None
    found = widened_for_all(found, request.without, strict=request.strict)
    of_types = {name: dtype for name, (dtype, _) in specs.items()}
    sizes_of = list(zip(part.inputs, opened_sizes, strict=True))
    tell = OperandNumbers(request, of_types, sizes_of, found.size_inputs, of_sizes) if found.size_inputs else None
    types = [dtype.numpy.name for dtype, _ in specs.values()]
    try:
        resizable = engine.resizable(
            found, list(part.inputs), types, request.threads, None, sizes_of, tell, AHEAD not in request.without
        )
        if tell is not None:
            tell([shape for _, shape in specs.values()])
    except RunError:
        return None
    return _served(compiled, request, part, resizable, opened_sizes)


def _others_fed(part: ProgramLayers, graph: Graph, request: Request) -> tuple[str, ...]:
    """What is fed besides the part's inputs, and is asked for its sizes where the part is computed from these."""
    inputs = frozenset(map(Endpoint.of, part.inputs))
    items = needed(graph, inputs, tuple(map(Endpoint.of, part.outputs)), ())
    return tuple([str(each) for each in request.feeds if each not in inputs and each.node in items])


def _served(
    compiled: FixedPlan, request: Request, part: ProgramLayers, resizable: Resizable, sizes: Sequence[Sizes]
) -> ServedCalls:
    """The calls that a program serves with the rest of the graph around it.

    Args:
        compiled: a plan for one of them, with the graph as it is.
        request: what is to be run, with a graph that computes the same.
        part: the program's layers.
        resizable: the program.
        sizes: those of its inputs, None where they are open.
    """
    graph, items = request.graph, compiled.items
    if graph is not compiled.graph:
        items = needed(graph, frozenset(request.feeds), request.fetches, ())
    inputs, outputs = tuple(map(Endpoint.of, part.inputs)), tuple(map(Endpoint.of, part.outputs))
    reference = PartReference(compiled.graph, inputs, outputs, request.without, compiled.items)
    comparison = FirstComparison(reference, part.inputs, request.cache_dir)
    executable = SizedExecutables(resizable, sizes, comparison, reference.run)
    steps = _program(request, items, part, inputs, outputs, executable)
    before = PartReference(graph, tuple(request.feeds), inputs, request.without, items)
    noted = partial(_noted, before, request.fetches, outputs)
    return ServedCalls(ExecutionPlan(steps, executables=[executable]), comparison, noted=noted)


def _noted(
    before: PartReference, fetches: Sequence[Endpoint], outputs: Sequence[Endpoint], answer: ReferenceAnswer
) -> tuple[list[Array], list[Array]] | None:
    """What went into a part and came out of it in an answer; None where not all of that is fetched.

    Args:
        before: computes what goes in.
        fetches: of the call.
        outputs: of the part.

    Raises:
        PocketgraphError: the reference engine refuses what was fed.
    """
    results = dict(zip(fetches, answer.results, strict=True))
    if not results.keys() >= set(outputs):
        return None
    return before.run(answer.feeds), [results[each] for each in outputs]


def _program(
    request: Request,
    items: Mapping[str, Item],
    part: ProgramLayers,
    inputs: tuple[Endpoint, ...],
    outputs: tuple[Endpoint, ...],
    executable: SizedExecutables,
) -> StepProgram:
    """The steps of all calls, one of which is the part."""
    runs: Any = executable  # an Executable, as far as a step asks
    compiled = CompiledPart(part.ops, inputs, outputs, runs)
    graph = request.graph
    part_nodes = PartNodes(request.feeds, [compiled])
    rest = graph.replace(part_nodes.nodes(request.feeds, items), inputs=(), outputs=(), signatures={})
    fetches = [part_nodes.moved(endpoint) for endpoint in request.fetches]
    running = needed(rest, part_nodes.fed, fetches, ())
    library = FunctionLibrary(rest, without=request.without)
    check_kernels((item.node for name, item in running.items() if name not in part_nodes.names), library)
    outputs = tuple(Endpoint(part_nodes.names[0], port) for port in range(len(part.outputs)))
    steps = [CompiledPart(part.ops, compiled.inputs, outputs, compiled.executable).as_step(0, part_nodes.names)]
    return StepProgram(rest, tuple(request.feeds), fetches, items=running, parts=steps, library=library)
