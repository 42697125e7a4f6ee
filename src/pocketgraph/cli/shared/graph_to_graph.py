"""What strip_unused and optimize_for_inference, the commands of one graph in and one out, do alike."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pocketgraph.cli.shared.options import names
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import FreezeError, UsageError

if TYPE_CHECKING:
    from pocketgraph.graph import Graph


def opened(source: str, outputs: str, target: str, *, without_outputs: UsageError, option: str) -> Graph:
    """The graph that a command is to work on, when everything that it needs was named.

    Args:
        source, outputs, target: the file, the comma list of outputs, and where the result goes, as they were given.
        without_outputs: what to say when no outputs were named.
        option: how to name a place for the result, such as ``--output=small.pb``.

    Raises:
        FreezeError: there is no such file.
        UsageError: the outputs or the place for the result are missing.
        FormatError: the file is no graph.
    """
    from pocketgraph.cli.shared.data_options import say
    from pocketgraph.formats.files import near
    from pocketgraph.freezing.ready_models import read_directory

    if not os.path.exists(source):
        raise FreezeError(f"Input graph file '{source}' does not exist!", hint=near(source))
    if not names(outputs):
        raise without_outputs
    if not target:
        raise UsageError("no place for the result was named", hint=f"add {option}")
    return read_directory(source, names(outputs), notify=say)


def written(graph: Graph, target: str, text: bool) -> None:
    """Writes the result and says how large it is."""
    from pocketgraph import formats

    formats.save(graph, target, text=text)
    echo(f"{len(graph)} ops in the final graph.")


def placeholder_types(text: str) -> int | list[int]:
    """One DataType number, or several with commas. Raises UsageError for anything else."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(
            f"'{text}' is no list of numbers", where="--placeholder_type_enum", hint="1 is float, 4 uint8, 3 int32"
        ) from None
    return numbers if len(numbers) > 1 else numbers[0]
