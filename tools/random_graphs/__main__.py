"""Makes random valid graphs, runs them in TensorFlow and here, and tells where the two disagree.

    python tools/random_graphs --oracle PYTHON [--graphs 1000] [--seed 0] [--size 8] [--ops Add,Mul] [--keep FOLDER]
    python tools/random_graphs --oracle PYTHON --coverage         every registered type of every op, one node a graph
    python tools/random_graphs --oracle PYTHON --programs 500     loops, branches, functions, lists, variables, queues …
    python tools/random_graphs --oracle PYTHON --written 500      programs in Python, as autograph writes them down
    python tools/random_graphs --oracle PYTHON --gradients 300    what tf.gradients of TensorFlow 1.15 gives for graphs
    python tools/random_graphs --oracle PYTHON --broken 40        of every op, 40 goldens with one input broken
    python tools/random_graphs --oracle PYTHON --types 2          of every op, 2 goldens in all registered types
    python tools/random_graphs --oracle PYTHON --gaps [--fill FILE]   what goldens do not show; more goldens that do

``--oracle`` is the python of an environment that has TensorFlow (1.15 or 2.x). Nodes are compared one by one on the
inputs that TensorFlow had: integers, booleans and strings must be equal, floats within 2 units in the last place, of
the largest element where sums are taken. Graphs of ordinary numbers are run whole in a Session as well, on both
engines. Disagreements are counted by op, with the smallest graph of each: ``--keep`` writes these as text.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import numpy as np

from pocketgraph import formats
from pocketgraph.graph import Graph, canonical, const
from pocketgraph.graph.order import reachable
from pocketgraph.graph.text_format import print_graph
from random_graphs import broken_runs, features, gaps, gradient_runs, judging, making, program_runs, python_runs
from random_graphs.asking import asked, emptied
from random_graphs.growth import Growth
from random_graphs.judging import WORKER

BATCH = 200  # graphs for which TensorFlow is started once
REAL = ("differs", "refused")
RELATIVE = 1e-3  # what whole graphs may be off: errors of one op grow in the next


def main() -> int:
    arguments = parsed()
    if arguments.programs or arguments.written:
        return programs(arguments)
    if arguments.broken or arguments.types:
        return broken(arguments)
    if arguments.gaps:
        return show_gaps(arguments)
    if arguments.gradients:
        return gradient_runs.judged(arguments, kernels_of(arguments.oracle))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        registered = kernels_of(arguments.oracle)
        report = Report(arguments.keep)
        for batch in batches(arguments, registered):
            judged = [(growth, answer, found(growth, answer, arguments.sessions))
                      for growth, answer in answered(arguments.oracle, path, batch)]  # fmt: skip
            doubtful = [growth for growth, _, finds in judged if arguments.also and finds]
            others = {id(growth): answer for growth, answer in answered(arguments.also, path, doubtful)}
            for growth, answer, finds in judged:
                report.take(
                    growth, answer, agreed(growth, others[id(growth)], finds) if id(growth) in others else finds
                )
        report.show(arguments.all)
    return 1 if report.found else 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="random_graphs", description="Random graphs, ours against TensorFlow's.")
    parser.add_argument("--oracle", required=True, help="a python with TensorFlow")
    parser.add_argument("--also", default="", help="a python with another TensorFlow: where that one agrees with us, "
                        "the versions differ")  # fmt: skip
    parser.add_argument("--graphs", type=int, default=300, help="how many")
    parser.add_argument("--size", type=int, default=8, help="nodes a graph, sources not counted")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ops", default="", help="only these, with commas between")
    parser.add_argument("--coverage", action="store_true", help="every registered type, one node a graph")
    parser.add_argument("--programs", type=int, default=0, help="how many whole programs with state and control flow")
    parser.add_argument("--written", type=int, default=0, help="how many programs in Python, for autograph")
    parser.add_argument("--variants", type=int, default=0, help="with --written: how many more graphs of each program, "
                        "with other numbers and arithmetic")  # fmt: skip
    parser.add_argument("--gradients", type=int, default=0, help="how many graphs of ops that have gradients")
    parser.add_argument("--broken", type=int, default=0, help="how many broken goldens of each op")
    parser.add_argument("--types", type=int, default=0, help="how many goldens of each op in every type")
    parser.add_argument("--gaps", action="store_true", help="list the types, attributes, empty and scalar inputs, NaN "
                        "and infinities that the goldens of each op do not show")  # fmt: skip
    parser.add_argument("--fill", default="", help="with --gaps: add goldens that show them to this file")
    parser.add_argument("--kinds", default="", help="only these kinds of programs, with commas between")
    parser.add_argument("--sessions", action="store_true", help="also run whole graphs in Sessions")
    parser.add_argument("--tame", action="store_true", help="no NaN, no infinities, no extremes")
    parser.add_argument("--floats", action="store_true", help="nearly all float32, which is what LiteRT runs")
    parser.add_argument("--keep", default="", help="a folder for the smallest graph of each find")
    parser.add_argument("--all", action="store_true", help="also list what only we accept")
    return parser.parse_args()


def programs(arguments: argparse.Namespace) -> int:
    """Random programs on both engines: what was run of each kind, and the smallest find of each."""
    wanted, keep = arguments.kinds, arguments.keep
    if arguments.written:
        found = python_runs.judged(arguments.oracle, arguments.seed, arguments.written, wanted, keep, arguments.also,
                                    arguments.variants)  # fmt: skip
    else:
        found = program_runs.judged(arguments.oracle, arguments.seed, arguments.programs, wanted, keep)
    counts, finds = found
    for key, text in sorted(finds.items()):
        if "refused" not in key or arguments.all:
            print(f"{key} {counts[key]} x  {text}\n")
    print(", ".join(f"{key} {count}" for key, count in sorted(counts.items())))
    return 1 if any("differs" in key for key in finds) else 0


def broken(arguments: argparse.Namespace) -> int:
    """Goldens with one input broken, or in other types: what only one side refuses, and errors that are not ours."""
    registered = kernels_of(arguments.oracle) if arguments.types else None
    counts, finds = broken_runs.judged(
        arguments.oracle,
        arguments.seed,
        arguments.types or arguments.broken,
        {op for op in arguments.ops.split(",") if op},
        arguments.keep,
        registered,
    )
    for key, text in sorted(finds.items()):
        print(f"{key}\n    {text}\n")
    print("\n".join(f"{key} {count}" for key, count in sorted(counts.items())))
    return 1 if finds else 0


def show_gaps(arguments: argparse.Namespace) -> int:
    """Prints what the goldens do not show, op by op, after filling the gaps when that is asked for."""
    registered = kernels_of(arguments.oracle)
    missing = features.gaps({op for op in arguments.ops.split(",") if op}, registered)
    if arguments.fill:
        missing, differing = gaps.fill(
            arguments.oracle, arguments.seed, missing, registered, pathlib.Path(arguments.fill)
        )
        print("\n".join(differing))
    for op, lacking in missing.items():
        print(f"{op:40} {' '.join(sorted(lacking))}")
    print(f"{sum(map(len, missing.values()))} gaps of {len(missing)} ops")
    return 0


def kernels_of(oracle: str) -> making.Registered:
    """The CPU kernels that a TensorFlow has registered, by op: the types of each."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "kernels.json"
        subprocess.run([oracle, str(WORKER), "--kernels", str(path)], check=True, capture_output=True)
        found: making.Registered = json.loads(path.read_text())
        return found


