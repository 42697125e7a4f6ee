"""Cutting a graph by kinds: whatever the graph, the parts can run one after the other."""

from graphlib import TopologicalSorter

from hypothesis import given, settings
from hypothesis import strategies as st

from pocketgraph.runtime.engines.grouping import grouped, merged

Sources = dict[int, list[int]]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Sources, dict[int, str | None]]:
    """A random acyclic graph with the kind of each unit."""
    count = draw(st.integers(1, 14))
    sources = {
        unit: draw(st.lists(st.integers(0, unit - 1), max_size=4, unique=True)) if unit else [] for unit in range(count)
    }
    kinds = draw(st.lists(st.sampled_from([None, "a", "b"]), min_size=count, max_size=count))
    return sources, dict(enumerate(kinds))


def is_acyclic(sources: Sources, home: dict[int, int]) -> bool:
    parts: dict[int, set[int]] = {}
    for unit, given_from in sources.items():
        own = home.get(unit, unit)
        parts.setdefault(own, set()).update(home.get(source, source) for source in given_from)
        parts[own].discard(own)
    try:
        TopologicalSorter(parts).prepare()
    except ValueError:
        return False
    return True


@settings(max_examples=400, deadline=None)
@given(graphs())
def test_groups_never_wait_for_each_other_in_a_circle(graph: tuple[Sources, dict[int, str | None]]) -> None:
    sources, kinds = graph
    group = grouped(sources, kinds)
    assert group.keys() == {unit for unit, kind in kinds.items() if kind is not None}
    assert all(kinds[unit] == kinds[first] for unit, first in group.items())
    assert is_acyclic(sources, group)


@settings(max_examples=400, deadline=None)
@given(graphs())
def test_nor_do_merged_groups(graph: tuple[Sources, dict[int, str | None]]) -> None:
    sources, kinds = graph
    able = {unit: None if kind is None else "able" for unit, kind in kinds.items()}
    parts = merged(sources, grouped(sources, able))
    assert sorted(unit for part in parts for unit in part) == sorted(unit for unit in able if able[unit])
    assert is_acyclic(sources, {unit: part[0] for part in parts for unit in part})


def test_a_unit_that_is_only_waited_for_belongs_to_the_group_too() -> None:
    # Of the kind that runs here: read -> product -> kept, and kept waits for a mark that waits for read.
    sources = {"read": [], "mark": ["read"], "product": ["read"], "kept": ["product", "mark"]}
    assert len(set(grouped(sources, dict.fromkeys(sources, True)).values())) == 1


def test_a_way_out_and_back_parts_the_group() -> None:
    sources = {"a": [], "other": ["a"], "b": ["a", "other"]}
    group = grouped(sources, {"a": True, "other": None, "b": True})
    assert group == {"a": "a", "b": "b"}


def test_what_is_no_key_does_not_count() -> None:
    assert grouped({"a": ["constant"]}, {"a": True}) == {"a": "a"}
