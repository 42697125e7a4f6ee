"""Decides what runs where: LiteRT takes the largest parts that it can hold, the reference engine the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Graph, Node
from pocketgraph.graph.dtype import RESOURCE, VARIANT
from pocketgraph.runtime.eight_bit_islands import without_codes
from pocketgraph.runtime.engines.functions import Library
from pocketgraph.runtime.engines.needed import Item, needed
from pocketgraph.runtime.engines.reference import Program
from pocketgraph.runtime.engines.units import Plan, Segment
from pocketgraph.runtime.missing import check_kernels
from pocketgraph.runtime.names import Endpoint
from pocketgraph.runtime.segment_call import SegmentCall
from pocketgraph.runtime.segments import Cut, cut, is_worth_it
from pocketgraph.runtime.specialize import specialized
from pocketgraph.runtime.warm import Executable, with_switches

Array = np.ndarray[Any, Any]
MOST_RECUTS = 40  # each gives one more node to the reference engine


@dataclass(frozen=True)
class Part:
    """A part of the needed graph and where it runs.

    Attributes:
        runs_on: ``litert`` or ``reference``.
        nodes: its nodes.
        inputs: the tensors that it takes from other parts or from the caller.
        outputs: the tensors that it gives.
    """

    runs_on: str
    nodes: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Description:
    """What runs where, for people.

    Attributes:
        feeds: each fed tensor with its dtype and shape.
        fetches: the tensors that come back.
        parts: the parts, LiteRT's first.
        reasons: why a node does not run on LiteRT, by node name.
        ops: the op of each node named above.
    """

    feeds: Mapping[str, tuple[str, tuple[int, ...]]]
    fetches: tuple[str, ...]
    parts: tuple[Part, ...]
    reasons: Mapping[str, str]
    ops: Mapping[str, str]

    def grouped(self) -> list[tuple[int, str, str]]:
        """(number of nodes, op, reason) of what LiteRT does not run, constants left out; the most frequent first."""
        pairs = Counter((self.ops.get(n, "?"), r) for n, r in self.reasons.items() if self.ops.get(n) != "Const")
        return [(count, op, reason) for (op, reason), count in pairs.most_common()]

    def __str__(self) -> str:
        """A line a part, and a line for each reason why nodes are not on LiteRT."""
        feeds = ", ".join(f"{name} {dtype}{list(shape)}" for name, (dtype, shape) in self.feeds.items())
        lines = [f"{', '.join(self.fetches)} from {feeds or 'no inputs'}"]
        for part in self.parts:
            lines.append(f"{part.runs_on}: {len(part.nodes)} node{'s' * (len(part.nodes) > 1)}")
            if part.inputs or part.outputs:
                lines[-1] += f", {', '.join(part.inputs) or 'nothing'} -> {', '.join(part.outputs)}"
        lines += [f"not on litert: {count} {op}: {reason}" for count, op, reason in self.grouped()]
        return "\n".join(lines)


@dataclass
class Prepared:
    """Everything decided for one set of feeds with their shapes, fetches and targets.

    Attributes:
        program: the steps, with LiteRT's parts as calls; made when first needed if one executable does it all.
        whole: the executable that runs everything between feeds and fetches, when there is one.
        whole_inputs: the feed that goes into each input of it.
        description: for ``Session.plan``.
    """

    program: Program | None
    whole: Executable | None
    whole_inputs: tuple[int, ...]
    description: Description
    executables: list[Executable] = field(default_factory=list)


@dataclass(frozen=True)
class Made:
    """A compiled part.

    Attributes:
        cut: the part.
        inputs, outputs: what the executable takes and gives, in its order.
        executable: runs it.
        is_whole: whether it is everything between the feeds and the fetches.
    """

    cut: Cut
    inputs: tuple[Endpoint, ...]
    outputs: tuple[Endpoint, ...]
    executable: Executable
    is_whole: bool

    def segment(self, index: int, ops: Mapping[str, str]) -> Segment:
        """It as a step of the reference engine's program; ``ops`` gives each node's op."""
        name = f"litert segment {index + 1}"
        call = SegmentCall(self.executable, {node: ops[node] for node in self.cut.nodes}, name)
        return Segment(Node(name, "LiteRT"), frozenset(self.cut.nodes), self.inputs, self.outputs, call)


@dataclass(frozen=True)
class Request:
    """What is to be run.

    Attributes:
        graph: the whole graph.
        feeds: the fed tensors, with dtype and shape, in the caller's order.
        fetches: the wanted tensors.
        targets: nodes to run besides.
        values: feeds that the decision may rest on, by tensor name: single booleans, which are mostly switches.
        threads: how many threads LiteRT may use.
        cache_dir: where LiteRT's compiled parts are kept; None for the user's cache directory.
        key: names the request across processes; "" when it must not be kept.
        engine: None for what is best, ``reference`` or ``litert`` to have that only.
        by_steps: make the program even where one executable does it all; for node times.
        exact: keep the integer arithmetic of eight-bit ops.
    """

    graph: Graph
    feeds: Mapping[Endpoint, tuple[DType | None, tuple[int, ...]]]
    fetches: tuple[Endpoint, ...]
    targets: tuple[str, ...]
    values: Mapping[str, Array] = field(default_factory=dict)
    threads: int = 1
    cache_dir: Any = None
    key: str = ""
    engine: str | None = None
    by_steps: bool = False
    exact: bool = False


def prepare(request: Request) -> Prepared:
    """Decides and compiles.

    Raises:
        MissingKernelError: ops that nothing can run; all of them are named.
        RunError: the graph cannot be run as asked.
    """
    graph = request.graph
    fed = frozenset(request.feeds)
    items = needed(graph, fed, request.fetches, request.targets)
    reasons: dict[str, str] = {}
    made: list[Made] = []
    if request.engine == "reference":
        reasons = dict.fromkeys(items, "the session runs on the reference engine only")
    else:
        items, made, reasons = _on_litert(request, items)
    library = Library(graph)
    whole, whole_inputs = None, tuple[int, ...]()
    program: Program | None = None
    if len(made) == 1 and made[0].is_whole:
        order = {endpoint: index for index, endpoint in enumerate(request.feeds)}
        whole, whole_inputs = made[0].executable, tuple(order[endpoint] for endpoint in made[0].inputs)
    if whole is None or request.by_steps:
        on_litert = {name for part in made for name in part.cut.nodes}
        check_kernels((item.node for name, item in items.items() if name not in on_litert), library)
        ops = {name: item.node.op for name, item in items.items()}
        segments = [part.segment(index, ops) for index, part in enumerate(made)]
        program = Program(
            graph,
            tuple(request.feeds),
            request.fetches,
            request.targets,
            items=items,
            segments=segments,
            library=library,
        )
    if request.engine == "litert" and whole is None:
        left = {n: r for n, r in reasons.items() if n in items}
        named = "; ".join(f"'{name}' ({items[name].node.op}): {reason}" for name, reason in list(left.items())[:10])
        raise RunError(f"LiteRT cannot run all of it: {named or 'nothing is left to compute'}", hint="use engine=None")
    description = _described(request, items, [part.cut for part in made], reasons)
    return Prepared(program, whole, whole_inputs, description, [part.executable for part in made])


def _on_litert(request: Request, items: dict[str, Item]) -> tuple[dict[str, Item], list[Made], dict[str, str]]:
    """The needed nodes (without branches known not to be taken), the compiled parts, and why the rest is in none."""
    from pocketgraph.runtime.engines.litert import engine

    graph = request.graph
    if not request.exact:
        kept = {endpoint.node for endpoint in (*request.feeds, *request.fetches)} | set(request.targets)
        graph = without_codes(graph, kept, items)
    known = specialized(graph, request.feeds, request.values, request.fetches, request.targets)
    graph, plan, inferred, static = known.graph, known.plan, known.inferred, known.static
    items, frames = dict(plan.items), plan.frames
    reasons = {name: "it runs in a loop" for name in items if frames[name].depth}
    reasons.update(dict.fromkeys(known.conditional, "it runs on a branch only"))
    candidates = [
        item.node
        for name, item in items.items()
        if name not in static and name not in reasons and item.node.op not in ("NoOp", "ControlTrigger")
    ]
    reasons.update(engine.supported(graph, candidates, inferred))
    reasons.update(_with_unknown_inputs(plan, [n.name for n in candidates], static, reasons, inferred))
    compiled: dict[Cut, Made] = {}
    for _ in range(MOST_RECUTS):
        able = {node.name for node in candidates if node.name not in reasons}
        parts = [part for part in cut(plan, able, static, request.fetches) if part.outputs]
        if request.engine != "litert":
            small = [part for part in parts if not is_worth_it(part, plan)]
            parts = [part for part in parts if part not in small]
        else:
            small = []
        failed = False
        for part in parts:
            if part in compiled:
                continue
            try:
                left = [n for n in items if n not in part.nodes and n not in static and items[n].node.op != "NoOp"]
                compiled[part] = _compiled(request, graph, plan, part, inferred, is_whole=not left)
            except engine.Unsupported as error:
                failed = True
                name = getattr(error, "node", "") or ""
                name = name.name if isinstance(name, Node) else name
                blamed = [name] if name in part.nodes and name not in reasons else list(part.nodes)
                reasons.update(dict.fromkeys(blamed, str(getattr(error, "reason", error))))
        if not failed:
            for part in small:
                reasons.update(dict.fromkeys(part.nodes, "too little work between nodes that LiteRT cannot hold"))
            for part in set(compiled) - set(parts):
                compiled.pop(part).executable.close()
            return items, [compiled[part] for part in parts], reasons
    for part_made in compiled.values():
        part_made.executable.close()
    return items, [], reasons


def _compiled(request: Request, graph: Graph, plan: Plan, part: Cut, inferred: Any, *, is_whole: bool) -> Made:
    """Compiles one part.

    A part that is everything between feeds and fetches takes all feeds, by name, and gives the fetches as they were
    asked for, so that a later process finds it without looking at the graph (``from_cache``).

    Raises:
        Unsupported: LiteRT does not take it.
    """
    from pocketgraph.runtime.engines.litert import engine

    inputs, outputs = part.inputs, part.outputs
    is_whole = is_whole and not request.targets and set(outputs) == set(request.fetches)
    is_whole = is_whole and len(set(request.fetches)) == len(request.fetches) and set(inputs) <= set(request.feeds)
    if is_whole:
        inputs, outputs = tuple(sorted(request.feeds, key=str)), request.fetches
    specs: dict[str, tuple[DType, tuple[int, ...]]] = {}
    for endpoint in inputs:
        name = str(endpoint)
        dtype, shape = request.feeds.get(endpoint) or (inferred.dtype(name), inferred.shape(name).known)
        if dtype is None:
            raise engine.Unsupported(f"the type of '{name}' is not known", "")
        specs[name] = (dtype, shape)
    key = request.key or None
    if key is not None and not is_whole:
        # What is constant in a part may follow from the shapes of feeds that do not enter it.
        given = sorted((str(e), str(dtype), shape) for e, (dtype, shape) in request.feeds.items())
        key = f"{key} {given}"
    if key is not None:
        key = with_switches(key, request.values)
    executable = engine.compile(
        graph,
        [plan.items[name].node for name in part.nodes],
        list(specs),
        [str(e) for e in outputs],
        specs,
        threads=request.threads,
        cache_dir=request.cache_dir,
        key=key,
        inferred=inferred,
    )
    return Made(part, inputs, outputs, executable, is_whole)


def _with_unknown_inputs(
    plan: Plan, names: Sequence[str], static: set[str], reasons: Mapping[str, str], inferred: Any
) -> dict[str, str]:
    """Candidates that take a tensor whose shape or type is not known before the run."""
    found: dict[str, str] = {}
    for name in names:
        if name in reasons:
            continue
        for endpoint in plan.items[name].data:
            if endpoint in plan.fed or endpoint.node in static:
                continue
            dtype = inferred.dtype(str(endpoint))
            if not inferred.shape(str(endpoint)).is_known:
                found[name] = f"the shape of its input '{endpoint}' is not known before the run"
            elif dtype is None or dtype.base in (RESOURCE, VARIANT) or dtype.is_ref:
                found[name] = f"its input '{endpoint}' is no plain tensor"
    return found


def _described(
    request: Request, items: Mapping[str, Item], cuts: Sequence[Cut], reasons: Mapping[str, str]
) -> Description:
    inside = {name for part in cuts for name in part.nodes}
    parts = [Part("litert", part.nodes, tuple(map(str, part.inputs)), tuple(map(str, part.outputs))) for part in cuts]
    rest = tuple(name for name, item in items.items() if name not in inside and item.node.op != "Const")
    if cuts:
        rest = tuple(name for name in rest if name in reasons)
    if rest:
        parts.append(Part("reference", rest))
    return Description(
        {str(e): (dtype.name if dtype else "?", shape) for e, (dtype, shape) in request.feeds.items()},
        tuple(map(str, request.fetches)),
        tuple(parts),
        {name: reason for name, reason in reasons.items() if name in items and name not in inside},
        {name: item.node.op for name, item in items.items()},
    )