def batches(arguments: argparse.Namespace, registered: making.Registered) -> Iterator[list[Growth]]:
    wanted = [op for op in arguments.ops.split(",") if op]
    table = {op: making.combinations(op, registered) for op in wanted or making.known_ops()}
    ops = [op for op, choices in table.items() if choices]
    rng = np.random.default_rng(arguments.seed)
    batch: list[Growth] = []
    for growth in covering(rng, ops, table, arguments) if arguments.coverage else random(rng, ops, table, arguments):
        batch.append(growth)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def random(
    rng: np.random.Generator, ops: list[str], table: dict[str, Any], arguments: argparse.Namespace
) -> Iterator[Growth]:
    for number in range(arguments.graphs):
        few = [str(op) for op in rng.choice(ops, min(len(ops), 12), replace=False)]
        yield making.grow(
            rng,
            few,
            table,
            int(rng.integers(1, arguments.size + 1)),
            wild=not arguments.tame and number % 3 == 2,
            floats=arguments.floats,
        )


def covering(
    rng: np.random.Generator, ops: list[str], table: dict[str, Any], arguments: argparse.Namespace
) -> Iterator[Growth]:
    """For each op and each type that one of its kernels takes, graphs of a few such nodes."""
    for op in ops:
        for choice in table[op]:
            for attr, kinds in choice.items() or [("", [None])]:
                for kind in kinds:
                    growth = Growth(rng, wild=not arguments.tame and bool(rng.random() < 0.4))
                    for _ in range(3):
                        making.make(growth, op, [{**choice, attr: [kind]} if attr else choice])
                    yield growth


def answered(python: str, folder: pathlib.Path, batch: list[Growth]) -> Iterator[tuple[Growth, Graph | None]]:
    """Each graph with TensorFlow's answer; None where it brought TensorFlow down."""
    emptied(folder)
    for number, growth in enumerate(batch):
        fixed = growth.graph().map_nodes(
            lambda node, feeds=growth.feeds: (
                const(node.name, feeds[node.name], node.attrs["dtype"]) if node.name in feeds else node
            )
        )
        (folder / f"g{number}.pb").write_bytes(formats.to_bytes(fixed))
    yield from zip(batch, asked(python, folder, [f"g{n}" for n in range(len(batch))]), strict=True)


def stored(growth: Growth) -> Graph:
    """The graph with its attributes as a file holds them."""
    return formats.from_bytes(formats.to_bytes(growth.graph()))


def told(answer: Graph) -> tuple[dict[str, Any], dict[str, str]]:
    """(values by tensor, refusals by node) of what TensorFlow answered."""
    values, refusals = {}, {}
    for name in answer.nodes:
        value = answer[name].tensor.numpy()
        if name.endswith("/error"):
            refusals[name[:-6]] = value.item().decode(errors="replace")
        else:
            values[canonical(growth_name(name))] = value
    return values, refusals


