"""``pocketgraph transform_graph``: rewrites a graph by rules, with the original tool's flags."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from pocketgraph.cli.shared.listing_command import ListingCommand
from pocketgraph.cli.shared.options import flag_bool, names, one_file, page_place
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import PocketgraphError, UsageError
from pocketgraph.graph import Graph, node_name
from pocketgraph.graph.entry_points import unknown_node_hint
from pocketgraph.pages.quantities import bytes_text, counted

if TYPE_CHECKING:
    from pocketgraph.inspect.rule_check import RuleCheck
    from pocketgraph.transforms.tool import Applied
    from pocketgraph.transforms.transform_report import Recorder


def _rules(formatter: click.HelpFormatter) -> None:
    from pocketgraph.transforms import tool

    with formatter.section("Transforms are"):
        formatter.write_text(", ".join(tool.names()))


@click.command("transform_graph", cls=ListingCommand, listing=_rules)
@click.argument("model", required=False)
@click.option("--in_graph", "-i", default="", help="The graph to read, binary or text.")
@click.option("--out_graph", "-o", default="", help="The file to write.")
@click.option("--inputs", default="", help="What will be fed: names with commas between.")
@click.option("--outputs", default="", help="What will be fetched: names with commas between.")
@click.option("--transforms", "-t", default="", help="What to do, in order; see below.")
@click.option(
    "--compat",
    type=click.Choice(["original", "fixed"]),
    default="fixed",
    show_default=True,
    help="original: TensorFlow's tool to the letter; fixed: what is right where it damages a graph, and more.",
)
@flag_bool("--output_as_text", help="Write the text form (.pbtxt).")
@flag_bool("--verbose", "-v", help="Say which transform runs.")
@flag_bool("--check", help="Run the graph before and after each transform; stop at the first that changes a result.")
@click.option("--check_inputs", metavar="FILE.npz", help="What to feed for --check; else made up.")
@click.option(
    "--check_tolerance",
    type=click.FloatRange(min=0),
    help="Largest difference, as a share of the largest magnitude. Default: 1e-4, and 0.1 where precision is traded.",
)
@click.option(
    "--report", default="", metavar="FILE.html|.json", help="Write what each transform did, and why not more."
)
@flag_bool("--partial", help="Let --inputs cut off most of the network's parameters.")
@click.option(
    "--view", default="", metavar="FILE.html", help="Draw the graph before and after each transform, side by side."
)
@click.option(
    "--rules", multiple=True, metavar="FILE.py", help="Run this Python file, and use its @transform functions."
)
def command(
    model: str | None,
    in_graph: str,
    out_graph: str,
    inputs: str,
    outputs: str,
    transforms: str,
    compat: str,
    output_as_text: bool,
    verbose: bool,
    check: bool,
    check_inputs: str | None,
    check_tolerance: float | None,
    report: str,
    partial: bool,
    view: str,
    rules: tuple[str, ...],
) -> None:
    """Rewrite a graph by rules, one after the other.

    A transform is a name, with parameters between parentheses right behind it where it needs some:

    \b
      pocketgraph transform_graph frozen.pb -o small.pb --inputs=x --outputs=softmax --transforms=smallest
      pocketgraph transform_graph frozen.pb -o small.pb --inputs=x --outputs=softmax --transforms='
        strip_unused_nodes(type=float, shape="1,224,224,3")
        fold_constants(ignore_errors=true)
        fold_batch_norms
        quantize_weights(per_channel=true)'

    Every transform takes ignore_errors=true, which goes on without it when it fails.
    """
    source, target = one_file(model, in_graph), out_graph
    _check_paths(source, target)
    if report and not report.endswith((".html", ".json")):
        raise UsageError(f"a report is .html or .json, not '{report}'", where="--report")
    if view:
        view = page_place(view, "--view")
    from pocketgraph import formats
    from pocketgraph.cli.shared.data_options import say
    from pocketgraph.formats.files import check_place
    from pocketgraph.freezing.ready_models import read_directory
    from pocketgraph.transforms import tool
    from pocketgraph.transforms.rule_files import load_file
    from pocketgraph.transforms.transform_report import Recorder

    if report:
        check_place(report)
    for path in rules:
        load_file(path)
    _check_transforms(transforms, compat)
    with _failing_with(f"Loading graph '{source}'"):
        graph = read_directory(source, names(outputs), notify=say)
    fed, fetched = names(inputs) or graph.inputs, names(outputs) or graph.outputs
    _check_names(graph, fed, fetched, is_original=compat == "original")
    recorder, problem = Recorder() if report else None, "it was stopped"
    checks = _checks(graph, check or check_inputs is not None, check_inputs, check_tolerance)

    applied_rules: list[tool.Applied] = []

    def observe(applied: tool.Applied) -> None:
        if view:
            applied_rules.append(applied)
        for observer in (recorder, checks):
            if observer is not None:
                observer(applied)

    try:
        with _echoed(tool.log, logging.INFO if verbose else logging.WARNING):
            before = graph.replace(inputs=fed, outputs=fetched)
            graph = tool.run(before, transforms, compat=compat, observe=observe)
        if not partial and compat != "original":
            from pocketgraph.inspect.transform_outcome import check_cut

            check_cut(before, graph, fed, fetched)
        size = _size(source)  # now: the result may take its place
        with _failing_with(f"Saving graph '{out_graph}'"):
            formats.save(graph, target, text=output_as_text)
        problem = ""
    except PocketgraphError as error:
        problem = str(error)
        raise
    finally:  # after the graph: a report that tells of no problem lies beside the graph that it is about
        if recorder is not None:
            _write_report(report, recorder, source, checks, problem)
        if applied_rules:
            _write_view(view, applied_rules, source)
    if checks is not None:
        _tell_passed(checks)
    _tell_outcome(before, graph, size, _size(target), transforms, compat)


def _check_paths(in_graph: str, out_graph: str) -> None:
    """Refuses a call without one graph to read and one to write, in the words of the original."""
    if not in_graph:
        raise UsageError("in_graph graph can't be empty", hint="pass --in_graph=MODEL.pb")
    if not out_graph:
        raise UsageError("out_graph graph can't be empty", hint="pass --out_graph=FILE.pb")


@contextmanager
def _failing_with(what: str) -> Iterator[None]:
    """Has errors say what failed, in the words of the original."""
    try:
        yield
    except PocketgraphError as error:
        raise type(error)(f"{what} failed with {error}") from error


def _tell_passed(checks: RuleCheck) -> None:
    worst = max((difference for _, difference in checks.passed), default=0.0)
    text = f"checked {counted(len(checks.passed), 'transform')}: results differ by at most {worst:.3g} of their peak"
    echo(text, err=True)
    for name, why in checks.unproven.items():
        echo(f"not proven: '{name}' {why}; give real feeds with --check_inputs=FILE.npz", err=True)


def _size(path: str) -> str:
    """How large a file is, in words behind a comma; "" for what is no file."""
    from pocketgraph.formats.model_file_facts import model_bytes

    return f", {bytes_text(model_bytes(path))}" if os.path.isfile(path) else ""


def _tell_outcome(before: Graph, after: Graph, size: str, new_size: str, transforms: str, compat: str) -> None:
    """What became of nodes and bytes, and with fewer bits what is left of the results."""
    from pocketgraph.inspect.transform_outcome import decibels_left, scaling_that_went, trades_precision
    from pocketgraph.runtime.comparison.answer_metrics import EXACT_DECIBELS, LEAST_DECIBELS, noise_words
    from pocketgraph.transforms import Compat, tool

    text = f"{counted(len(before), 'node')}{size} -> {counted(len(after), 'node')}{new_size}"
    left = None
    names = [name for name, _ in tool.parse_transforms(transforms, compat=Compat.named(compat))]
    if trades_precision(names):
        left = decibels_left(before, after)
        if left is not None:
            text += f"; {noise_words(left, 'the results are the same')} on random inputs"
            text += "; real ones may keep less" if LEAST_DECIBELS <= left <= EXACT_DECIBELS else ""
    echo(text, err=True)
    if went := scaling_that_went(before, after):
        echo(f"note: {went}", err=True)
    if left is not None and left < LEAST_DECIBELS:
        safer = "" if "smallest" in names else "--transforms=smallest loses less, and "
        echo(
            f"warning: less than {LEAST_DECIBELS:g} dB are left, so that many answers will be others; "
            f"{safer}`pocketgraph verify --data` tells what is lost on data of your own",
            err=True,
        )


def _check_transforms(transforms: str, compat: str) -> None:
    """Refuses a transform string that cannot be read, names no rule, or names what is not there."""
    from pocketgraph.transforms import Compat, tool

    try:
        steps = tool.parse_transforms(transforms, compat=Compat.named(compat))
    except UsageError as error:
        raise UsageError(f"Failed to parse --transforms argument, error was {error}") from error
    if not steps:
        raise UsageError("You must specify at least one transform", hint="transform_graph --help names them")
    tool.checked(steps, Compat.named(compat))


def _checks(graph: Graph, wanted: bool, path: str | None, tolerance: float | None) -> RuleCheck | None:
    if not wanted:
        if tolerance is not None:
            raise UsageError("--check_tolerance is for --check", hint="pass --check as well")
        return None
    from pocketgraph.inspect.rule_check import RuleCheck
    from pocketgraph.runtime.feeding.feed_files import read_feeds

    return RuleCheck(None if path is None else read_feeds(path, graph), tolerance)


def _write_report(path: str, recorder: Recorder, model: str, checks: RuleCheck | None, problem: str) -> None:
    from pocketgraph.formats.files import write_atomically
    from pocketgraph.inspect.transform_page import as_html, as_json

    if path.endswith(".json"):
        text = as_json(recorder.entries, model)
    else:
        text = as_html(recorder.entries, model, checks.passed if checks is not None else None, problem)
    write_atomically(path, text.encode())


def _write_view(path: str, applied: list[Applied], model: str) -> None:
    """The page of the graphs before and after each rule, those that presets ran one by one."""
    from pocketgraph.formats.files import write_atomically
    from pocketgraph.inspect.transform_page import called
    from pocketgraph.inspect.view.changes import AppliedRule
    from pocketgraph.inspect.view.page import as_comparison

    def steps(rules: Sequence[Applied]) -> Iterator[AppliedRule]:
        for one in rules:
            if one.steps:
                yield from steps(one.steps)
            else:
                given = {key: value for key, value in one.arguments.items() if key in one.rule.parameters}
                yield AppliedRule(called(one.rule.name, given), one.before, one.after)

    name = os.path.basename(os.path.normpath(model))
    page = as_comparison(list(steps(applied)), f"Transforms of {name}")
    write_atomically(path, page.encode("utf-8", "backslashreplace"))


class _Echo(logging.Handler):
    """Shows the log of the transforms on stderr, a line for each record."""

    def emit(self, record: logging.LogRecord) -> None:
        prefix = "warning: " if record.levelno >= logging.WARNING else ""
        echo(prefix + " ".join(record.getMessage().split()), err=True)


@contextmanager
def _echoed(log: logging.Logger, level: int) -> Iterator[None]:
    """Shows what is logged at this level or above while it lasts."""
    handler = _Echo(level)
    log.addHandler(handler)
    log.setLevel(level)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = True


def _check_names(
    graph: Graph, inputs: list[str] | tuple[str, ...], outputs: list[str] | tuple[str, ...], *, is_original: bool
) -> None:
    """A name that is not there is an error; the original ignores such inputs, so there it is only a warning."""
    for option, given in (("--outputs", outputs), ("--inputs", inputs)):
        for name in given:
            if node_name(name) in graph:
                continue
            text = f"the graph has no node '{node_name(name)}'"
            hint = unknown_node_hint(graph, node_name(name), is_fed=option == "--inputs")
            if option == "--outputs" or not is_original:
                raise UsageError(text, where=option, hint=hint)
            echo(f"warning: {option}: {text}" + (f"; {hint}" if hint else ""), err=True)
