"""One LiteRT program for calls that differ in sizes alone: where nothing but shapes follows from the open sizes.

Such are networks of layers over texts and pictures of any size: products, convolutions, attention, normalization. The
program that was compiled for one set of sizes is opened (``litert/open_program.py``), and LiteRT is told the sizes of
each call. It is compared with the reference engine for the first sizes that it was not compiled for, and serves others
only when it was right.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import Node, Shape, canonical
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.kernels.shapes.infer import in_order
from pocketgraph.runtime.certificates.agreement import Agreement
from pocketgraph.runtime.certificates.part_check import CheckedPart, PartCheck
from pocketgraph.runtime.certificates.part_reference import PartReference
from pocketgraph.runtime.planning.call_key import CallKey
from pocketgraph.runtime.planning.execution_plan import ExecutionPlan, Request
from pocketgraph.runtime.planning.open_sizes import Compiled

if TYPE_CHECKING:
    from pocketgraph.litert.engine import Resizable
    from pocketgraph.litert.executable import Executable
    from pocketgraph.litert.open_program import Sizes

Array = np.ndarray[Any, Any]
MOST_TRIES = 3  # plans of which none could be opened, after which no more are tried
SMALLEST = 2  # at size 1 tensors are repeated, and axes left out
WITH_AXES = {"Mean": 1, "Sum": 1, "Max": 1, "Transpose": 1, "ExpandDims": 1, "GatherV2": 2}
"""Not a trait: which input says the axes."""


class ResizableCalls:
    """Calls of a session that differ in sizes alone. Is asked under the session's lock."""

    def __init__(self) -> None:
        self._served: dict[CallKey, _Served] = {}
        self._tries = 0
        self._own: set[CallKey] = set()

    def plan(self, key: CallKey, opened: CallKey, compiled: Compiled, request: Request) -> ExecutionPlan | None:
        """A plan for these sizes that needs no compiling; None where there cannot be one.

        Args:
            key: of the call.
            opened: it with all sizes open that have changed so far.
            compiled: the last plan that was made for fixed sizes.
            request: what is to be run, with the whole graph.
        """
        if key in self._own or self._tries >= MOST_TRIES:
            return None
        pairs = [(n, size) for (_, (_, sizes)), (_, (_, own)) in zip(opened.feeds, key.feeds, strict=True)
                 for n, size in zip(own, sizes, strict=True)]  # fmt: skip
        if any(size is None and (n is None or n < SMALLEST) for n, size in pairs):
            return None
        served = self._served.get(opened)
        if served is None:
            served = _opened(opened, compiled, request)
            if served is None:
                self._tries += 1
                return None
            self._served[opened] = served
        elif served.check.part.verdict is not Agreement.RIGHT:
            self._tries = MOST_TRIES
            return None
        try:
            return served.plan(key)
        except RunError:
            self._tries += 1
            return None

    def wants_its_own(self, key: CallKey) -> None:
        """Notes that a call has waited so long for others' sizes that it gets a plan of its own."""
        self._own.add(key)


class _Served(NamedTuple):
    resizable: Resizable
    inputs: tuple[Endpoint, ...]
    check: PartCheck

    def plan(self, key: CallKey) -> ExecutionPlan:
        """
        Raises:
            RunError: LiteRT does not take these sizes.
        """
        feeds = dict(key.feeds)
        executable = self.resizable.sized([Shape(feeds[endpoint][1]).known for endpoint in self.inputs])
        if self.check.part.verdict is None:
            executable.check = self._compared
        places = {endpoint: place for place, endpoint in enumerate(feeds)}
        order = tuple(places[endpoint] for endpoint in self.inputs)
        return ExecutionPlan(None, executable, order, executables=[executable])

    def _compared(self, executable: Executable, feeds: Sequence[Array], results: list[Array]) -> list[Array]:
        # For other numbers the layers were found right when they were compiled.
        right = self.check.compare(executable, feeds, results, "", varies=False)
        executable.check = None
        return results if right is None or self.check.part.verdict is not Agreement.WRONG else right


