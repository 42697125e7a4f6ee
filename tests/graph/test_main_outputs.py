"""Which outputs make a model whole, and which one stands out."""

import numpy as np

from pocketgraph.graph.entry_points import main_outputs, other_ends, sole_outputs
from pocketgraph.graph.text_format import parse
from support import with_weights

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


def test_the_old_end_of_a_retrained_model_is_not_left_out() -> None:
    retrained = """
        x = Placeholder(dtype=float, shape=[?,4])
        w = Const(float[4, 4] [[1, 2, 3, 4], [3, 4, 1, 2], [5, 6, 0, 1], [7, 8, 2, 0]])
        layer = MatMul(x, w, T=float)
        kept = Identity(layer, T=float)
        logits = MatMul(layer, w, T=float)
        old = Softmax(logits, T=float)
        bottleneck = PlaceholderWithDefault(kept, dtype=float, shape=[?,4])
        product = MatMul(bottleneck, w, T=float)
        final_result = Softmax(product, T=float)
    """
    assert main_outputs(parse(retrained)) == ["final_result"]
    assert other_ends(parse(retrained), ["final_result"]) == []


def test_a_second_head_is_a_main_output() -> None:
    heads = f"""{BODY}
        classes = Softmax(logits, T=float)
        boxes = Sigmoid(logits, T=float)
        size = Sum(logits, axis, T=float, Tidx=int32)
    """
    graph = with_weights(heads, w=np.ones((3, 3, 3, 2), np.float32), b=np.ones(2, np.float32))
    assert main_outputs(parse(heads)) == ["classes"]  # of training, which has many ends
    assert sole_outputs(graph) is None
    assert main_outputs(graph) == ["classes", "boxes"]
    assert other_ends(graph, ["classes", "boxes"]) == ["size"]
