"""Heavy parts of branches: weights behind a Switch are constants of them, and they run on their branch only."""

import numpy as np
import pytest

from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
WEIGHTS = np.array([[1, 2], [3, 4], [5, 6], [-7, -8]], np.float32)


def branch(product: str) -> Graph:
    """A product on the true side of a branch, nothing but zeros on the other."""
    return parse(f"""
        x = Placeholder(dtype=float, shape=[2, 4])
        p = Placeholder(dtype=bool, shape=[])
        w = Const(float [[1, 2], [3, 4], [5, 6], [-7, -8]])
        read = Identity(w, T=float)
        w_in = Switch(read, p, T=float)
        x_in = Switch(x, p, T=float)
        {product}
        one = Relu(y, T=float)
        zeros = Const(float [[0, 0], [0, 0]], ^x_off)
        x_off = Identity(x_in, T=float)
        z = Merge(zeros, one, N=2, T=float)
    """)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    ("product", "inputs"),
    [
        ("y = MatMul(x_in:1, w_in:1, T=float)", ["x_in:1"]),
        ("y = MatMul(x, w_in:1, T=float)", ["x", "w_in:1"]),  # only the weights tell whether it runs
    ],
)
def test_weights_behind_a_switch(product: str, inputs: list[str]) -> None:
    graph = branch(product)
    expected = np.maximum(X @ WEIGHTS, 0)
    # a value of p is no switch for the plan when it is computed
    graph = graph.replace([
        *(node for node in graph if node.name != "p"),
        *parse("n = Placeholder(dtype=int32, shape=[2])\nzero = Const(int32 0)\nall = Const(int32 [0])\n"
               "sum = Sum(n, all, T=int32, Tidx=int32)\np = Greater(sum, zero, T=int32)"),
    ])  # fmt: skip
    with Session(graph, threads=1) as session:
        for _ in range(3):
            (found,) = session.run("z", {"x": X, "n": np.array([1, 2], np.int32)})
            np.testing.assert_allclose(found, expected, rtol=1e-6)
            (found,) = session.run("z", {"x": X, "n": np.array([-1, 0], np.int32)})
            assert not found.any()
        (prepared,) = session._calls.plans.values()
        assert prepared.program is not None
        (part,) = prepared.program.dynamic_parts
        assert [str(endpoint).removesuffix(":0") for endpoint in part.inputs] == inputs
        ran = session.profile("z", {"x": X, "n": np.array([1, 2], np.int32)}).nodes
    assert {node.runs_on for node in ran if node.op == "MatMul"} == {"litert"}


@pytest.mark.usefixtures("small_parts")
def test_products_of_one_round_are_one_part() -> None:
    """As in a recurrent cell: of what comes in, which another engine fetches, and of the state."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?, 4])
        n = Placeholder(dtype=int32, shape=[])
        w = Const(float [[1, 2], [3, 4], [5, 6], [-7, -8]])
        u = Const(float [[0.5, 0], [0, 0.25]])
        start = Const(float [[1, 1]])
        zero = Const(int32 0)
        i0 = Enter(zero, T=int32, frame_name="loop")
        h0 = Enter(start, T=float, frame_name="loop")
        n0 = Enter(n, T=int32, frame_name="loop", is_constant=true)
        x0 = Enter(x, T=float, frame_name="loop", is_constant=true)
        w0 = Enter(w, T=float, frame_name="loop", is_constant=true)
        u0 = Enter(u, T=float, frame_name="loop", is_constant=true)
        i = Merge(i0, i_next, N=2, T=int32)
        h = Merge(h0, h_next, N=2, T=float)
        less = Less(i, n0, T=int32)
        go = LoopCond(less)
        i_in = Switch(i, go, T=int32)
        h_in = Switch(h, go, T=float)
        one = Const(int32 1, ^i_in)
        axis = Const(int32 0, ^i_in)
        more = AddV2(i_in:1, one, T=int32)
        place = ExpandDims(i_in:1, axis, T=int32, Tdim=int32)
        row = GatherV2(x0, place, axis, Tparams=float, Tindices=int32, Taxis=int32)
        of_row = MatMul(row, w0, T=float)
        of_state = MatMul(h_in:1, u0, T=float)
        both = AddV2(of_row, of_state, T=float)
        state = Tanh(both, T=float)
        i_next = NextIteration(more, T=int32)
        h_next = NextIteration(state, T=float)
        y = Exit(h_in, T=float)
    """)
    expected = np.ones((1, 2), np.float32)
    rows = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    for row in rows:
        expected = np.tanh(row @ WEIGHTS + expected @ np.array([[0.5, 0], [0, 0.25]], np.float32))
    with Session(graph, threads=1) as session:
        for _ in range(3):
            (found,) = session.run("y", {"x": rows, "n": np.int32(3)})
            np.testing.assert_allclose(found, expected, rtol=1e-5)
        (prepared,) = session._calls.plans.values()
        assert prepared.program is not None
        assert len(prepared.program.dynamic_parts) == 1
