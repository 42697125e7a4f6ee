"""Builds the sdist and the wheel, checks both, and uses the wheel in an environment of its own: ``make package``.

Prints what the package costs: bytes of the wheel, seconds of installing it, bytes on the disk with and without NumPy
and protobuf.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
OTHERS = ("numpy", "numpy.libs", "google/protobuf", "google/_upb")
"""What most have already."""
USE = """
import pocketgraph, sys
graph = pocketgraph.freeze(sys.argv[1], outputs=["probabilities"])
small = pocketgraph.transform(graph, "smallest", inputs=["image"], outputs=["probabilities"])
report = pocketgraph.verify(graph, small, tolerance=0.1)
assert report.passed, report
from pocketgraph.cli.shared.guides import guides
assert "freezing" in guides()
print(f"pocketgraph {pocketgraph.__version__} froze, transformed and ran a model")
"""


def main() -> None:
    dist = ROOT / "dist"
    for old in dist.glob("pocketgraph-*"):
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", str(dist), str(ROOT))
    wheel, sdist = next(dist.glob("*.whl")), next(dist.glob("*.tar.gz"))
    run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist))
    print(f"wheel {wheel.stat().st_size:,} bytes, sdist {sdist.stat().st_size:,} bytes")
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", folder)
        bin = pathlib.Path(folder, "Scripts" if os.name == "nt" else "bin")
        place = pathlib.Path(subprocess.check_output(
            [bin / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
        ).strip())  # fmt: skip
        before = size(place)
        start, worked = time.perf_counter(), os.times()
        run(bin / "python", "-m", "pip", "install", "--quiet", str(wheel))
        seconds, now = time.perf_counter() - start, os.times()
        busy = now.children_user + now.children_system - worked.children_user - worked.children_system
        all_of_it = size(place) - before
        rest = all_of_it - sum(size(place / name) for name in OTHERS)
        print(f"installed in {seconds:.0f} s ({busy:.0f} s of processor)")
        print(f"{all_of_it / 1e6:.0f} MB on the disk, {rest / 1e6:.0f} MB without NumPy and protobuf")
        run(bin / "pocketgraph", "--version", cwd=folder)
        run(bin / "python", "-c", USE, str(ROOT / "examples" / "digits" / "training"), cwd=folder)


def run(*words: str | pathlib.Path, cwd: str | None = None) -> None:
    """Runs a program that has to succeed."""
    print("$", *words[:6], flush=True)
    subprocess.run([str(word) for word in words], check=True, cwd=cwd)


def size(folder: pathlib.Path) -> int:
    """The bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


if __name__ == "__main__":
    main()
