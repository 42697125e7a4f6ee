"""The proof that ends every export: what was written beside the reference engine, on the same inputs."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pocketgraph.errors import RunError, option
from pocketgraph.exporting.model import CODED_TOLERANCE, EntryPoint, ExportModel, Feeds, Written
from pocketgraph.exporting.samples import made_feeds, main_feeds, step_limit
from pocketgraph.exporting.training.side_by_side import AFTER_A_STEP, trained_side_by_side
from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.op_traits import PLACEHOLDERS, SAME_VALUES, ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.comparison.compare import Difference, compared, run_on_plainer
from pocketgraph.runtime.comparison.rounding_sensitivity import larger_limits, moves_by_rounding, with_last_bits_changed
from pocketgraph.runtime.session import Session

MOST_CHECKED = 8
"""Samples that go through both; the reference engine takes its time."""
COMPUTES_WITH_CODES = re.compile(r"Quantized|Requantize")
"""Ops of a graph in the original's eight bits: what is written in floats rounds elsewhere than they do."""
ROUNDING = ops_with("fake_quantization") | {"QuantizeV2"}
PASSED_ON = ops_with("passes", "view", "moves") | {"Dequantize"}
MOST_ROUNDED_ELSEWHERE = 0.05
"""Of what a graph rounds once: the share of elements so near the middle of two codes that they may become the other."""
NARROW_TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2}
"""What is written rounds such results once, the graph after each op."""
MOST_RUNS = 30  # that are timed
LONGEST = 1.0  # second of timing


