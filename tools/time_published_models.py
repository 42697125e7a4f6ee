"""Times the networks of make_published_models.py here, and writes published_models.toml, which estimates start from.

``python tools/time_published_models.py MODEL_DIR [OUT.toml]``; the quickest of several rounds counts, as a busy machine
only makes runs longer.
"""

from __future__ import annotations

import pathlib
import sys

from pocketgraph.exporting.devices.family_times import FAMILIES, YARDSTICK, measured_times, yardstick_times
from pocketgraph.formats import load
from pocketgraph.inspect.machine import facts
from pocketgraph.runtime.feeding.default_tensors import default_fetches
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds

ROUNDS = 3
PLACE = pathlib.Path(__file__).parent.parent / "src/pocketgraph/exporting/devices/published_models.toml"


def main(folder: pathlib.Path, out: pathlib.Path) -> None:
    """Times every model of the folder."""
    best: dict[str, dict[str, float]] = {}
    paths = sorted(folder.glob("*.pb"))
    for number in range(ROUNDS):
        for path in paths:
            graph = load(path)
            if path.stem == YARDSTICK:
                times = yardstick_times().families
            else:
                fetches = list(default_fetches(graph))
                times = measured_times(graph, fetches, synthetic_feeds(graph, fetches)).families
            known = best.get(path.stem)
            if known is None or sum(times.values()) < sum(known.values()):
                best[path.stem] = times
            print(number, path.stem, round(sum(times.values()), 3), flush=True)
    lines = [
        "# Milliseconds of one run on one thread, by family of operations, of the networks devices.toml has times of.",
        f"# Measured by tools/time_published_models.py on: {facts()['processor']}.",
    ]
    for name in sorted(best):
        lines += ["", f'["{name}"]', *(f'"{family}" = {best[name][family]:.4g}' for family in FAMILIES)]
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else PLACE)
