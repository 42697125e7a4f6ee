"""Lines of the package by floor and room: python tools/size.py [SRC] [--rooms].

A line is one of a .py file, blank ones and comments too; other text files of the package (templates, tables) are listed
beside them. The floors come from the import contract in pyproject.toml, highest first.
"""

from __future__ import annotations

import argparse
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
OTHER = (".c", ".h", ".in", ".js", ".css", ".html", ".txt", ".toml", ".kt", ".swift")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("src", nargs="?", type=pathlib.Path, default=ROOT / "src" / "pocketgraph")
    parser.add_argument("--rooms", action="store_true", help="each folder by itself as well")
    options = parser.parse_args()
    print(f"{'room':<46}{'files':>7}{'lines':>9}{'others':>9}")
    total = [0, 0, 0]
    for floor in floors(options.src):
        folder = options.src / floor
        counted = count(folder if folder.is_dir() else folder.with_suffix(".py"))
        total = [a + b for a, b in zip(total, counted, strict=True)]
        print(row(floor, counted))
        if options.rooms and folder.is_dir():
            for room in sorted(p for p in folder.rglob("*") if p.is_dir() and any(p.glob("*.py"))):
                print(row(f"  {room.relative_to(options.src)}", count(room, deep=False)))
    print(row("all", total))


def floors(src: pathlib.Path) -> list[str]:
    """The rooms of the package, the highest floor first; rooms that the contract does not name come last."""
    contract = (ROOT / "pyproject.toml").read_text("utf-8").partition("[[tool.importlinter.contracts]]")[2]
    named = re.findall(r"pocketgraph\.(\w+)", contract)
    found = sorted(p.stem for p in src.iterdir() if p.suffix == ".py" or (p.is_dir() and (p / "__init__.py").exists()))
    return [name for name in named if name in found] + [name for name in found if name not in named]


def count(place: pathlib.Path, *, deep: bool = True) -> list[int]:
    """The files, their lines, and the lines of other text files, of a folder or file."""
    paths = [place] if place.is_file() else sorted(place.rglob("*") if deep else place.glob("*"))
    code = [path for path in paths if path.suffix == ".py"]
    others = [path for path in paths if path.suffix in OTHER]
    return [len(code), sum(map(lines, code)), sum(map(lines, others))]


def lines(path: pathlib.Path) -> int:
    return path.read_text("utf-8").count("\n")


def row(name: str, counted: list[int]) -> str:
    files, code, others = counted
    return f"{name:<46}{files:>7}{code:>9}{others or '':>9}"


if __name__ == "__main__":
    main()
