"""What each pass brings: latency and first result without it, as ratios to a session that has it.

    python benchmarks/passes.py MODELS [--only NAME,…] [--passes NAME,…] [--rounds 5] [--runs 20]

MODELS is a folder with a folder a model (``model.json`` and ``golden.npz``), or with NAME.pb of networks, which are run
on random inputs. Each model has a process of its own. A pass counts for a model where its being switched off changes
the compiled parts or the steps; the two kinds of sessions take turns in each round, and a ratio is the median of the
rounds' ratios. "First" is the time to the first result of a session without a cache: planning, compiling and one run.
1.00 is no difference; above, the pass pays; "least" and "most" name the models on which it does so least and most.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from measure import table

NOISE = 0.03  # share by which two medians of the same session differ on a quiet machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--only", default="", help="some of the models, by commas")
    parser.add_argument("--passes", default="", help="some of the passes, by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measured(options)))
        return
    found: dict[str, dict[str, tuple[float, float]]] = {}
    changed_nothing: set[str] = set()
    for model in models_in(options.models, options.only.split(",") if options.only else []):
        told = subprocess.run(
            [sys.executable, __file__, str(model), "--worker", f"--passes={options.passes}",
             f"--rounds={options.rounds}", f"--runs={options.runs}", f"--threads={options.threads}"],
            capture_output=True, text=True,
        )  # fmt: skip
        if told.returncode:
            print(f"{model.name}: {(told.stderr.strip().splitlines() or ['?'])[-1][:150]}", file=sys.stderr)
            continue
        rows = json.loads(told.stdout.splitlines()[-1])
        changed_nothing.update(rows["names"])
        for name, ratios in rows["ratios"].items():
            found.setdefault(name, {})[model.stem] = tuple(ratios)
        changed = ", ".join(f"{name} {a:.2f} {b:.2f}" for name, (a, b) in rows["ratios"].items())
        print(f"{model.stem}: {changed or 'no pass changes it'}", file=sys.stderr, flush=True)
    rows = []
    for name, by_model in sorted(found.items()):
        latency = {model: pair[0] for model, pair in by_model.items()}
        first = {model: pair[1] for model, pair in by_model.items()}
        rows.append([name, str(len(by_model)), *spread(latency), *spread(first), verdict(latency, first)])
    rows += [[name, "0", "", "", "", "", "", "", "changes nothing"] for name in sorted(changed_nothing - found.keys())]
    table(
        "What each pass brings",
        ["pass", "models", "latency without", "least", "most", "first without", "least", "most", ""],
        rows,
    )


def models_in(folder: pathlib.Path, only: list[str]) -> list[pathlib.Path]:
    """The folders of models, or single files."""
    found = sorted([*(path.parent for path in folder.glob("*/golden.npz")), *folder.glob("*.pb")])
    return [path for path in found if not only or path.stem in only]


def spread(ratios: dict[str, float]) -> list[str]:
    """The geometric mean, the smallest and the largest with their models."""
    least, most = min(ratios, key=lambda name: ratios[name]), max(ratios, key=lambda name: ratios[name])
    mean = statistics.geometric_mean(ratios.values())
    return [f"{mean:.2f}", f"{ratios[least]:.2f} {least}", f"{ratios[most]:.2f} {most}"]


def verdict(*kinds: dict[str, float]) -> str:
    """Whether the pass brings anything beyond noise on any model."""
    return "" if any(ratio > 1 + NOISE for ratios in kinds for ratio in ratios.values()) else "brings nothing here"


def call_of(path: pathlib.Path) -> tuple[str, list[str], dict[str, Any]]:
    """The file of a model, what to fetch, and what to feed."""
    if path.is_dir():
        about = json.loads((path / "model.json").read_text())
        golden = np.load(path / "golden.npz")
        feeds = {name: golden["in_" + name.replace(":", "_")] for name in about["inputs"]}
        texts = [name for name, its in about["inputs"].items() if its["dtype"] == "string"]
        return (
            str(path / about["file"]), list(about["outputs"]),
            {name: value.tobytes() if name in texts and value.dtype == np.uint8 else value
             for name, value in feeds.items()},
        )  # fmt: skip
    from pocketgraph.formats import load
    from pocketgraph.runtime.made_up_feeds import sample_fetches, sample_shapes

    graph = load(path)
    fetches = list(sample_fetches(graph))
    random = np.random.default_rng(0)
    shapes = sample_shapes(graph, fetches)
    return str(path), fetches, {name: random.random(shape, np.float32) for name, shape in shapes.items()}


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """(latency, first result) without each pass that makes a difference, as ratios."""
    from pocketgraph.runtime.pass_registry import STEPS, all_passes

    model, fetches, feeds = call_of(options.models)
    rows = [row for row in all_passes() if not options.passes or row.name in options.passes.split(",")]
    shown: dict[str | None, str] = {}
    for name in (None, *(row.name for row in rows)):  # once beforehand, which also warms what all share
        shown[name] = once(model, fetches, feeds, name, options)[2]
    has_steps = "program" in shown[None]
    ratios: dict[str, list[float]] = {}
    for row in rows:
        is_changed = shown[row.name] != shown[None] or (row.over == STEPS and has_steps)
        if not is_changed:
            continue
        rounds = []
        for _ in range(options.rounds):
            has, lacks = (once(model, fetches, feeds, name, options) for name in (None, row.name))
            rounds.append((lacks[0] / has[0], lacks[1] / has[1]))
        ratios[row.name] = [statistics.median(pair[kind] for pair in rounds) for kind in (0, 1)]
    return {"names": [row.name for row in rows], "ratios": ratios}


def once(
    model: str, fetches: list[str], feeds: dict[str, Any], without: str | None, options: argparse.Namespace
) -> tuple[float, float, str]:
    """The shortest latency and the time to the first result in seconds, and what tells the compiled parts and steps."""
    from pocketgraph import Session
    from pocketgraph.formats import load

    graph = load(model)
    with tempfile.TemporaryDirectory() as cache:
        begin = time.perf_counter()
        with Session(graph, options.threads, cache_dir=cache, without=[without] if without else []) as session:
            session.run(fetches, feeds)
            first = time.perf_counter() - begin
            for _ in range(min(14, options.runs)):  # after a dozen, what runs often is written out
                session.run(fetches, feeds)
            took = []
            for _ in range(options.runs):
                start = time.perf_counter()
                session.run(fetches, feeds)
                took.append(time.perf_counter() - start)
            (plan,) = session._calls.plans.values()
            steps = "whole" if plan.program is None else f"program of {len(plan.program)} steps"
        parts = sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in pathlib.Path(cache).glob("*.tflite"))
    return min(took), first, f"{steps} {parts}"


if __name__ == "__main__":
    main()
