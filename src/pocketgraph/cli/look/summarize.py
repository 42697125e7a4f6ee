"""``pocketgraph summarize``: a graph in tables, and what to type next."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import click

from pocketgraph.cli.shared.benchmark_inputs import benchmark_flags
from pocketgraph.cli.shared.keys import typed_key
from pocketgraph.cli.shared.options import signature_option
from pocketgraph.cli.shared.output import NamesCell, echo, echo_json, escape, wide_console
from pocketgraph.cli.shared.pipes import is_piped
from pocketgraph.errors import PocketgraphError, quoted, quoted_path
from pocketgraph.graph import Graph, Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.node import further_outputs, node_name
from pocketgraph.graph.op_traits import ENTER, FEEDS_TRAINING, LOOPS, MATRIX_PRODUCTS, PLACEHOLDERS, ops_with
from pocketgraph.pages.quantities import bytes_text, counted

if TYPE_CHECKING:
    from pocketgraph.freezing.ready_models import ReadyModel
    from pocketgraph.inspect import EndpointSummary, Summary

FULL_WIDTH, WITHOUT_OPS = 90, 60  # columns of text from which the table says why; below which it leaves out ops
LEAST_WHY, OTHER_COLUMNS = 22, 24  # columns of text that say why, where names are long; of titles, types and margins
MOST_ENDS = 8  # rows of inputs, and of outputs
MOST_PRODUCTS = 40  # of matrices; a graph with more is a loop that is written out
MOST_OPS = 12  # rows of the op table; the rest is one line


@click.command("summarize")
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
@click.option("--all-ops", is_flag=True, help="List every op type.")
@signature_option
def command(model: str, as_json: bool, all_ops: bool, signature: str | None) -> None:
    """Show MODEL's likely inputs and outputs, sizes and ops, and the commands to type next.

    \b
      pocketgraph summarize frozen.pb
    """
    import pocketgraph
    from pocketgraph.cli.shared.data_options import say
    from pocketgraph.freezing.ready_models import is_training, ready

    found: ReadyModel | None = None
    if signature is not None or is_training(model):
        found = ready(model, signature=signature)
        for note in found.notes:
            say(note)
    facts = pocketgraph.summarize(found.graph if found is not None else pocketgraph.load(model))
    if as_json:
        echo_json(as_dict(facts, model))
    else:
        show(facts, model, all_ops, found)


def as_dict(facts: Summary, path: str) -> dict[str, Any]:
    """The facts for programs."""

    def endpoint(e: EndpointSummary) -> dict[str, Any]:
        dtype = e.dtype.name if e.dtype else None
        return {"name": e.name, "op": e.op, "dtype": dtype, "shape": e.shape.dims, "why": e.why}

    public = facts.graph.public_signatures
    return {
        "file": path,
        "nodes": len(facts.graph),
        "functions": len(facts.graph.functions),
        "producer": facts.graph.versions.producer,
        "inputs": [endpoint(e) for e in facts.inputs],
        "outputs": [endpoint(e) for e in facts.outputs],
        "constants": len(facts.constants),
        "const_parameters": facts.const_parameters,
        "const_bytes": facts.const_bytes,
        "variables": len(facts.variables) + len(facts.resource_variables),
        "variable_parameters": facts.variable_parameters,
        "control_edges": facts.control_edges,
        "devices": facts.devices,
        "signatures": {key: {"inputs": {**one.inputs}, "outputs": {**one.outputs}} for key, one in public.items()},
        "ops": dict(facts.op_counts),
    }


def show(facts: Summary, path: str, all_ops: bool, ready: ReadyModel | None = None) -> None:
    """Prints the tables; ``ready`` is what was frozen in memory."""
    from pocketgraph.formats.model_file_facts import model_bytes
    from pocketgraph.graph.model_file_graph import is_model_file
    from pocketgraph.inspect.value_text import human_readable
    from pocketgraph.litert.missing_operators import unregistered

    console = wide_console()
    graph = facts.graph
    size = f", {bytes_text(model_bytes(path))}" if os.path.isfile(path) else ""
    console.print(
        f"[bold]{escape(path)}[/]{size}, {counted(len(graph), 'node')}, {counted(len(facts.op_counts), 'op type')}",
        end="",
    )
    console.print(f", {counted(len(graph.functions), 'function')}" if graph.functions else "")

    _print_ends(facts, console)
    variables = len(facts.variables) + len(facts.resource_variables)
    for line in facts.signature_lines if not is_model_file(graph) else ():
        console.print(escape(line), soft_wrap=True)
    for line in records_lines(facts):
        console.print(escape(line), soft_wrap=True)
    console.print(
        f"constants: {len(facts.constants)} with {human_readable(facts.const_parameters)} parameters, "
        f"{bytes_text(facts.const_bytes)}; variables: {variables} with {human_readable(facts.variable_parameters)}; "
        f"control edges: {facts.control_edges}"
    )
    for device, count in facts.devices.items():
        console.print(f"device {escape(device)}: {counted(count, 'node')}")
    rows = facts.op_counts if all_ops else facts.op_counts[:MOST_OPS]
    text = ", ".join(f"{escape(op)} {count}" for op, count in rows)
    rest = len(facts.op_counts) - len(rows)
    console.print(f"ops: {text}" + (f" and {rest} more (--all-ops)" if rest else ""))
    for name, missing in graph.dangling():
        console.print(f"[red]broken:[/] node {escape(name)} refers to {escape(missing)}, which is not in the graph")
    if others := unregistered(node.op for node in graph):
        text = f"it runs only where a program registers its custom operators: {', '.join(others)}"
        console.print(escape(text), soft_wrap=True)
    if not is_model_file(graph) and not variables and (why := missing_kernels(facts)):
        console.print(escape(f"it does not run here: {why}"), soft_wrap=True)
    if variables and not has_values(path):
        text = (
            f"the values of {counted(variables, 'variable')} are not here: freeze_graph takes them from "
            "--input_checkpoint"
        )
        console.print(text, soft_wrap=True)
    if is_piped():
        return  # there is no file that a command could be proposed for
    console.print("next:", style="bold")
    if ready is not None and ready.freezing is not None:
        commands = with_freezing(facts, path, ready)
    else:
        commands = next_commands(facts, path, is_litert=is_model_file(graph))
    for line in commands:
        echo(f"  {line}{typed_key()}")


def records_lines(facts: Summary) -> list[str]:
    """What inputs of serialized tf.Examples hold, a sentence each, and which tensors take numbers in their place."""
    from pocketgraph.runtime.feeding.record_samples import features_of, parser_of

    lines = []
    for e in facts.inputs[:MOST_ENDS]:
        parser = parser_of(facts.graph, e.name) if node_name(e.name) in facts.graph else None
        if parser is None or parser.op == "DecodeCSV" or any(facts.graph.dangling()):
            continue
        from pocketgraph.apps.shipping.record_entry import numbers_entry

        keys = ", ".join(
            sorted(one.key.decode("utf-8", "backslashreplace") for one in features_of(facts.graph, parser))
        )
        entry = numbers_entry(facts.graph, facts.main_outputs) if facts.main_outputs else None
        tensors = entry.tensors if entry is not None and all(node_name(t) in facts.graph for t in entry.tensors) else ()
        takes_numbers = f"--inputs={quoted(','.join(tensors))} takes numbers in their place"
        instead = f"; {takes_numbers if tensors else '--data=TABLE.csv with these columns makes such'}"
        lines.append(f"'{e.name}' takes records of tf.Example with {keys}{instead}")
    return lines


def _print_ends(facts: Summary, console: Any) -> None:
    """Prints the table of inputs and outputs, as much of it as the console is wide enough for."""
    from rich.table import Table

    ends = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    groups = {"input": _rows(facts.inputs), "output": _rows(facts.outputs)}
    shown = [e for rows, _ in groups.values() for e in rows]
    longest = [max((len(getattr(e, part)) for e in shown), default=0) for part in ("name", "op")]
    needed = sum(longest) + OTHER_COLUMNS + max((len(str(e.shape)) for e in shown), default=0)
    titles = ["", "name", "op", "type", "shape", "why"][: None if console.width >= FULL_WIDTH else -1]
    if console.width < WITHOUT_OPS:
        titles.remove("op")
    for column in titles:
        ends.add_column(
            column, overflow="fold", no_wrap=column not in ("name", "op", "why"),
            max_width=max(LEAST_WHY, console.width - needed) if column == "why" else None,
        )  # fmt: skip
    for title, (rows, rest) in groups.items():
        if not rows:
            ends.add_row(title, "none found")
        for e in rows:
            row: dict[str, Any] = {
                "": title, "name": NamesCell(e.name), "op": NamesCell(e.op), "type": e.dtype.name if e.dtype else "?",
                "shape": escape(str(e.shape)), "why": escape(e.why),
            }  # fmt: skip
            ends.add_row(*(row[column] for column in titles))
        if rest:
            ends.add_row("", f"{rest} (--json lists all)")
    console.print(ends)


def _rows(ends: Sequence[EndpointSummary]) -> tuple[Sequence[EndpointSummary], str]:
    """The ends that are shown, and how many others there are: where there are many, those that the file states."""
    if len(ends) <= MOST_ENDS:
        return ends, ""
    named = [e for e in ends if e.why.startswith(("stated ", "signature "))]
    shown = (named or ends)[:MOST_ENDS]
    others = " that the file does not state" if len(shown) == len(named) else ""
    return shown, f"and {len(ends) - len(shown)} more{others}"


def has_values(path: str) -> bool:
    """Whether freeze_graph finds the values of a graph's variables by itself: in a SavedModel, or in a checkpoint of
    either form beside the graph."""
    from pocketgraph.formats.meta_graph import init_op, read_saved_model
    from pocketgraph.freezing import training_dir

    try:
        found = training_dir.find(path)
        if found.checkpoint is not None:
            return True
        return os.path.isdir(found.graph) and any(
            init_op(stored) is not None for stored in read_saved_model(found.graph)
        )
    except PocketgraphError:
        return os.path.isdir(path)


def next_commands(facts: Summary, path: str, *, is_litert: bool = False) -> list[str]:
    """What to paste next, with this graph's own names."""
    from pocketgraph.freezing.leftovers import changed_constants
    from pocketgraph.freezing.table_contents import lookups_without_filler
    from pocketgraph.freezing.tables import empty_tables
    from pocketgraph.litert.missing_operators import unregistered
    from pocketgraph.runtime.random_answers import random_nodes

    fed = fed_inputs(facts)
    chosen = facts.main_outputs
    outputs = ",".join(chosen)
    nodes = quoted(",".join(dict.fromkeys(map(node_name, chosen))))
    model = quoted_path(path)
    if facts.variables or facts.resource_variables:
        if not outputs or not has_values(path):
            return [f"pocketgraph view {model}"]  # its values are elsewhere
        return frozen_commands(path) or [f"pocketgraph view {model}"]
    if not outputs:
        return []
    if changed_constants(facts.graph, chosen) or empty_tables(facts.graph):
        return [f"pocketgraph view {model}"]  # no session runs it
    if lookups_without_filler(facts.graph):  # else the tables are filled in a step of their own, before any other
        return [f"pocketgraph freeze_graph {model} --output_node_names={nodes} -o frozen.pb"]
    if is_litert:
        runs = not unregistered(node.op for node in facts.graph)
        return [f"pocketgraph benchmark_model --graph={model}"] * runs + [f"pocketgraph view {model}"]
    repaired = repaired_for_use(facts, chosen)
    if repaired is not None:
        ready = "ready.pb" if os.path.basename(path) != "ready.pb" else "repaired.pb"
        begin = f"pocketgraph freeze_graph {model} -o {ready} --output_node_names={nodes} --repair"
        return [begin, *next_commands(repaired, ready)]
    smallest = "smallest" if bears_few_bits(facts.graph) else "mobile"
    first = fed[0] if fed else None
    if first is not None and first.op != "Placeholder" and first.shape.dims and first.dtype is not None:
        sizes = ",".join("1" if size is None else str(size) for size in first.shape.dims)
        smallest += f'(type={first.dtype.name}, shape="{sizes}")'  # else it would become a scalar of type float
    small = "smaller.pb" if os.path.basename(path) == "small.pb" else "small.pb"  # never the model itself
    ends = (f"--inputs={quoted(','.join(e.name for e in fed))} " if fed else "") + f"--outputs={quoted(outputs)}"
    flags = benchmark_flags(facts, fed)
    commands = [
        f"pocketgraph transform_graph --in_graph={model} --out_graph={small} {ends} --transforms='{smallest}'",
        f"pocketgraph verify {model} {small} --outputs={quoted(outputs)}",
        f"pocketgraph benchmark_model --graph={model}{flags}",
    ]
    if flags is None or loops_by_numbers(facts.graph, fed) or missing_kernels(facts):
        return [commands[0], f"pocketgraph view {model}"]
    return [commands[0], commands[2]] if random_nodes(facts.graph, chosen) else commands


