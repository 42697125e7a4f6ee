"""What each pass brings: latency and first result without it, as ratios to a session that has it.

    python benchmarks/passes.py MODELS [--only NAME,…] [--passes NAME,…] [--rounds 5] [--runs 20]

MODELS is a folder with a folder a model (``model.json`` and ``golden.npz``), with NAME.pb of networks, which are run on
random inputs (``peers/pass_models.py`` makes some on which single passes show), or with graphs that tests keep beside
recorded runs (``tests/runtime/lookups``). Each model has a process of its own. A pass counts for a model where its
being switched off changes the compiled parts or the steps; the two kinds of sessions take turns in each round, and a
ratio is the median of the rounds' ratios, of processor time. "First" is the time to the first result of a session
without a cache: planning, compiling and one run. 1.00 is no difference; above, the pass pays; "least" and "most" name
the models on which it does so least and most. Operators and bytes are those of all compiled parts together, with the
pass and without; ``--rounds 0`` counts them and measures nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from measure import HERE, table

sys.path += [str(HERE.parent / "tests"), str(HERE / "peers")]
from catalogue_worker import inputs_of

from graph_files import graph_file
from pocketgraph import Session
from pocketgraph.formats import load
from pocketgraph.formats.flatbuffers import Table
from pocketgraph.runtime.feeding.default_tensors import default_fetches
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_shapes
from pocketgraph.runtime.pass_registry import STEPS, all_passes
from recorded_runs import recorded_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pocketgraph.graph import Graph

NOISE = 0.03  # share by which two medians of the same session differ on a quiet machine
PATIENCE = 60  # seconds that compiling a part anew may take
SHORTEST = 0.01  # seconds that are timed at once, of as many calls as fit


class Effect(NamedTuple):
    """What switching a pass off does to a model.

    Attributes:
        latency: the processor time of a run without the pass, of that with it; nan where it was not measured.
        first: the same of the first result.
        operators: of all compiled parts, without and with the pass.
        stored: the same in bytes.
    """

    latency: float
    first: float
    operators: tuple[int, int]
    stored: tuple[int, int]


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
    found: dict[str, dict[str, Effect]] = {}
    names: set[str] = set()
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
        names.update(rows["names"])
        effects = {name: Effect(*values) for name, values in rows["effects"].items()}
        for name, effect in effects.items():
            found.setdefault(name, {})[model.stem] = effect
        changed = "; ".join(
            f"{name} {each.latency:.2f} {each.first:.2f} {each.operators[0]}/{each.operators[1]} operators"
            f" {each.stored[0]}/{each.stored[1]} bytes"
            for name, each in effects.items()
        )
        print(f"{model.stem}: {changed or 'no pass changes it'}", file=sys.stderr, flush=True)
    rows = []
    for name, by_model in sorted(found.items()):
        latency = {model: effect.latency for model, effect in by_model.items()}
        first = {model: effect.first for model, effect in by_model.items()}
        totals = [
            total([each.operators for each in by_model.values()]),
            total([each.stored for each in by_model.values()]),
        ]
        rows.append([name, str(len(by_model)), *totals, *spread(latency), *spread(first), verdict(latency, first)])
    rows += [[name, "0", *[""] * 8, "changes nothing"] for name in sorted(names - found.keys())]
    header = [
        "pass",
        "models",
        "operators",
        "bytes",
        "latency without",
        "least",
        "most",
        "first without",
        "least",
        "most",
        "",
    ]
    table("What each pass brings", header, rows)


def models_in(folder: pathlib.Path, only: list[str]) -> list[pathlib.Path]:
    """The folders of models, or single files."""
    graphs = [path for path in folder.glob("*.graph") if path.with_suffix(".npz").exists()]
    found = sorted([*(path.parent for path in folder.glob("*/golden.npz")), *folder.glob("*.pb"), *graphs])
    return [path for path in found if not only or path.stem in only]


def total(pairs: list[tuple[int, int]]) -> str:
    """Without the pass, of that with it, over the models that it changes."""
    without, has = (sum(pair[place] for pair in pairs) for place in (0, 1))
    return f"{without / has:.3f}" if has else ""


def spread(ratios: dict[str, float]) -> list[str]:
    """The geometric mean, the smallest and the largest with their models."""
    least, most = min(ratios, key=lambda name: ratios[name]), max(ratios, key=lambda name: ratios[name])
    mean = statistics.geometric_mean(ratios.values())
    return [f"{mean:.2f}", f"{ratios[least]:.2f} {least}", f"{ratios[most]:.2f} {most}"]


def verdict(*kinds: dict[str, float]) -> str:
    """Whether the pass brings anything beyond noise on any model."""
    return "" if any(ratio > 1 + NOISE for ratios in kinds for ratio in ratios.values()) else "brings nothing here"


class Call(NamedTuple):
    """How a model's graph is read, what to run once beforehand, what to fetch, and what to feed."""

    graph: Callable[[], Graph]
    first: list[Mapping[str, Any]]
    fetches: list[str]
    feeds: Mapping[str, Any]


