"""Gives requantization the ranges that were seen in a log, so that they need not be searched for each input."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from io import TextIOWrapper

import numpy as np

from pocketgraph.errors import TransformError, did_you_mean
from pocketgraph.formats.files import opened
from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.edit import rename_inputs
from pocketgraph.graph.groups import by_key
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.tool import transform

NAME_END, MARK = "__print__", "__requant_min_max:"
NUMBERS = re.compile(re.escape(MARK) + r"\[([^][]*)\][^][]*\[([^][]*)\][^][]*\Z")

Range = tuple[float, float]


@transform
def freeze_requantization_ranges(
    graph: Graph,
    *,
    min_max_log_file: tuple[str, ...] = (),
    min_percentile: float = 5.0,
    max_percentile: float = 5.0,
    compat: Compat = Compat.FIXED,
) -> Graph:
    """Replaces each ``RequantizationRange`` of a log by the range that the log gives it.

    Given:   x = Placeholder(dtype=qint32)
             low = Const(float -9.0)
             high = Const(float 9.0)
             range = RequantizationRange(x, low, high, Tinput=qint32)
             y = Requantize(x, low, high, range:0, range:1, Tinput=qint32, out_type=quint8)
             ; freeze_requantization_ranges(min_max_log_file="$LOG")
             ; LOG ;range__print__;__requant_min_max:[-1.5][2.5]
    Result:  x = Placeholder(dtype=qint32)
             low = Const(float -9.0)
             high = Const(float 9.0)
             range/frozen_min = Const(float -1.5)
             range/frozen_max = Const(float 2.5)
             y = Requantize(x, low, high, range/frozen_min:0, range/frozen_max:0, Tinput=qint32, out_type=quint8)

    The log is what a graph prints that went through
    ``insert_logging(op=RequantizationRange, show_name=true, message="__requant_min_max:")``, when it is run on sample
    inputs. Lines that say nothing of ranges may stand between.

    Differs from the original: there may be several logs; the percentiles are kept between 0 and 100 (there, others
    read beyond the records); control inputs follow, too (there, they lead nowhere afterwards); a range that is not of
    finite numbers, or whose minimum is above its maximum, is an error (there, it goes into the graph).

    Args:
        min_max_log_file: the log; may be given more than once.
        min_percentile: how many percent of the records may have a lesser minimum.
        max_percentile: how many percent of the records may have a greater maximum.

    Raises:
        TransformError: a file cannot be read or has no ranges; a range is of a node that is not in the graph, or is
            no RequantizationRange; or it is no range.
    """
    if compat.original and len(min_max_log_file) > 1:
        found = len(min_max_log_file)
        raise TransformError(f"expected a single 'min_max_log_file' parameter but found {found} occurrences")
    if not any(min_max_log_file):
        raise TransformError("You must pass a file name to min_max_log_file")
    logs = map(_read_log, map(os.path.expanduser, min_max_log_file))
    records = by_key((name, (low, high)) for log in logs for name, low, high in log)
    if not records:
        raise TransformError(
            "No min/max range logs were found in the log file",
            hint='insert_logging(op=RequantizationRange, show_name=true, message="__requant_min_max:") makes graphs '
            "that write such",
        )
    _check_nodes(graph, records)
    ranges = {name: _frozen(seen, min_percentile, max_percentile) for name, seen in records.items()}
    if not compat.original:
        _check_ranges(records, ranges)
    nodes: list[Node] = []
    renames: dict[str, str] = {}
    for node in graph:
        if node.name not in ranges:
            nodes.append(node)
            continue
        for port, (end, value) in enumerate(zip(("min", "max"), ranges[node.name], strict=True)):
            nodes.append(const(f"{node.name}/frozen_{end}", value, FLOAT))
            renames[f"{node.name}:{port}"] = f"{nodes[-1].name}:0"
        if not compat.original:
            renames[f"^{node.name}"] = f"^{nodes[-1].name}"
    return rename_inputs(graph.replace(nodes), renames)


def _read_log(path: str) -> Iterator[tuple[str, float, float]]:
    """(node, min, max) of each line that has them, as in ``;conv/range__print__;__requant_min_max:[-1.5][2.5]``."""
    try:
        with TextIOWrapper(opened(path), "utf-8", "surrogateescape", "\n") as file:
            for line in file:
                fields = line.removesuffix("\n").split(";")
                places = [i for i, field in enumerate(fields) if i and field.startswith(MARK)]
                if not places or f"{NAME_END};{MARK}" not in line:
                    continue
                found = NUMBERS.match(fields[places[-1]])
                name = fields[places[-1] - 1]
                if found and name.endswith(NAME_END):
                    low, high = (_number(text) for text in found.groups())
                    if low is not None and high is not None:
                        yield name.removesuffix(NAME_END), low, high
    except OSError as error:
        raise TransformError(f"cannot read the log '{path}': {error.strerror or error}") from error


def _number(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _check_nodes(graph: Graph, records: Iterable[str]) -> None:
    for name in records:
        if name not in graph:
            raise TransformError(
                f"Nodes were found in the log file that aren't present in the graph: '{name}'",
                hint=did_you_mean(name, graph.nodes),
            )
        if graph[name].op != "RequantizationRange":
            raise TransformError(f"Node is expected to be a RequantizationRange op: {name}, but is: {graph[name].op}")


def _check_ranges(records: Mapping[str, Iterable[Range]], ranges: Mapping[str, Range]) -> None:
    for name, seen in records.items():
        for low, high in seen:
            if not (math.isfinite(low) and math.isfinite(high)):
                raise TransformError(
                    f"the log gives '{name}' the range [{low:g}][{high:g}], which is not of finite numbers",
                    hint="find the input that the model answers with such values, and log without it",
                )
        low, high = ranges[name]
        if low > high:
            raise TransformError(
                f"the range of '{name}' would be from {low:g} to {high:g}",
                hint="look for damage in the log, or lower min_percentile and max_percentile",
            )


def _frozen(seen: list[Range], min_percentile: float, max_percentile: float) -> Range:
    """The minimum and the maximum at the percentiles, by the original's float32 arithmetic."""
    lows, highs = sorted(low for low, _ in seen), sorted(high for _, high in seen)
    count, hundred = np.float32(len(seen)), np.float32(100)
    first = _rounded(float(count * (np.float32(min_percentile) / hundred)))
    last = _rounded(float(count * (np.float32(1) - np.float32(max_percentile) / hundred)))
    most = len(seen) - 1
    return lows[min(max(first, 0), most)], highs[min(max(last, 0), most)]


def _rounded(value: float) -> int:
    """Halves away from zero; 0 where there is no number."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value)) if math.isfinite(value) else 0
