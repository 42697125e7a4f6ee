"""The layered layout: nothing overlaps, producers stand above their readers, cycles and pieces are no trouble."""

from __future__ import annotations

import itertools
import random

import pytest

from pocketgraph.inspect.view.layered_layout import GraphLayout, layered


def assert_apart(sizes: list[tuple[int, int]], layout: GraphLayout) -> None:
    """No two boxes touch, and all of them lie inside the picture."""
    rows: dict[int, list[int]] = {}
    for item, (x, y, (w, h)) in enumerate(zip(layout.x, layout.y, sizes, strict=True)):
        assert x - w / 2 >= -1
        assert x + w / 2 <= layout.width + 1
        assert y - h / 2 >= -1
        assert y + h / 2 <= layout.height + 1
        rows.setdefault(y // 10, []).append(item)
    for row, items in rows.items():
        near = sorted(items + rows.get(row + 1, []), key=lambda i: layout.x[i])
        for a, b in itertools.combinations(near, 2) if len(near) < 50 else itertools.pairwise(near):
            beside = abs(layout.x[a] - layout.x[b]) >= (sizes[a][0] + sizes[b][0]) / 2 - 1
            below = abs(layout.y[a] - layout.y[b]) >= (sizes[a][1] + sizes[b][1]) / 2 - 1
            assert beside or below, (a, b)


@pytest.mark.parametrize("seed", range(6))
def test_random_graphs(seed: int) -> None:
    draw = random.Random(seed)
    count = draw.choice([1, 2, 17, 120, 700])
    sizes = [(draw.randint(20, 200), draw.choice([18, 38])) for _ in range(count)]
    edges = [(draw.randrange(b), b) for b in range(1, count) for _ in range(draw.randint(0, 3))]
    layout = layered(sizes, edges)
    assert_apart(sizes, layout)
    for a, b in edges:
        assert layout.y[a] < layout.y[b]
    for (a, b), route in zip(edges, layout.routes, strict=True):
        steps = [layout.y[a], *route[1::2], layout.y[b]]
        assert steps == sorted(steps), "an edge goes down all the way"


def test_cycles_and_loops_to_itself() -> None:
    edges = [(0, 1), (1, 2), (2, 0), (3, 3), (2, 4), (4, 1)]
    sizes = [(100, 38)] * 6
    layout = layered(sizes, edges)
    assert_apart(sizes, layout)
    against = sum(layout.y[a] > layout.y[b] for a, b in edges)
    assert against == 2, "one edge of each cycle"


def test_nothing_at_all() -> None:
    assert layered([], []) == GraphLayout([], [], [], 0, 0)


def test_many_readers_and_many_pieces_are_no_long_row() -> None:
    sizes = [(100, 38)] * 3000
    assert layered(sizes, [(0, item) for item in range(1, 3000)]).width < 80 * 130
    packed = layered(sizes, [])
    assert_apart(sizes, packed)
    assert 0.3 < packed.width / packed.height < 5


def test_what_feeds_a_late_reader_stands_just_above_it() -> None:
    chain = [(item, item + 1) for item in range(10)]
    layout = layered([(80, 38)] * 14, [*chain, (11, 12), (12, 13), (13, 10)])
    assert layout.y[11] > layout.y[6]


def test_a_chain_is_straight() -> None:
    layout = layered([(60, 38), (200, 38), (90, 38)], [(0, 1), (1, 2)])
    assert len(set(layout.x)) == 1
