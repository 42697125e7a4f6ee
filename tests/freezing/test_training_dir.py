"""Finding the graph and the checkpoint in what a person points at."""

import pathlib

import pytest

from pocketgraph.errors import FormatError
from pocketgraph.freezing.training_dir import find


def test_a_folder_of_exports_says_what_is_in_it(tmp_path: pathlib.Path) -> None:
    """Estimators export into folders that are named after the time."""
    for name in ("1538000000", "1538000001"):  # of one alone the model is taken
        (tmp_path / name).mkdir()
        (tmp_path / name / "saved_model.pb").write_bytes(b"")
    with pytest.raises(FormatError, match=r"no checkpoint in this directory; give .*1538000000"):
        find(tmp_path)
