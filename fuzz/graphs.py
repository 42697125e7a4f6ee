"""Runs graphs with hostile attributes, shapes and values through both engines, in child processes that may die.

    python fuzz/graphs.py [--minutes 10] [--seed 0] [--op NAME] [--work FOLDER]    and says how many ran, and the finds
    python fuzz/graphs.py --seed 0 --only 1234                                     one of them, here

The nodes are those of the goldens, each with one to three inputs or attributes broken (random_graphs/breaking.py);
their inputs are fed with unknown shapes, fed with declared ones, or constants. A find is a signal, more than thirty
seconds of computing, memory beyond the limit given, an exception that is no error of pocketgraph, or two engines that
give results of different types or shapes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import mmap
import os
import pathlib
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import DType, Graph, Node, Shape, const
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import print_graph
from random_graphs import breaking

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH = 500  # graphs of one child
MOST_SECONDS = 30  # of computing, for a node of some elements
LIMIT = 1 << 30  # bytes that a run may take
MOST_MEMORY = 2 * LIMIT  # bytes that the process may take beyond what it has at first: code, caches, one copy
ADDRESSES = 8 << 30  # bytes of addresses; beyond, memory is refused
Broken = breaking.Broken


class Made:
    """The graph of a number: the same for the same seed."""

    def __init__(self, op: str) -> None:
        self.cases = breaking.goldens({op} if op else set())
        self.ops = sorted(self.cases)

    def make(self, seed: int, number: int) -> tuple[Graph, dict[str, Array], str]:
        """(graph, feeds, what was broken)."""
        rng = np.random.default_rng((seed, number))
        op = self.ops[int(rng.integers(len(self.ops)))]
        case = self.cases[op][int(rng.integers(len(self.cases[op])))]
        said = []
        one = None
        for _ in range(int(rng.choice((1, 1, 2, 3)))):
            ways = list(breaking.broken(rng, case if one is None else _as_case(case, one)))
            if not ways:
                break
            one = ways[int(rng.integers(len(ways)))]
            said.append(one.how)
        if one is None:
            names = tuple(f"in{n}" for n in range(len(case.inputs)))
            one = Broken(case.node.replace(name="broken", inputs=names), case.inputs, "nothing")
        graph, feeds = _placed(one, int(rng.integers(3)))
        return graph, feeds, f"{op}: {', '.join(said)}"


def _as_case(case: Any, one: Broken) -> Any:
    """A case of what is broken already, to be broken further."""
    import dataclasses

    return dataclasses.replace(case, node=one.node, inputs=one.inputs)


def _placed(one: Broken, way: int) -> tuple[Graph, dict[str, Array]]:
    """The node behind placeholders without shapes, placeholders with shapes, or constants."""
    graph = one.graph()
    feeds = {f"in{n}": value for n, value in enumerate(one.inputs)}
    if way == 0:
        return graph, feeds
    nodes: list[Node] = []
    for node in graph:
        value = feeds.get(node.name)
        if value is None:
            nodes.append(node)
        elif way == 1:
            nodes.append(node.replace(attrs={**node.attrs, "shape": Shape(value.shape)}))
        else:
            dtype = node.attrs["dtype"]
            nodes.append(const(node.name, value, dtype if isinstance(dtype, DType) else None))
    return graph.replace(nodes), {} if way == 2 else feeds


def executed(graph: Graph, feeds: dict[str, Array], engine: str | None) -> tuple[str, list[Array]]:
    """(an error of ours or "", the results)."""
    from pocketgraph.graph import opdefs
    from pocketgraph.runtime import Session

    try:
        count = len(opdefs.output_dtypes(graph["broken"]))
        with Session(graph, engine=engine, memory_limit=LIMIT) as session:
            names = [f"broken:{n}" for n in range(count)]
            return "", session.run(names, feeds) if names else session.run([], feeds, targets=["broken"])
    except PocketgraphError as error:
        return str(error) or "an error", []


def judge(graph: Graph, feeds: dict[str, Array]) -> str:
    """What is wrong with how a graph runs; empty when nothing is."""
    answers = []
    for engine in ("reference", None):
        try:
            answers.append(executed(graph, feeds, engine))
        except Exception:
            return f"{engine or 'default'} engine: {traceback.format_exc()}"
    (one, left), (other, right) = answers
    if one or other:
        return ""  # which of the two refuses more is held by random_graphs
    for a, b in zip(left, right, strict=True):
        if (np.asarray(a).dtype, np.shape(a)) != (np.asarray(b).dtype, np.shape(b)):
            return f"{np.asarray(a).dtype}{np.shape(a)} and {np.asarray(b).dtype}{np.shape(b)}"
    return ""


def batch(made: Made, seed: int, first: int, last: int, board: mmap.mmap, finds: pathlib.Path) -> None:
    """Runs some graphs in this process; the board says which one is running, and how many did."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    warnings.simplefilter("ignore")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    for number in range(first, last):
        board[:8] = struct.pack("<q", number)
        graph, feeds, how = made.make(seed, number)
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
        wrong = judge(graph, feeds)
        signal.setitimer(signal.ITIMER_PROF, 0)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        if peak - before > MOST_MEMORY:
            wrong, before = wrong or f"{(peak - before) >> 20} MB", peak
        if wrong:
            keep(finds, seed, number, how, wrong, graph)
    board[:8] = struct.pack("<q", last)


