"""One LiteRT program for calls that differ in sizes alone: where nothing but shapes follows from the open sizes.

Such are networks of layers over texts and pictures of any size: products, convolutions, attention, normalization. The
program that was compiled for one set of sizes is opened (``litert/open_program.py``), and LiteRT is told the sizes of
each call. It is compared with the reference engine for the first sizes that it was not compiled for, and serves others
only when it was right.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import Node, Shape, canonical
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.kernels.shapes.infer import in_order, infer_while
from pocketgraph.litert import engine
from pocketgraph.litert.open_program import opened as with_open_sizes
from pocketgraph.runtime.certificates.agreement import Agreement
from pocketgraph.runtime.certificates.part_check import CheckedPart, PartCheck
from pocketgraph.runtime.certificates.part_reference import PartReference
from pocketgraph.runtime.planning.call_key import CallKey
from pocketgraph.runtime.planning.execution_plan import Compiled, Request
from pocketgraph.runtime.planning.served_calls import ServedCalls

if TYPE_CHECKING:
    from pocketgraph.litert.executable import Executable
    from pocketgraph.litert.open_program import Sizes

Array = np.ndarray[Any, Any]
WITH_AXES = {"Mean": 1, "Sum": 1, "Max": 1, "Transpose": 1, "ExpandDims": 1, "GatherV2": 2}
"""Not a trait: which input says the axes."""


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
    executable, graph = compiled.executable, request.graph
    program = executable.program
    if program is None or not program.operations or executable.check_time > compiled.seconds * 1e6:
        return None
    feeds = {str(e): (dtype, Shape(sizes)) for e, (dtype, sizes) in opened.feeds if dtype is not None}
    wanted = [*map(str, opened.fetches)]
    nodes = in_order(graph, wanted)
    if any(node.control_inputs or node.op in UNFIT for node in nodes):
        return None
    layers = _Layers(frozenset(map(canonical, feeds)))
    inferred = infer_while(layers.hold, graph, feeds, request.values, wanted, compiled.inferred)
    if inferred is None or not layers.from_sizes.isdisjoint(map(canonical, wanted)):
        return None
    inputs = tuple(sorted(request.feeds, key=str))
    sizes = dict(opened.feeds)
    opened_sizes = [sizes[endpoint][1] for endpoint in inputs]
    known = open_shapes(nodes, inferred, compiled.inferred)
    found = with_open_sizes(program, opened_sizes, known)
    if found is None:
        return None
    names = [str(endpoint) for endpoint in inputs]
    types = [dtype for _, dtype, _ in executable.about["inputs"]]
    try:
        sizes_of = list(zip(names, opened_sizes, strict=True))
        resizable = engine.resizable(found, names, types, request.threads, kept_as, sizes_of)
    except RunError:
        return None
    part = CheckedPart(f"the program for all sizes of {', '.join(names)}")
    check = PartCheck(PartReference(graph, inputs, request.fetches), part, always=False, cache_dir=request.cache_dir)

    def compared(executable: Executable, feeds: Sequence[Array], results: list[Array]) -> list[Array]:
        # For other numbers the layers were found right when they were compiled.
        right = check.compare(executable, feeds, results, "", varies=False)
        executable.check = None
        return results if right is None or part.verdict is not Agreement.WRONG else right

    return ServedCalls(resizable, inputs, compared, lambda: part.verdict is Agreement.RIGHT)


UNFIT = ops_with("control_flow", "random", "effect", "variable", "reads_handle", "call", "branch", "loop")
SELECTS = ops_with("moves", "joins", "passes") | {"Mul", "Prod"}
"""Not a trait: what computes shapes of shapes, so that each size is an open one, or a product of such, or fixed."""


class _Layers:
    """Says whether a graph's program for some sizes is that for others, but for the shapes.

    Args:
        fed: the fed tensors.

    Attributes:
        from_sizes: tensors of numbers that follow from open sizes, as far as nodes were looked at.
    """

    def __init__(self, fed: frozenset[str]) -> None:
        self.fed = fed
        self.from_sizes: set[str] = set()
        self.able = ops_with("any_size")

    def hold(self, node: Node, inferred: Inferred) -> bool:
        """Whether that goes for a node, whose producers were looked at.

        Args:
            node: it.
            inferred: what is known while sizes are open.
        """
        made = [f"{node.name}:{port}" for port in range(max(1, len(inferred.shapes(node.name))))]
        taken = [canonical(ref) for ref in node.data_inputs]
        is_told = not self.from_sizes.isdisjoint(taken)
        is_open = any(not inferred.shape(ref).is_known for ref in (*taken, *made))
        if not (is_told or is_open) or not self.fed.isdisjoint(made):
            return True
        if all(inferred.value(ref) is not None for ref in made):
            return True
        if node.op in ("Shape", "ShapeN"):
            self.from_sizes.update(made)
            return True
        if is_told and (node.op != "Reshape" or taken[0] in self.from_sizes):
            self.from_sizes.update(made)
            return node.op in SELECTS and self.from_sizes.isdisjoint(_positions(node, taken))
        return node.op in self.able and _is_plain(node, taken, inferred)


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
