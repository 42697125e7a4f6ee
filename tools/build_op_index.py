"""Writes the index of which module holds which op's kernel, shape rule, lowering, gradient and form in other formats.

    python tools/build_op_index.py            writes it
    python tools/build_op_index.py --check    says whether it is what it should be

All modules of the tables' folders are imported, and what each of them registers is its line.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pocketgraph.differentiation.gradient_table import GRADIENTS
from pocketgraph.exporting.c.operators.emitter_table import CODED, PLAIN
from pocketgraph.exporting.coreml.operator_table import TRANSLATIONS
from pocketgraph.exporting.onnx.converter_table import CONVERTERS
from pocketgraph.kernels.op_table import INDEX, OpTable
from pocketgraph.kernels.registry import KERNELS
from pocketgraph.kernels.shapes.rules import SHAPE_RULES
from pocketgraph.litert.lowering import LOWERINGS

ROOT = Path(__file__).parents[1] / "src" / "pocketgraph"
TABLES: tuple[tuple[str, OpTable[Any], str, str], ...] = (
    ("KERNELS", KERNELS, "kernels", "*/*.py"),
    ("SHAPE_RULES", SHAPE_RULES, "kernels/shapes", "*/*.py"),
    ("LOWERINGS", LOWERINGS, "litert/lowerings", "*/*.py"),
    ("GRADIENTS", GRADIENTS, "differentiation", "*/*.py"),
    ("CONVERTERS", CONVERTERS, "exporting/onnx/ops", "*.py"),
    ("TRANSLATIONS", TRANSLATIONS, "exporting/coreml/operators", "*.py"),
    ("PLAIN", PLAIN, "exporting/c/operators", "*.py"),
    ("CODED", CODED, "exporting/c/operators", "*.py"),
)
"""Each table: what the index calls it, the table, its package's folder, and which files there hold rows."""


def registered() -> list[dict[str, list[str]]]:
    """The ops that each module registers in each of the tables, in the order in which it does."""
    found: list[dict[str, list[str]]] = [{} for _ in TABLES]
    adding = [table.add for _, table, _, _ in TABLES]
    for (_, table, folder, _), rows in zip(TABLES, found, strict=True):
        table.add = partial(_noted, table.add, rows, package_of(folder) + ".")  # type: ignore[method-assign]
    try:
        for _, _, folder, files in TABLES:
            for path in sorted((ROOT / folder).glob(files)):
                if path.stem != "__init__":
                    inside = path.relative_to(ROOT / folder).with_suffix("").parts
                    importlib.import_module(".".join((package_of(folder), *inside)))
    finally:
        for (_, table, _, _), add in zip(TABLES, adding, strict=True):
            table.add = add  # type: ignore[method-assign]
    return [dict(sorted(rows.items())) for rows in found]


def _noted(add: Callable[[str, Any], None], rows: dict[str, list[str]], within: str, op: str, row: Any) -> None:
    """Notes the module whose statements are being executed: a row's function may be another module's."""
    frame: Any = sys._getframe(1)
    while frame.f_code.co_name != "<module>":
        frame = frame.f_back
    rows.setdefault(frame.f_globals["__name__"].removeprefix(within), []).append(op)
    add(op, row)


def package_of(folder: str) -> str:
    return "pocketgraph." + folder.replace("/", ".")


def index() -> str:
    """What the index should say."""
    parts = []
    for (name, _, _, _), rows in zip(TABLES, registered(), strict=True):
        lines = [" ".join((module, *ops)) for module, ops in rows.items()]
        parts.append("\n".join((f"[{name}]", *lines)))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    text, path = index(), Path(INDEX)
    if path.exists() and path.read_text("utf-8") == text:
        return
    if "--check" in sys.argv[1:]:
        raise SystemExit(f"{path.name}: out of date; run python tools/build_op_index.py")
    path.write_text(text, "utf-8")
    print(f"{path.relative_to(ROOT)}: written")


if __name__ == "__main__":
    main()
