"""An engine that a package offers, a graph for it, and what is asked of sessions that may run it."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

from pocketgraph.graph.text_format import parse
from pocketgraph.litert import cache
from pocketgraph.runtime import Session

Array = np.ndarray[Any, Any]

GRAPH = parse("""
    b = Placeholder(dtype=float, shape=[1, 6, 6, 4])
    a = Placeholder(dtype=float, shape=[1, 6, 6, 2])
    w = Const(float[3, 3, 2, 4] 0.25)
    c = Conv2D(a, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
    s = Add(c, b, T=float)
    y = Relu(s, T=float)
    axes = Const(int32[2] [1, 2])
    z = Mean(c, axes, T=float, Tidx=int32)
""")
RANDOM = np.random.default_rng(3)
FEEDS: dict[str, Array] = {
    "a": RANDOM.random((1, 6, 6, 2), np.float32),
    "b": RANDOM.random((1, 6, 6, 4), np.float32) - 2,
}

MODULE = '''
"""An engine of somebody's package: LiteRT's interpreter under another name, and with faults by order."""

import numpy as np

from pocketgraph.runtime.part_engines.part_engine import OperationTime, PartRunner

FAULTS = set()
LOADED = []


class Runner(PartRunner):
    def __init__(self, part, threads):
        from ai_edge_litert.interpreter import Interpreter

        self.interpreter = Interpreter(part.file, num_threads=threads)
        self.interpreter.allocate_tensors()
        self.outputs = part.outputs
        for detail, spec in zip(self.interpreter.get_input_details(), part.inputs):
            assert tuple(detail["shape"]) == spec.shape and detail["dtype"] == spec.dtype

    def run(self, inputs):
        for detail, array in zip(self.interpreter.get_input_details(), inputs):
            self.interpreter.set_tensor(detail["index"], array)
        self.interpreter.invoke()
        found = [self.interpreter.get_tensor(d["index"]) for d in self.interpreter.get_output_details()]
        if "wrong" in FAULTS:
            found = [array + 1 for array in found]
        return [array.reshape(spec.shape) for array, spec in zip(found, self.outputs)]


class Mine:
    name = "mine"

    def version(self):
        return "1.5"

    def refuses(self, part):
        return "it is too blue" if "refuses" in FAULTS else ""

    def load(self, part, threads):
        if "fails" in FAULTS:
            raise OSError("no such device")
        LOADED.append(threads)
        return Runner(part, threads)

    def profile(self, part, threads, inputs):
        return [OperationTime("c", "magic convolution", 3.0), OperationTime("", "magic sum", 1.0)]


ENGINE = Mine()
HALF = object()
'''


def right() -> list[Array]:
    with Session(GRAPH, engine="reference") as session:
        return session.run(["z", "y"], FEEDS)


def assert_right(session: Session) -> None:
    for given, wanted in zip(session.run(["z", "y"], FEEDS), right(), strict=True):
        np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-6)


def engines_of(session: Session) -> set[str]:
    plans = session._calls.plans.values()
    return {executable.engine for plan in plans for executable in plan.executables}  # type: ignore[attr-defined]


def certificates(folder: pathlib.Path) -> dict[str, str]:
    """The verdicts in a cache by the engine, "" for LiteRT."""
    from pocketgraph.litert.cache_integrity import unsealed

    found: dict[str, str] = {}
    for path in folder.glob("*.json"):
        if path.name.startswith("digest"):
            continue
        noted = unsealed(str(path)).get(cache.CERTIFICATE, {})
        found.update({key.partition(" ")[2]: said for key, said in noted.items()})
    return found
