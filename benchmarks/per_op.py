"""Where the time of a model goes in each engine, side by side, by their own profiles.

    python benchmarks/per_op.py MODEL.pb [--onnx MODEL.onnx] [--threads 1] [--rounds 5] [--reference] [--operations 10]

LiteRT, OpenVINO, ONNX Runtime (from our ONNX), engines that packages register and, on request, the reference engine
run the compiled part that takes the longest; with --onnx ONNX Runtime runs MODEL.onnx as well (tf2onnx makes it).
Profiles are taken by turns; of each engine the one with the least sum counts. Engines name what they run in words of
their own, so the table is by kinds of operations; below it are the longest operations of each.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from measure import table
from pocketgraph import Session
from pocketgraph.errors import MissingExtraError
from pocketgraph.graph import parse_ref
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.litert import cache
from pocketgraph.runtime.certificates.part_reference import PartReference
from pocketgraph.runtime.feeding.default_tensors import default_fetches
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds
from pocketgraph.runtime.part_engines.available_engines import find, names
from pocketgraph.runtime.part_engines.part_engine import OfferedPart, OperationTime

KINDS = {
    "depthwise convolutions": ("dwconv", "depthwise", "groupconv"),
    "1x1 convolutions, products": ("1x1", "gemm (", " gemm", "gemm_", "matmul", "fully connected", "inner_product"),
    "other convolutions": ("conv", "igemm"),
    "pooling": ("pool", "mean (", "reduce"),
    "copies, joins, layouts": ("copy", "concat", "transpose", "reorder", "reshape", "pad", "slice"),
}
"""What the engines' names of operations of a kind have in them; the first that fits counts."""
REST = "the rest"
Profile = Callable[[], "Sequence[OperationTime] | None"]


def kind_of(op: str) -> str:
    """The kind of an operation, by the engine's name of it."""
    said = op.lower()
    return next((kind for kind, parts in KINDS.items() if any(part in said for part in parts)), REST)


def profiles(model: pathlib.Path, threads: int, with_reference: bool) -> dict[str, Profile]:
    """How each installed engine profiles the longest part of a model."""
    with Session(model, threads=threads) as session:
        fetches = list(default_fetches(session.graph))
        feeds = synthetic_feeds(session.graph, fetches, 0, {})
        session.run(fetches, feeds)
        plans = session._calls.plans.values()
        executables: list[Any] = [
            each for plan in plans for each in plan.executables if getattr(each, "kept_as", None) is not None
        ]
        if not executables:
            raise SystemExit("no part of this model is compiled and kept in the cache")
        longest = max(executables, key=lambda each: each.about["work"])
    entry = cache.find(*longest.kept_as)
    assert entry is not None
    takes, gives = [name for name, _, _ in entry.about["inputs"]], list(fetches)
    nodes = PartReference(session.graph, list(map(endpoint, takes)), list(map(endpoint, gives)))
    part = OfferedPart(entry, lambda: nodes)
    given = {name.partition(":")[0]: value for name, value in feeds.items()}
    wanted = [entry.about["inputs"][index] for index in entry.about["fed"]]
    if any(name.partition(":")[0] not in given for name, _, _ in wanted):
        raise SystemExit("the longest part takes what other parts compute: give a model that LiteRT takes as a whole")
    inputs = [given[name.partition(":")[0]] for name, _, _ in wanted]
    found: dict[str, Profile] = {}
    for name in names():
        engine = find(name)
        try:
            engine.version()
        except MissingExtraError:
            continue
        if name != "reference" and not engine.refuses(part):
            found[name] = lambda engine=engine: engine.profile(part, threads, inputs)  # type: ignore[misc]
    if with_reference:
        found["reference"] = lambda: profiled(Session(model, engine="reference"), fetches, feeds)
    return found


def endpoint(name: str) -> Endpoint:
    """The output of a node that a name says, the first where it says none."""
    ref = parse_ref(name)
    return Endpoint(ref.name, ref.port)


def profiled(session: Session, fetches: Sequence[str], feeds: Mapping[str, Any]) -> list[OperationTime]:
    """The profile of a whole session."""
    with session:
        trace = session.profile(fetches, feeds)
    return [OperationTime(node.name, node.op, node.duration_us) for node in trace.nodes]


def on_onnx_runtime(path: pathlib.Path, threads: int) -> list[OperationTime]:
    """What ONNX Runtime says of an .onnx file."""
    session = Session(path, threads=threads)
    fetches = list(default_fetches(session.graph))
    return profiled(session, fetches, synthetic_feeds(session.graph, fetches, 0, {}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--onnx", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--operations", type=int, default=10, help="how many of the longest operations to list")
    options = parser.parse_args()
    programs = profiles(options.model, options.threads, options.reference)
    if options.onnx is not None and find_spec("onnxruntime") is not None:
        programs[options.onnx.name] = lambda: on_onnx_runtime(options.onnx, options.threads)
    best: dict[str, Sequence[OperationTime]] = {}
    for _ in range(options.rounds):
        for who, profile in programs.items():
            times = profile()
            if times and (who not in best or whole(times) < whole(best[who])):
                best[who] = times
    rows = []
    for kind in (*KINDS, REST):
        of_kind = {who: [each for each in times if kind_of(each.op) == kind] for who, times in best.items()}
        cells = [f"{whole(each) / 1000:.2f} ({len(each)})" if each else "-" for each in of_kind.values()]
        if any(of_kind.values()):
            rows.append([kind, *cells])
    rows.append(["all", *(f"{whole(times) / 1000:.2f} ({len(times)})" for times in best.values())])
    header = ["kind", *(f"{who} ms (operations)" for who in best)]
    threads = f"{options.threads} thread{'s' * (options.threads > 1)}"
    table(f"{options.model.name}, {threads}, the least of {options.rounds} profiles", header, rows)
    for who, times in best.items():
        longest = sorted(times, key=lambda each: -each.microseconds)[: options.operations]
        table(who, ["operation", "what", "ms"], [[e.name, e.op, f"{e.microseconds / 1000:.3f}"] for e in longest])


def whole(times: Sequence[OperationTime]) -> float:
    """The sum of the times, in microseconds."""
    return sum(each.microseconds for each in times)


if __name__ == "__main__":
    main()
