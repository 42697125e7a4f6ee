"""The script beside an .mlpackage, which a Mac runs, with a model in the place of Core ML's."""

import pathlib
import runpy
import types
from typing import Any

import numpy as np
import pytest

import pocketgraph.exporting.coreml as package

TEMPLATE = pathlib.Path(package.__file__).with_name("check_on_mac.py.txt")
WORDS = {"package": "net.mlpackage", "golden": "golden.npz", "tolerance": "0.02"}


@pytest.mark.parametrize(
    ("right", "given", "code"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0),
        ([1.0, 2.0], [1.0, 2.5], 1),
        ([1.0, 2.0], [1.0, np.nan], 1),
        ([np.nan, 2.0], [1.0, 2.0], 1),
        ([np.nan, 2.0, np.inf], [np.nan, 2.0, np.inf], 0),
    ],
)
def test_no_number_on_one_side_is_a_difference(
    right: list[float], given: list[float], code: int, tmp_path: pathlib.Path, capsys: Any
) -> None:
    text = TEMPLATE.read_text()
    for name, word in WORDS.items():
        text = text.replace(f"@{name}@", word)
    (tmp_path / "check.py").write_text(text.replace("import coremltools\n", "").replace("from PIL import Image\n", ""))
    np.savez(tmp_path / "golden.npz", **{"0/in/x": np.float32([1]), "0/out/y": np.float32(right)})
    model = types.SimpleNamespace(predict=lambda inputs: {"y": np.float32(given)})
    main = runpy.run_path(str(tmp_path / "check.py"), run_name="a Mac")["main"]
    models = types.SimpleNamespace(MLModel=lambda path: model)
    main.__globals__["coremltools"] = types.SimpleNamespace(models=models)
    assert main() == code
    said = capsys.readouterr().out
    assert ("not proven" in said) == (np.isfinite(right).mean() < 0.5)
