"""Core ML packages (.mlpackage): what the ONNX exporter makes of a graph, in Core ML's operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pocketgraph.exporting.model import ExportModel, Written


def write(
    model: ExportModel, path: str, *, precision: Literal["float32", "float16"] = "float32", image: bool = True
) -> Written:
    """Writes the package, and a script beside it that checks it on a Mac.

    Args:
        model: the model; the package has one entry point, the first one.
        path: where the package goes.
        precision: what it computes with; the Neural Engine takes float16 alone.
        image: whether a picture goes in as an image, where it is said how pictures are normalized.

    Raises:
        LackingError: Core ML has no operators for some nodes; all are listed.
        UsageError: the path does not end in .mlpackage, sizes are open, a type is none of Core ML's, or labels do not
            fit.
    """
    from pocketgraph.exporting.coreml.coreml_exporter import written_file

    return written_file(model, path, precision=precision, image=image)
