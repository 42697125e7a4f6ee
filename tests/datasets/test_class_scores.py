"""What a graph's answer is picked from: scores of classes, not those of a picture's places."""

from __future__ import annotations

import pytest

from pocketgraph.datasets.class_scores import judged_outputs, outputs_of_numbers, scores_picked_from
from pocketgraph.graph.text_format import parse

GRAPH = """
    x = Placeholder(dtype=float, shape={shape})
    shares = Softmax(x, T=float)
    axis = Const(int32 {axis})
    place = ArgMax(shares, axis, T=float, Tidx=int32, output_type=int64)
    answer = Identity(place, T=int64)
"""


@pytest.mark.parametrize(
    ("shape", "axis", "found"),
    [("[?,5]", 1, "shares"), ("[1,5]", -1, "shares"), ("[?,8,8,5]", 3, None), ("[5,1]", 1, None)],
)
def test_scores_of_classes(shape: str, axis: int, found: str | None) -> None:
    graph = parse(GRAPH.format(shape=shape, axis=axis))
    assert scores_picked_from(graph, "answer") == found
    assert scores_picked_from(graph, "shares") is None


def test_an_argmax_of_the_samples_is_no_class() -> None:
    assert scores_picked_from(parse(GRAPH.format(shape="[?,5]", axis=0)), "answer") is None


def test_the_few_largest_scores_stand_for_all_and_names_of_classes_come_last() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,5])
        shares = Softmax(x, T=float)
        count = Const(int32 3)
        best = TopKV2(shares, count, T=float)
        names = AsString(best:1, T=int32)
        other = Relu(x, T=float)
    """)
    assert scores_picked_from(graph, "best") == scores_picked_from(graph, "best:1") == "shares"
    assert judged_outputs(graph, ["names", "best"]) == ["shares", "names"]
    assert judged_outputs(graph, ["names", "other", "shares"]) == ["shares", "other", "names"]
    assert judged_outputs(graph, ["other", "shares"]) == ["other", "shares"]


def test_names_of_what_is_picked_stand_for_the_scores() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,5])
        shares = Softmax(x, T=float)
        count = Const(int32 3)
        best = TopKV2(shares, count, T=float)
        place = Cast(best:1, SrcT=int32, DstT=int64)
        table = HashTableV2(key_dtype=int64, value_dtype=string)
        none = Const(string "?")
        found = LookupTableFindV2(table, place, none, Tin=int64, Tout=string)
        names = Identity(found, T=string)
        texts = AsString(place, T=int64)
        words = AsString(x, T=float)
    """)
    assert judged_outputs(graph, ["names"]) == judged_outputs(graph, ["texts"]) == ["shares"]
    assert judged_outputs(graph, ["words"]) == ["words"]


def test_texts_are_left_out_of_what_litert_gives() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,5])
        count = Const(int32 3)
        best = TopKV2(x, count, T=float)
        names = AsString(best:1, T=int32)
    """)
    told: list[str] = []
    assert outputs_of_numbers(graph, ["names", "best"], told.append) == ["best"]
    assert told == ["texts are left out, which are the app's: names"]
    assert outputs_of_numbers(graph, ["names"], told.append) == ["names"]
    assert len(told) == 1
