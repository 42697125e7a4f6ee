"""Option kinds that the original tools have and click does not."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pocketgraph.errors import UsageError, quoted_path

F = TypeVar("F", bound=Callable[..., Any])
_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


if TYPE_CHECKING:
    _Base = click.ParamType[bool]
else:
    _Base = click.ParamType  # older clicks cannot say of what
signature_option = click.option(
    "--signature", metavar="NAME", help="Of a SavedModel: what to feed and compute; default: its main one."
)  # fmt: skip


def labels_option(more: str = "") -> Callable[[F], F]:
    """``--labels``; ``more`` goes on with its help."""
    return click.option(
        "--labels", help=f"The name of each class: a file with one a line, JSON, a .csv, or a,b,c{more}."
    )


def seed_option(of: str) -> Callable[[F], F]:
    """``--seed``; ``of`` says of what."""
    return click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help=f"{of}.")


_BY_KIND = {
    "FILE": (
        "calibration certificate data decisions device_file dot_output ground_truth image in_graph input "
        "input_graph input_meta_graph input_saver key_file labels new_key out out_graph output output_graph "
        "output_labels picture boxes step_stats_name trace_file vectors wake_labels wav"
    ),
    "FILES": "certificates graphs",
    "MODEL": "graph model model_dir",
    "DIR": (
        "against bottleneck_dir input_saved_model_dir intermediate_output_graphs_dir log_dir root_dir save "
        "summaries_dir wav_dir"
    ),
    "PATH": "checkpoint_path image_dir input_checkpoint output_prefix report_path",
    "PYTHON": "compare_python",
    "NAME": (
        "app benchmark_name bottleneck decoder engine filename_tensor_name final input_data_name input_layer "
        "input_name input_rate_name key_env logging_verbosity name output_layer output_name package preset rater "
        "restore_op_name signature target tensor wake_word"
    ),
    "NAMES": (
        "classes compare devices initializer_nodes input_names input_node_names inputs keep "
        "output_names output_node_names outputs placeholder_to_const_names signatures tag_set tags saved_model_tags "
        "target_layer targets transforms variable_names_blacklist variable_names_whitelist without"
    ),
    "NUMBERS": "input_layer_values placeholder_type_enum",
    "OP:KERNEL,…": "default_ops",
    "SECONDS": "inference_delay inter_benchmark_delay max_time run_delay",
    "SHAPES": "input_layer_shape",
    "TYPES": "input_layer_type",
    "HOST": "host",
    "HOST:PORT": "address",
    "TEXT": "author description license_text model_version",
}
METAVARS = {name: kind for kind, names in _BY_KIND.items() for name in names.split()}
"""By a parameter's name; an option whose value is more than that has a ``metavar`` where it is declared."""


class Truth(_Base):
    """``true`` or ``false`` in any case; also 1, 0, yes, no."""

    name = "true|false"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        """The truth that a word means."""
        if isinstance(value, bool):
            return value
        try:
            return _WORDS[str(value).lower()]
        except KeyError:
            self.fail(f"'{value}' is neither true nor false", param, ctx)


def flag_bool(*names: str, default: bool = False, help: str = "", **attributes: Any) -> Callable[[F], F]:
    """A boolean option that is written ``--x``, ``--x=true`` or ``--x=false``, as the original tools have them."""
    return click.option(
        *names, is_flag=False, flag_value="true", default=default, type=Truth(), help=help, show_default=True,
        **attributes,
    )  # fmt: skip


def together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Options that several commands have, as one decorator; --help shows them in this order."""

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def distinct_names(option: click.Option) -> list[str]:
    """An option's names without those that are another one with dashes for underscores."""
    every = [*option.opts, *option.secondary_opts]
    underscored = {name.replace("_", "-") for name in every if "_" in name}
    return [name for name in every if name not in underscored]


def takes_both_spellings(option: click.Option) -> None:
    """Lets an option's names be written with dashes for underscores; --help shows them as they are declared."""
    for spelled in (option.opts, option.secondary_opts):
        for name in list(spelled):
            dashed = name.replace("_", "-")
            if dashed not in spelled:
                spelled.insert(spelled.index(name) + 1, dashed)

    def record(context: click.Context) -> tuple[str, str] | None:
        shown, kept = copy.copy(option), distinct_names(option)
        shown.opts = [name for name in option.opts if name in kept]
        shown.secondary_opts = [name for name in option.secondary_opts if name in kept]
        return click.Option.get_help_record(shown, context)

    setattr(option, "get_help_record", record)  # noqa: B010  mypy refuses to replace a method


def page_place(path: str, option: str = "--report") -> str:
    """Where a page is to be written.

    Raises:
        UsageError: it does not end in .html.
        FormatError: no file can be written there.
    """
    from pocketgraph.formats.files import check_place

    if not path.endswith(".html"):
        raise UsageError(f"a {option[2:]} is an .html page, not '{path}'", where=option)
    check_place(path)
    return path


def default_place(path: str, mark: bytes = b"") -> str:
    """Where a file goes that the call names no place for: not over one that something else wrote.

    Args:
        path: the usual place.
        mark: what is in files that the command itself writes again without a word; b"" where it asks for each.

    Raises:
        UsageError: another file is there.
    """
    if not os.path.isfile(path):
        return path
    with open(path, "rb") as file:
        if not mark or mark not in file.read():
            stem, ending = os.path.splitext(path)
            free = next(name for at in count(2) if not os.path.lexists(name := f"{stem}_{at}{ending}"))
            raise UsageError(
                "a file of this name is there, and stays, as -o does not name it",
                where=path,
                hint=f"-o {quoted_path(free)} is free; -o {quoted_path(path)} replaces it",
            )
    return path


def names(text: str | None) -> list[str]:
    """A comma list of node or tensor names; blanks around them and empty entries are dropped."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def one_file(alone: str | None, by_flag: str | None) -> str:
    """The file to read, which stands alone in the call or behind a flag; "" where neither does.

    Raises:
        UsageError: both do, as where a list of names has a blank behind a comma.
    """
    if alone and by_flag:
        raise UsageError(
            f"two files to read, '{alone}' and '{by_flag}'", hint="pass one of them, and quote lists that have blanks"
        )
    return by_flag or alone or ""


def named_files(texts: Iterable[str]) -> list[tuple[str, Path]]:
    """``NAME=FILE``, or ``FILE`` alone, each as a pair of the input's name, or "", and the file."""
    found = []
    for text in texts:
        name, equals, path = text.partition("=")
        found.append((name, Path(path)) if equals and not os.path.exists(text) else ("", Path(text)))
    return found


def takes_finite_numbers(option: click.Option) -> None:
    """Has an option refuse NaN, which no range of click's leaves out, and infinities."""
    if not isinstance(option.type, click.types.FloatParamType) or "convert" in vars(option.type):
        return  # of another type, or it does so already
    option.type = kind = copy.copy(option.type)
    convert = kind.convert

    def finite(value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = convert(value, param, ctx)
        return found if math.isfinite(found) else kind.fail(f"'{value}' is no finite number.", param, ctx)

    setattr(kind, "convert", finite)  # noqa: B010  as above


def names_value(option: click.Option) -> None:
    """Gives an option of free text the word that --help shows for its value."""
    if option.metavar is None and isinstance(option.type, click.types.StringParamType) and not option.is_flag:
        option.metavar = METAVARS.get(option.name or "")
