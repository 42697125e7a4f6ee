"""Items in groups: by key, by what leads to what, each after what it needs."""

from pocketgraph.graph.groups import by_key, closure, finishing

LEADS = {"a": "bc", "b": "d", "c": "d", "d": "a", "e": "a"}


def test_items_of_a_key_keep_their_order() -> None:
    assert by_key([("b", 1), ("a", 2), ("b", 3)]) == {"b": [1, 3], "a": [2]}


def test_a_circle_is_walked_once_and_what_does_not_belong_is_not_followed() -> None:
    assert list(closure("a", LEADS.__getitem__)) == ["a", "c", "d", "b"]
    assert list(closure("ae", LEADS.__getitem__, lambda item: item not in "cd")) == ["e", "a", "b"]


def test_each_item_comes_after_those_that_it_needs() -> None:
    needs = {"a": "bc", "b": "d", "c": "db", "d": "", "e": "ax"}
    assert list(finishing("ea", needs.__getitem__, needs.__contains__)) == list("dbcae")
    assert list(finishing("a", LEADS.__getitem__)) == ["d", "c", "b", "a"]


def test_starts_may_grow_on_the_way() -> None:
    starts = ["a"]

    def needs(item: str) -> str:
        starts.extend({"a": "z"}.get(item, ""))
        return {"a": "b"}.get(item, "")

    assert list(finishing(starts, needs)) == ["b", "a", "z"]