@dataclass(frozen=True)
class Checked:
    """One entry point of what was written, beside the reference engine.

    Attributes:
        entry: its name.
        outputs: one entry an output; see Difference. Empty when it was not run.
        runs: how many sets of inputs went through.
        is_made: whether the inputs were made up.
        milliseconds: the median time of a run; None when it was not run, or when its time here says nothing.
        limits: the tolerances of outputs that have one of their own.
        moves: how far rounding alone moves outputs that are past the usual tolerance.
    """

    entry: str
    outputs: tuple[Difference, ...]
    runs: int
    is_made: bool
    milliseconds: float | None
    limits: Mapping[str, float] = field(default_factory=dict)
    moves: Mapping[str, float] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether every output is within the tolerance."""
        return all(output.passed for output in self.outputs)

    @property
    def advice(self) -> str:
        """What makes the check say more, to go behind what it does not prove."""
        return f"; feed real data with {option('data', 'samples')}" if self.is_made else ""


OF_CODES = "the graph computes in eight bits itself, by ranges of its own; give the float one that it was made from"


class DifferenceError(RunError):
    """What was written computes something else than the graph."""


def check(model: ExportModel, written: Written, tolerance: float | None = None) -> list[Checked]:
    """Runs every entry point and compares.

    Args:
        model: the model; its samples are the inputs of the first entry point, others get made-up ones.
        written: what was written.
        tolerance: instead of the one that ``written`` has.

    Raises:
        DifferenceError: an output is past the tolerance.
        RunError: it does not run, or the reference engine does not.
    """
    if written.run is None:
        return []
    computes_with_codes = any(COMPUTES_WITH_CODES.match(node.op) for node in model.graph)
    hint = OF_CODES if computes_with_codes else _of_whole_numbers(model)
    if not written.is_coded and computes_with_codes:
        written.is_coded, written.tolerance = True, max(written.tolerance, CODED_TOLERANCE)
    limit = written.tolerance if tolerance is None else tolerance
    found: list[Checked] = []
    if model.original is not None:
        for item in trained_side_by_side(model, written, made_feeds):
            outputs = [compared(name, pair, limit) for name, pair in item.pairs.items()]
            loose = max(limit, AFTER_A_STEP)
            outputs += [compared(name, pair, loose) for name, pair in item.after.items()]
            milliseconds = _milliseconds(written, item.entry, item.feeds)
            found.append(Checked(item.entry.name, tuple(outputs), item.runs, True, milliseconds))
        return _passed(found, written, limit, hint)
    with Session(model.graph, model.threads, engine="reference", step_limit=step_limit(model)) as session:
        for number, entry in enumerate(model.entries[:1] if written.has_main_alone else model.entries):
            is_made = model.samples is None or number > 0
            found.append(_checked(session, model, entry, written, limit, is_made, by_type=tolerance is None))
    return _passed(found, written, limit, hint)


def _passed(found: list[Checked], written: Written, limit: float, hint: str) -> list[Checked]:
    """These checks.

    Raises:
        DifferenceError: an output is past the tolerance.
    """
    for item in found:
        for output in item.outputs:
            if not output.passed:
                said = _said(output, item, written, item.limits.get(output.name, limit))
                raise DifferenceError(said, hint="" if _is_of_kind(output) else hint or _of_rounding(output, item))
    return found


def _is_of_kind(output: Difference) -> bool:
    """Whether shapes, types or texts differ, which is no matter of rounding, and no tolerance helps."""
    return bool(output.problem) and not output.largest


def _of_rounding(output: Difference, item: Checked) -> str:
    """That the model magnifies rounding as much as the difference is, and what to do; "" where it does not."""
    move = item.moves.get(output.name, 0.0)
    if output.largest_relative > move:
        return ""
    return (
        "the model magnifies rounding, so that engines differ: another order of its sums moves this output by some "
        f"{move:.1g} of the largest value; where that does no harm, "
        f"{option('tolerance')}={2 * output.largest_relative:.1g}"
    )


def _of_whole_numbers(model: ExportModel) -> str:
    """That a node cuts what was computed in floats to whole numbers, and what to do; "" where none does."""
    needed = reachable(model.graph, [port.tensor for entry in model.entries for port in entry.outputs])
    for node in model.graph:
        if node.name not in needed or node.op != "Cast" or node.dtype("DstT").is_floating:
            continue
        source = model.graph.find_producer(node.data_inputs[0], SAME_VALUES)
        is_computed = source is not None and source.data_inputs and source.op not in PLACEHOLDERS
        if node.dtype("SrcT").is_floating and is_computed:
            return (
                f"'{node.name}' cuts floats to whole numbers, so that their last bits, which engines have differently, "
                f"may decide a whole step: export what is behind it ({option('inputs')}={node.name}), or allow for "
                f"steps ({option('tolerance')})"
            )
    return ""


def _checked(
    session: Session,
    model: ExportModel,
    entry: EntryPoint,
    written: Written,
    limit: float,
    is_made: bool,
    *,
    by_type: bool,
) -> Checked:
    pairs: dict[str, list[tuple[Array, Array]]] = {port.name: [] for port in entry.outputs}
    sets: list[Feeds]
    if is_made or model.samples is None:
        sets = [main_feeds(model) if entry is model.main else made_feeds(entry)]
    else:
        sets = list(itertools.islice(model.samples(), MOST_CHECKED))
    assert written.run is not None
    for number, feeds in enumerate(sets):
        model.progress("checking", number, len(sets))
        try:
            wanted = entry.run(session, feeds)
        except RunError as error:
            if not is_made:
                raise
            hint = f"the inputs were made up; give some that fit with {option('data', 'samples')}"
            feeds, wanted = run_on_plainer(feeds, lambda tried: entry.run(session, tried), error, hint)
            sets[number] = feeds
        given = written.run(entry.name, feeds)
        for port in entry.outputs:
            pairs[port.name].append((wanted[port.name], given[port.name]))
    limits = dict.fromkeys(pairs, limit)
    if by_type:
        limits = {n: max(limit, NARROW_TOLERANCES.get(pair[0][0].dtype.name, 0.0)) for n, pair in pairs.items()}
    if by_type and written.sigmoid_error:
        limits |= {
            port.name: max(limits[port.name], written.sigmoid_error / peak)
            for port in entry.outputs
            if _maker(model.graph, port.tensor).op == "Sigmoid"
            and (peak := max(float(np.abs(wanted).max(initial=0)) for wanted, _ in pairs[port.name]))
        }
    moves: dict[str, float] = {}
    if not written.is_coded:
        moves = moves_by_rounding(pairs, limits, lambda: _run_with_last_bits_changed(model, entry, sets))
    if by_type:
        limits |= larger_limits(moves, limits)
    rounded = {port.name for port in entry.outputs if is_rounded_once(model.graph, port.tensor)}
    outputs = tuple(
        _judged(compared(name, pair, limits[name]), written, limit, pair if name in rounded else ())
        for name, pair in pairs.items()
    )
    milliseconds = _milliseconds(written, entry, sets[0]) if written.is_timed else None
    return Checked(entry.name, outputs, len(sets), is_made, milliseconds, limits, moves)


def _run_with_last_bits_changed(
    model: ExportModel, entry: EntryPoint, sets: Sequence[Feeds]
) -> list[Mapping[str, Array]]:
    with Session(with_last_bits_changed(model.graph), model.threads, engine="reference") as moved:
        return [entry.run(moved, feeds) for feeds in sets]


def _judged(
    found: Difference, written: Written, limit: float, rounded_once: Sequence[tuple[Array, Array]] = ()
) -> Difference:
    """The difference as judged by its mean where few bits are to be expected to be off here and there.

    Where the graph itself rounds once, to codes that what was written has too, hardly any may be off: a wrong zero or
    step moves many by one code, which is a small mean.
    """
    if not written.is_coded or found.problem:
        return found
    if rounded_once and written.tolerance <= CODED_TOLERANCE:
        off, elements = _other_codes(rounded_once)
        if off > max(1, MOST_ROUNDED_ELSEWHERE * elements):
            return replace(
                found, problem=f"{off} of its {elements} elements are other codes than the graph's", passed=False
            )
    return replace(found, passed=bool(found.mean_relative <= limit))


def is_rounded_once(graph: Graph, tensor: str) -> bool:
    """Whether a tensor is what one node rounds to codes, moved at most, and nothing before that rounds."""
    node = _maker(graph, tensor)
    if node.op not in ROUNDING:
        return False
    ops = [graph.nodes[name].op for name in reachable(graph, [node.name])]
    return sum(op in ROUNDING or COMPUTES_WITH_CODES.match(op) is not None for op in ops) == 1


def _maker(graph: Graph, tensor: str) -> Node:
    """The node that makes a tensor's values."""
    node = graph.nodes[node_name(tensor)]
    while node.op in PASSED_ON:
        node = graph.nodes[node_name(node.data_inputs[0])]
    return node


