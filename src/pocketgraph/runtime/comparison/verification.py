"""Proves two models equal: the same feeds through both, and a verdict that a model cut to pieces does not get."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from pocketgraph.errors import UsageError, did_you_mean, option
from pocketgraph.graph import Graph, node_name
from pocketgraph.graph.entry_points import unknown_node_hint
from pocketgraph.graph.model_file_graph import is_litert_file, numbers
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.graph.tensor import Array
from pocketgraph.pages.quantities import counted, listed
from pocketgraph.passes.training_switches import training_switches
from pocketgraph.runtime.comparison.compare import HALF_TOLERANCE, TOLERANCE, Difference
from pocketgraph.runtime.comparison.compared_models import ComparedModel, Model, reached, weights_cut_off
from pocketgraph.runtime.comparison.compared_runs import ComparedRuns, Feeds
from pocketgraph.runtime.comparison.comparison_report import Report
from pocketgraph.runtime.comparison.counterparts import Counterparts
from pocketgraph.runtime.comparison.output_verdict import Pairs, judged
from pocketgraph.runtime.comparison.rounding_sensitivity import larger_limits, moves_by_rounding
from pocketgraph.runtime.feeding.default_tensors import needed_placeholders
from pocketgraph.runtime.feeding.feed_files import read_feeds
from pocketgraph.runtime.feeding.synthetic_feeds import check_mapping, synthetic_feeds
from pocketgraph.runtime.random_answers import random_note
from pocketgraph.runtime.unsupported_help import heads_before


def verify(
    a: Model,
    b: Model,
    inputs: Feeds | Iterable[Feeds] | str | os.PathLike[str] | None = None,
    outputs: Sequence[str] | None = None,
    tolerance: float | None = None,
    *,
    top1: float | None = None,
    runs: int = 2,
    seed: int = 0,
    engine: str | None = None,
    threads: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    partial: bool = False,
    engines: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Report:
    """Runs two models on the same feeds and compares their outputs.

    An output fails, whatever its numbers, when it depends on other inputs in one model than in the other, or is always
    the same in one while it varies in the other. On made-up feeds it also fails where all outputs, some of them floats,
    are always the same, or hold no finite number, in both; where a detector finds nothing in such, what it selects
    boxes from is compared as well.

    >>> from pocketgraph.graph.text_format import parse
    >>> exact = parse("x = Placeholder(dtype=float, shape=[2])\\ny = Relu(x, T=float)")
    >>> rough = parse("x = Placeholder(dtype=float, shape=[2])\\ny = Relu6(x, T=float)")
    >>> report = verify(exact, rough, {"x": [1.0, 8.0]})
    >>> report.passed, report.outputs[0].largest, report.outputs[0].largest_relative
    (False, 2.0, 0.25)

    Args:
        a: the model that is right: a Graph or a model file, .tflite and .onnx included.
        b: the model to be judged, likewise.
        inputs: arrays by tensor name, several such sets, or the path of an .npz of them (see ``read_feeds``); by
            default values made up from the placeholders of ``a``. Defaults stay where nothing is fed.
        outputs: the tensors to compare; by default the outputs that ``a`` declares or is likely to have and ``b``
            has too, whatever its name where both have one.
        tolerance: the largest difference that passes, as a share of the largest magnitude of the output in ``a``; by
            default 1e-4, or what a change of each of its weights by the last bit makes, at most ten times as much,
            and 0.02 where just one is a file of half precision; for eight-bit models agreement, divergence and
            signal-to-noise ratio on the feeds.
        top1: the least share of rows whose largest element must be the same.
        runs: how many sets of made-up feeds.
        seed: for made-up feeds.
        engine, threads: as for Session.
        shapes: of inputs to make up, by name, where the model leaves sizes open; "" is the only input.
        partial: whether feeds may cut weights of ``a`` or ``b`` off, which then are not compared.
        engines: run ``a`` on the reference engine, which is right, and ``b`` as sessions do by default.
        progress: told the stage, how many sets of feeds are done, and of how many.

    Raises:
        UsageError: feeds or outputs that the models do not have, or feeds that cut weights off.
        RunError: one of them does not run.
    """
    _check_options(runs, tolerance, top1, engine, engines=engines)
    with (
        closing(ComparedModel(a, threads, "reference" if engines else engine)) as first,
        closing(ComparedModel(b, threads, engine)) as second,
    ):
        if engines and first.is_file:
            runtime = "LiteRT" if is_litert_file(first.graph) else "ONNX Runtime"
            raise UsageError(
                f"{option('engines')} compares the engines that run a graph, and a finished file has one, {runtime}",
                hint="verify it against the graph that it was made from, that one first",
            )
        same = Counterparts(first, second)
        wanted = list(outputs) if outputs is not None else same.common_outputs()
        _check_outputs(first, second, wanted, same)
        if inputs is None:
            sizes = _fixed_shapes(first, second, wanted, same) | _named(shapes, first, wanted)
            sets = _made_up(first.graph, wanted, range(seed, seed + runs), sizes)
        else:
            sets = _given(inputs, first.graph)
            if not partial:
                _refuse_cuts(first, second, wanted, sets[0], same)
        problems = {name: _independence(first, second, name, sets[0], same) for name in wanted}
        running = [name for name, problem in problems.items() if not problem]
        depending = [name for name in running if reached(first.graph, name, sets[0])]
        both = ComparedRuns(first, second, same, running, is_made_up=inputs is None)
        for at, feeds in enumerate(sets if running else ()):
            both.add(feeds)
            if progress is not None:
                progress("comparing", at + 1, len(sets))
        is_eight_bit = tolerance is None and _is_quantization_between(first, second)
        is_eight_bit |= tolerance is None and engines and first.is_eight_bit
        if inputs is None and not is_eight_bit:  # eight bits have no codes for smaller feeds
            both.add_smaller(sets[0], depending)
        unanswered = both.unanswered(depending)
        is_idle = inputs is None and both.prove_nothing(unanswered)
        if is_idle:
            both.add_wider(sets[0])
            unanswered = both.unanswered(depending)
            is_idle = both.prove_nothing(unanswered)
        if is_idle and (heads := _selected_from(first, running, same)):
            again = ComparedRuns(first, second, same, heads, is_made_up=True)
            for feeds in sets:
                again.add(feeds)
            is_idle = again.prove_nothing(again.unanswered(heads))
            both.pairs |= again.pairs
            wanted = [*wanted, *heads]
        usual = HALF_TOLERANCE if first.is_half != second.is_half else TOLERANCE
        limit = usual if tolerance is None else tolerance
        larger: dict[str, float] = {}
        if tolerance is None and not is_eight_bit and not first.is_file:
            larger = _limits_by_rounding(first, {name: both.pairs[name] for name in depending}, both.fed, limit)
    found = {
        name: judged(name, pair, larger.get(name, limit), top1, is_eight_bit, is_made_up=inputs is None)
        for name, pair in both.pairs.items()
    }
    silent = {name: why for name, why in unanswered.items() if why and found[name].passed}
    if is_idle:
        found |= _failed_for_silence(found, silent)
        silent = {}
    notes = [*same.notes, *(f"'{name}' {why}" for name, why in silent.items()), *_notes_of_nothing(both, found)]
    notes += _notes_of_rounding({name: share for name, share in larger.items() if found[name].passed})
    notes += _notes(first.graph, wanted, sets[0])
    return Report(
        tuple(found.get(name) or Difference(name, (), problem=problems[name], passed=False) for name in wanted),
        limit, len(sets), is_eight_bit, inputs is None, tuple(notes),
    )  # fmt: skip


def _limits_by_rounding(
    model: ComparedModel, pairs: Mapping[str, Pairs], fed: Sequence[Feeds], limit: float
) -> dict[str, float]:
    """The tolerances that rounding in any engine makes larger, by output; see ``moves_by_rounding``."""

    def run_changed() -> list[dict[str, Array]]:
        with closing(model.with_last_bits_changed()) as moved:
            return [dict(zip(pairs, moved.run(list(pairs), feeds), strict=True)) for feeds in fed]

    numeric = {name: pair for name, pair in pairs.items() if pair and pair[0][0].dtype.kind in "fV"}
    limits = dict.fromkeys(numeric, limit)
    return larger_limits(moves_by_rounding(numeric, limits, run_changed), limits)


def _notes_of_rounding(larger: Mapping[str, float]) -> list[str]:
    said = "of its largest magnitude, as a change of each weight by its last bit makes"
    return [f"'{name}' may differ by {share:.2g} {said}" for name, share in larger.items()]


def _check_options(
    runs: int, tolerance: float | None, top1: float | None, engine: str | None, *, engines: bool
) -> None:
    if runs < 1:
        raise UsageError(f"a comparison needs at least 1 run, not {runs}", hint="two are made up by default")
    if tolerance is not None and not 0 <= tolerance < math.inf:
        raise UsageError(
            f"a tolerance is a number that is not negative, {tolerance} is not",
            hint="it is a share of the largest magnitude, such as 1e-4",
        )
    if engines and engine is not None:
        raise UsageError(
            f"a comparison of engines chooses them itself, not {engine}", hint=f"leave {option('engine')} out"
        )
    if top1 is not None and not 0 <= top1 <= 1:
        raise UsageError(f"{option('top1')} is a share from 0 to 1, not {top1:g}", hint="0.99 is 99 of 100 rows")


def _made_up(
    graph: Graph, wanted: Sequence[str], seeds: Iterable[int], sizes: Mapping[str, tuple[int, ...]]
) -> list[dict[str, Any]]:
    """A set of feeds a seed."""
    made = [synthetic_feeds(graph, wanted, seed, sizes) for seed in seeds]
    return [{name: numbers(graph, name, value) for name, value in feeds.items()} for feeds in made]


def _failed_for_silence(found: Mapping[str, Difference], silent: Mapping[str, str]) -> dict[str, Difference]:
    """Outputs that would pass and do not answer what goes in, where none answers; ``silent`` says why, by name."""
    hint = f"which proves nothing: give it data that it answers, with {option('data', 'inputs')}"
    return {name: replace(found[name], problem=f"{why}, {hint}", passed=False) for name, why in silent.items()}


def _notes_of_nothing(both: ComparedRuns, found: Mapping[str, Difference]) -> list[str]:
    return [
        f"'{name}' holds nothing in either model, so nothing of it was compared"
        for name, pairs in both.pairs.items()
        if found[name].passed and not any(value.size for pair in pairs for value in pair)
    ]


def _is_quantization_between(first: ComparedModel, second: ComparedModel) -> bool:
    """Whether one model is quantized and the other not, or both are and run in different runtimes."""
    if first.is_eight_bit and second.is_eight_bit:
        return type(first) is not type(second) or first.is_file != second.is_file
    return first.is_eight_bit or second.is_eight_bit


def _selected_from(first: ComparedModel, outputs: Sequence[str], same: Counterparts) -> list[str]:
    """What boxes are selected from that a detector does not find in noise; none where it is not in both models."""
    before = reachable(first.graph, [node_name(name) for name in outputs], missing_ok=True)
    selections = [first.graph[name] for name in sorted(before) if first.graph[name].op in ops_with("box_selection")]
    heads = list(dict.fromkeys(head for node in selections for head in heads_before(first.graph, node)))
    return heads if all(map(same.has_output, heads)) else []


def _check_outputs(first: ComparedModel, second: ComparedModel, wanted: Sequence[str], same: Counterparts) -> None:
    if not wanted:
        raise UsageError("there is no output to compare", hint=f"name one, e.g. {option('outputs')}=softmax")
    for side, model, called in (("first", first, wanted), ("second", second, [same.output(name) for name in wanted])):
        for name in called:
            if node_name(name) not in model.graph:
                hint = unknown_node_hint(model.graph, name, is_fed=False)
                raise UsageError(f"the {side} model has no output '{name}'", hint=hint)


def _given(inputs: Feeds | Iterable[Feeds] | str | os.PathLike[str], graph: Graph) -> list[dict[str, Any]]:
    if isinstance(inputs, (str, os.PathLike)):
        return [dict(read_feeds(inputs, graph))]
    sets = [dict(inputs)] if isinstance(inputs, Mapping) else [dict(feeds) for feeds in inputs]
    if not sets:
        raise UsageError("there are no feeds to compare with", hint="leave the inputs out, and they are made up")
    return sets


def _named(
    shapes: Mapping[str, Sequence[int]] | None, model: ComparedModel, wanted: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """Shapes by node name, the only input's name filled in.

    Raises:
        UsageError: no such input, or a shape without a name for one of several.
    """
    inputs = [node_name(name) for name in needed_placeholders(model.graph, wanted)]
    found = {}
    check_mapping(shapes)
    for name, shape in (shapes or {}).items():
        if not name and len(inputs) != 1:
            raise UsageError(
                f"the model has {counted(len(inputs), 'input')}", hint="say whose shape it is, as in NAME:1,224,224,3"
            )
        chosen = node_name(name) if name else inputs[0]
        if chosen not in inputs:
            raise UsageError(f"the model has no input '{name}' to make up", hint=did_you_mean(chosen, inputs))
        found[chosen] = tuple(shape)
    return found


def _fixed_shapes(
    first: ComparedModel, second: ComparedModel, wanted: Sequence[str], same: Counterparts
) -> dict[str, tuple[int, ...]]:
    """Shapes of inputs that the first model leaves open and the second one does not, by node name."""
    found = {}
    for name in map(node_name, needed_placeholders(first.graph, wanted)):
        other = node_name(same.input(name))
        if other not in second.graph or name not in first.graph:
            continue
        own, fixed = (graph.declared_shape(node) for graph, node in ((first.graph, name), (second.graph, other)))
        dims = None if fixed is None or fixed.dims is None or None in fixed.dims else fixed.dims
        if own is None or own.dims is None or dims is None or len(dims) != len(own.dims) or None not in own.dims[1:]:
            continue
        if all(size in (None, wants) for size, wants in zip(own.dims, dims, strict=True)):
            found[name] = tuple(size for size in dims if size is not None)
    return found


def _refuse_cuts(
    first: ComparedModel, second: ComparedModel, wanted: Sequence[str], feeds: Feeds, same: Counterparts
) -> None:
    """Raises UsageError where feeds stand in for a part of a model that was trained."""
    sides = (("first", first, wanted, feeds), ("second", second, [same.output(n) for n in wanted], same.feeds(feeds)))
    for side, model, fetches, given in sides:
        cut, count = weights_cut_off(model.graph, fetches, given)
        if cut:
            raise UsageError(
                f"the feeds cut {cut} of {counted(count, 'weight')} of the {side} model off, which "
                "would not be compared",
                where=", ".join(given),
                hint=f"feed the model's own inputs, or say {option('partial')}",
            )


def _independence(first: ComparedModel, second: ComparedModel, name: str, feeds: Feeds, same: Counterparts) -> str:
    """What is wrong with the inputs that an output depends on; "" for nothing."""
    ours = reached(first.graph, name, feeds)
    missing = same.missing(feeds)
    theirs = reached(second.graph, same.output(name), [*same.feeds(feeds), *missing])
    before = {
        label for own, tensor in missing.items() if own in theirs for label in reached(first.graph, tensor, feeds)
    }
    apart = {label for label in ours if same.input(label) not in theirs and label not in before}
    if apart:  # a shipped model has what tells training from use set for good
        switches = training_switches(first.graph)
        apart = {label for label in apart if node_name(label) not in switches}
    if apart:
        known = {node_name(same.input(label)) for label in (*feeds, *missing)}
        read = needed_placeholders(second.graph, [same.output(name)])
        others = [label for label in read if node_name(label) not in known]
        instead = f", which reads {listed(others, quoted=True)} instead" if others else ""
        return f"does not depend on '{min(apart)}' in the second model{instead}"
    for label in feeds:
        if label not in ours and same.input(label) in theirs:
            return f"does not depend on '{label}' in the first model"
    return ""


def _notes(graph: Graph, wanted: Sequence[str], feeds: Feeds) -> list[str]:
    read = {name: reached(graph, name, feeds) for name in wanted}
    found = [f"'{name}' depends on no input in either model" for name in wanted if feeds and not read[name]]
    unread = [label for label in feeds if not any(label in labels for labels in read.values())]
    found += [f"no output depends on the feed '{label}'" for label in unread]
    return [*found, *filter(None, [random_note(graph, wanted, feeds)])]
