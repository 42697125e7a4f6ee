"""TF1 loops: which frame each node lives in, and which nodes make up one loop.

A frame is entered by Enter nodes and left by Exit nodes; inside, Merge and NextIteration carry values from one
iteration to the next. Frames nest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from pocketgraph.errors import RunError
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.groups import DisjointSets
from pocketgraph.graph.op_traits import ENTER, EXIT, MERGE, NEXT_ITERATION
from pocketgraph.runtime.engines.needed import Item, consumers, runs_after

DEEPEST = 50  # levels of nested loops; real graphs have two or three


class LoopFrame(NamedTuple):
    """One level of looping; the root frame is not in a loop.

    Attributes:
        name: the loop's own name; empty for the root.
        parent: the frame around it; None for the root.
        depth: 0 for the root.
    """

    name: str = ""
    parent: LoopFrame | None = None
    depth: int = 0


ROOT = LoopFrame()


class Loop(NamedTuple):
    """One loop: a connected part of a frame.

    Attributes:
        frame: the frame it runs in.
        members: every node of it and of the loops inside it, with its Enter and Exit nodes, in graph order.
    """

    frame: LoopFrame
    members: tuple[str, ...]


def has_loops(items: Mapping[str, Item]) -> bool:
    """Whether any node enters a frame."""
    return any(item.node.op in ENTER for item in items.values())


def frames_of(items: Mapping[str, Item], fed: Collection[Endpoint]) -> dict[str, LoopFrame]:
    """The frame in which each node's outputs live: an Enter's are inside the loop, an Exit's outside.

    Constants without inputs may be used in any frame and count for the root here.

    Raises:
        RunError: a node has inputs from different frames, or an Exit is in no loop.
    """
    frames: dict[str, LoopFrame] = {}
    reason: dict[str, str] = {}
    readers = consumers(items, fed)
    ready: list[str] = []
    outside: list[str] = []

    def place(name: str, source: str, frame: LoopFrame) -> None:
        """Notes that ``name`` has an input from ``source``, which lives in ``frame``."""
        node = items[name].node
        outputs_in = frame
        if node.op in ENTER:
            if frame.depth >= DEEPEST:
                raise RunError(f"loops are nested more than {DEEPEST} deep", where=f"node '{name}'")
            outputs_in = LoopFrame(_text(node.attr("frame_name")), frame, frame.depth + 1)
        elif node.op in EXIT:
            if frame.parent is None:
                outside.append(name)  # may be the consequence of a mismatch that is found later
                return
            outputs_in = frame.parent
        known = frames.get(name)
        if known is None:
            frames[name] = outputs_in
            reason[name] = source
            ready.append(name)
        elif known != outputs_in:
            other = reason[name]
            raise RunError(
                f"the {node.op} has inputs from different frames: '{source}' is in frame '{frame.name}', "
                f"'{other}' is in frame '{frames[other].name if other in frames else ''}'",
                where=f"node '{name}'",
            )

    free = {name for name, item in items.items() if item.node.op == "Const" and not item.control}
    for name, item in items.items():
        sources = list(runs_after(item, fed))
        if all(source in free for source in sources) or any(e in fed for e in item.data):
            first_fed = next((str(e) for e in item.data if e in fed), sources[0] if sources else "")
            place(name, first_fed, ROOT)
    while ready:
        name = ready.pop()
        if name not in free:
            for consumer in readers.get(name, ()):
                place(consumer, name, frames[name])
    if outside:
        raise RunError("Invalid loop structure: an Exit outside of any loop", where=f"node '{outside[0]}'")
    stuck = [name for name in items if name not in frames]
    if stuck:
        raise RunError(f"{len(stuck)} nodes wait for each other for ever", where=f"node '{stuck[0]}'")
    return frames


def split(
    names: Iterable[str], within: LoopFrame, items: Mapping[str, Item], frames: Mapping[str, LoopFrame]
) -> tuple[list[str], list[Loop]]:
    """Parts the nodes of one region into those that run in ``within`` itself and the loops directly inside it.

    Constants that wait for nothing are in neither: they do not run, whoever reads one has its value.
    """
    own: list[str] = []
    inner: list[str] = []
    for name in names:
        frame, item = frames[name], items[name]
        if item.node.op == "Const" and not item.control:
            continue
        is_inside = frame.depth > within.depth
        leaves = item.node.op in EXIT and frame == within
        (inner if is_inside or leaves else own).append(name)
    joined = DisjointSets(inner)
    for name in inner:
        item = items[name]
        for source in (*(e.node for e in item.data), *item.control):
            if source in joined and frames[source].depth > within.depth:
                joined.join(name, source)
    loops = []
    for group in joined.groups():
        entered = [frames[n] for n in group if items[n].node.op in ENTER and frames[n].depth == within.depth + 1]
        if not entered:
            raise RunError("Invalid loop structure: a loop that nothing enters", where=f"node '{group[0]}'")
        loops.append(Loop(entered[0], tuple(group)))
    return own, loops


def is_loop_head(item: Item, items: Mapping[str, Item]) -> bool:
    """Whether a Merge takes its later values from a NextIteration."""
    return item.node.op in MERGE and any(e.node in items and items[e.node].node.op in NEXT_ITERATION for e in item.data)


def first_and_next(head: Item, items: Mapping[str, Item]) -> tuple[Endpoint, Endpoint]:
    """What a loop variable, by its Merge, is in the first round, and the NextIteration that gives it to the next.

    Raises:
        RunError: it has not one of each, or something stands between Enter and Merge.
    """
    back = [e for e in head.data if e.node in items and items[e.node].node.op in NEXT_ITERATION]
    first = [e for e in head.data if e not in back]
    if len(first) != 1 or len(back) != 1:
        raise RunError(
            "Invalid loop structure: a loop variable needs one Enter and one NextIteration",
            where=f"node '{head.node.name}'",
        )
    between = items.get(first[0].node)
    if between is not None and between.node.op not in ENTER:
        raise RunError(
            f"a loop variable must begin with what an Enter gives, and '{between.node.name}' stands between",
            where=f"node '{head.node.name}'",
            hint=f"move the {between.node.op} in front of the Enter",
        )
    return first[0], back[0]


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
