"""One LiteRT program for calls that differ in sizes alone: of all of a graph, or of its layers, with the rest in NumPy.

words [1, ?] ── Shape ── Range ── Less ── Cast ─┐            NumPy, for each length
      └──────── GatherV2 ── MatMul ── Softmax ──┴ Mul ── …   one program, which is told the sizes of each call

Where nothing but shapes follows from the open sizes (products, convolutions, attention, normalization over texts and
pictures of any size), the program that was compiled for one set of sizes is opened (``litert/open_program.py``), and
LiteRT is told the sizes of each call. Where numbers follow from them as well (masks, positions, frames of a recording),
no program of the whole graph holds for all sizes, but one of the layers that take these numbers does. Either is
compared with the reference engine for the first sizes that it was not compiled for, and serves others only when it was
right.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.errors import PocketgraphError, RunError
from pocketgraph.graph import DType, Node, Shape, canonical, parse_ref
from pocketgraph.graph.collector import collector_paused
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.kernels.shapes.infer import in_order, infer_while
from pocketgraph.litert import engine
from pocketgraph.litert.cost_model import CHECKED_NODE, CHECKED_PRODUCT
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.open_program import opened as with_open_sizes
from pocketgraph.litert.part_lowering import lowered
from pocketgraph.litert.rewriting.optimize import FOR_THIS_PROCESSOR, optimize, optimize_for_latency
from pocketgraph.litert.type_edges import SPREADING
from pocketgraph.runtime.certificates.first_comparison import FirstComparison
from pocketgraph.runtime.certificates.part_reference import PartReference
from pocketgraph.runtime.engines.functions import FunctionLibrary
from pocketgraph.runtime.engines.needed import needed
from pocketgraph.runtime.planning.call_key import SMALLEST_OPEN, CallKey
from pocketgraph.runtime.planning.execution_plan import Compiled, ExecutionPlan, Request
from pocketgraph.runtime.planning.missing_kernels import check_kernels
from pocketgraph.runtime.planning.open_layers import OpenLayers, open_shapes
from pocketgraph.runtime.planning.served_calls import ServedCalls, served_by

if TYPE_CHECKING:
    from pocketgraph.litert.executable import Executable
    from pocketgraph.litert.program import Program
    from pocketgraph.litert.resizable import Resizable, Shapes
    from pocketgraph.runtime.engines.step_program import StepProgram

Array = np.ndarray[Any, Any]
HEAVY = ops_with("heavy")
UNFIT = ops_with("control_flow", "random", "effect", "variable", "reads_handle", "call", "branch", "loop")
MOST_KEPT = 64  # sizes of one part; more are forgotten


@collector_paused()
def opened_program(
    opened: CallKey, compiled: Compiled, request: Request, kept_as: tuple[str, str] | None
) -> ServedCalls | None:
    """What serves calls of any sizes; None where that is not certain, or comparing it takes longer than planning.

    Args:
        opened: the calls' key, with None for the sizes that change.
        compiled: a plan for one of them.
        request: what is to be run, with the whole graph.
        kept_as: the folder and name under which the cache keeps the program; None where it does not.
    """
    graph = request.graph
    feeds = {str(e): (dtype, Shape(sizes)) for e, (dtype, sizes) in opened.feeds if dtype is not None}
    wanted = [*map(str, opened.fetches)]
    nodes = in_order(graph, wanted)
    if any(node.control_inputs or node.op in UNFIT for node in nodes):
        return None
    layers = OpenLayers(frozenset(map(canonical, feeds)))
    inferred = infer_while(layers.look_at, graph, feeds, request.values, nodes, compiled.inferred)
    if inferred is None:
        return None
    if layers.before or layers.after or not layers.from_sizes.isdisjoint(map(canonical, wanted)):
        return _opened_part(opened, compiled, request, layers, nodes, inferred)
    executable = compiled.executable
    program = executable.program if executable is not None else None
    if executable is None or program is None or not program.operations:
        return None
    if executable.check_time > compiled.seconds * 1e6:
        return None
    inputs = tuple(sorted(request.feeds, key=str))
    sizes = dict(opened.feeds)
    opened_sizes = [sizes[endpoint][1] for endpoint in inputs]
    found = with_open_sizes(program, opened_sizes, open_shapes(nodes, inferred, compiled.inferred))
    if found is None:
        return None
    names = [str(endpoint) for endpoint in inputs]
    types = [dtype for _, dtype, _ in executable.about["inputs"]]
    try:
        sizes_of = list(zip(names, opened_sizes, strict=True))
        resizable = engine.resizable(found, names, types, request.threads, kept_as, sizes_of)
    except RunError:
        return None
    reference = PartReference(graph, inputs, request.fetches)
    return served_by(resizable, inputs, FirstComparison(reference, names, request.cache_dir))


def _opened_part(
    opened: CallKey, compiled: Compiled, request: Request, layers: OpenLayers, nodes: Sequence[Node], inferred: Inferred
) -> ServedCalls | None:
    """What serves calls of any sizes; None where the layers make no program that does.

    Args:
        opened: the calls' key, with None for the sizes that change.
        compiled: a plan for one of them.
        request: what is to be run, with the whole graph.
        layers: the graph's nodes, sorted.
        nodes: all of them that are needed, producers first.
        inferred: what is known of the graph while sizes are open.
    """
    graph = request.graph
    part = _Layers(opened, layers, nodes, inferred)
    if not part.is_possible or not any(op in HEAVY for op in part.ops.values()):
        return None
    given = {str(e): (dtype, Shape(sizes)) for e, (dtype, sizes) in compiled.key.feeds if dtype is not None}
    wanted = [*map(str, opened.fetches)]
    fixed = compiled.inferred  # of the graph after its passes, some of which leave nodes out
    if any(not fixed.shape(name).is_known for name in part.inputs):
        fixed = infer(graph, given, request.values, wanted, before=fixed)
    taken = {name: (fixed.dtype(name), fixed.shape(name)) for name in part.inputs}
    specs = {name: (dtype, shape.known) for name, (dtype, shape) in taken.items() if dtype and shape.is_known}
    sizes = [inferred.shape(name).dims for name in part.inputs]
    if len(specs) < len(taken) or None in sizes:
        return None
    feeds = {**given, **{name: (dtype, Shape(shape)) for name, (dtype, shape) in specs.items()}}
    told = infer(graph, feeds, request.values, wanted, before=fixed)
    program = _lowered(request, part, specs, told)
    if program is None:
        return None
    opened_sizes = [own for own in sizes if own is not None]
    found = with_open_sizes(program, opened_sizes, open_shapes(part.nodes, inferred, fixed))
    if found is None:
        return None
    types = [dtype.numpy.name for dtype, _ in specs.values()]
    try:
        sizes_of = list(zip(part.inputs, opened_sizes, strict=True))
        resizable = engine.resizable(found, list(part.inputs), types, request.threads, None, sizes_of)
    except RunError:
        return None
    about = resizable.about
    if about["operations"] * CHECKED_NODE + about["work"] * CHECKED_PRODUCT > compiled.seconds * 1e6:
        return None
    inputs, outputs = tuple(map(Endpoint.of, part.inputs)), tuple(map(Endpoint.of, part.outputs))
    reference = PartReference(graph, inputs, outputs)
    comparison = FirstComparison(reference, part.inputs, request.cache_dir)
    executable = SizedExecutables(resizable, opened_sizes, comparison, reference.run)
    steps = _program(request, part, inputs, outputs, executable)
    return ServedCalls(lambda key: ExecutionPlan(steps, executables=[executable]), comparison)


def _lowered(
    request: Request, part: _Layers, specs: Mapping[str, tuple[DType, tuple[int, ...]]], inferred: Inferred
) -> Program | None:
    without = SPREADING | request.without if request.strict else request.without
    try:
        program = lowered(request.graph, part.nodes, list(specs), part.outputs, specs, inferred, strict=request.strict)
    except (Unsupported, PocketgraphError):
        return None
    optimize(program, FOR_THIS_PROCESSOR.union(without))
    optimize_for_latency(program, without)
    return program if program.operations else None


def _program(
    request: Request,
    part: _Layers,
    inputs: tuple[Endpoint, ...],
    outputs: tuple[Endpoint, ...],
    executable: SizedExecutables,
) -> StepProgram:
    """The steps of all calls, one of which is the part."""
    from pocketgraph.runtime.engines.step_program import StepProgram
    from pocketgraph.runtime.planning.compiled_part import CompiledPart
    from pocketgraph.runtime.planning.stored_plan_content import StandIns

    runs: Any = executable  # an Executable, as far as a step asks
    compiled = CompiledPart(part.ops, inputs, outputs, runs)
    graph = request.graph
    items = needed(graph, frozenset(request.feeds), request.fetches, ())
    stand_ins = StandIns(request.feeds, [compiled])
    rest = graph.replace(stand_ins.nodes(request.feeds, items), inputs=(), outputs=(), signatures={})
    fetches = [stand_ins.moved(endpoint) for endpoint in request.fetches]
    running = needed(rest, stand_ins.fed, fetches, ())
    library = FunctionLibrary(rest, without=request.without)
    check_kernels((item.node for name, item in running.items() if name not in stand_ins.names), library)
    outputs = tuple(Endpoint(stand_ins.names[0], port) for port in range(len(part.outputs)))
    steps = [CompiledPart(part.ops, compiled.inputs, outputs, compiled.executable).as_step(0, stand_ins.names)]
    return StepProgram(rest, tuple(request.feeds), fetches, items=running, parts=steps, library=library)


class _Layers:
    """The layers that become a program.

    Attributes:
        nodes: they, and the constants between them, producers first.
        ops: the op of each node that is in the program, by name.
        inputs: the tensors that it takes.
        outputs: those that others take of it.
        is_possible: whether what goes in can be computed without it.
    """

    def __init__(self, opened: CallKey, layers: OpenLayers, nodes: Sequence[Node], inferred: Inferred) -> None:
        self._layers = layers
        self._inferred = inferred
        self._fed = layers.fed
        by_name = {node.name: node for node in nodes}
        outside = self._with_producers(by_name, layers.before)
        self.is_possible = not any(by_name[name].op in HEAVY for name in outside)
        last = [node for node in nodes if node.name in layers.after]
        wanted = [*map(str, opened.fetches), *(ref for node in last for ref in node.data_inputs)]
        inside: dict[str, Node] = {}
        inputs: dict[str, None] = {}
        waiting = list(map(canonical, wanted))
        while waiting:
            ref = waiting.pop()
            name = parse_ref(ref)[0]
            if name in inside or name in layers.after or ref in layers.from_sizes or self._is_known(ref):
                continue
            if ref in self._fed or name in outside:
                continue
            inside[name] = by_name[name]
            waiting += map(canonical, by_name[name].data_inputs)
        self.nodes = [node for node in nodes if node.name in inside and node.op != "Const"]
        self.ops = {node.name: node.op for node in self.nodes if self._is_open(node)}
        for node in self.nodes:
            for ref in map(canonical, node.data_inputs):
                name = parse_ref(ref)[0]
                enters = ref in self._fed or (name in outside and not self._is_known(ref))
                if enters and ref not in layers.from_sizes and node.name in self.ops:
                    inputs[ref] = None
        self.inputs = tuple(inputs)
        self.outputs = tuple(dict.fromkeys(ref for ref in map(canonical, wanted) if parse_ref(ref)[0] in self.ops))

    def _with_producers(self, by_name: Mapping[str, Node], names: Mapping[str, Node]) -> set[str]:
        """These nodes, and the layers that they depend on, be it for their shapes."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            node = by_name[name]
            if name in found or not (self._is_open(node) or f"{name}:0" in self._layers.from_sizes):
                continue
            found.add(name)
            waiting += [parse_ref(ref)[0] for ref in node.data_inputs if canonical(ref) not in self._fed]
        return found

    def _is_known(self, ref: str) -> bool:
        return self._inferred.value(ref) is not None

    def _is_open(self, node: Node) -> bool:
        """Whether a node gives something else for other sizes or values."""
        return node.name in self._layers.computing


