"""What a step of training frees stays with the process for the next one."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy as np
from pocketgraph import Session
from pocketgraph.graph.text_format import parse

graph = parse('''
    x = Placeholder(dtype=float, shape=[16,32,32,3])
    w = Placeholder(dtype=float, shape=[3,3,3,16])
    b = Placeholder(dtype=float, shape=[16])
    slopes = Placeholder(dtype=float, shape=[16,32,32,16])
    sizes = Const(int32 [3, 3, 3, 16])
    c = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding="SAME")
    y = BiasAdd(c, b, T=float)
    r = Relu(y, T=float)
    dr = ReluGrad(slopes, r, T=float)
    db = BiasAddGrad(dr, T=float)
    dw = Conv2DBackpropFilter(x, sizes, dr, T=float, strides=list[1,1,1,1], padding="SAME")
''')
sizes = {"x": (16, 32, 32, 3), "w": (3, 3, 3, 16), "b": (16,), "slopes": (16, 32, 32, 16)}
feeds = {f"{name}:0": np.ones(shape, np.float32) for name, shape in sizes.items()}

def work_arrays():
    [np.ones(1 << 18, np.float32) for _ in range(24)]  # 24 MB, a megabyte each

with Session(graph) as session:
    for _ in range(2):
        session.run(["r:0", "dw:0", "db:0"], feeds)
        work_arrays()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    work_arrays()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc, whose heap this is about")
@pytest.mark.parametrize("without", ["", "kept_heap"])
def test_the_system_gives_out_no_new_pages_in_each_step(without: str) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    env |= {"POCKETGRAPH_WITHOUT": without}
    found = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
    pages = int(found.stdout)
    assert pages > 2000 if without else pages < 500
