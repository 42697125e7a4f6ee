"""The arena: nothing that is needed at the same time overlaps, and it is as small as LiteRT's planner makes it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pocketgraph.exporting.arena import ALIGNMENT, Buffer, least, placed, planned

buffer_lists = st.lists(
    st.tuples(st.integers(1, 5000), st.integers(0, 30), st.integers(0, 12)).map(
        lambda item: Buffer(item[0], item[1], item[1] + item[2])
    ),
    min_size=1,
    max_size=40,
)


@given(buffer_lists)
def test_what_is_needed_at_the_same_time_does_not_overlap(buffers: list[Buffer]) -> None:
    layout = planned(buffers)
    for a, (first, at) in enumerate(zip(buffers, layout.offsets, strict=True)):
        assert at % ALIGNMENT == 0
        assert at + first.size <= layout.size
        for second, other in zip(buffers[:a], layout.offsets[:a], strict=True):
            if first.first <= second.last and second.first <= first.last:
                assert at + first.size <= other or other + second.size <= at


@given(buffer_lists)
def test_the_arena_is_never_larger_than_that_of_litert(buffers: list[Buffer]) -> None:
    by_size = placed(buffers, sorted(range(len(buffers)), key=lambda n: (-buffers[n].size, buffers[n].first)))
    assert least(buffers) <= planned(buffers).size <= by_size.size


def test_a_chain_needs_two_neighbours_at_a_time() -> None:
    sizes = np.random.default_rng(1).integers(1, 100, 50) * ALIGNMENT
    chain = [Buffer(int(size), step, step + 1) for step, size in enumerate(sizes)]
    assert planned(chain).size == max(a + b for a, b in zip(sizes[1:], sizes[:-1], strict=True))
