"""Runs random programs in TensorFlow and in sessions of both engines, step by step, and compares what they give."""

from __future__ import annotations

import json
import pathlib
import tempfile
from collections import Counter
from collections.abc import Iterator

import numpy as np

from pocketgraph import Session, formats
from pocketgraph.graph import DType, Graph, const
from pocketgraph.graph.text_format import print_graph
from random_graphs import flow_programs as flow_programs
from random_graphs import keeping_programs as keeping_programs
from random_graphs import net_programs as net_programs
from random_graphs import state_programs as state_programs
from random_graphs.asking import asked, emptied
from random_graphs.channels_last import channels_last
from random_graphs.judging import loose_difference
from random_graphs.programs import PROGRAMS, Program, grown

BATCH = 60  # programs for which TensorFlow is started once
RELATIVE = {"float16": 1e-2, "bfloat16": 3e-2}  # of the largest element; other floats: 1e-4


def judged(oracle: str, seed: int, count: int, wanted: str, keep: str) -> tuple[Counter[str], dict[str, str]]:
    """Makes and runs ``count`` programs.

    Returns:
        How often each kind was run (``KIND``), refused by TensorFlow (``KIND refused``) and found different, and the
        smallest find of each kind.
    """
    rng = np.random.default_rng(seed)
    kinds = [k for k in wanted.split(",") if k] or sorted(PROGRAMS)
    counts: Counter[str] = Counter()
    finds: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, count, BATCH):
            batch = []
            for number in range(start, min(count, start + BATCH)):
                kind = kinds[number % len(kinds)]
                batch.append((kind, grown(rng, kind)))
            for (kind, program), answer in zip(batch, answered(oracle, pathlib.Path(folder), batch), strict=True):
                take(kind, program, answer, counts, finds)
    if keep:
        pathlib.Path(keep).mkdir(parents=True, exist_ok=True)
        for kind, text in finds.items():
            (pathlib.Path(keep) / f"program_{kind.replace(' ', '_')}.txt").write_text(text)
    return counts, finds


def answered(oracle: str, folder: pathlib.Path, batch: list[tuple[str, Program]]) -> Iterator[Graph | None]:
    emptied(folder)
    for number, (_, program) in enumerate(batch):
        (folder / f"p{number}.pb").write_bytes(formats.to_bytes(channels_last(program.graph())))
        (folder / f"p{number}.json").write_text(json.dumps(program.steps))
        feeds = [const(name, value, dtype_of(program, name)) for name, value in program.feeds.items()]
        (folder / f"p{number}.feeds.pb").write_bytes(formats.to_bytes(Graph(feeds)))
    yield from asked(oracle, folder, [f"p{n}" for n in range(len(batch))], "--programs")


def dtype_of(program: Program, name: str) -> DType:
    dtype = next(node for node in program.nodes if node.name == name).attrs["dtype"]
    assert isinstance(dtype, DType)
    return dtype


def take(kind: str, program: Program, answer: Graph | None, counts: Counter[str], finds: dict[str, str]) -> None:
    counts[kind] += 1
    if answer is None:
        counts[f"{kind} brought TensorFlow down"] += 1
        return
    graph = formats.from_bytes(formats.to_bytes(program.graph()))
    for engine in ("reference", None):
        text = run(graph, program, answer, engine)
        if text.startswith("refused by TensorFlow"):
            counts[f"{kind} refused"] += 1
            finds.setdefault(f"{kind} refused", text)
            return
        if text:
            key = f"{kind} differs on {engine or 'LiteRT'}"
            counts[key] += 1
            whole = f"{text}\nsteps: {program.steps}\nfeeds: {program.feeds}\n{print_graph(graph)[:6000]}"
            if key not in finds or len(whole) < len(finds[key]):
                finds[key] = whole


def run(graph: Graph, program: Program, answer: Graph, engine: str | None) -> str:
    """What is wrong; "" when nothing is."""
    with tempfile.TemporaryDirectory() as cache, Session(graph, 1, engine=engine, cache_dir=cache) as session:
        for number, (fetches, targets) in enumerate(program.steps):
            refusal = answer.nodes.get(f"{number}/error")
            try:
                results = session.run(fetches, dict(program.feeds), targets=targets)
            except Exception as error:  # anything else than our own errors is a find as well
                if refusal is not None:
                    return ""
                return f"step {number}: {type(error).__name__}: {error}"[:400]
            if refusal is not None:
                return f"refused by TensorFlow: step {number}: {refusal.tensor.numpy().item().decode()[:300]}"
            for place, (fetch, result) in enumerate(zip(fetches, results, strict=True)):
                expected = answer[f"{number}/{place}"].tensor.numpy()
                text = loose_difference(result, expected, RELATIVE.get(expected.dtype.name, 1e-4))
                if text:
                    return f"step {number}, {fetch}: {text}\nours {result!r}\ntheirs {expected!r}"[:1500]
    return ""