def frozen_commands(path: str) -> list[str]:
    """The call of freeze_graph that works on a model with variables, and what to type next; none where none does."""
    from pocketgraph.freezing.ready_models import ready
    from pocketgraph.inspect import summarize

    try:
        found = ready(path)
        return with_freezing(summarize(found.graph), path, found)
    except PocketgraphError:
        return []


def with_freezing(frozen: Summary, path: str, ready: ReadyModel) -> list[str]:
    """What to type next of a model that is frozen first."""
    from pocketgraph.inspect.identify import freeze_command

    name = "frozen.pb" if os.path.basename(path) != "frozen.pb" else "ready.pb"
    return [freeze_command(path, ready.freezing, name), *next_commands(frozen, name)]


def missing_kernels(facts: Summary) -> str:
    """Which ops nothing here computes that the main outputs need, and what may help; "" where all are computed."""
    from pocketgraph.errors import MissingKernelError
    from pocketgraph.runtime.engines.functions import FunctionLibrary
    from pocketgraph.runtime.engines.needed import needed
    from pocketgraph.runtime.feeding.default_tensors import feed_specs
    from pocketgraph.runtime.missing_kernels import check_kernels
    from pocketgraph.runtime.tensor_names import fetch_endpoint

    if facts.graph.dangling():
        return ""
    try:
        fed = frozenset(spec.endpoint for spec in feed_specs(facts.graph, facts.main_outputs))
        items = needed(facts.graph, fed, [fetch_endpoint(facts.graph, name) for name in facts.main_outputs], ())
        check_kernels((item.node for item in items.values()), FunctionLibrary(facts.graph))
    except MissingKernelError as error:
        return str(error)
    except PocketgraphError:  # of a damaged graph, which the commands tell themselves
        return ""
    return ""


