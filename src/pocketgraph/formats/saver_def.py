"""SaverDef files: which of a graph's savers wrote a checkpoint.

Source: tensorflow/core/protobuf/saver.proto (restore_op_name = 3) and meta_graph.proto (saver_def = 3).
"""

from __future__ import annotations

import os
import re

from pocketgraph.errors import FormatError
from pocketgraph.formats.files import PathLike, mapped
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import LEN, Buffer, WireError

_TEXT = re.compile(rb'\brestore_op_name\s*:\s*"([^"\\]*)"')
_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>:-]*")


def restore_op(path: PathLike) -> str:
    """The name of the op that restores all variables, such as ``save/restore_all``.

    Args:
        path: a SaverDef or a MetaGraphDef, binary or text.

    Raises:
        FormatError: the file says none.
    """
    buffer = mapped(path)
    text = _TEXT.search(buffer)
    if text is not None:
        return text[1].decode("utf-8", "replace")
    try:
        name = _string(buffer, 0, len(buffer))
        if name is None:  # a MetaGraphDef has a message here, not a name
            spans = [(a, b) for _, n, k, a, b in wire.fields(buffer, 0, len(buffer)) if (n, k) == (3, LEN)]
            name = _string(buffer, *spans[-1]) if spans else None
    except WireError:
        name = None
    if name is None:
        raise FormatError("this is neither a SaverDef nor a MetaGraphDef with one", where=os.fspath(path))
    return name


def _string(buffer: Buffer, start: int, stop: int) -> str | None:
    for _, number, kind, value, end in wire.fields(buffer, start, stop):
        if (number, kind) == (3, LEN) and end - value < 4096:
            try:
                text = wire.text(buffer, value, end)
            except WireError:
                return None
            return text if _NAME.fullmatch(text) else None
    return None
