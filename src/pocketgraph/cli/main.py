"""The command line: finds the command by name, loads it alone, and turns errors into one line and an exit code."""

from __future__ import annotations

import atexit
import codecs
import gc
import io
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from pocketgraph.cli.shared.completed_names import completes_names, completes_words
from pocketgraph.cli.shared.ending import Ended, ends_when_asked, stopped_by
from pocketgraph.cli.shared.keys import opens_sealed_models
from pocketgraph.cli.shared.options import names_value, takes_both_spellings, takes_finite_numbers
from pocketgraph.cli.shared.output import echo
from pocketgraph.cli.shared.pipes import through_pipes
from pocketgraph.errors import GOES_ON, PocketgraphError, did_you_mean
from pocketgraph.part_files import remove_own
from pocketgraph.version import VERSION

ROAD = {
    "All of it": {"ship": "Make the file that ships: from a trained model and data to a verdict, in one call."},
    "Look": {
        "identify": "Say what files are: form, version, nodes, variables, bytes, and what to type next.",
        "summarize": "Say what a graph holds, in tables: likely inputs and outputs, ops, what to type next.",
        "summarize_graph": "Say what a graph holds, in the original tool's words.",
        "view": "Draw a model as a page to walk through: scopes, shapes, costs, times; or as SVG, PNG.",
        "plan": "Show which parts of a model run on which engine, and why.",
        "graph_to_dot": "Write a graph for Graphviz, or draw it where that is installed.",
        "import_pb_to_tensorboard": "Write a model where TensorBoard finds it: graph, shapes and times.",
        "model_explorer": "Write a model for Model Explorer, with operations, bytes and times as overlays.",
    },
    "Freeze": {"freeze_graph": "Make one graph with constants out of a training graph and its checkpoint."},
    "Change": {
        "transform_graph": "Rewrite a graph by rules: strip, fold, quantize, round…",
        "transforms": "List the transforms of transform_graph, or tell all about one.",
        "strip_unused": "Keep what lies between chosen inputs and outputs.",
        "optimize_for_inference": "Strip, drop training's nodes, fold batch norms, as TensorFlow's tool of that name.",
        "convert": "Write a model or checkpoint in another form: .pb, .pbtxt, memory-mapped, SavedModel…",
        "convert_graphdef_memmapped_format": "Write a package whose weights are mapped into memory, not read.",
        "seal": "Encrypt a model file.",
        "unseal": "Decrypt a sealed file.",
    },
    "Quantize": {"quantize": "Make an eight-bit LiteRT model with the help of samples, and report on each layer."},
    "Judge": {
        "verify": "Run two models on the same inputs and compare what comes out.",
        "evaluate": "Judge models on data: accuracy, agreement with the float model, KL, signal to noise.",
        "benchmark_model": "Time a model: run statistics, and tables by node and by node type.",
        "fit": "Say whether a model fits devices: latency, frames a second, memory, and what to do when not.",
        "check": "Say whether a model can be exported, and which nodes stand in the way.",
    },
    "Export": {
        "export": "Write the form that a device runs, .tflite, ONNX, C…, checked against the graph.",
        "app": "Write a small project that runs a model: Android, iOS, Raspberry Pi, Linux.",
        "print_required_ops": "Print the ops that models need, also as lists for reduced builds of runtimes.",
        "print_selective_registration_header": "Print ops_to_register.h for a TensorFlow of only what graphs need.",
    },
    "Use": {
        "label_image": "Say what is in pictures with an image classifier.",
        "label_wav": "Say what is in recordings with a model of spoken words.",
        "label_text": "Say what texts are with a classifier of texts.",
        "test_streaming_accuracy": "Find the words of a long recording, and judge them by what was said in it.",
        "generate_streaming_test_wav": "Write a long recording of known words over noise, to judge a model by.",
        "wav_to_features": "Write what a network of words is given of a recording as a C file.",
        "live": "Run a model on a camera or microphone: a page, or annotated pictures, GIF, JSON lines.",
    },
    "Teach": {
        "retrain": "Teach a classifier classes of one's own, out of photos, recordings or a table.",
        "dataset": "Label photos by keyboard; check them before training; apply what was decided.",
        "federated": "Train one graph on data of many that stay where they are: server, client, simulation.",
        "embed": "Write what a model makes of photos at any of its tensors, as vectors.",
        "nearest": "Name the photos nearest to others by their vectors; classify without training.",
    },
    "This program": {
        "help": "Read a guide here: freezing, quantization, shipping…; or what --help tells of a command.",
        "completion": "Have the Tab key complete commands, options, files, and names of the model that is typed.",
    },
}
"""The commands by what they are for, in the order in which a model meets them, each with its one line."""

