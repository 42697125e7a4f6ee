"""Folders of data: in a wheel each is one file, and reads as it does in a checkout."""

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from pocketgraph import data_folders
from pocketgraph.data_folders import data_folder, packed

try:
    import tomllib
except ImportError:
    import tomli as tomllib

ROOT = pathlib.Path(__file__).parents[1]
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
SOURCES = "src/pocketgraph/"


def walked(folder: Any, above: str = "") -> Iterator[tuple[str, bytes]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from walked(item, f"{above}{item.name}/")
        else:
            yield above + item.name, item.read_bytes()


@pytest.mark.parametrize("place", [place.removeprefix(SOURCES) for place in WHEEL["exclude"]])
def test_a_folder_reads_the_same_out_of_one_file(
    place: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_folder.cache_clear()
    contents = dict(walked(data_folder(place)))
    file = tmp_path / f"{place}.zip"
    file.parent.mkdir(parents=True)
    file.write_bytes(packed(contents))
    assert file.read_bytes() == packed(dict(reversed(contents.items())))
    monkeypatch.setattr(data_folders, "files", lambda package: tmp_path)
    data_folder.cache_clear()
    try:
        assert dict(walked(data_folder(place))) == contents
    finally:
        data_folder.cache_clear()
    assert len(contents) > 10
    checkout = ROOT / SOURCES / place
    assert contents == {
        path.relative_to(checkout).as_posix(): path.read_bytes() for path in checkout.rglob("*") if path.is_file()
    }
