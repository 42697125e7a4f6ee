"""Ships a model: one exporter a form, one table of targets, and a check against the reference engine after each."""

from typing import TYPE_CHECKING

from pocketgraph.lazy_members import lazy_members

if TYPE_CHECKING:
    from pocketgraph.exporting.model import About, EntryPoint, ExportModel, Normalization, Port, Written
    from pocketgraph.exporting.opening import opened
    from pocketgraph.exporting.targets import TARGETS, Target
    from pocketgraph.exporting.tool import Exported, export, export_model

__all__ = [
    "TARGETS", "About", "EntryPoint", "ExportModel", "Exported", "Normalization", "Port", "Target", "Written", "export",
    "export_model", "opened",
]  # fmt: skip

_HOMES = {
    **dict.fromkeys(("About", "EntryPoint", "ExportModel", "Normalization", "Port", "Written"), "model"),
    "opened": "opening",
    **dict.fromkeys(("TARGETS", "Target"), "targets"),
    **dict.fromkeys(("Exported", "export", "export_model"), "tool"),
}

__getattr__ = lazy_members(__name__, _HOMES)