def _opened(opened: CallKey, compiled: Compiled, request: Request) -> _Served | None:
    """What serves calls of any sizes; None where that is not certain, or comparing it takes longer than planning."""
    from pocketgraph.litert import engine
    from pocketgraph.litert.open_program import opened as opened_program

    executable, graph = compiled.executable, request.graph
    program = executable.program
    if program is None or not program.operations or executable.check_time > compiled.seconds * 1e6:
        return None
    feeds = {str(e): (dtype, Shape(sizes)) for e, (dtype, sizes) in opened.feeds if dtype is not None}
    wanted = [*map(str, opened.fetches)]
    nodes = in_order(graph, wanted)
    if any(node.control_inputs or node.op in UNFIT for node in nodes):
        return None
    inferred = infer(graph, feeds, request.values, outputs=wanted, before=compiled.inferred)
    if not holds_for_all_sizes(nodes, inferred, frozenset(map(canonical, feeds)), wanted):
        return None
    inputs = tuple(sorted(request.feeds, key=str))
    sizes = dict(opened.feeds)
    opened_sizes = [sizes[endpoint][1] for endpoint in inputs]
    known = open_shapes(nodes, inferred, compiled.inferred)
    found = opened_program(program, opened_sizes, known)
    if found is None:
        return None
    names = [str(endpoint) for endpoint in inputs]
    types = [dtype for _, dtype, _ in executable.about["inputs"]]
    try:
        resizable = engine.resizable(found, names, types, request.threads)
    except RunError:
        return None
    reference = PartReference(graph, inputs, request.fetches)
    part = CheckedPart(f"the program for all sizes of {', '.join(names)}")
    return _Served(resizable, inputs, PartCheck(reference, part, always=False, cache_dir=request.cache_dir))


UNFIT = ops_with("control_flow", "random", "effect", "variable", "reads_handle", "call", "branch", "loop")
SELECTS = ops_with("moves", "joins", "passes") | {"Mul", "Prod"}
"""Not a trait: what computes shapes of shapes, so that each size is an open one, or a product of such, or fixed."""


def holds_for_all_sizes(
    nodes: Iterable[Node], inferred: Inferred, fed: frozenset[str], wanted: Collection[str]
) -> bool:
    """Whether a graph's program for some sizes is that for others, but for the shapes.

    Args:
        nodes: the graph's needed nodes, producers first.
        inferred: what is known while sizes are open.
        fed: the fed tensors.
        wanted: the fetched ones.
    """
    from_sizes: set[str] = set()  # tensors of numbers that follow from open sizes
    able = ops_with("any_size")
    for node in nodes:
        made = [f"{node.name}:{port}" for port in range(max(1, len(inferred.shapes(node.name))))]
        taken = [canonical(ref) for ref in node.data_inputs]
        is_told = not from_sizes.isdisjoint(taken)
        is_open = any(not inferred.shape(ref).is_known for ref in (*taken, *made))
        if not fed.isdisjoint(made) or not (is_told or is_open) or all(inferred.value(ref) is not None for ref in made):
            continue
        if node.op in ("Shape", "ShapeN"):
            from_sizes.update(made)
        elif is_told and (node.op != "Reshape" or taken[0] in from_sizes):
            if node.op not in SELECTS or not from_sizes.isdisjoint(_positions(node, taken)):
                return False
            from_sizes.update(made)
        elif node.op not in able or not _is_plain(node, taken, inferred):
            return False
    return from_sizes.isdisjoint(map(canonical, wanted))


def _positions(node: Node, taken: Sequence[str]) -> Sequence[str]:
    """The inputs that say which elements are taken, and not what they are."""
    if node.op in ops_with("joins"):
        return taken[-1:] if node.op.startswith("Concat") else ()
    return taken[1:] if node.op in ops_with("moves") or node.op == "Prod" else ()


def _is_plain(node: Node, taken: Sequence[str], inferred: Inferred) -> bool:
    """Whether a layer asks no size in the form that it has here."""
    at = WITH_AXES.get(node.op)
    if at is not None and (len(taken) <= at or inferred.value(taken[at]) is None):
        return False
    if node.op == "Conv2D":
        steps = (*node.attr("strides", ()), *node.attr("dilations", ()))
        is_usual = node.attr("padding") in (b"SAME", b"VALID") and node.attr("data_format", b"NHWC") == b"NHWC"
        return is_usual and set(steps) == {1}
    if node.op == "BiasAdd":
        return bool(node.attr("data_format", b"NHWC") == b"NHWC")
    if node.op == "GatherV2":
        return not node.attr("batch_dims", 0) and inferred.shape(taken[0]).is_known
    return node.op != "Squeeze" or bool(node.attr("squeeze_dims"))


def open_shapes(
    nodes: Iterable[Node], inferred: Inferred, before: Inferred
) -> Mapping[tuple[int, ...], Collection[Sizes]]:
    """What is open of tensors, by the shapes that they had with fixed sizes.

    Args:
        nodes: the graph's.
        inferred: what is known while sizes are open.
        before: what was known with fixed ones.
    """
    found: dict[tuple[int, ...], set[Sizes]] = {}
    for node in nodes:
        for port, shape in enumerate(inferred.shapes(node.name)):
            fixed = before.shape(f"{node.name}:{port}")
            if shape.dims is not None and not shape.is_known and fixed.is_known:
                found.setdefault(fixed.known, set()).add(shape.dims)
    return found
