"""Uniform numbers that are drawn for several runs at once are those that one run after the other draws."""

import numpy as np
import pytest

from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.kernels.philox import Philox
from pocketgraph.kernels.random.sampling import AHEAD
from pocketgraph.runtime import Session


@pytest.mark.parametrize("counter", [0, 2**64 - 40, 2**128 - 5000])
@pytest.mark.parametrize("count", [1, 4, 9, 100])
def test_runs_are_what_skipping_gives(counter: int, count: int) -> None:
    here = Philox(1234567890123, counter)
    for turn, numbers in enumerate(here.uniform_runs(16, count, 256 * count)):
        expected = here.skip(turn * 256 * count).uniform(count, np.dtype(np.float32))
        np.testing.assert_array_equal(numbers, expected)


def test_a_session_draws_the_whole_sequence_whatever_the_sizes() -> None:
    graph = Graph([
        Node("size", "Placeholder", (), {"dtype": INT32}),
        Node("drawn", "RandomUniform", ["size"], {"dtype": FLOAT, "T": INT32, "seed": 3, "seed2": 5}),
        const("one", np.array(1, np.float32)),
        Node("sum", "Add", ["drawn", "one"], {"T": FLOAT}),
    ])  # fmt: skip
    generator = Philox.seeded(3, 5)
    with Session(graph) as session:
        for count in [5] * (2 * AHEAD + 3) + [7, 5, 5, 5, 0, 5, 3000, 5, 7, 7, 7]:
            (found,) = session.run("drawn:0", {"size:0": np.array([count], np.int32)})
            np.testing.assert_array_equal(found, generator.uniform(count, np.dtype(np.float32)))
            generator = generator.skip(256 * count)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_runs_of_either_type(kind: type, count: int) -> None:
    here = Philox(99, 7)
    for turn, numbers in enumerate(here.uniform_runs(5, count, 1000, kind)):
        np.testing.assert_array_equal(numbers, here.skip(turn * 1000).uniform(count, np.dtype(kind)))


ONE_A_RUN = [[[n]] for n in (28, 37, 40, 13, 12, 46, 36, 1)]
SIX_OF_THREE_ROWS = [
    [[28, 3, 32, 4, 10, 44], [1, 31, 34, 6, 17, 37], [45, 23, 32, 16, 17, 42]],
    [[36, 48, 4, 39, 40, 31], [30, 37, 21, 19, 13, 40], [30, 16, 31, 4, 22, 2]],
    [[25, 20, 7, 40, 3, 14], [19, 30, 9, 4, 13, 11], [40, 16, 7, 40, 11, 11]],
]


@pytest.mark.parametrize(("rows", "count", "expected"), [(1, 1, ONE_A_RUN), (3, 6, SIX_OF_THREE_ROWS)])
def test_classes_are_those_that_tensorflow_draws_run_after_run(rows: int, count: int, expected: list[object]) -> None:
    graph = Graph([
        Node("logits", "Placeholder", (), {"dtype": FLOAT}),
        const("count", np.array(count, np.int32)),
        Node("drawn", "Multinomial", ["logits", "count"], {"T": FLOAT, "seed": 5, "seed2": 7}),
    ])  # fmt: skip
    with Session(graph) as session:
        feeds = {"logits": np.zeros((rows, 50), np.float32)}
        assert [session.run("drawn", feeds)[0].tolist() for _ in expected] == expected  # TensorFlow 1.15's


def test_classes_of_one_row_are_chosen_as_among_many() -> None:
    logits = np.array([[0.5, -2.0, 3.0, -np.inf], [0.5, -2.0, 3.0, -1e30]], np.float32)
    graph = Graph([
        Node("logits", "Placeholder", (), {"dtype": FLOAT}),
        const("count", np.array(40, np.int32)),
        Node("drawn", "Multinomial", ["logits", "count"], {"T": FLOAT, "seed": 5, "seed2": 7}),
    ])  # fmt: skip
    found = []
    for row in logits:
        with Session(graph) as session:
            found.append(session.run("drawn", {"logits": row[None]})[0].tolist())
    assert found[0] == found[1]
    assert set(found[0][0]) <= {0, 1, 2}
