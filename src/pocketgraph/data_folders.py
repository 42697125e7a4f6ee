"""Folders of the package's data: as they are in a checkout, one file each in a wheel, where each small file costs more.

The build (hatch_build.py) reads this file by its path: it imports the standard library alone.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Traversable

ENDING = ".zip"


@lru_cache
def data_folder(place: str) -> Traversable:
    """A folder of data by its path below the package, such as ``exporting/c/kernels``."""
    folder = files("pocketgraph").joinpath(place)
    if folder.is_dir():
        return folder
    import zipfile

    content = files("pocketgraph").joinpath(place + ENDING).read_bytes()
    return zipfile.Path(zipfile.ZipFile(io.BytesIO(content)))


def packed(contents: Mapping[str, bytes]) -> bytes:
    """A folder, its files by their paths in it, as one file, the same bytes each time.

    It is not compressed: the wheel is, and all of it at once comes out smaller than file by file.
    """
    import zipfile

    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for path, content in sorted(contents.items()):
            file.writestr(zipfile.ZipInfo(path), content)
    return made.getvalue()
