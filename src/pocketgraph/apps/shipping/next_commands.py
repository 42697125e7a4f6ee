"""What to type after ``ship``: hold the file against the graph, time it, look at it, make an app of it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from pocketgraph.apps.live.anchors import ssd_anchors
from pocketgraph.apps.live.application_choice import chosen
from pocketgraph.apps.live.detection import recognised
from pocketgraph.apps.shipping.input_sizes import benchmark_command
from pocketgraph.apps.shipping.shipment import FROZEN, MODEL, PAGE_TYPES
from pocketgraph.errors import quoted, quoted_path
from pocketgraph.formats import load
from pocketgraph.graph import Graph, canonical
from pocketgraph.graph.entry_points import likely_inputs
from pocketgraph.kernels.shapes import infer
from pocketgraph.runtime.feeding.default_tensors import default_fetches, needed_placeholders


def judging_command(
    folder: str,
    outputs: Sequence[str],
    data: str | os.PathLike[str] | None,
    options: Mapping[str, Any],
) -> str:
    """What shows again how near the file is to the graph, by what it was judged by here.

    Args:
        folder: what ship wrote.
        outputs: the outputs that ship.
        data: what it was judged on; None for made-up inputs.
        options: of ``evaluate``, by name; None for those that were not given.
    """
    paths = " ".join(quoted_path(os.path.join(folder, name)) for name in (FROZEN, MODEL))
    if data is None:
        return f"pocketgraph verify {paths}"
    given = {"data": data, **options, "outputs": ",".join(outputs)}
    said = {name: f"{value:g}" if isinstance(value, float) else str(value)
            for name, value in given.items()
            if value is not None}  # fmt: skip
    return f"pocketgraph evaluate {paths}" + "".join(f" --{name}={quoted(value)}" for name, value in said.items())


def file_commands(folder: str, outputs: Sequence[str], target: str, *, is_ready: bool) -> list[str]:
    """What times the file, shows it, and makes an app of it where the target has one and the file takes something.

    Args:
        folder: what ship wrote.
        outputs: the outputs that ship.
        target: where it goes, one of TARGETS.
        is_ready: whether nothing speaks against shipping it.
    """
    path = os.path.join(folder, MODEL)
    found = [benchmark_command(path), f"pocketgraph view {quoted_path(path)}"]
    has_app = is_ready and target != "microcontroller"
    return [*found, app_command(folder, outputs, target)] if has_app and likely_inputs(load(path)) else found


def app_command(folder: str, outputs: Sequence[str], target: str) -> str:
    """What makes an app: of the file, or of the graph where the app has to do what the file cannot."""
    graph = load(os.path.join(folder, MODEL))
    frozen = os.path.join(folder, FROZEN)
    name = os.path.basename(os.path.normpath(folder))
    place = f"{os.path.normpath(folder)}_{target}" if name not in ("", ".", "..") else f"app_{target}"
    if target == "web" and _lacks_types(graph):
        labels = os.path.join(folder, "labels.txt")
        options = f" --outputs={quoted(','.join(outputs))}"
        options += f" --labels={quoted(labels)}" if os.path.isfile(labels) else ""
        return f"pocketgraph app {target} {quoted_path(frozen)} -o {quoted(place)}{options}"
    options = " --engine=tflite" if target == "ios" else ""
    options += " --app=benchmark" if target == "web" and _misses_anchors(graph) else ""
    return f"pocketgraph app {target} {quoted_path(os.path.join(folder, MODEL))} -o {quoted(place)}{options}"


def _lacks_types(graph: Graph) -> bool:
    """Whether LiteRT.js refuses the file for the types that go in or come out."""
    fetches, known = default_fetches(graph), infer(graph)
    return any(
        known.dtype(name) not in (None, *PAGE_TYPES) for name in (*needed_placeholders(graph, fetches), *fetches)
    )


def _misses_anchors(graph: Graph) -> bool:
    """Whether only its user has the boxes that a detector's results are relative to."""
    found = recognised(graph) if chosen(graph)[0] == "detect" else None
    if found is None or found.family.anchors not in ("priors", "anchors"):
        return False
    known = infer(graph)
    (source,) = needed_placeholders(graph, default_fetches(graph))[:1]
    boxes, sides = (known.shape(canonical(name)).dims or () for name in (found.tensors["boxes"], source))
    is_known = None not in (*boxes, *sides[1:]) and len(sides) == 4
    count, side = math.prod(size or 0 for size in boxes) // 4, (sides[1] if is_known else 0) or 0
    return found.family.anchors == "priors" or not is_known or ssd_anchors(count, side) is None
