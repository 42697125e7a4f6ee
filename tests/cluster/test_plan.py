"""The plan for very many samples (docs/clusters.md): its rules in simulated time, and synthetic shards."""

import random
import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pocketgraph.cluster import connected, map_in_order
from pocketgraph.cluster.ordered_map import AHEAD

CLASSES = 7
simulated = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "cluster.py"))["simulated"]


def shards(count: int, seed: int = 0) -> list[float]:
    """Seconds that shards take: most a little less than the mean, some three times as long."""
    rng = random.Random(seed)
    return [min(0.7 + rng.expovariate(1 / 0.3), 3.0) for _ in range(count)]


@pytest.mark.parametrize("workers", [2, 64, 512])
def test_order_costs_little_and_what_waits_is_bounded(workers: int) -> None:
    found = simulated(shards(40 * workers), workers, merge=0.0)
    assert found.efficiency > 0.9
    assert found.most_waiting <= AHEAD * workers


def test_a_slow_merge_is_what_bounds_the_cluster() -> None:
    durations = shards(4000)
    found = simulated(durations, 100, merge=0.1)  # a tenth of a shard: more than 10 workers bring nothing
    assert found.seconds == pytest.approx(400, rel=0.05)
    assert found.most_waiting <= AHEAD * 100


def test_one_worker_and_no_merge_is_the_sum() -> None:
    assert simulated([1.0, 2.0, 3.0], 1, merge=0.0).seconds == 6.0


def confusion() -> Callable[[tuple[int, int]], dict[str, np.ndarray]]:
    """A job whose items are whole shards of made-up samples: what sample n is, and what a model says of it."""

    def row(span: tuple[int, int]) -> dict[str, np.ndarray]:
        found = np.zeros((CLASSES, CLASSES), np.int64)
        numbers = np.arange(*span, dtype=np.int64)
        is_class = numbers % CLASSES
        answer = np.where(numbers % 11 == 0, (is_class + 1) % CLASSES, is_class)
        found += np.bincount(is_class * CLASSES + answer, minlength=CLASSES**2).reshape(CLASSES, CLASSES)
        return {"confusion": found}

    return row


@pytest.mark.parametrize("cluster", ["", "local:2"])
def test_synthetic_shards_are_merged_to_the_figures_of_one_machine(cluster: str) -> None:
    if cluster:
        pytest.importorskip("ray", reason="Ray is not installed (pocketgraph[cluster])").shutdown()
    samples, shard = 20_000_003, 250_000
    spans = [(start, min(start + shard, samples)) for start in range(0, samples, shard)]
    total = np.zeros((CLASSES, CLASSES), np.int64)
    with connected(cluster):
        for row in map_in_order(confusion, spans, most=4):
            total += row["confusion"]
    assert total.sum() == samples
    assert samples - np.trace(total) == -(-samples // 11)
    expected = [len(range(label, samples, CLASSES)) for label in range(CLASSES)]
    assert total.sum(axis=1).tolist() == expected
