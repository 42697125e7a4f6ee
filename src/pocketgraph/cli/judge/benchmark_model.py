"""``pocketgraph benchmark_model``: times a model, with the original tool's flags, lines and tables."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import click

from pocketgraph.cli.shared.data_options import known_preset, say
from pocketgraph.cli.shared.options import flag_bool, names, one_file, page_place, signature_option
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import PocketgraphError, RunError, UsageError

if TYPE_CHECKING:
    from pocketgraph.inspect.benchmark import Limits

OLD_RUNS, OLD_WARMUP = 50, 2
"""The oldest benchmark_model's defaults, taken with its flags ``--num_runs`` and ``--run_delay``."""
TABLES = ("show_run_order", "run_order_limit", "show_time", "time_limit", "show_memory", "memory_limit", "show_type",
          "show_summary", "format_as_csv")  # fmt: skip


@click.command("benchmark_model")
@click.argument("model", required=False)
@click.option("--graph", default="", help="The model to time, any form that `pocketgraph.load` takes.")
@click.option("--input_layer", metavar="NAMES", default="", help="Names to feed, by commas; default: the placeholders.")
@click.option("--input_layer_shape", default="", help="Shapes: 1,224,224,3:1,20")
@click.option("--input_layer_type", default="", help="Element types: float,int32")
@click.option("--input_layer_values", default="", help="First values: 0.5,1:7 (rest zero).")
@click.option(
    "--inputs", "-i", multiple=True, metavar="FILE|NAME=FILE",
    help="What to feed, in place of --input_layer: an array, picture, recording or text; several times if need be.",
)  # fmt: skip
@click.option(
    "--preset", callback=known_preset, help="How a picture is scaled; `label_image --preset=list` shows them."
)
@click.option("--output_layer", metavar="NAMES", help="Names to fetch; default: the likely outputs.")
@click.option("--target_layer", default="", help="Nodes to run without fetching them.")
@click.option("--max_num_runs", default=1000, show_default=True, help="Most runs a phase; 0: no limit.")
@click.option("--max_time", default="10.0", show_default=True, help="Most seconds a phase; 0: no limit.")
@click.option("--inference_delay", default="-1.0", help="Seconds to sleep after every run.")
@click.option("--inter_benchmark_delay", default="-1.0", help="Seconds between phases.")
@click.option("--num_runs", type=int, help="Just so many runs a phase (the oldest form of the tool).")
@click.option("--run_delay", help="Seconds to sleep after every run (the oldest form of the tool).")
@click.option("--step_stats_name", default="", help="Write one traced run as StepStats here.")
@click.option(
    "--trace_file",
    default="",
    help="Write one traced run: .json (Chrome), .pb (RunMetadata), or a folder with a slash behind it (TensorBoard).",
)
@click.option("--num_threads", "-j", default=-1, show_default=True, help="-1: as many as cores.")
@click.option("--benchmark_name", default="", help="Name of the result files.")
@click.option("--output_prefix", default="", help="Where result files go: a path and how they begin.")
@click.option("--warmup_runs", type=int, help="Runs before the timed ones; 1 (2 with --num_runs).")
@flag_bool("--show_sizes", help="Print the sizes of every node's outputs.")
@flag_bool("--show_run_order", default=True, help="Print all nodes in run order.")
@click.option("--run_order_limit", default=0, help="Most rows of it; 0: all.")
@flag_bool("--show_time", default=True, help="Print the nodes that take most time.")
@click.option("--time_limit", default=10, help="Most rows of it; 0: all.")
@flag_bool("--show_memory", default=True, help="Print the nodes with the largest outputs.")
@click.option("--memory_limit", default=10, help="Most rows of it; 0: all.")
@flag_bool("--show_type", default=True, help="Print times by node type.")
@flag_bool("--show_summary", default=True, help="Print the timing and memory lines.")
@flag_bool("--show_flops", help="Count floating point operations, as the original does and all of them.")
@flag_bool("--format_as_csv", help="Print the tables as comma-separated values.")
@click.option("--engine", metavar="NAME", default="auto", show_default=True,
              help="Which engine runs the model: reference, litert, openvino, onnxruntime or another by name; auto: "
              "LiteRT and, where it cannot, the reference engine.")  # fmt: skip
@click.option("--compare", is_flag=False, flag_value="all", default="",
              help="Time other programs on the same model too: all, or some of reference, litert, auto "
              "(a session's default), tensorflow, onnxruntime, openvino.")  # fmt: skip
