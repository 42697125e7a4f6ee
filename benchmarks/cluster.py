"""Two workers beside one: how much more two get done, what the merge costs, and a worker that is killed in the middle.

    python benchmarks/cluster.py --model mobilenet.pb --photos flowers/ [--rounds 3]
    python benchmarks/cluster.py --plan 1e9

One worker is this process with one thread and nothing to send anywhere; two are started before the clock runs, and open
the model while it does. Rounds alternate, and Ray is told to give workers the priority of this process, not the lower
one that it usually does. On a machine that does other things beside, the figure by processor time says more.

``--plan`` computes what a number of samples costs on clusters of several sizes, by the rules of the map: shards in
order, three a worker on their way (docs/clusters.md).
"""

from __future__ import annotations

import argparse
import heapq
import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pocketgraph
from pocketgraph.apps.embeddings import photos_in
from pocketgraph.apps.retraining.base_model import cut_model
from pocketgraph.apps.retraining.bottlenecks import Bottlenecks, _PhotoReading, content_digest
from pocketgraph.apps.retraining.photo_features import PhotoFeatures
from pocketgraph.cluster import connected, map_in_order
from pocketgraph.cluster.ordered_map import AHEAD


@dataclass(frozen=True)
class Simulated:
    """What a map over shards came to in simulated time.

    Attributes:
        seconds: until the last row was merged.
        efficiency: the workers' time that was work.
        most_waiting: shards that waited for their turn at one time.
    """

    seconds: float
    efficiency: float
    most_waiting: int


def simulated(durations: Sequence[float], workers: int, merge: float) -> Simulated:
    """Runs the map's rules in simulated time: the next shard goes out when fewer than AHEAD a worker are not merged.

    Args:
        durations: seconds that each shard takes a worker.
        workers: how many there are.
        merge: seconds that the driver takes to merge a shard.
    """
    free = [0.0] * workers
    done: list[float] = []
    merged: list[float] = []
    most = 0
    for number, duration in enumerate(durations):
        begun = merged[number - AHEAD * workers] if number >= AHEAD * workers else 0.0
        start = max(heapq.heappop(free), begun)
        heapq.heappush(free, start + duration)
        done.append(start + duration)
        merged.append(max(done[number], merged[-1] if merged else 0.0) + merge)
    events = sorted([(at, 1) for at in done] + [(at, -1) for at in merged])
    waiting = 0
    for _, change in events:
        waiting += change
        most = max(most, waiting)
    return Simulated(merged[-1], sum(durations) / (workers * merged[-1]), most)


def plan(samples: float) -> None:
    """A table of what so many samples cost."""
    a_sample, a_shard, row, merge = 0.015, 10_000, 1024, 2e-6
    print(f"{samples:.0e} samples, {1e3 * a_sample:g} ms of one core each, shards of {a_shard:,}, rows of {row} bytes;")
    print("a shard takes 0.7 to 3 times as long as the mean; the driver merges a row of a shard in 2 microseconds")
    print(f"{'workers':>8} {'shards':>8} {'hours':>8} {'efficiency':>11} {'MB/s in':>8} {'GB waiting':>11}")
    count = int(samples / a_shard)
    rng = random.Random(0)
    for workers in (2, 64, 512, 4096):
        some = min(count, 40 * workers)
        durations = [a_shard * a_sample * min(0.7 + rng.expovariate(1 / 0.3), 3.0) for _ in range(some)]
        found = simulated(durations, workers, a_shard * merge)
        seconds = found.seconds * count / some
        print(
            f"{workers:>8} {count:>8,} {seconds / 3600:>8.1f} {found.efficiency:>11.2f} "
            f"{samples * row / seconds / 1e6:>8.1f} {found.most_waiting * a_shard * row / 1e9:>11.2f}"
        )


@dataclass(frozen=True)
class Timed:
    """A job whose rows tell the processor time that they took."""

    job: Any

    def __call__(self) -> Any:
        run = self.job()

        def row(example: Any) -> Any:
            begun = time.process_time()
            found = run(example)
            return {**found, "cpu": time.process_time() - begun}

        return row


@dataclass(frozen=True)
class Deadly:
    """A job whose worker is killed once, at an item in the middle."""

    job: Any
    path: str
    mark: str

    def __call__(self) -> Any:
        run = self.job()

        def row(example: Any) -> Any:
            if example.path == self.path and not os.path.exists(self.mark):
                open(self.mark, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            return run(example)

        return row


def main() -> int:
    """Prints the figures; 1 where two workers do less than they should, or rows differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model")
    parser.add_argument("--photos")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=400)
    parser.add_argument("--plan", type=float)
    flags = parser.parse_args()
    if flags.plan:
        plan(flags.plan)
        return 0
    graph = pocketgraph.load(flags.model)
    _, model = cut_model(graph, threads=1)
    examples = photos_in(flags.photos)[: flags.limit]
    job = _PhotoReading(Bottlenecks(PhotoFeatures(model), content_digest(graph)), (0,))
    timed = Timed(job)
    run, ratios, spent = timed(), [], []
    os.environ.setdefault("RAY_worker_niceness", "0")
    with connected("local:2"):
        for _ in map_in_order(job, examples[:32]):
            pass
        for _ in range(flags.rounds):
            begun = time.perf_counter()
            here = [run(example) for example in examples]
            between, own = time.perf_counter(), time.process_time()
            rows = list(map_in_order(timed, examples))
            one, two, own = between - begun, time.perf_counter() - between, time.process_time() - own
            assert [row["features"].tobytes() for row in rows] == [row["features"].tobytes() for row in here]
            ratios.append(one / two)
            spent.append(sum(row["cpu"] for row in here) / (sum(row["cpu"] for row in rows) + own))
            print(
                f"one worker {len(examples) / one:.1f} photos/s, two {len(examples) / two:.1f}: {one / two / 2:.2f} of "
                f"twice one; by processor time, the driver's included, {spent[-1]:.2f}"
            )
    mark = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"killed-{os.getpid()}")
    with connected("local:2"):
        deadly = Deadly(job, examples[len(examples) // 2].path, mark)
        same = [row["features"].tobytes() for row in map_in_order(deadly, examples)]
        same = same == [row["features"].tobytes() for row in here]
    killed = os.path.exists(mark)
    os.unlink(mark)
    share = statistics.median(ratios) / 2
    told = "the same rows" if same else "DIFFERS"
    by_time = statistics.median(spent)
    print(f"median: {share:.2f} of twice one worker ({by_time:.2f} by processor time)")
    print(f"a worker killed in the middle: {told}")
    return 0 if share >= 0.8 and same and killed else 1


if __name__ == "__main__":
    sys.exit(main())
