"""Executes the notebooks of examples/, and holds what they print to the outputs that they keep."""

from __future__ import annotations

import pathlib
from typing import Any

import nbformat
from nbclient import NotebookClient

from docs_site.blocks import ROOT, same_output

NOTEBOOKS = ROOT / "examples" / "notebooks"
TIMEOUT = 300  # seconds a cell


def executed(notebook: pathlib.Path, folder: pathlib.Path) -> Any:
    """The notebook with the outputs that its cells have in a folder beside the other examples."""
    cells = nbformat.read(notebook, as_version=4)
    (folder / "digits").symlink_to(ROOT / "examples" / "digits", target_is_directory=True)
    (folder / "notebooks").mkdir()
    resources = {"metadata": {"path": str(folder / "notebooks")}}
    return NotebookClient(cells, timeout=TIMEOUT, kernel_name="python3", resources=resources).execute()


def write(notebook: pathlib.Path, folder: pathlib.Path) -> None:
    """Executes the notebook and keeps its outputs, without what changes from run to run."""
    cells = executed(notebook, folder)
    for index, cell in enumerate(cells.cells):
        cell.id = f"cell-{index}"
        cell.metadata = {}
    cells.metadata = {"kernelspec": cells.metadata.kernelspec}
    nbformat.write(cells, notebook)


def printed(cell: Any) -> str:
    """What a cell prints, and the text of its value, but for tables: their numbers have all their digits."""
    values = [output.get("data", {}) for output in cell.get("outputs", [])]
    shown = ["" if "text/html" in value else value.get("text/plain", "") for value in values]
    return "\n".join([*(output.get("text", "") for output in cell.get("outputs", [])), *shown])


def kinds(cell: Any) -> list[list[str]]:
    """The forms of each output of a cell: text, HTML, a picture."""
    return [sorted(output.get("data", {output["output_type"]: ""})) for output in cell.get("outputs", [])]


def differences(kept: Any, made: Any) -> list[str]:
    """The cells whose outputs are others than those kept."""
    found = []
    for old, new in zip(kept.cells, made.cells, strict=True):
        if kinds(old) != kinds(new) or not same_output(printed(old), printed(new)):
            found.append(f"{old.source}\nprints\n{printed(new)}\nand the notebook has\n{printed(old)}")
    return found