@click.option("--compare_python", default="", help="The Python that has those programs.")
@click.option("--report", "report_path", default="", metavar="FILE.html", help="Write a page with all of it.")
@signature_option
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON and nothing else.")
def command(model: str | None, graph: str, report_path: str, as_json: bool, **flags: Any) -> None:
    """Time MODEL: warm-up, then runs without and with per-node times.

    Without --input_layer the graph's own placeholders are fed with zeros, and without --output_layer its likely
    outputs are fetched.

    \b
      pocketgraph benchmark_model --graph=small.pb
      pocketgraph benchmark_model --graph=small.pb --input_layer=x --input_layer_shape=1,48,48,3 \\
        --input_layer_type=float --output_layer=softmax --num_threads=1
      pocketgraph benchmark_model small.pb --compare=reference,litert,auto
    """
    from pocketgraph.apps.model_timing import likely_output_names, programs_of, timed_programs
    from pocketgraph.cli.shared import benchmark_report as report
    from pocketgraph.cli.shared.benchmark_inputs import banner, chosen_layers
    from pocketgraph.formats.files import write_atomically
    from pocketgraph.inspect.benchmark import time_session
    from pocketgraph.inspect.step_flops import count_step
    from pocketgraph.runtime.profiling.stat_summarizer import Options, StatSummarizer

    path = one_file(model, graph)
    if not path:
        raise UsageError("no model given", hint="pass --graph=MODEL.pb")
    in_the_old_way(flags)
    writes = bool(flags["benchmark_name"] and flags["output_prefix"])
    report_path = _checked_places(flags, report_path, writes)
    programs = programs_of(flags["compare"])
    say = (lambda line: None) if as_json else echo
    start = time.perf_counter()
    session = opened(path, flags)
    seconds = time.perf_counter() - start
    with session:
        targets = names(flags["target_layer"])
        outputs = names(flags["output_layer"])
        if flags["output_layer"] is None or not (outputs or targets):
            outputs = likely_output_names(session.graph)
        if flags["compare"] and not outputs:
            raise UsageError("--compare compares what is fetched", hint="name it with --output_layer")
        layers = chosen_layers(session.graph, [*outputs, *targets], flags)
        for title, value in banner(path, layers, outputs, flags):
            say(f"{title}: [{value}]")
        say("Got config, 0 devices")
        say(f"Initialized session in {seconds:g}s")
        limits = limits_of(flags)
        summarizer = StatSummarizer(Options(**{name: flags[name] for name in TABLES}))
        result = time_session(session, layers, outputs, limits, summarizer, say, targets)
        result.load_seconds = seconds
        if flags["show_flops"] or as_json:
            feeds = {layer.name: layer.array() for layer in layers}
            result.flops = count_step(session.graph, feeds, outputs, targets)
        if not as_json:
            report.show(result, flags["show_sizes"])
        for line in report.written(result, layers, session.graph, flags, writes):
            say(line)
        if programs:
            python = flags["compare_python"]
            result.peers = timed_programs(path, session, layers, outputs, limits, programs, python)
        if report_path:
            write_atomically(report_path, report.page(path, session, layers, outputs, result).encode())
            say(f"Wrote {report_path}")
        if as_json:
            echo(report.as_json(path, session, layers, outputs, result))
        elif result.peers:
            report.show_peers(result.peers)


def _checked_places(flags: dict[str, Any], report: str, writes: bool) -> str:
    """The place of the report; files that cannot be written are refused before anything is timed."""
    from pocketgraph.inspect.benchmark_files import refuse_existing, refuse_no_folder
    from pocketgraph.inspect.tracing import check_ending

    if writes:
        refuse_existing(flags["output_prefix"], flags["benchmark_name"])
    if flags["trace_file"]:
        check_ending(flags["trace_file"])
    if report:
        report = page_place(report)
    for file in filter(None, (flags["trace_file"].rstrip("/" + os.sep), flags["step_stats_name"], report)):
        refuse_no_folder(file)
    return report


def limits_of(flags: dict[str, Any]) -> Limits:
    """How often and how long to run, as the flags say."""
    from pocketgraph.cli.shared.benchmark_inputs import number
    from pocketgraph.inspect.benchmark import Limits

    return Limits(
        max_runs=flags["max_num_runs"],
        max_seconds=-1.0 if flags["fixed_runs"] else number(flags["max_time"]),
        warmup_runs=flags["warmup_runs"],
        inference_delay=number(flags["inference_delay"]),
        inter_benchmark_delay=number(flags["inter_benchmark_delay"]),
        fixed_runs=flags["fixed_runs"],
    )


def opened(path: str, flags: dict[str, Any]) -> Any:
    """The session, its model loaded.

    Raises:
        RunError: the model cannot be loaded.
    """
    from pocketgraph.freezing.ready_models import for_session
    from pocketgraph.runtime import Session

    try:
        session = Session(
            for_session(path, names(flags["output_layer"]) or None, signature=flags["signature"], notify=say),
            threads=flags["num_threads"] if flags["num_threads"] > 0 else None,
            engine=None if flags["engine"] == "auto" else flags["engine"],
            without=["tiered_compilation"],  # every run of a measurement is of the same kind
        )
        assert session.graph is not None
    except PocketgraphError as error:
        raise RunError(
            f"Could not create TensorFlow Graph: {error.what}", where=error.where, hint=error.hint
        ) from error
    return session


def in_the_old_way(flags: dict[str, Any]) -> None:
    """Turns the oldest tool's flags into today's, with that tool's defaults."""
    flags["fixed_runs"] = flags["num_runs"] is not None or flags["run_delay"] is not None
    if flags["fixed_runs"]:
        flags["max_num_runs"] = OLD_RUNS if flags["num_runs"] is None else flags["num_runs"]
        if flags["run_delay"] is not None:
            flags["inference_delay"] = flags["run_delay"]
    if flags["warmup_runs"] is None:
        flags["warmup_runs"] = OLD_WARMUP if flags["fixed_runs"] else 1