def call_of(path: pathlib.Path) -> Call:
    """How a model of a folder is run."""
    if path.is_dir():
        about = json.loads((path / "model.json").read_text())
        feeds = inputs_of(str(path), about)
        return Call(partial(load, path / about["file"]), about.get("pre_run", []), list(about["outputs"]), feeds)
    if path.suffix == ".graph":
        feeds, results = recorded_runs(path.parent, path.stem)[0]
        return Call(partial(graph_file, path.parent, path.stem), [], list(results), feeds)
    graph = load(path)
    fetches = list(default_fetches(graph))
    random = np.random.default_rng(0)
    shapes = synthetic_shapes(graph, fetches)
    return Call(
        partial(load, path), [], fetches, {name: random.random(shape, np.float32) for name, shape in shapes.items()}
    )


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """The effect of each pass that makes a difference, by its name."""
    call = call_of(options.models)
    rows = [row for row in all_passes() if not options.passes or row.name in options.passes.split(",")]
    shown: dict[str | None, Shown] = {}
    for name in (None, *(row.name for row in rows)):  # once beforehand, which also warms what all share
        shown[name] = once(call, name, options)[2]
    effects: dict[str, Effect] = {}
    for row in rows:
        has, lacks = shown[None], shown[row.name]
        if lacks == has and not (row.over == STEPS and has.steps):
            continue
        rounds = []
        for _ in range(options.rounds):
            with_it, without_it = (once(call, name, options) for name in (None, row.name))
            rounds.append((without_it[0] / with_it[0], without_it[1] / with_it[1]))
        latency, first = (statistics.median([pair[kind] for pair in rounds] or [math.nan]) for kind in (0, 1))
        effects[row.name] = Effect(latency, first, (lacks.operators, has.operators), (lacks.stored, has.stored))
    return {"names": [row.name for row in rows], "effects": effects}


class Shown(NamedTuple):
    """What tells whether two sessions do the same: steps of the reference engine, and the compiled parts."""

    steps: int
    parts: tuple[str, ...]
    operators: int
    stored: int


def _is_first_tier(session: Any) -> bool:
    """Whether a part is still to be compiled anew."""
    parts = [part for plan in session._calls.plans.values() for part in plan.executables]
    return any(getattr(part, "next_tier", None) is not None for part in parts)


def once(call: Call, without: str | None, options: argparse.Namespace) -> tuple[float, float, Shown]:
    """The shortest processor time of a run and that of the first result in seconds, and what was compiled."""
    read, before, fetches, feeds = call
    graph = read()
    with tempfile.TemporaryDirectory() as cache:
        begin = time.process_time()
        with Session(graph, options.threads, cache_dir=cache, without=[without] if without else []) as session:
            for step in before:
                session.run([], step["feeds"], targets=step["targets"])
            session.run(fetches, feeds)
            first = time.process_time() - begin
            ends = time.monotonic() + PATIENCE
            while _is_first_tier(session) and time.monotonic() < ends:
                session.run(fetches, feeds)
            for _ in range(14):  # after a dozen, what runs often is written out
                session.run(fetches, feeds)
            took, calls = [math.inf], 1
            for _ in range(options.runs if options.rounds else 0):
                start = time.process_time()
                for _ in range(calls):
                    session.run(fetches, feeds)
                took.append((time.process_time() - start) / calls)
                calls = max(1, round(SHORTEST / max(min(took), 1e-7)))
            plan = list(session._calls.plans.values())[-1]
            steps = 0 if plan.program is None else len(plan.program)
        contents = [path.read_bytes() for path in pathlib.Path(cache).glob("*.tflite")]
    contents = [content for content in contents if content[4:8] == b"TFL3"]
    subgraphs = [subgraph for content in contents for subgraph in Table.root(content).tables(2)]
    operators = sum(len(subgraph.tables(3)) for subgraph in subgraphs)
    parts = tuple(sorted(hashlib.sha256(content).hexdigest() for content in contents))
    return min(took), first, Shown(steps, parts, operators, sum(map(len, contents)))


if __name__ == "__main__":
    main()
