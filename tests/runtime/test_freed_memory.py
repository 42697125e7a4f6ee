"""What is freed does not stay with the process: what engines need to open a part, and the plans of a closed session."""

from __future__ import annotations

import pathlib
import platform
import subprocess
import sys

import numpy as np
import pytest

from pocketgraph.formats import save
from pocketgraph.graph import Graph, Node, Shape, const
from pocketgraph.graph.dtype import FLOAT

SIDE, LAYERS = 600, 60
WEIGHTS = LAYERS * SIDE * SIDE * 4 / 1e6  # megabytes
RUN = """
import ctypes, re, sys
import numpy as np
from pocketgraph.runtime import Session

def own():
    return int(re.search(r"^Anonymous:\\s+(\\d+)", open("/proc/self/smaps_rollup").read(), re.M)[1]) * 1024 / 1e6

session = Session(sys.argv[1], engine="onnxruntime", threads=1, cache_dir=sys.argv[2])
session.run(["y"], {"x": np.ones((1, %d), np.float32)})
before = own()
ctypes.CDLL(None).malloc_trim(0)
print(before, before - own())
"""

CLOSED = """
import ctypes, re
import numpy as np
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

def own():
    return int(re.search(r"^Anonymous:\\s+(\\d+)", open("/proc/self/smaps_rollup").read(), re.M)[1]) * 1024 / 1e6

layers = range(40)
lines = [f"y{i} = MatMul({f'y{i-1}' if i else 'x'}, w{i}, T=float)" for i in layers]
weights = [const(f"w{i}", np.full((160, 160), 1 / 160, np.float32)) for i in layers]
graph = Graph([*weights, *parse("\\n".join(["x = Placeholder(dtype=float, shape=[1,160])", *lines]))])
with Session(graph, threads=1, cache_dir="") as session:
    for i in layers:
        session.run([f"y{i}"], {"x": np.ones((1, 160), np.float32)})
    held = own()
before = own()
ctypes.CDLL(None).malloc_trim(0)
print(held, before, own())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries give freed memory back themselves")
def test_what_a_session_of_many_plans_held_goes_back_when_it_closes() -> None:
    done = subprocess.run([sys.executable, "-c", CLOSED], capture_output=True, text=True, check=True)
    held, closed, trimmed = map(float, done.stdout.split())
    assert held - trimmed > 30  # megabytes
    assert closed - trimmed < 3


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell how much memory is a process's own")
def test_a_session_on_onnx_runtime_keeps_its_weights_twice_at_most(tmp_path: pathlib.Path) -> None:
    """As ONNX Runtime holds them, and packed."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    random = np.random.default_rng(0)
    nodes = [Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape((1, SIDE))})]
    for layer in range(LAYERS):
        weights = random.standard_normal((SIDE, SIDE), np.float32) * np.float32(SIDE**-0.5)
        attrs = {"T": FLOAT, "transpose_a": False, "transpose_b": False}
        name = "y" if layer == LAYERS - 1 else f"y{layer}"
        nodes += [const(f"w{layer}", weights), Node(name, "MatMul", (nodes[-1].name, f"w{layer}"), attrs)]
    graph = Graph(nodes)
    save(graph, tmp_path / "model.pb")
    done = subprocess.run(
        [sys.executable, "-c", RUN % SIDE, str(tmp_path / "model.pb"), str(tmp_path / "cache")],
        capture_output=True,
        text=True,
        check=True,
    )
    held, freed = map(float, done.stdout.split())
    assert held < 2 * WEIGHTS + 70
    assert freed < WEIGHTS / 2
