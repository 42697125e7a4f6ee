"""Writes the indexes of which module holds which op's kernel, shape rule, lowering and gradient.

    python tools/build_op_index.py            writes them
    python tools/build_op_index.py --check    says whether they are what they should be

All modules of the families are imported, and what each of them registers is its row. An index is Python, so that it is
loaded from its compiled form.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pocketgraph.differentiation import gradient_table as differentiation
from pocketgraph.kernels import registry
from pocketgraph.kernels.op_table import OpTable
from pocketgraph.kernels.shapes import rules
from pocketgraph.litert import lowering

ROOT = Path(__file__).parents[1] / "src" / "pocketgraph"
WIDTH = 120
TABLES = (
    ("KERNELS", registry.KERNELS, "kernels", "The ops whose kernels each module holds."),
    ("SHAPE_RULES", rules.SHAPE_RULES, "kernels/shapes", "The ops whose shape rules each module holds."),
    ("LOWERINGS", lowering.LOWERINGS, "litert/lowerings", "The ops whose lowerings each module holds."),
    ("GRADIENTS", differentiation.GRADIENTS, "differentiation", "The ops whose gradients each module holds."),
)
"""Each table: what its index is called, the table, the folder of its families, and what the index says of itself."""


def registered(table: OpTable[Any], folder: str) -> dict[str, list[str]]:
    """The ops that each module of the folder's families registers in the table, in the order in which it does."""
    package = "pocketgraph." + folder.replace("/", ".")
    found: dict[str, list[str]] = {}
    add: Callable[[str, Any], None] = table.add

    def noted(op: str, row: Any) -> None:
        """Notes the module whose statements are being executed: a row's function may be another module's."""
        frame: Any = sys._getframe(1)
        while frame.f_code.co_name != "<module>":
            frame = frame.f_back
        found.setdefault(frame.f_globals["__name__"].removeprefix(package + "."), []).append(op)
        add(op, row)

    table.add = noted  # type: ignore[method-assign]
    try:
        for path in sorted((ROOT / folder).glob("*/*.py")):
            if path.stem != "__init__":
                importlib.import_module(f"{package}.{path.parent.name}.{path.stem}")
    finally:
        table.add = add  # type: ignore[method-assign]
    return {module: found[module] for module in sorted(found)}


def text_of(name: str, title: str, modules: dict[str, list[str]]) -> str:
    """The index as Python."""
    lines = [f'"""{title} Written by tools/build_op_index.py."""', "", f"{name} = {{"]
    for module, ops in modules.items():
        line = f'    "{module}": "{" ".join(ops)}",'
        if len(line) <= WIDTH:
            lines.append(line)
            continue
        lines.append(f'    "{module}": (')
        row: list[str] = []
        for op in ops:
            room = WIDTH - 10 if len(" ".join(ops)) <= WIDTH - 10 else WIDTH - 11  # a space joins it to the next line
            if row and len(" ".join([*row, op])) > room:
                lines.append(f'        "{" ".join(row)} "')
                row = []
            row.append(op)
        lines += [f'        "{" ".join(row)}"', "    ),"]
    return "\n".join([*lines, "}", ""])


def indexes() -> dict[Path, str]:
    """What each index should say, by its path."""
    return {
        ROOT / folder / "op_index.py": text_of(name, title, registered(table, folder))
        for name, table, folder, title in TABLES
    }


def main() -> None:
    stale = []
    for path, text in indexes().items():
        if not path.exists() or path.read_text("utf-8") != text:
            stale.append(str(path.relative_to(ROOT)))
            if "--check" not in sys.argv[1:]:
                path.write_text(text, "utf-8")
                print(f"{path.relative_to(ROOT)}: written")
    if stale and "--check" in sys.argv[1:]:
        raise SystemExit(f"{', '.join(stale)}: out of date; run python tools/build_op_index.py")


if __name__ == "__main__":
    main()
