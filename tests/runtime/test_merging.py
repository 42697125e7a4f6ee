"""Merging neighbouring parts: as much as possible, and never so that a part would wait for itself."""

from pocketgraph.runtime.engines.grouping import merged


def test_parts_that_only_meet_become_one() -> None:
    sources = {"net": [], "random": [], "mask": ["random"], "drop": ["net", "mask"]}
    group = {"net": "net", "mask": "mask", "drop": "mask"}
    assert merged(sources, group) == [["net", "mask", "drop"]]


def test_a_way_through_another_engine_keeps_parts_apart() -> None:
    sources = {"a": [], "other": ["a"], "b": ["a", "other"]}
    assert merged(sources, {"a": "a", "b": "b"}) == [["a"], ["b"]]


def test_a_merge_may_close_the_way_for_the_next() -> None:
    sources = {"a": [], "b": [], "other": ["a"], "c": ["b", "other"], "d": ["a", "c"]}
    parts = merged(sources, {"a": "a", "b": "b", "c": "c", "d": "d"})
    assert sorted(map(sorted, parts)) == [["a"], ["b", "c", "d"]]
    assert parts[0] == ["a"]


def test_parts_without_a_common_edge_stay() -> None:
    assert merged({"a": [], "b": []}, {"a": "a", "b": "b"}) == [["a"], ["b"]]


def test_the_order_of_parts_is_one_in_which_they_can_run() -> None:
    sources = {"a": [], "x": ["a"], "b": ["x"], "y": ["b"], "c": ["y"]}
    assert merged(sources, {"a": "a", "b": "b", "c": "c"}) == [["a"], ["b"], ["c"]]


def test_parts_of_other_kinds_stay_apart() -> None:
    sources = {"a": [], "b": ["a"], "c": ["b"]}
    group = {"a": "a", "b": "b", "c": "c"}
    assert merged(sources, group, {"a": 1, "b": 2, "c": 2}) == [["a"], ["b", "c"]]
