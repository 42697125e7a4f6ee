"""Writes the index of which module holds which op's kernel, shape rule, lowering, gradient and form in other formats.

    python tools/build_op_index.py            writes it
    python tools/build_op_index.py --check    says whether it is what it should be

All modules of the tables' folders are imported, and what each of them registers is its line.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pocketgraph.kernels import op_table
from pocketgraph.kernels.op_table import OpTable

ROOT = Path(__file__).parents[1] / "src" / "pocketgraph"
FOLDERS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("kernels", "*/*.py", ("KERNELS",)),
    ("kernels/shapes", "**/*.py", ("SHAPE_RULES",)),
    ("litert/lowerings", "**/*.py", ("LOWERINGS",)),
    ("differentiation", "**/*.py", ("GRADIENTS",)),
    ("exporting/onnx/ops", "*.py", ("CONVERTERS",)),
    ("exporting/coreml/operators", "*.py", ("TRANSLATIONS",)),
    ("exporting/c/operators", "*.py", ("PLAIN", "CODED")),
)
"""Each package's folder, which files there hold rows, and what the index calls the tables that they enter them in."""


def registered() -> dict[str, dict[str, list[str]]]:
    """The ops that each module registers, in the order in which it does, by table and module.

    What the folders' modules import may hold rows too, so that additions are noted before anything else is imported.
    """
    found: dict[str, dict[str, list[str]]] = {name: {} for _, _, names in FOLDERS for name in names}
    add = OpTable.add
    OpTable.add = _noting(add, found)  # type: ignore[method-assign]
    try:
        for folder, files, _ in FOLDERS:
            for path in sorted((ROOT / folder).glob(files)):
                if path.stem != "__init__":
                    inside = path.relative_to(ROOT / folder).with_suffix("").parts
                    importlib.import_module(".".join((package_of(folder), *inside)))
    finally:
        OpTable.add = add  # type: ignore[method-assign]
    return {name: dict(sorted(rows.items())) for name, rows in found.items()}


def _noting(
    add: Callable[[OpTable[Any], str, Any], None], found: dict[str, dict[str, list[str]]]
) -> Callable[[OpTable[Any], str, Any], None]:
    """``add``, which notes the module whose statements are being executed: a row's function may be another module's."""

    def noted(table: OpTable[Any], op: str, row: Any) -> None:
        frame: Any = sys._getframe(1)
        while frame.f_code.co_name != "<module>":
            frame = frame.f_back
        module = frame.f_globals["__name__"].removeprefix(f"{table._package}.")
        found[table._index].setdefault(module, []).append(op)
        add(table, op, row)

    return noted


def package_of(folder: str) -> str:
    return "pocketgraph." + folder.replace("/", ".")


def index() -> str:
    """What the index should say."""
    parts = []
    for name, rows in registered().items():
        lines = [" ".join((module, *ops)) for module, ops in rows.items()]
        parts.append("\n".join((f"[{name}]", *lines)))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    text, path = index(), Path(op_table.__file__).with_name(op_table.INDEX)
    if path.exists() and path.read_text("utf-8") == text:
        return
    if "--check" in sys.argv[1:]:
        raise SystemExit(f"{path.name}: out of date; run python tools/build_op_index.py")
    path.write_text(text, "utf-8")
    print(f"{path.relative_to(ROOT)}: written")


if __name__ == "__main__":
    main()
