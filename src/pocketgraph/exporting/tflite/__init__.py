"""LiteRT files: programs with signatures, and the metadata that the task libraries read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pocketgraph.exporting.model import ExportModel, Written


def write(
    model: ExportModel,
    path: str,
    *,
    mode: Literal["float32", "float16", "dynamic", "static"] = "float32",
    io: Literal["float", "int8", "int16", "uint8"] = "float",
    activations: Literal["int8", "int16"] = "int8",
    fixed: bool = False,
    with_metadata: bool = True,
    custom_ops: bool = False,
) -> Written:
    """Writes the file.

    Args:
        path: where the file goes.
        mode: float32; float16 weights, expanded when the file is loaded; dynamic: eight-bit weights, LiteRT quantizes
            tensors as they come; static: eight-bit weights and tensors, calibrated with the samples.
        io: what goes in and out of a static file; uint8 as old task libraries and cameras have it.
        activations: the codes of tensors in a static file.
        fixed: whether sizes that the graph leaves open are fixed.
        with_metadata: whether the file says what the task libraries read.
        custom_ops: write what LiteRT has no builtin operator for as custom operators, which the app registers.

    Raises:
        LackingError: LiteRT has no operators for some nodes; all are listed.
        UsageError: labels do not fit, eight bits have no samples, or a model that trains is not to be in floats.
    """
    from pocketgraph.exporting.tflite.tflite_exporter import written_file

    return written_file(
        model,
        path,
        mode=mode,
        io=io,
        activations=activations,
        fixed=fixed,
        with_metadata=with_metadata,
        custom_ops=custom_ops,
    )
