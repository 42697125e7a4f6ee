"""What makes a tensor, behind the nodes that hand it on."""

import pytest

from pocketgraph.datasets.class_scores import scores_picked_from
from pocketgraph.graph.node import find_source
from pocketgraph.graph.text_format import parse

THROUGH = ("Identity", "Reshape")


@pytest.mark.parametrize(
    ("tensor", "through", "maker"),
    [
        ("both", THROUGH, "a"), ("both:1", THROUGH, "b"), ("last", THROUGH, "b"), ("both:2", THROUGH, "both"),
        ("both:1", (), "both"), ("both:1", ("Reshape",), "both"), ("both:1", ("IdentityN",), "kept"),
        ("c", THROUGH, "c"),
    ],
)  # fmt: skip
def test_an_identity_of_several_hands_on_the_input_of_the_tensors_number(
    tensor: str, through: tuple[str, ...], maker: str
) -> None:
    graph = parse("""
        a = Placeholder(dtype=float)
        b = Relu(a, T=float)
        kept = Identity(b, T=float)
        both = IdentityN(a, kept, T=[float,float])
        last = Identity(both:1, T=float)
        c = Neg(last, T=float)
    """)
    node = graph.find_producer(tensor, through)
    assert node is graph[maker]


def test_the_class_that_leaves_a_model_beside_its_scores_is_picked_from_them() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,4])
        scores = Softmax(x, T=float)
        axis = Const(int32 1)
        best = ArgMax(scores, axis, T=float)
        outputs = IdentityN(scores, best, T=[float,int64])
        answer = Identity(outputs:1, T=int64)
    """)
    assert scores_picked_from(graph, "answer") == scores_picked_from(graph, "outputs:1") == "scores"


def test_the_source_of_a_tensor_is_looked_for_as_far_as_what_is_fed() -> None:
    graph = parse("""
        a = Placeholder(dtype=float)
        b = Relu(a, T=float)
        kept = Identity(b, T=float)
        both = IdentityN(a, kept, T=[float,float])
        last = Identity(both:1, T=float)
    """)
    assert find_source(graph.nodes, "last", ("Identity",)) == "b"
    assert find_source(graph.nodes, "last", ("Identity",), ["both:1"]) == "both:1"
    assert find_source(graph.nodes, "last", ("Identity",), ["both:0", "kept:0"]) == "kept"
    assert find_source(graph.nodes, "nobody", ("Identity",)) is None
