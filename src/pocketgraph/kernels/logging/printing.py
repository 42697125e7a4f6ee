"""The Print ops: write values to stderr or stdout, in the form that the original's log files have.

What a terminal would act on is escaped.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from pocketgraph.errors import RunError, printable
from pocketgraph.kernels.registry import Context, Value, kernel
from pocketgraph.kernels.text.printed_values import summary


@kernel("Print")
def print_(
    input: Value, *data: Value, context: Context, message: str = "", first_n: int = -1, summarize: int = 3
) -> Value:
    """Hands ``input`` on.

    Writes one line ``MESSAGE[VALUES][VALUES]…`` with up to ``summarize`` elements of each tensor (-1: all), the first
    ``first_n`` times that the node runs (-1: always).
    """
    if first_n >= 0:
        printed = context.state.setdefault("printed lines", {})
        printed[context.instance] = printed.get(context.instance, 0) + 1
        if printed[context.instance] > first_n:
            return input
    line = message + "".join(f"[{summary(values, summarize)}]" for values in data)
    sys.stderr.write(printable(line) + "\n")
    sys.stderr.flush()
    return input


@kernel("PrintV2")
def print_v2(input: Any, *, output_stream: str = "stderr", end: str | bytes = "\n") -> tuple[()]:
    """Writes a text, which StringFormat has made, and ``end`` to stderr or stdout.

    ``output_stream`` may also be a level of TensorFlow's log, ``log(info)``, ``log(warning)`` or ``log(error)``, whose
    lines begin with the level's letter here.

    Raises:
        RunError: the text is no scalar, or it shall go into a file, which no graph may write by printing.
    """
    array = np.asarray(input)
    if array.ndim:
        raise RunError(f"Input is expected to be scalar, but got {list(array.shape)}")
    text = array.item().decode(errors="replace") + (end.decode(errors="replace") if isinstance(end, bytes) else end)
    level = {"log(info)": "I ", "log(warning)": "W ", "log(error)": "E "}.get(output_stream)
    if level is None and output_stream not in ("stderr", "stdout"):
        raise RunError(
            f"nothing is printed to '{output_stream}'",
            hint="stderr, stdout, log(info), log(warning) and log(error) are",
        )
    stream = sys.stdout if output_stream == "stdout" else sys.stderr
    stream.write(f"{level or ''}{printable(text)}")
    stream.flush()
    return ()
