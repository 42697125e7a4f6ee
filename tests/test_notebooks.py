"""The notebooks of examples/ run, and keep the outputs that their cells have."""

from __future__ import annotations

import copy
import pathlib

import pytest

pytest.importorskip("ipykernel", reason="ipykernel is not installed")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
notebooks = pytest.importorskip("docs_site.notebooks", reason="nbclient is not installed")


@pytest.mark.parametrize("name", ["walk", "quantize"])
def test_the_notebook_runs_and_keeps_its_outputs(name: str, tmp_path: pathlib.Path) -> None:
    notebook = notebooks.NOTEBOOKS / f"{name}.ipynb"
    kept = nbformat.read(notebook, as_version=4)
    assert sum(bool(cell.get("outputs")) for cell in kept.cells) >= 5
    made = notebooks.executed(notebook, tmp_path)
    assert notebooks.differences(kept, made) == []
    assert list((tmp_path / "notebooks" / "out").glob("*.tflite"))


def test_another_output_is_found() -> None:
    kept = nbformat.read(notebooks.NOTEBOOKS / "walk.ipynb", as_version=4)
    made = copy.deepcopy(kept)
    assert notebooks.differences(kept, made) == []
    cell = next(cell for cell in made.cells if "rightly" in notebooks.printed(cell))
    cell.outputs[0].text = cell.outputs[0].text.replace("360", "361")
    assert len(notebooks.differences(kept, made)) == 1
    cell.outputs = []
    assert len(notebooks.differences(kept, made)) == 1