COMMANDS = {name: line for commands in ROAD.values() for name, line in commands.items()}
"""Every command with its one line."""

ROOMS = frozenset({"Look", "Change", "Judge", "Export", "Use", "Teach"})
"""The parts of the road whose commands have a folder; those of the others stand beside this file."""


def module_of(command: str) -> str:
    """The module that holds a command, of the same name."""
    part = next(title for title, commands in ROAD.items() if command in commands)
    return f"pocketgraph.cli.{part.lower()}.{command}" if part in ROOMS else f"pocketgraph.cli.{command}"


ALIASES = {
    "freeze": "freeze_graph",
    "transform": "transform_graph",
    "benchmark": "benchmark_model",
    "label_wav_dir": "label_wav",
}

FORMER = {
    "toco": "export MODEL.pb -o MODEL.tflite",
    "tflite_convert": "export MODEL.pb -o MODEL.tflite",
    "tf2onnx": "export MODEL.pb -o MODEL.onnx",
    "mo": "export MODEL.pb -o MODEL.onnx",
    "ovc": "export MODEL.pb -o MODEL.onnx",
    "quantize_graph": "transform_graph MODEL.pb -o SMALL.pb --inputs=IN --outputs=OUT --transforms=smallest",
    "inspect_checkpoint": "identify CHECKPOINT --variables",
    "saved_model_cli": "summarize SAVED_MODEL",
    "export_inference_graph": "freeze_graph TRAINING -o FROZEN.pb",
    "export_tflite_ssd_graph": "freeze_graph TRAINING -o FROZEN.pb",
    "tensorflowjs_converter": "app web MODEL.pb -o SITE",
    "compare_graphs": "view MODEL.pb --compare=OTHER.pb",
    "inference_diff": "verify MODEL.pb MODEL.tflite",
}
"""Tools that came before, whose work a command of another name does."""

WITHOUT_MODELS = frozenset({"transforms", "dataset apply", "dataset export", "completion", "help"})
"""Commands, and parts of commands, that open no model, and so need no key of a sealed one."""

LONGEST_ERROR = 4000  # letters; a name or a line of a hostile file may have millions
NAMES = 24  # columns; descriptions of the few commands with longer names begin in the next line

EPILOG = """\b
From a TensorFlow 1 training directory to a model that ships:
  pocketgraph freeze_graph training/ -o frozen.pb
  pocketgraph summarize frozen.pb
  pocketgraph transform_graph frozen.pb -o small.pb --inputs=IN --outputs=OUT --transforms=smallest
  pocketgraph verify frozen.pb small.pb
  pocketgraph benchmark_model --graph=small.pb

Dashes and underscores in names are the same. `pocketgraph help` lists guides, `pocketgraph COMMAND --help` tells all
of a command.
"""


