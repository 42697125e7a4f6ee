"""Which outputs make a model whole, and which one stands out."""

from pocketgraph.graph.entry_points import main_outputs, other_ends, sole_outputs
from pocketgraph.graph.text_format import parse

BODY = """
    x = Placeholder(dtype=float, shape=[?,8,8,3])
    w = VariableV2(dtype=float, shape=[3,3,3,2])
    w/read = Identity(w, T=float)
    conv = Conv2D(x, w/read, T=float)
    b = VariableV2(dtype=float, shape=[2])
    logits = BiasAdd(conv, b, T=float)
    axis = Const(int32 -1)
"""


def test_a_pick_beside_its_scores_is_no_rival() -> None:
    graph = parse(f"""{BODY}
        probabilities = Softmax(logits, T=float)
        SemanticPredictions = ArgMax(logits, axis, T=float, Tidx=int32, output_type=int64)
    """)
    assert sole_outputs(graph) == ["probabilities"]
    assert main_outputs(graph) == ["probabilities"]


def test_a_second_head_is_a_main_output() -> None:
    graph = parse(f"""{BODY}
        classes = Softmax(logits, T=float)
        boxes = Sigmoid(logits, T=float)
        size = Sum(logits, axis, T=float, Tidx=int32)
    """)
    assert sole_outputs(graph) is None
    assert main_outputs(graph) == ["classes", "boxes"]
    assert other_ends(graph, ["classes", "boxes"]) == ["size"]