def repaired_for_use(facts: Summary, outputs: Sequence[str]) -> Summary | None:
    """The summary of the graph without dropout and without flags of training; None where it has none."""
    from pocketgraph.freezing import freeze
    from pocketgraph.graph.order import reachable
    from pocketgraph.inspect import summarize
    from pocketgraph.passes.dropout_removal import without_dropout
    from pocketgraph.passes.training_switches import flag_in_use, training_switches

    graph = facts.graph
    if graph.dangling() or graph.signatures:
        return None
    needed = reachable(graph, list(outputs))
    flags = [node for node in graph if node.name in needed and flag_in_use(graph, node) is not None]
    is_plain = not flags and needed.isdisjoint(training_switches(graph)) and not without_dropout(graph)[1]
    if is_plain and not feeds_several(graph, needed):
        return None
    try:
        found = summarize(freeze(graph, list(dict.fromkeys(map(node_name, outputs))), repair=True))
    except PocketgraphError:
        return None
    is_changed = len(found.graph) < len(needed) or fed_inputs(found) != fed_inputs(facts)
    return found if is_changed and found.outputs else None


def feeds_several(graph: Graph, needed: Collection[str]) -> bool:
    """Whether more than the first output of a queue or an iterator is read: no one placeholder takes its place."""
    sources = {node.name for node in graph if node.name in needed and node.op in FEEDS_TRAINING}
    return bool(sources) and bool(further_outputs([node for node in graph if node.name in needed], sources))


