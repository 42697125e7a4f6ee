"""RemoteCall runs on this machine's processor and nowhere else; what TensorFlow makes between devices says why not."""

from __future__ import annotations

import numpy as np
import pytest

from function_text import with_functions
from pocketgraph.errors import MissingKernelError, RunError
from pocketgraph.graph import DType, Func, Graph, Node
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

FLOAT = DType.named("float")


def calling() -> Graph:
    start = parse("where = Placeholder(dtype=string)\n x = Placeholder(dtype=float)")
    attrs = {"Tin": (FLOAT,), "Tout": (FLOAT,), "f": Func("square", {})}
    graph = Graph([*start, Node("call", "RemoteCall", ["where", "x"], attrs)])
    return with_functions(graph, ["square(a: float) -> s:z:0", "s = Mul(a, a, T=float)"])


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize("device", [b"/cpu:0", b"/device:CPU:0", b"/job:localhost/replica:0/task:0/device:CPU:0"])
def test_a_function_on_this_device(device: bytes, engine: str | None) -> None:
    found = Session(calling(), engine=engine).run("call", {"where": np.array(device, object), "x": np.float32([2, 3])})
    assert found[0].tolist() == [4, 9]


@pytest.mark.parametrize("device", [b"/gpu:0", b"/device:CPU:1", b"/job:worker/task:1/device:CPU:0", b"", b"\xff"])
def test_no_other_device_is_here(device: bytes) -> None:
    with pytest.raises(RunError, match=r"only '/device:CPU:0' of this process is here"):
        Session(calling()).run("call", {"where": np.array(device, object), "x": np.float32([2])})


@pytest.mark.parametrize(
    ("op", "why"),
    [
        ("SymbolicGradient", "build them with tf.gradients before you save the graph"),
        ("_Send", "_Send: TensorFlow makes it while it cuts a graph up for devices"),
        ("_Recv", "_Recv: TensorFlow makes it while it cuts a graph up for devices"),
        ("_Arg", "_Arg: TensorFlow makes it"),
    ],
)
def test_what_cannot_run_says_why(op: str, why: str) -> None:
    x = parse("x = Const(float 1)")
    with pytest.raises(MissingKernelError) as caught:
        Session(Graph([*x, Node("it", op, ("x",) if op == "_Send" else ())])).run([], targets=["it"])
    assert f"No OpKernel was registered to support Op '{op}'" in str(caught.value)
    assert why in str(caught.value)
