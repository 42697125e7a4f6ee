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
    assert other_ends(graph, ["classes"], least=4.5) == ["boxes"]


TRAINED = """
    x = Placeholder(dtype=float, shape=[?,8,8,3])
    y = Placeholder(dtype=float, shape=[?,8,8,2])
    w = VariableV2(dtype=float, shape=[3,3,3,2])
    read = Identity(w, T=float)
    logits = Conv2D(x, read, T=float, strides=[1,1,1,1], padding="SAME")
    rows = Const(int32[2] [-1, 2])
"""


def test_logits_that_are_shaped_for_a_loss_are_no_output() -> None:
    """As U-Nets of 2017 have it: shares made by hand, and rows of all places' logits for the loss."""
    graph = parse(f"""{TRAINED}
        powers = Exp(logits, T=float)
        axis = Const(int32 3)
        sums = Sum(powers, axis, T=float, Tidx=int32, keep_dims=true)
        shares = RealDiv(powers, sums, T=float)
        flat = Reshape(logits, rows, T=float, Tshape=int32)
        labels = Reshape(y, rows, T=float, Tshape=int32)
        softmax_cross_entropy_with_logits_sg/Reshape = Reshape(flat, rows, T=float, Tshape=int32)
        softmax_cross_entropy_with_logits_sg = SoftmaxCrossEntropyWithLogits(
            softmax_cross_entropy_with_logits_sg/Reshape, labels, T=float)
    """)
    assert sole_outputs(graph) == ["shares"]
    assert main_outputs(graph) == ["shares"]


def test_what_a_loss_computes_is_no_output_but_what_it_takes_is() -> None:
    graph = parse(f"""{TRAINED}
        logistic_loss/zeros = ZerosLike(logits, T=float)
        logistic_loss/Select = Maximum(logits, logistic_loss/zeros, T=float)
        logistic_loss/sub = Sub(logistic_loss/Select, y, T=float)
    """)
    assert main_outputs(graph) == ["logits"]


def test_results_that_are_exactly_as_likely_are_taken_together() -> None:
    """A detector's, in a graph that was trained: one of them alone would be of no use."""
    ends = f"""{TRAINED}
        places = Const(int32[2] [0, 1])
        axis = Const(int32 0)
        boxes = GatherV2(logits, places, axis, Tparams=float, Tindices=int32, Taxis=int32)
        scores = GatherV2(logits, places, axis, Tparams=float, Tindices=int32, Taxis=int32)
    """
    assert main_outputs(parse(ends)) == ["boxes", "scores"]
    assert sole_outputs(parse(ends)) == ["boxes", "scores"]
    other = ends + "        somewhere = GatherV2(logits, places, axis, Tparams=float, Tindices=int32, Taxis=int32)\n"
    assert main_outputs(parse(other)) == ["boxes", "scores"]
    assert sole_outputs(parse(other)) is None


def test_the_next_states_of_a_streaming_network_are_outputs() -> None:
    graph = parse(f"""{BODY}
        previous_state_h = Placeholder(dtype=float, shape=[1,2])
        u = VariableV2(dtype=float, shape=[2,2])
        u/read = Identity(u, T=float)
        kept = MatMul(previous_state_h, u/read, T=float)
        sum = AddV2(logits, kept, T=float)
        new_state_h = Tanh(sum, T=float)
        probabilities = Softmax(sum, T=float)
    """)
    assert sole_outputs(graph) == ["probabilities", "new_state_h"]
    assert main_outputs(graph) == ["probabilities", "new_state_h"]
    one_more = [*graph, *parse("state_of_mind = Placeholder(dtype=float, shape=[1,2])")]
    assert sole_outputs(graph.replace(one_more)) == ["probabilities", "new_state_h"]  # nothing takes it


def test_a_generator_gives_its_pictures_and_not_what_its_judge_says() -> None:
    graph = parse("""
        noise = Placeholder(dtype=float, shape=[?,4])
        g = VariableV2(dtype=float, shape=[4,8])
        g/read = Identity(g, T=float)
        generator/layer = MatMul(noise, g/read, T=float)
        generator/pictures = Sigmoid(generator/layer, T=float)
        real = Placeholder(dtype=float, shape=[?,8])
        d = VariableV2(dtype=float, shape=[8,1])
        d/read = Identity(d, T=float)
        discriminator/layer = MatMul(real, d/read, T=float)
        discriminator/prob = Sigmoid(discriminator/layer, T=float)
        discriminator_1/layer = MatMul(generator/pictures, d/read, T=float)
        discriminator_1/prob = Sigmoid(discriminator_1/layer, T=float)
    """)
    assert main_outputs(graph) == ["generator/pictures"]
