"""Runs broken nodes in TensorFlow and here: both must refuse, or both give the same."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import resource
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph import Session, budgets, formats
from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Node, Shape, const, opdefs
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.lowering import LOWERINGS
from random_graphs import judging
from random_graphs.asking import asked, emptied
from random_graphs.breaking import FEW, Broken, broken, goldens, retyped

Registered = Mapping[str, Sequence[Mapping[str, Sequence[int]]]]
BATCH = 400  # nodes for which TensorFlow is started once
MEMORY = 10 << 30  # bytes of address space that either side may take
COARSE = {"float16": 4e-3, "bfloat16": 3e-2}  # of the largest element, on LiteRT; other floats: 1e-3
SECONDS = 20  # that one node may take here
LARGEST = 1 << 26  # bytes of one result, so that no campaign fills the memory
ARTEFACTS = (
    "Op type not registered",
    "not in the list of allowed values",
    "Missing 0-th output",
    "Missing 1-th output",
    "out of range for an int32",
    "must have rank 1. for",
    "must be rank -1",
    "codec can't decode",
)
"""What TensorFlow says of inputs whose shapes it does not know before, and of texts in its own errors."""
MEMORY_WORDS = ("ResourceExhausted", "OOM", "the limit is", "up to ", "MemoryError", "Encountered overflow when multi")


def judged(
    oracle: str, seed: int, each: int, wanted: set[str], keep: str, registered: Registered | None = None
) -> tuple[Counter[str], dict[str, str]]:
    """Breaks up to ``each`` nodes of every op, or, given the ``registered`` kernels, casts as many to all their types;
    with ``keep``, writes finds to ``keep``/broken.txt as they come.

    Returns:
        How many agree, and of each kind of find how many there are; the first find of each kind, op and text.
    """
    rng = np.random.default_rng(seed)
    counts: Counter[str] = Counter()
    finds: dict[str, str] = {}
    budgets.LARGEST_RESULT = LARGEST
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
    log = pathlib.Path(keep) / "broken.txt" if keep else None
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("")
    with tempfile.TemporaryDirectory() as folder:
        for batch in batches(rng, each, wanted, registered):
            answers = list(answered(oracle, pathlib.Path(folder), batch))
            counts["nodes"] += len(batch)
            for number, kind, text in apart(pathlib.Path(folder) / "judged", batch, answers):
                key = f"{kind} {batch[number].node.op}"
                counts[key] += 1
                if f"{key}: {text[:60]}" not in finds:
                    finds[f"{key}: {text[:60]}"] = f"{batch[number].how}\n    {text}\n{picture(batch[number])}"
                    if log is not None:
                        with log.open("a") as file:
                            file.write(f"{key}\n    {finds[f'{key}: {text[:60]}']}\n\n")
    return counts, finds


def apart(
    path: pathlib.Path, batch: Sequence[Broken], answers: Sequence[Graph | None]
) -> Iterator[tuple[int, str, str]]:
    """(number in the batch, kind, text) of all finds, found in processes of their own: a broken node may bring ours
    down too, which is the worst of finds."""
    first = 0
    while first < len(batch):
        path.write_text("")
        child = os.fork()
        if not child:
            with path.open("a", buffering=1) as file:
                for number in range(first, len(batch)):
                    file.write(json.dumps([number]) + "\n")
                    for kind, text in judge(batch[number], answers[number]):
                        file.write(json.dumps([number, kind, text]) + "\n")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        yield from ((number, *find) for number, *find in rows if find)
        last = rows[-1][0] if rows else first
        if not status:
            return
        yield last, "crash", f"the process ended with {status}"
        first = last + 1


def batches(
    rng: np.random.Generator, each: int, wanted: set[str], registered: Registered | None
) -> Iterator[list[Broken]]:
    batch: list[Broken] = []
    for op, cases in sorted(goldens(wanted).items()):
        order = rng.permutation(len(cases))[:each]
        if registered is not None:
            ways = [one for place in order for one in retyped(cases[place], registered.get(op, ()))]
        else:
            ways = [one for place in order for one in broken(rng, cases[place])]
        for place in range(len(ways)) if registered is not None else rng.permutation(len(ways))[:each]:
            batch.append(ways[place])
            if len(batch) == BATCH:
                yield batch
                batch = []
    if batch:
        yield batch


def answered(oracle: str, folder: pathlib.Path, batch: Sequence[Broken]) -> Iterator[Graph | None]:
    """TensorFlow's answers; None where it came down."""
    emptied(folder)
    for number, one in enumerate(batch):
        (folder / f"b{number}.pb").write_bytes(formats.to_bytes(one.graph()))
        feeds = [const(f"in{n}", v, d) for n, (v, d) in enumerate(zip(one.inputs, dtypes(one.node), strict=True))]
        (folder / f"b{number}.feeds.pb").write_bytes(formats.to_bytes(Graph(feeds)))
    yield from asked(oracle, folder, [f"b{n}" for n in range(len(batch))], "--broken")


