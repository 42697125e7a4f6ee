"""A model as a library in C99 of only what its graph needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pocketgraph.exporting.model import ExportModel, Written


def write(
    model: ExportModel,
    path: str,
    *,
    mode: Literal["float32", "static"] = "float32",
    io: Literal["float", "int8"] = "float",
    weights: Literal["auto", "array", "file"] = "auto",
    prefix: str = "model",
    backend: Literal["plain", "xnnpack"] = "plain",
) -> Written:
    """Writes the library's folder.

    Args:
        path: where the folder goes.
        mode: float32; static: eight-bit weights and tensors, calibrated with the samples.
        io: what goes in and out of a static library.
        weights: array: in a C file; file: mapped when the program starts; auto: a file from 4 MB on.
        backend: plain: kernels of our own; xnnpack: XNNPACK's operators, which the library is linked with.
        prefix: what the library and its functions are called, a name that C takes.

    Raises:
        LackingError: there are no kernels for some nodes; all are listed.
        UsageError: C does not take the name, the model is a LiteRT file, sizes are open, labels do not fit, or eight
            bits have no samples.
    """
    from pocketgraph.exporting.c.c_exporter import written_file

    return written_file(model, path, mode=mode, io=io, weights=weights, prefix=prefix, backend=backend)
