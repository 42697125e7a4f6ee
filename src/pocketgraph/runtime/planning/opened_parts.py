"""A plan for calls of all sizes: the layers of a graph as one LiteRT program that takes any size, the rest in NumPy.

words [1, ?] ── Shape ── Range ── Less ── Cast ─┐            NumPy, for each length
      └──────── GatherV2 ── MatMul ── Softmax ──┴ Mul ── …   one program, which is told the sizes of each call

Where numbers follow from the sizes (masks, positions, frames of a recording), no program of the whole graph holds for
all sizes, but one of the layers that take these numbers does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, Shape, canonical, parse_ref
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.litert import engine
from pocketgraph.litert.open_program import Origins, Told
from pocketgraph.litert.open_program import opened as with_open_sizes
from pocketgraph.runtime.certificates.first_comparison import FirstComparison
from pocketgraph.runtime.certificates.part_reference import PartReference
from pocketgraph.runtime.engines.functions import FunctionLibrary
from pocketgraph.runtime.engines.needed import needed
from pocketgraph.runtime.engines.step_program import StepProgram
from pocketgraph.runtime.planning.call_key import SMALLEST_OPEN, CallKey
from pocketgraph.runtime.planning.compiled_part import CompiledPart
from pocketgraph.runtime.planning.execution_plan import Compiled, ExecutionPlan, Request
from pocketgraph.runtime.planning.lowering_for_all import lowered_for_all
from pocketgraph.runtime.planning.missing_kernels import check_kernels
from pocketgraph.runtime.planning.open_layers import OpenLayers, open_shapes
from pocketgraph.runtime.planning.stored_plan_content import StandIns

if TYPE_CHECKING:
    from pocketgraph.litert.executable import Executable
    from pocketgraph.litert.resizable import Resizable, Shapes
    from pocketgraph.runtime.planning.reference_answers import KnownRun

Array = np.ndarray[Any, Any]
HEAVY = ops_with("heavy")
KEPT_AS_THEY_ARE = ("turn_transposed_convolutions",)
"""Passes that are left out where a part makes no program for all sizes with them."""
MOST_KEPT = 64  # sizes of one part; more are forgotten


def opened_part(
    opened: CallKey, compiled: Compiled, request: Request, layers: OpenLayers, nodes: Sequence[Node], inferred: Inferred
) -> OpenedCalls | None:
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
    opened_sizes = [own for own in sizes if own is not None]
    origins, open_now = part.origins(fixed), open_shapes(part.nodes, inferred, fixed)
    if origins is None:
        return None
    found = None
    for form in ((), KEPT_AS_THEY_ARE):
        program = lowered_for_all(request, part.nodes, specs, part.outputs, told, without=form)
        found = with_open_sizes(program, opened_sizes, open_now, origins) if program is not None else None
        if found is not None or not layers.told:
            break
    if found is None:
        return None
    tell = _Numbers(request, {name: dtype for name, (dtype, _) in specs.items()}, found.told) if found.told else None
    types = [dtype.numpy.name for dtype, _ in specs.values()]
    try:
        sizes_of = list(zip(part.inputs, opened_sizes, strict=True))
        resizable = engine.resizable(found, list(part.inputs), types, request.threads, None, sizes_of, tell)
        if tell is not None:
            tell([shape for _, shape in specs.values()])
    except RunError:
        return None
    inputs, outputs = tuple(map(Endpoint.of, part.inputs)), tuple(map(Endpoint.of, part.outputs))
    reference = PartReference(graph, inputs, outputs)
    comparison = FirstComparison(reference, part.inputs, request.cache_dir)
    executable = SizedExecutables(resizable, opened_sizes, comparison, reference.run)
    runs: Any = executable  # an Executable, as far as a step asks
    return OpenedCalls(_program(request, part, CompiledPart(part.ops, inputs, outputs, runs)), executable)


def _program(request: Request, part: _Layers, compiled: CompiledPart) -> StepProgram:
    """The steps of all calls, one of which is the part."""
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


class _Numbers:
    """Says the numbers that a program is told for sizes of its inputs, in order.

    Args:
        request: what is to be run, with the whole graph.
        types: of the program's inputs, by name.
        told: the tensors that are told.
    """

    def __init__(self, request: Request, types: Mapping[str, DType], told: Sequence[str]) -> None:
        self._graph, self._values = request.graph, request.values
        self._types = types
        self._told = told

    def __call__(self, shapes: Sequence[tuple[int, ...]]) -> Shapes:
        """
        Raises:
            RunError: they follow from something else as well.
        """
        feeds = {name: (dtype, Shape(own)) for (name, dtype), own in zip(self._types.items(), shapes, strict=True)}
        found = infer(self._graph, feeds, self._values, self._told)
        numbers = [found.value(ref) for ref in self._told]
        if found.problems or any(each is None for each in numbers):
            raise RunError("what the program is told does not follow from these sizes")
        return tuple([tuple(each.reshape(-1).tolist()) for each in numbers if each is not None])


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
            told = layers.told.get(name, {}).values()
            waiting += [ref for ref in map(canonical, by_name[name].data_inputs) if ref not in told]
        self.nodes = [node for node in nodes if node.name in inside and node.op != "Const"]
        self.ops = {node.name: node.op for node in self.nodes if self._is_open(node)}
        for node in self.nodes:
            for ref in map(canonical, node.data_inputs):
                name = parse_ref(ref)[0]
                enters = ref in self._fed or (name in outside and not self._is_known(ref))
                is_told = ref in layers.told.get(node.name, {}).values()
                if enters and ref not in layers.from_sizes and node.name in self.ops and not is_told:
                    inputs[ref] = None
        self.inputs = tuple(inputs)
        self.outputs = tuple(dict.fromkeys(ref for ref in map(canonical, wanted) if parse_ref(ref)[0] in self.ops))

    def origins(self, fixed: Inferred) -> Origins | None:
        """What the program is lowered from; None where numbers that it is told are not known for its own sizes.

        Args:
            fixed: what is known for these.
        """
        told: dict[str, dict[int, Told]] = {}
        for node in self.nodes:
            for place, ref in self._layers.told.get(node.name, {}).items():
                numbers = fixed.value(ref)
                if numbers is None:
                    return None
                known = self._inferred.elements(ref)
                all_open = (None,) * numbers.size
                told.setdefault(node.name, {})[place] = Told(
                    ref, tuple(map(int, numbers.reshape(-1))), all_open if known is None else tuple(known)
                )
        names = {node.name: node for node in self.nodes}
        return Origins(names, told, self._layers.cuts & names.keys(), self._inferred.value)

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
        self.is_new = True
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
            if not self.is_new and not self.comparison.is_right:
                return None
            try:
                made = self._resizable.sized(shapes)
            except RunError:
                return None
            if self.is_new:
                made.check, self.is_new = self.comparison, False
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


class OpenedCalls:
    """The calls of one plan for all sizes (see ``served_calls.Served``)."""

    def __init__(self, program: StepProgram, executable: SizedExecutables) -> None:
        self._program = program
        self._executable = executable

    @property
    def is_trusted(self) -> bool:
        """As Served."""
        return self._executable.is_new or self._executable.comparison.is_right

    @property
    def is_undecided(self) -> bool:
        """As Served."""
        return not (self._executable.is_new or self._executable.comparison.is_over)

    def takes(self, key: CallKey) -> bool:
        """As Served; sizes that the program does not take are computed without it."""
        return True

    def compare(self, known: KnownRun) -> None:
        """As Served: of a part other tensors are compared than a call's."""

    def plan(self, key: CallKey) -> ExecutionPlan:
        """As Served; LiteRT is asked in the run."""
        return ExecutionPlan(self._program, executables=[self._executable])