def dtypes(node: Node) -> Sequence[Any]:
    return opdefs.input_dtypes(node)


def judge(one: Broken, answer: Graph | None) -> Iterator[tuple[str, str]]:
    """(kind, text) of each disagreement: ``traceback``, ``refused``, ``accepted``, ``differs`` and, of sessions,
    ``session …``. Where TensorFlow came down or ran out of memory only our own manners are looked at."""
    values: dict[str, Array] = {}
    refusal = "brought TensorFlow down" if answer is None else ""
    for node in answer or ():
        if node.name == "broken/error":
            refusal = node.tensor.numpy().item().decode(errors="replace")
        else:
            values[f"broken:{node.name.rpartition('/')[2]}"] = node.tensor.numpy()
    free = answer is None or any(word in refusal for word in (*MEMORY_WORDS, *ARTEFACTS))
    theirs = {**{f"in{n}:0": value for n, value in enumerate(one.inputs)}, **values}
    refusals = {"broken": refusal} if refusal else {}
    node = formats.from_bytes(formats.to_bytes(one.graph()))["broken"]
    try:
        with time_limit():
            for find in judging.judge_nodes(Graph([*one.graph()]).replace([node]), theirs, refusals):
                if find.kind == "differs" and is_extreme([*one.inputs, *one.node.attrs.values()]):
                    continue  # which the other campaigns look at
                if find.kind != "known" and not free and not any(word in find.text for word in MEMORY_WORDS):
                    yield find.kind, f"{find.text}" if find.kind != "accepted" else f"TensorFlow: {refusal[:200]}"
    except Exception as error:  # whatever it is, it is no error of ours
        yield "traceback", f"{type(error).__name__}: {error}"[:300]
    yield from judge_session(one, theirs, refusal, free)


def judge_session(one: Broken, theirs: dict[str, Array], refusal: str, free: bool) -> Iterator[tuple[str, str]]:
    """The node in a session that may use the fast engine: small integers are constants, floats are fed."""
    if one.node.op not in LOWERINGS:
        return
    kinds = dtypes(one.node)
    sources = [
        const(f"in{n}", v, d) if v.dtype.kind not in "fcV" and v.size <= FEW
        else Node(f"in{n}", "Placeholder", (), {"dtype": d, "shape": Shape(v.shape)})
        for n, (v, d) in enumerate(zip(one.inputs, kinds, strict=True))
    ]  # fmt: skip
    graph = one.graph().replace([*sources, one.node])
    graph = formats.from_bytes(formats.to_bytes(graph))
    feeds = {n.name: one.inputs[int(n.name[2:])] for n in sources if n.op == "Placeholder"}
    fetches = [f"broken:{port}" for port in range(len(opdefs.output_dtypes(one.node)))]
    try:
        with time_limit(), tempfile.TemporaryDirectory() as cache, Session(graph, 1, cache_dir=cache) as session:
            results = session.run(fetches, feeds)
    except PocketgraphError as error:
        if not refusal and not free and not any(word in str(error) for word in MEMORY_WORDS):
            yield "session refused", str(error)[:300]
        return
    except Exception as error:
        yield "session traceback", f"{type(error).__name__}: {error}"[:300]
        return
    if free:
        return
    if refusal:
        yield "session accepted", f"TensorFlow: {refusal[:200]}"
        return
    if is_extreme([*one.inputs, *theirs.values(), *one.node.attrs.values()]):
        return
    for fetch, result in zip(fetches, results, strict=True):
        if one.node.op.startswith("FusedBatchNorm") and fetch >= "broken:3":
            return  # memory as it was
        if fetch in theirs and (
            text := judging.loose_difference(result, theirs[fetch], COARSE.get(theirs[fetch].dtype.name, 1e-3))
        ):
            yield "session differs", f"{fetch}: {text}"
            return


def is_extreme(values: Sequence[Any]) -> bool:
    """Whether a number is not finite, or so large that steps between may overflow."""
    arrays_of = [np.asarray(v) for v in values if isinstance(v, float | np.ndarray)]
    with np.errstate(all="ignore"):
        return any(v.dtype.kind in "fcV" and not (np.abs(v) < 1e4).all() for v in arrays_of)


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
    """Raises TimeoutError when what is inside takes too long."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"took more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def picture(one: Broken) -> str:
    lines = [f"    {one.node.op} {dict(one.node.attrs)}"]
    for number, value in enumerate(one.inputs):
        shown = np.array2string(value, threshold=30, precision=9).replace("\n", " ")
        lines.append(f"    in{number}: {value.dtype}{list(value.shape)} {shown[:200]}")
    return "\n".join(lines)
