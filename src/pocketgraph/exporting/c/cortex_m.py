"""What runs a library's test on a Cortex-M7 in qemu: start-up code, a map of memory, and a part of the Makefile."""

from __future__ import annotations

from pocketgraph.exporting.c.source import filled_in, template

CODE, RAM = 4 << 20, 16 << 20  # bytes that the board has: qemu's mps2-an500
BESIDE = 256 << 10  # bytes of each for the code, the C library, the heap and the stack


def fits(weights: int, arena: int, outputs: int) -> bool:
    """Whether the board has room for so many bytes."""
    return weights + BESIDE <= CODE and arena + outputs + BESIDE <= RAM


def board_files(name: str) -> dict[str, str]:
    """The files of the board."""
    sizes = {"cortex_m_code": str(CODE), "cortex_m_ram": str(RAM)}
    return {f"{name}_{path}": filled_in(template(path), name, **sizes) for path in ("cortex_m.c", "cortex_m.ld")}


def board_parts(is_there: bool) -> dict[str, str]:
    """What templates say of the board."""
    said = "\n`make cortex-m` runs the test on a Cortex-M7 in qemu; `@name@_cortex_m.c` starts it up.\n"
    return {"cortex_m": template("cortex_m.mk") if is_there else "", "cortex_m_said": said if is_there else ""}
