"""Times the layout of `pocketgraph view` on flat graphs of several kinds: a table of seconds and picture sizes.

python benchmarks/view_layout.py [--nodes 5000]
"""

from __future__ import annotations

import argparse
import random
import time

from pocketgraph.inspect.view.layout import layered


def graphs(count: int) -> dict[str, list[tuple[int, int]]]:
    """Edges by the kind of graph, the same in each run."""
    draw = random.Random(1)
    return {
        "two inputs, near": [(max(0, i - draw.randint(1, 6)), i) for i in range(1, count) for _ in range(2)],
        "two inputs, anywhere": [(draw.randrange(i), i) for i in range(1, count) for _ in range(2)],
        "chain": [(i - 1, i) for i in range(1, count)],
        "one source": [(0, i) for i in range(1, count)],
        "cycles": [(draw.randrange(count), draw.randrange(count)) for _ in range(2 * count)],
        "no edges": [],
    }


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    count = parser.parse_args().nodes
    print(f"{'graph':24}{'nodes':>8}{'edges':>8}{'seconds':>9}  pixels")
    for name, edges in graphs(count).items():
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            layout = layered([(120, 38)] * count, edges)
            best = min(best, time.perf_counter() - start)
        print(f"{name:24}{count:8,}{len(edges):8,}{best:9.2f}  {layout.width:,} x {layout.height:,}")


if __name__ == "__main__":
    main()
