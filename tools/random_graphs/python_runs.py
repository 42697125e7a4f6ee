"""Runs random Python programs in TensorFlow and, as graphs, in sessions of both engines, and compares the results."""

from __future__ import annotations

import json
import pathlib
import subprocess
import tempfile
from collections import Counter
from typing import Any

import numpy as np

from pocketgraph import Session
from random_graphs.judging import loose_difference
from random_graphs.python_programs import KINDS, Source, written

WORKER = pathlib.Path(__file__).parent / "python_worker.py"
BATCH = 40  # programs for which TensorFlow is started once
FORMS = ("frozen", "lowered", "function", "saved", "v1")
FORMS_OF_FIRST = ("v1",)
RELATIVE = 1e-4


def judged(
    oracle: str, seed: int, count: int, wanted: str, keep: str, also: str = ""
) -> tuple[Counter[str], dict[str, str]]:
    """Makes and runs ``count`` programs; gives what ``program_runs.judged`` gives, by kind and form.

    ``also`` is another TensorFlow: where that one gives our result, the versions differ, which is no find.
    """
    rng = np.random.default_rng(seed)
    kinds = [k for k in wanted.split(",") if k] or list(KINDS)
    says = subprocess.run(
        [oracle, "-c", "import tensorflow as tf; print(tf.__version__)"], capture_output=True, text=True
    )
    forms = FORMS_OF_FIRST if says.stdout.startswith("1.") else FORMS
    counts: Counter[str] = Counter()
    finds: dict[str, str] = {}
    for start in range(0, count, BATCH):
        numbers = range(start, min(count, start + BATCH))
        batch = {f"p{n}": (kinds[n % len(kinds)], written(rng, kinds[n % len(kinds)], forms)) for n in numbers}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            _ask(oracle, path, {name: source for name, (_, source) in batch.items()})
            for name, (kind, source) in batch.items():
                found = path / f"{name}.answer.json"
                answer = json.loads(found.read_text()) if found.exists() else {"error": "brought TensorFlow down"}
                _take(kind, source, answer, path, name, counts, finds, keep, also)
    return counts, finds


def _ask(oracle: str, folder: pathlib.Path, batch: dict[str, Source]) -> None:
    for name, source in batch.items():
        feeds = [(x.tolist(), n) for x, n in source.feeds]
        asked = {"text": source.text, "form": source.form, "size": source.size, "feeds": feeds}
        (folder / f"{name}.json").write_text(json.dumps(asked))
    left = list(batch)
    while left:
        subprocess.run([oracle, str(WORKER), str(folder), *left], capture_output=True, check=False)
        done = [name for name in left if (folder / f"{name}.answer.json").exists()]
        left = [name for name in left if name not in done][1:]  # the first without an answer took the process with it


def _take(
    kind: str, source: Source, answer: dict[str, Any], folder: pathlib.Path, name: str,
    counts: Counter[str], finds: dict[str, str], keep: str, also: str,
) -> None:  # fmt: skip
    key = f"{kind} {source.form}"
    counts[key] += 1
    if "error" in answer:
        counts[f"{key} refused"] += 1
        finds.setdefault(f"{key} refused", answer["error"] + "\n" + source.text)
        return
    model = folder / (f"{name}.saved" if source.form == "saved" else f"{name}.pb")
    for engine in ("reference", None):
        text = _differs(model, source, answer, engine)
        if text and also and model.is_file():
            other = _other_answer(also, folder, name, source, answer)
            if "results" in other and not _differs(model, source, other, engine):
                counts[f"{key} versions differ on {engine or 'LiteRT'}"] += 1
                continue
        if text:
            found = f"{key} differs on {engine or 'LiteRT'}"
            counts[found] += 1
            whole = f"{text}\n{source.text}"
            if found not in finds or len(whole) < len(finds[found]):
                finds[found] = whole
                if keep:
                    _keep(pathlib.Path(keep) / found.replace(" ", "_"), model, source, answer, whole)


def _other_answer(also: str, folder: pathlib.Path, name: str, source: Source, answer: dict[str, Any]) -> dict[str, Any]:
    """What another TensorFlow makes of the graph."""
    asked = {key: answer[key] for key in ("inputs", "outputs")}
    asked["feeds"] = [(x.tolist(), n) for x, n in source.feeds]
    (folder / f"{name}.json").write_text(json.dumps(asked))
    (folder / f"{name}.answer.json").unlink()
    subprocess.run([also, str(WORKER), str(folder), name], capture_output=True, check=False)
    found = folder / f"{name}.answer.json"
    other: dict[str, Any] = json.loads(found.read_text()) if found.exists() else {}
    return other


def _keep(place: pathlib.Path, model: pathlib.Path, source: Source, answer: dict[str, Any], text: str) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / "find.txt").write_text(text)
    (place / "answer.json").write_text(
        json.dumps({**answer, "feeds": [(x.tolist(), n) for x, n in source.feeds], "size": source.size})
    )
    if model.is_file():
        (place / "model.pb").write_bytes(model.read_bytes())


def _differs(model: pathlib.Path, source: Source, answer: dict[str, Any], engine: str | None) -> str:
    """What is wrong; "" when nothing is."""
    with tempfile.TemporaryDirectory() as cache:
        for again in ("", "from the cache, "):
            try:
                with Session(str(model), 1, engine=engine, cache_dir=cache) as session:
                    for number, ((x, n), expected) in enumerate(zip(source.feeds, answer["results"], strict=True)):
                        feeds = dict(zip(answer["inputs"], (x, np.array(n, np.int32)), strict=True))
                        if model.is_dir():
                            values = session.run_signature(feeds)
                            results = [values[name] for name in answer["outputs"]]
                        else:
                            results = session.run(answer["outputs"], feeds)
                        for place, (result, (dtype, shape, flat)) in enumerate(zip(results, expected, strict=True)):
                            right = np.array(flat, dtype).reshape(shape)
                            text = loose_difference(result, right, RELATIVE)
                            if text:
                                return f"{again}run {number}, result {place}: {text}\n{result!r}\n{right!r}"
            except Exception as error:  # anything else than our own errors is a find as well
                return f"{again}{type(error).__name__}: {error}"[:800]
            if engine == "reference":
                break
    return ""
