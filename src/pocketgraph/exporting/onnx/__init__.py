"""ONNX models: a graph in ONNX's operators, its loops and branches included."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pocketgraph.exporting.model import ExportModel, Written


def write(
    model: ExportModel, path: str, *, opset: int | None = None, fixed: bool = False, external_data: bool = False
) -> Written:
    """Writes the file.

    Args:
        model: the model; ONNX has one entry point a file, the first one.
        path: where the file goes.
        opset: the version of ONNX's operators, from 13 to 23; unless it is said 17, or the first one that has them all.
        fixed: whether sizes that the graph leaves open are fixed; they are also where ONNX has operators for nothing
            else, which is noted.
        external_data: whether constants go into a file beside it, ``….onnx.data``; those over 2 GB always do.

    Raises:
        LackingError: ONNX has no operators for some nodes; all are listed.
        UsageError: there is no such opset.
    """
    from pocketgraph.exporting.onnx.onnx_exporter import written_file

    return written_file(model, path, opset=opset, fixed=fixed, external_data=external_data)
