"""Makes goldens that show what those of an op do not: random nodes, and goldens changed a little."""

from __future__ import annotations

import gzip
import pathlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph import formats
from pocketgraph.graph import Graph, Node, const, opdefs
from random_graphs import broken_runs, judging, making
from random_graphs.breaking import Broken, broken, goldens, retyped
from random_graphs.features import shown
from random_graphs.growth import Growth
from random_graphs.making import Registered

TRIES = 150  # random nodes an op, and as many of each type that is missing
FOR_EACH = 4  # candidates that TensorFlow is asked about for each feature, the smallest first
LARGEST = 4_000  # bytes of a golden's inputs


class Candidate(Broken):
    """A node that may show something, on constants, from which TensorFlow infers shapes."""

    def graph(self) -> Graph:
        graph = super().graph()
        dtypes = opdefs.input_dtypes(self.node)
        sources = [const(f"in{n}", v, d) for n, (v, d) in enumerate(zip(self.inputs, dtypes, strict=True))]
        return graph.replace([*sources, self.node])


def fill(
    oracle: str, seed: int, missing: Mapping[str, set[str]], registered: Registered, path: pathlib.Path
) -> tuple[dict[str, set[str]], list[str]]:
    """Adds goldens to ``path`` that show what is missing, as few and as small as they come.

    Returns:
        What is missing still, and the nodes on which we and TensorFlow differ, which are not kept.
    """
    rng = np.random.default_rng(seed)
    cases = goldens(set(missing))
    left = {op: set(features) for op, features in missing.items()}
    kept = list(formats.from_bytes(gzip.decompress(path.read_bytes()))) if path.exists() else []
    differing = []
    batch = [one for op in missing for one in chosen(rng, op, cases.get(op, []), missing[op], registered)]
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, len(batch), broken_runs.BATCH):
            part = batch[start : start + broken_runs.BATCH]
            answers = list(broken_runs.answered(oracle, pathlib.Path(folder), part))
            for one, answer in zip(part, answers, strict=True):
                if answer is None or any(node.name.endswith("/error") for node in answer):
                    continue
                op = one.node.op
                new = shown(one.node, one.inputs) & left[op]
                if not new or holds_name(answer):
                    continue
                finds = disagreements(one, answer)
                if finds:
                    differing += [
                        f"{op}: {text}\n{broken_runs.picture(one)}" for kind, text in finds if kind != "known"
                    ]
                    continue
                left[op] -= new
                kept += written(f"{op}_{sum(n.op == op for n in kept)}", one, answer)
    path.write_bytes(gzip.compress(formats.to_bytes(Graph(kept)), 9, mtime=0))
    return {op: features for op, features in left.items() if features}, differing


def chosen(
    rng: np.random.Generator, op: str, cases: Sequence[Any], missing: set[str], registered: Registered
) -> list[Broken]:
    """For each missing feature the smallest candidates that show it; those that show more come first."""
    found = [
        (len(shown(one.node, one.inputs) & missing), -size(one), number, one)
        for number, one in enumerate(candidates(rng, op, cases, missing, registered))
        if size(one) <= LARGEST and shown(one.node, one.inputs) & missing
    ]
    best = sorted(found, key=lambda row: row[:3], reverse=True)
    taken: dict[int, Broken] = {}
    for feature in sorted(missing):
        fitting = [row for row in best if feature in shown(row[3].node, row[3].inputs)]
        taken.update((row[2], row[3]) for row in fitting[:FOR_EACH])
    return [one for _, _, number, one in best if number in taken]


def size(one: Broken) -> int:
    """The bytes of the inputs, texts for their length."""
    return sum(value.nbytes + (sum(map(len, value.ravel())) if value.dtype == object else 0) for value in one.inputs)


def candidates(
    rng: np.random.Generator, op: str, cases: Sequence[Any], missing: set[str], registered: Registered
) -> Iterator[Broken]:
    """Nodes of an op that may show what is missing."""
    choices = making.combinations(op, registered)
    if op in making.known_ops() and choices:
        narrow = [
            {**choice, name: [kind]}
            for choice in choices
            for name, kinds in choice.items()
            for kind in kinds
            if f"{name}={kind.name}" in missing
        ]
        for number in range(TRIES):
            yield from random_nodes(rng, op, choices, wild=number % 3 == 0)
        for number in range(TRIES if narrow else 0):
            yield from random_nodes(rng, op, [narrow[number % len(narrow)]], wild=False)
    for case in cases:
        for one in (*retyped(case, registered.get(op, ())), *broken(rng, case)):
            yield Candidate(one.node, one.inputs, one.how)


def random_nodes(rng: np.random.Generator, op: str, choices: Sequence[Any], wild: bool) -> Iterator[Broken]:
    """One random node, if these types allow one, with its inputs."""
    growth = Growth(rng, wild)
    name = making.make(growth, op, choices)
    if name is None or name in growth.refused:
        return
    node = next(node for node in growth.graph_nodes if node.name == name)
    inputs = tuple(growth.pool[ref] for ref in node.inputs)
    yield Candidate(node.replace(name="broken", inputs=tuple(f"in{n}" for n in range(len(inputs)))), inputs, "random")


def disagreements(one: Broken, answer: Graph) -> list[tuple[str, str]]:
    """(kind, text) of what we say otherwise than TensorFlow."""
    theirs = {f"in{n}:0": value for n, value in enumerate(one.inputs)}
    theirs |= {f"broken:{node.name.rpartition('/')[2]}": node.tensor.numpy() for node in answer}
    graph = formats.from_bytes(formats.to_bytes(one.graph()))
    return [(find.kind, find.text) for find in judging.judge_nodes(graph.replace([graph["broken"]]), theirs, {})]


def holds_name(answer: Graph) -> bool:
    """Whether a result depends on the node's name, as summaries do, which a golden does not keep."""
    values = (node.tensor.numpy() for node in answer)
    return any(value.dtype == object and b"broken" in b"".join(value.ravel()) for value in values)


def written(name: str, one: Broken, answer: Graph) -> list[Node]:
    """The nodes of one golden, as tests/fixtures/make_kernels.py writes them."""
    inputs = [
        const(f"{name}/input_{n}", value, dtype)
        for n, (value, dtype) in enumerate(zip(one.inputs, opdefs.input_dtypes(one.node), strict=True))
    ]
    node = one.node.replace(name=name, inputs=tuple(source.name for source in inputs))
    order = sorted(answer, key=lambda n: int(n.name.rpartition("/")[2]))
    expected = [n.replace(name=f"{name}/expected_{n.name.rpartition('/')[2]}") for n in order]
    return [*inputs, node, *expected]