def loops_by_numbers(graph: Graph, fed: Sequence[EndpointSummary]) -> bool:
    """Whether single numbers that are fed may say how often a loop runs: with made-up ones it may run for ever."""
    has_numbers = any(e.shape.dims in ((), None) and e.dtype is not None and e.dtype.is_floating for e in fed)
    return has_numbers and any(node.op in ENTER | LOOPS for node in graph)


def bears_few_bits(graph: Graph) -> bool:
    """Whether weights in few bits are likely to leave the results what they are: not where errors add up over the steps
    of a loop, where boxes or places are chosen by small differences, nor where the weights are in few bits already."""
    from pocketgraph.runtime.comparison.compared_models import EIGHT_BIT

    fragile = {op for trait in ("box_selection", "enter", "loop", "sized_by_value", "random") for op in ops_with(trait)}
    ops = {node.op for node in graph} | {node.op for body in graph.functions.values() for node in body.nodes}
    is_written_out = sum(node.op in MATRIX_PRODUCTS for node in graph) > MOST_PRODUCTS
    if is_written_out or any(op in fragile or EIGHT_BIT.match(op) for op in ops):
        return False
    return not reads_chosen_places(graph)


def reads_chosen_places(graph: Graph) -> bool:
    """Whether floats are gathered from places, such as those of the largest scores, that what layers give decides."""
    from pocketgraph.graph.order import reachable

    def before(names: Collection[str]) -> list[Node]:
        return [graph[name] for name in reachable(graph, names, data_only=True, missing_ok=True)]

    jumps = ops_with("discontinuous") | {"ArgMax", "ArgMin"}
    gathers = [node for node in graph if "Tindices" in node.attrs and node.attr("Tparams") is FLOAT]
    places = [ref for node in gathers for ref in node.data_inputs[1:2]]
    choices = [node.name for node in before(places) if node.op in jumps]
    return any(node.op in ops_with("layer") for node in before(choices))


def fed_inputs(facts: Summary) -> list[EndpointSummary]:
    """The inputs that the main outputs need a value for: not those of other ends, nor those that stand for a
    constant (``keep_prob``) or for a layer of the network (a retrained model's)."""
    from pocketgraph.graph.order import reachable
    from pocketgraph.runtime.feeding.default_tensors import wants_a_feed

    if not facts.outputs or facts.graph.dangling():
        return list(facts.inputs)
    before = reachable(facts.graph, facts.main_outputs)
    fed = [
        end
        for end in facts.inputs
        if node_name(end.name) in before
        and (end.op != "PlaceholderWithDefault" or wants_a_feed(facts.graph, facts.graph.producer(end.name)))
    ]
    placeholders = {node_name(end.name) for end in fed if end.op in PLACEHOLDERS}
    return [
        end
        for end in fed  # what a signature names behind a placeholder, which wants its feed all the same
        if node_name(end.name) in placeholders or placeholders.isdisjoint(reachable(facts.graph, [end.name]))
    ]
