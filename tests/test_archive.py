"""A package in an archive, on sys.path as it is: graphs are read and run from there, and commands work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import pocketgraph
from pocketgraph import load, save
from pocketgraph.cli.shared import guides
from pocketgraph.graph.text_format import parse
from support import assert_text

RUN = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import pocketgraph
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
assert pocketgraph.__file__.startswith(sys.argv[1]), pocketgraph.__file__
graph = parse('''
    x = Placeholder(dtype=float, shape=[2, 2])
    w = Const(float[2, 2] [[1, 2], [3, 4]])
    m = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
    y = Relu(m, T=float)
''')
with Session(graph, cache_dir="") as session:
    print(session.run(["y"], {"x": np.eye(2, dtype=np.float32)})[0].tolist())
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a wheel has it, with its guides."""
    package = Path(pocketgraph.__file__).parent
    made = tmp_path_factory.mktemp("a place") / "packed.zip"
    with zipfile.ZipFile(made, "w") as file:
        for path in package.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                file.write(path, Path("pocketgraph") / path.relative_to(package))
        file.writestr(f"pocketgraph/cli/{guides.PACKED}", guides.packed(guides.DOCS))
    return made


def from_archive(archive: Path, *words: str) -> str:
    """What a program prints with the archive before everything else on its path."""
    made = subprocess.run(
        [sys.executable, *words], cwd=archive.parent, env={**os.environ, "PYTHONPATH": str(archive)},
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_a_graph_runs_from_an_archive(archive: Path) -> None:
    assert from_archive(archive, "-c", RUN, str(archive)) == "[[1.0, 2.0], [3.0, 4.0]]\n"


def test_commands_work_from_an_archive(archive: Path) -> None:
    """Of each kind of file that the package reads of its own, one command's."""

    def command(*words: str) -> str:
        return from_archive(archive, "-m", "pocketgraph", *words)

    text = "x = Placeholder(dtype=float, shape=[2])\ny = Relu(x, T=float)\n"
    save(parse(text), archive.parent / "given.pbtxt")
    command("convert", "given.pbtxt", "made.pb")
    assert_text(load(archive.parent / "made.pb"), text)
    header = command("print_selective_registration_header", "--graphs=made.pb")
    assert "ReluOp<CPUDevice, float>" in header
    assert "freez" in command("help", "freezing")
    timed = json.loads(command("benchmark_model", "--graph=made.pb", "--compare=reference", "--json"))
    print(timed)