def keep(finds: pathlib.Path, seed: int, number: int, how: str, wrong: str, graph: Graph) -> None:
    """Writes a find, one for each op and kind of wrong."""
    finds.mkdir(parents=True, exist_ok=True)
    op, kind = graph["broken"].op, wrong.strip().splitlines()[-1].partition(":")[0][:40].replace("/", "_")
    path = finds / f"graph-{op}-{kind}.txt"
    if not path.exists():
        path.write_text(f"--seed {seed} --only {number}\n{how}\n{print_graph(graph)}\n{wrong}\n")


def run(made: Made, seed: int, minutes: float, work: pathlib.Path) -> Counter[str]:
    """Runs batches in children until the time is over; one that dies is a find, and the next goes on behind it."""
    finds, counts = work / "finds", Counter[str]()
    end, first = time.monotonic() + 60 * minutes, 0
    board = mmap.mmap(-1, 8)
    while time.monotonic() < end:
        last = first + BATCH
        child = os.fork()
        if not child:
            batch(made, seed, first, last, board, finds)
            os._exit(0)
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                counts["graphs"] += struct.unpack("<q", board[:8])[0] - first
                return counts
            time.sleep(0.05)
        reached = struct.unpack("<q", board[:8])[0]
        if status:
            graph, _, how = made.make(seed, reached)
            code = os.waitstatus_to_exitcode(status)
            said = signal.Signals(-code).name if code < 0 else f"left with {code}"
            keep(finds, seed, reached, how, "more than 30 s" if said == "SIGPROF" else said, graph)
            counts["deaths"] += 1
            reached += 1
        counts["graphs"] += reached - first
        first = reached
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--op", default="")
    parser.add_argument("--only", type=int)
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / ".fuzz")
    asked = parser.parse_args()
    os.environ["POCKETGRAPH_CACHE"] = ""
    made = Made(asked.op)
    if asked.only is not None:
        graph, feeds, how = made.make(asked.seed, asked.only)
        print(how, print_graph(graph), *(f"{name} = {value!r}" for name, value in feeds.items()), sep="\n")
        print(executed(graph, feeds, "reference"), executed(graph, feeds, None), sep="\n")
        return 0
    asked.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        counts = run(made, asked.seed, asked.minutes, asked.work.resolve())
    path = asked.work / "figures.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    entry = known.setdefault("graphs", {"executions": 0, "seconds": 0.0, "deaths": 0})
    entry["executions"] += counts["graphs"]
    entry["seconds"] += 60 * asked.minutes
    entry["deaths"] += counts["deaths"]
    path.write_text(json.dumps(known, indent=1))
    found = sorted((asked.work / "finds").glob("graph-*.txt"))
    print(f"{counts['graphs']:,} graphs of {len(made.ops)} ops, {counts['deaths']} processes died, {len(found)} finds")
    for find in found:
        print(find)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
