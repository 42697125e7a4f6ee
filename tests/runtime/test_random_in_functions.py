"""Random ops in functions: each call's op has a stream of its own, however the functions' nodes are called."""

import numpy as np
import pytest

from function_text import with_functions
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

FIRST = [
    [0.15857410430908203, 0.1625838279724121, 0.4098323583602905, 0.19529402256011963],
    [0.26489758491516113, 0.38028597831726074, 0.6308771371841431, 0.5637534856796265],
]  # what TensorFlow gives for this seed


@pytest.mark.parametrize("engine", ["reference", None])
def test_two_functions_with_nodes_of_one_name(engine: str | None) -> None:
    drawn = [
        "drawn = RandomUniform(shape:output:0, T=int32, dtype=float, seed=87654321, seed2=10)",
    ]
    graph = with_functions(
        parse("""
            x = Const(float 1.0)
            outer = StatefulPartitionedCall(x, Tin=[float], Tout=[float, float], f=func(outer))
            again = StatefulPartitionedCall(x, Tin=[float], Tout=[float], f=func(inner))
        """),
        [
            "outer(a: float) -> drawn:output:0, inner:output:0",
            "shape = Const(int32 [2, 4])", *drawn,
            "inner = StatefulPartitionedCall(a, Tin=[float], Tout=[float], f=func(inner))",
            "inner(a: float) -> drawn:output:0",
            "shape = Const(int32 [2, 4])", *drawn,
        ],
    )  # fmt: skip
    with Session(graph, engine=engine) as session:
        one, two, three = session.run(["outer", "outer:1", "again"])
        np.testing.assert_array_equal(one, np.array(FIRST, "f4"))
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, three)
        following = session.run(["outer", "outer:1", "again"])
        assert not np.array_equal(following[0], one)  # each goes on from run to run
        np.testing.assert_array_equal(following[0], following[1])