def _other_codes(pairs: Sequence[tuple[Array, Array]]) -> tuple[int, int]:
    """How many elements differ by half a step or more (over 1/512 of the largest magnitude), and of how many."""
    wide = [(wanted.astype(np.float64), given.astype(np.float64)) for wanted, given in pairs]
    peak = max(np.abs(wanted).max(initial=0.0) for wanted, _ in wide)
    off = sum(int(np.count_nonzero(np.abs(wanted - given) > peak / 512)) for wanted, given in wide)
    return off, sum(wanted.size for wanted, _ in wide)


def _milliseconds(written: Written, entry: EntryPoint, feeds: Feeds) -> float:
    times: list[float] = []
    begun = time.perf_counter()
    while not times or (len(times) < MOST_RUNS and time.perf_counter() - begun < LONGEST):
        if written.seconds is not None:
            times.append(written.seconds(entry.name, feeds))
        else:
            assert written.run is not None
            start = time.perf_counter()
            written.run(entry.name, feeds)
            times.append(time.perf_counter() - start)
    return 1000 * float(np.median(times))


def _said(output: Difference, item: Checked, written: Written, limit: float) -> str:
    what = "mean" if written.is_coded else "largest"
    share = output.mean_relative if written.is_coded else output.largest_relative
    how = output.problem or f"its {what} difference from the graph is {share:.3g} of the largest value"
    where = f"output '{output.name}'" + (f" of '{item.entry}'" if item.entry else "")
    past = "" if _is_of_kind(output) else f", past the tolerance of {limit:g}"
    return f"{where}: {how}{past}; nothing was written"
