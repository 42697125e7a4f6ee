"""What a tagger gives, where its loss is a conditional random field's: labels that look up weights, and pick scores."""

from pocketgraph.graph.entry_points import likely_inputs, likely_outputs, sole_outputs
from pocketgraph.graph.text_format import parse

TAGGER = """
    words = Placeholder(dtype=int32, shape=[?,6])
    tags = Placeholder(dtype=int32, shape=[?,6])
    axis = Const(int32 0)
    embedding = VariableV2(dtype=float, shape=[50,8])
    embedded = GatherV2(embedding, words, axis, Tparams=float, Tindices=int32, Taxis=int32)
    rows = Const(int32 [-1, 8])
    words/flat = Reshape(embedded, rows, T=float, Tshape=int32)
    weights = VariableV2(dtype=float, shape=[8,5])
    proj = MatMul(words/flat, weights, T=float)
    transitions = VariableV2(dtype=float, shape=[5,5])
    minus = Const(int32 [-1])
    flat = Reshape(proj, minus, T=float, Tshape=int32)
    unary = GatherV2(flat, tags, axis, Tparams=float, Tindices=int32, Taxis=int32)
    steps = Reshape(transitions, minus, T=float, Tshape=int32)
    binary = GatherV2(steps, tags, axis, Tparams=float, Tindices=int32, Taxis=int32)
    score = Add(unary, binary, T=float)
    alphas = Add(proj, transitions, T=float)
    all_alphas = Exp(alphas, T=float)
    norm = Sum(alphas, axis, T=float, Tidx=int32)
    likelihood = Sub(score, norm, T=float)
    Neg = Neg(likelihood, T=float)
"""
DECODED = """
    best = Max(proj, axis, T=float, Tidx=int32)
    decoded = Add(best, transitions, T=float)
"""


def test_a_label_that_looks_up_weights_and_picks_scores_is_no_input_and_the_scores_are_the_answer() -> None:
    graph = parse(TAGGER)
    assert [name for name, why in likely_inputs(graph) if "meets the model's weights" in why] == ["words"]
    assert sole_outputs(graph) == ["proj"]
    assert likely_outputs(graph)[0].why == "the scores that labels pick from"


def test_where_the_best_sequence_is_decoded_it_stays_the_answer() -> None:
    assert [name for name, _ in likely_outputs(parse(TAGGER + DECODED))] == ["decoded"]


def test_what_also_goes_through_a_layer_stays_an_input() -> None:
    """As the last word of a language model, which is looked up, and also picks what came before."""
    graph = parse(
        TAGGER
        + """
        again = GatherV2(embedding, tags, axis, Tparams=float, Tindices=int32, Taxis=int32)
        again/rows = Reshape(again, rows, T=float, Tshape=int32)
        dense = MatMul(again/rows, weights, T=float)
        """
    )
    assert [name for name, why in likely_inputs(graph) if "meets the model's weights" in why] == ["words", "tags"]