def found(growth: Growth, answer: Graph | None, sessions: bool) -> list[judging.Find]:
    """Where we disagree with an answer."""
    if answer is None:
        return []
    graph, (theirs, refusals) = stored(growth), told(answer)
    finds = judging.judge_nodes(graph, theirs, refusals)
    if sessions and not finds and not refusals and not growth.wild:
        for engine in ("reference", None):
            finds += judging.judge_session(graph, growth.feeds, theirs, engine, RELATIVE)
    return finds


def agreed(growth: Growth, answer: Graph | None, finds: list[judging.Find]) -> list[judging.Find]:
    """The finds, those as known in which the other TensorFlow says what we say (or refuses what we refuse)."""
    if answer is None:
        return finds
    values, refusals = told(answer)
    graph = stored(growth)
    against = {find.node for find in judging.judge_nodes(graph, values, refusals) if find.kind in REAL}
    if any(find.kind == "engine" for find in finds):
        for engine in ("reference", None):
            against |= {find.node for find in judging.judge_session(graph, growth.feeds, values, engine, RELATIVE)}
    return [
        judging.Find("known", find.op, "TensorFlow's versions differ", find.node)
        if find.kind in (*REAL, "engine") and find.node not in against and known_to(find, values, refusals)
        else find
        for find in finds
    ]


def known_to(find: judging.Find, values: dict[str, Any], refusals: dict[str, str]) -> bool:
    """Whether there is an answer for the find's node."""
    return find.node in values or f"{find.node}:0" in values or find.node.partition(":")[0] in refusals


class Report:
    """Counts and finds, by kind and op.

    Attributes:
        found: whether anything disagreed.
    """

    def __init__(self, keep: str) -> None:
        self.nodes: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.down: Counter[str] = Counter()
        self.counts: Counter[tuple[str, str]] = Counter()
        self.examples: dict[tuple[str, str], tuple[int, str]] = {}
        self.graphs = self.crashes = 0
        self.keep = keep

    @property
    def found(self) -> bool:
        return any(kind not in ("accepted", "known") for kind, _ in self.counts)

    def take(self, growth: Growth, answer: Graph | None, finds: list[judging.Find]) -> None:
        self.graphs += 1
        if answer is None:
            self.crashes += 1
            self.down.update({node.op for node in growth.graph() if node.op not in ("Const", "Placeholder")})
            return
        graph, (_, refusals) = stored(growth), told(answer)
        self.nodes.update(n.op for n in graph if n.name not in refusals)
        self.refused.update(n.op for n in graph if n.name in refusals)
        for find in finds:
            key = (find.kind, find.op)
            self.counts[key] += 1
            size = find_size(graph, find)
            if key not in self.examples or size < self.examples[key][0]:
                self.examples[key] = (size, f"{find.text}\n{picture(graph, growth, find)}")

    def show(self, everything: bool) -> None:
        for (kind, op), count in sorted(self.counts.items()):
            if kind in ("accepted", "known") and not everything:
                continue
            text = self.examples[kind, op][1]
            print(f"{kind:9} {op:28} {count:5} x  {text}\n")
            if self.keep:
                folder = pathlib.Path(self.keep)
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{kind}_{op.replace(' ', '_')}.txt").write_text(text)
        never = sorted(op for op in self.refused if op not in self.nodes)
        computed, refused = sum(self.nodes.values()), sum(self.refused.values())
        print(f"{self.graphs} graphs, {computed} nodes of {len(self.nodes)} ops computed by TensorFlow")
        known = sum(count for (kind, _), count in self.counts.items() if kind == "known")
        print(f"{known} known differences (docs/exactness.md; --all lists them)")
        down = ", ".join(op for op, _ in self.down.most_common(12))
        print(f"{refused} nodes refused by it, {self.crashes} graphs that brought it down{down and ': ' + down}")
        if never:
            print("never computed:", ", ".join(never))


def growth_name(name: str) -> str:
    node, _, port = name.rpartition("/")
    return f"{node}:{port}"


def find_size(graph: Graph, find: judging.Find) -> int:
    return len(reachable(graph, [find.node])) * 1000 if find.kind == "engine" else 1000


def picture(graph: Graph, growth: Growth, find: judging.Find) -> str:
    """The node that disagrees and its inputs; for an engine, all that leads to it."""
    if find.kind == "engine":
        names = reachable(graph, [find.node])
        return print_graph(graph.replace([node for node in graph if node.name in names]))[:4000]
    node = graph[find.node.partition(":")[0]]
    lines = [f"    {node.op}({', '.join(node.inputs)}) {dict(node.attrs)}"]
    for ref in node.data_inputs:
        value = growth.pool.get(ref)
        if value is not None:
            shown = np.array2string(value, threshold=30, precision=9).replace("\n", " ")
            lines.append(f"    {ref}: {growth.dtypes[ref].name}{list(value.shape)} {shown[:200]}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
