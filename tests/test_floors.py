"""Which file imports which: besides the floors (import-linter), no two files and no two folders import each other."""

import ast
import pathlib
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest

from support import ROOT

SOURCE = ROOT / "src"


def module_of(path: pathlib.Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(text: str, modules: frozenset[str]) -> set[str]:
    """What a file imports of these modules, at its top, inside functions, or for types only."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & modules or {node.module}
    return found & modules


def rooms(imports: dict[str, set[str]], folder: str) -> dict[str, set[str]]:
    """Which of a folder's rooms, its files and the folders in it, import which."""

    def room(module: str) -> str:
        return module[len(folder) + 1 :].partition(".")[0]

    found: dict[str, set[str]] = {}
    for module, others in imports.items():
        if module.startswith(folder + "."):
            inside = {room(other) for other in others if other.startswith(folder + ".")}
            found.setdefault(room(module), set()).update(inside - {room(module)})
    return found


def circle(imports: dict[str, set[str]]) -> str:
    """Those that import each other; "" if none do."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as found:
        return " -> ".join(found.args[1])
    return ""


@cache
def house() -> dict[str, set[str]]:
    """What each module imports."""
    files = {module_of(path): path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    modules = frozenset(files)
    # The package's own front door names everything, each name loaded when it is used.
    return {module: imported(text, modules) - {module, "pocketgraph"} for module, text in files.items()}


def test_no_files_import_each_other() -> None:
    assert circle(house()) == ""


FOLDERS = sorted(module_of(path) for path in SOURCE.rglob("__init__.py"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_rooms_of_a_folder_import_each_other(folder: str) -> None:
    assert circle(rooms(house(), folder)) == ""


def test_a_circle_would_be_seen() -> None:
    modules = frozenset({"a", "b", "b.c"})
    assert imported("def f():\n    from b import c, d\n", modules) == {"b.c"}
    assert imported("from typing import Any\nif TYPE_CHECKING:\n    import a\nfrom b import d\n", modules) == {"a", "b"}
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert rooms({"a.b.c": {"a.d", "a.b.e"}, "a.d": {"a.b.e", "f"}, "f": {"a.d"}}, "a") == {"b": {"d"}, "d": {"b"}}


FAMILIES = (
    "kernels", "litert/lowerings", "differentiation", "exporting/onnx/ops", "exporting/coreml/operators",
    "exporting/c/operators",
)  # fmt: skip
"""Folders whose files are named by the families of ops."""


def test_a_file_name_that_stands_twice_means_the_same() -> None:
    """A family of ops at another depth, a package's front door, or a command and what it calls."""
    homes: dict[str, list[str]] = {}
    for path in (SOURCE / "pocketgraph").rglob("*.py"):
        homes.setdefault(path.name, []).append(path.parent.relative_to(SOURCE / "pocketgraph").as_posix())
    for name, folders in homes.items():
        if name in ("__init__.py", "tool.py"):
            continue
        below = [folder for folder in folders if not folder.startswith("cli")]
        assert len(folders) - len(below) <= 1, name
        assert len(below) <= 1 or all(folder.startswith(FAMILIES) for folder in below), (name, folders)