class Commands(click.Group):
    """The group of all commands; a command's module is imported when it is called, not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = cmd_name.replace("-", "_")
        name = ALIASES.get(name, name)
        if name not in COMMANDS:
            return None
        command = import_module(module_of(name)).command
        assert isinstance(command, click.Command)
        for part in command.commands.values() if isinstance(command, click.Group) else [command]:
            if name not in WITHOUT_MODELS and f"{name} {part.name}" not in WITHOUT_MODELS:
                opens_sealed_models(part)
            completes_names(part)
            for parameter in part.params:
                if isinstance(parameter, click.Option):
                    takes_both_spellings(parameter)
                    names_value(parameter)
                    takes_finite_numbers(parameter)
            through_pipes(part)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        command = self.get_command(ctx, args[0])
        if command is None:
            former = FORMER.get(args[0].replace("-", "_").removesuffix(".py"))
            hint = f"here it is pocketgraph {former}" if former else did_you_mean(args[0], [*COMMANDS, *ALIASES])
            raise click.UsageError(f"there is no command '{args[0]}'" + (f"; {hint}" if hint else ""), ctx)
        return command.name, command, args[1:]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, (name for name in COMMANDS if len(name) <= NAMES)))
        for title, commands in ROAD.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), line) for name, line in commands.items()], NAMES)


@click.group(
    cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(VERSION, message="%(prog)s %(version)s")
def group() -> None:
    """Takes a trained TensorFlow model to the small, fast, verified form that ships, without TensorFlow."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and leaves with 0, 1 (the work failed) or 2 (the call was wrong).

    Errors and warnings are one line on stderr. Set POCKETGRAPH_DEBUG=1 to get the traceback as well.
    """
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    if arguments is None:
        _own_process()
    completes_words()
    typed = sys.argv[1:] if arguments is None else arguments
    is_expanded = arguments is None and os.name == "nt"  # by click, patterns too, as the shell there leaves them
    try:
        sys.exit(_called(None if is_expanded else [*map(_at_home, typed)]))
    except PocketgraphError as error:
        fail(str(error), error.exit_code)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort as abort:
        fail(*_stopped(abort.__cause__ or abort.__context__))
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.format_message(), err=True)
        sys.exit(2)
    except click.ClickException as error:
        context: Any = getattr(error, "ctx", None)
        command = f" ({context.command_path} --help tells how)" if context is not None else ""
        if isinstance(error, click.NoSuchOption) and context is not None:
            from pocketgraph.cli.shared.former_options import FORMER_OPTIONS

            here = FORMER_OPTIONS.get(context.command.name, {}).get(error.option_name.lstrip("-").replace("-", "_"))
            if here:
                fail(f"there is no option '{error.option_name}'; here it is {here}{command}", 2)
        fail(error.format_message().rstrip(".") + command, 2)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  the reader has gone; nothing is left to say
        sys.exit(1)
    except MemoryError:
        fail("there is not enough memory for this model", 1)
    except OSError as error:
        from pocketgraph.formats.files import near

        place = f"{error.filename}: " if error.filename else ""
        fail(f"{place}{error.strerror or error}" + (f"; {near('')}" if error.filename == "" else ""), 1)


def _called(words: list[str] | None) -> int:
    """The exit code of a call.

    Raises:
        click.Abort: it was stopped, also where what was being imported meanwhile made another error of that.
    """
    try:
        code = group.main(words, "pocketgraph", standalone_mode=False)
    except Exception as error:
        behind: BaseException | None = error
        while behind is not None and not isinstance(behind, KeyboardInterrupt):
            behind = behind.__cause__ or behind.__context__
        if behind is None:
            raise
        raise click.Abort from behind
    return code if isinstance(code, int) else 0


def _stopped(end: BaseException | None) -> tuple[str, int]:
    """What is said of a KeyboardInterrupt, and the exit code."""
    number = end.number if isinstance(end, Ended) else signal.SIGINT
    on = "; the same call made again goes on from here" if getattr(end, GOES_ON, False) else ""
    return f"{stopped_by(number)}{on}", 128 + number


def _at_home(word: str) -> str:
    """A word of the call, with a leading ~ looked up also behind ``--data=``, where most shells leave it."""
    flag, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return flag + equals + os.path.expanduser(value) if value.startswith("~/") else word


def _own_process() -> None:
    """What a process that is ours alone does without, each of which took a tenth of a short command's time; and letters
    of any language on streams that have those of one, or of none.

    Standard streams that it was started without lead nowhere: else the files that it opens would take their places.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  as long as the process
    ends_when_asked()
    os.environ.setdefault(*SOON_ASLEEP)  # NumPy reads it when it is loaded
    atexit.register(remove_own)  # what an exception still holds open
    atexit.register(gc.freeze)  # of a process that ends, Python would look for garbage three times
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = codecs.lookup(stream.encoding).name
            stream.reconfigure(encoding="utf-8" if encoding == "ascii" else None, errors="backslashreplace")


SOON_ASLEEP = "OPENBLAS_THREAD_TIMEOUT", "22"
"""OpenBLAS's idle threads keep their processors busy for 2 ** 22 cycles, 2 ms, in place of 30 ms."""


def fail(message: str, code: int) -> None:
    """Prints one error line and exits."""
    if os.environ.get("POCKETGRAPH_DEBUG") and sys.exc_info()[0] is not None:
        import traceback

        traceback.print_exc()
    said = " ".join(message.split())
    said = said if len(said) <= LONGEST_ERROR else f"{said[: LONGEST_ERROR // 2]} … {said[-LONGEST_ERROR // 2 :]}"
    echo(f"error: {said}", err=True)
    sys.exit(code)
