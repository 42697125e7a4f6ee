"""Writes the index of which module holds which op's kernel, shape rule, lowering and gradient.

    python tools/build_op_index.py            writes it
    python tools/build_op_index.py --check    says whether it is what it should be

All modules of the families are imported, and what each of them registers is its line.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pocketgraph.differentiation.gradient_table import GRADIENTS
from pocketgraph.kernels.op_table import INDEX, OpTable
from pocketgraph.kernels.registry import KERNELS
from pocketgraph.kernels.shapes.rules import SHAPE_RULES
from pocketgraph.litert.lowering import LOWERINGS

ROOT = Path(__file__).parents[1] / "src" / "pocketgraph"
TABLES = (
    ("KERNELS", KERNELS, "kernels"),
    ("SHAPE_RULES", SHAPE_RULES, "kernels/shapes"),
    ("LOWERINGS", LOWERINGS, "litert/lowerings"),
    ("GRADIENTS", GRADIENTS, "differentiation"),
)
"""Each table: what the index calls it, the table, the folder of its families."""


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


def index() -> str:
    """What the index should say."""
    parts = []
    for name, table, folder in TABLES:
        lines = [" ".join((module, *ops)) for module, ops in registered(table, folder).items()]
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