class SizedExecutables:
    """A part that is one program for all sizes, as an executable that takes whatever sizes come; safe for several
    threads.

    Args:
        resizable: the program.
        sizes: those of its inputs, None where they are open.
        comparison: compares the first run.
        instead: computes what the program does not take.
    """

    engine = ""

    def __init__(
        self,
        resizable: Resizable,
        sizes: Sequence[tuple[int | None, ...]],
        comparison: FirstComparison,
        instead: Callable[[Sequence[Array]], list[Array]],
    ) -> None:
        self.comparison = comparison
        self._resizable = resizable
        self._open = [[axis for axis, size in enumerate(own) if size is None] for own in sizes]
        self._instead = instead
        self._made: dict[Shapes, Executable] = {}
        self._lock = threading.Lock()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs.

        Raises:
            RunError: LiteRT failed.
        """
        shapes = tuple([array.shape for array in inputs])
        found = self._made.get(shapes)
        if found is None:
            found = self._sized(shapes)
        return self._instead(inputs) if found is None else found.run(inputs)

    def _sized(self, shapes: Shapes) -> Executable | None:
        """The program for these sizes; None where it does not take them."""
        if any(shape[axis] < SMALLEST_OPEN for shape, axes in zip(shapes, self._open, strict=True) for axis in axes):
            return None
        with self._lock:
            if not self.comparison.is_trusted:
                return None
            try:
                made = self._resizable.sized(shapes)
            except RunError:
                return None
            self.comparison.watch(made)
            if len(self._made) >= MOST_KEPT:
                self._made.clear()
            self._made[shapes] = made
            return made

    def direct(self, order: Sequence[int]) -> Callable[[Sequence[Array]], list[Array]]:
        """As Executable.direct."""
        return lambda arrays: self.run([arrays[place] for place in order])

    def close(self) -> None:
        """Lets go of what runs it for the sizes so far; the program goes with the last plan that it is in."""
        with self._lock:
            made, self._made = self._made, {}
        for each in made.values():
            each.close()

    def describe(self) -> str:
        """One line for people."""
        return f"LiteRT, {self._resizable.about['operations']} operations, for all sizes"
