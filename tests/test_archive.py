"""A package in an archive, on sys.path as it is: graphs are read and run from there."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pocketgraph

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


def test_a_graph_runs_from_an_archive(tmp_path: Path) -> None:
    package = Path(pocketgraph.__file__).parent
    (tmp_path / "a place").mkdir()
    archive = tmp_path / "a place" / "packed.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in package.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                file.write(path, Path("pocketgraph") / path.relative_to(package))
    made = subprocess.run(
        [sys.executable, "-c", RUN, str(archive)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert made.stdout == "[[1.0, 2.0], [3.0, 4.0]]\n", made.stderr
