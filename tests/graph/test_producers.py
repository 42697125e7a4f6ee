"""What makes a tensor, behind the nodes that hand it on."""

import pytest

from pocketgraph.datasets.class_scores import scores_picked_from
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
