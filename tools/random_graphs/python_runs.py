"""Runs random Python programs in TensorFlow and, as graphs, in sessions of both engines, and compares the results."""

from __future__ import annotations

import json
import pathlib
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pocketgraph import Session
from pocketgraph.graph.tensor import Array
from random_graphs.judging import loose_difference
from random_graphs.python_programs import KINDS, Source, written

WORKER = pathlib.Path(__file__).parent / "python_worker.py"
BATCH = 40  # programs for which TensorFlow is started once
FORMS = ("frozen", "lowered", "function", "saved", "v1")
FORMS_OF_FIRST = ("v1",)
RELATIVE = 1e-4


def judged(
    oracle: str, seed: int, count: int, wanted: str, keep: str, also: str = "", variants: int = 0
) -> tuple[Counter[str], dict[str, str]]:
    """Makes and runs ``count`` programs; gives what ``program_runs.judged`` gives, by kind and form.

    ``also`` is another TensorFlow, which is asked for the same graphs: where that one gives our result, the versions
    differ, which is no find. ``variants`` graphs more are made of each program, with other numbers and arithmetic.
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
            others = {name: [_feeds_like(rng, source) for _ in range(variants)] for name, (_, source) in batch.items()}
            for name, (_, source) in batch.items():
                asked = {"text": source.text, "form": source.form, "size": source.size, "feeds": _plain(source.feeds)}
                asked["variants"] = [_plain(feeds) for feeds in others[name]]
                (path / f"{name}.json").write_text(json.dumps(asked))
            _ask(oracle, path, list(batch))
            made = dict(batch)
            for name, (kind, source) in batch.items():
                for number, feeds in enumerate(others[name]):
                    if (path / f"{name}.v{number}.answer.json").exists():
                        made[f"{name}.v{number}"] = kind, replace(source, feeds=feeds, form=f"{source.form} varied")
            if also:
                _ask_other(also, path, made)
            for name, (kind, source) in made.items():
                found = path / f"{name}.answer.json"
                answer = json.loads(found.read_text()) if found.exists() else {"error": "brought TensorFlow down"}
                _take(kind, source, answer, path, name, counts, finds, keep)
    return counts, finds


def _plain(feeds: list[tuple[Array, int]]) -> list[tuple[list[float], int]]:
    return [(x.tolist(), n) for x, n in feeds]


def _feeds_like(rng: np.random.Generator, source: Source) -> list[tuple[Array, int]]:
    """Other values of the same lengths; what was no ordinary number stays what it was."""
    found = []
    for x, _ in source.feeds:
        drawn = np.round(rng.uniform(-2, 2, len(x)), 2).astype(np.float32)
        found.append((np.where(np.abs(x) <= 2, drawn, x), int(rng.integers(1, len(x) + 1))))
    return found


def _ask(oracle: str, folder: pathlib.Path, names: Sequence[str]) -> None:
    left = list(names)
    while left:
        subprocess.run([oracle, str(WORKER), str(folder), *left], capture_output=True, check=False)
        done = [name for name in left if (folder / f"{name}.answer.json").exists()]
        left = [name for name in left if name not in done][1:]  # the first without an answer took the process with it


def _ask_other(also: str, folder: pathlib.Path, made: Mapping[str, tuple[str, Source]]) -> None:
    """Asks another TensorFlow for all graphs, and leaves what it says in FOLDER/other."""
    other = folder / "other"
    other.mkdir()
    names = []
    for name, (_, source) in made.items():
        answer, model = folder / f"{name}.answer.json", folder / f"{name}.pb"
        if answer.exists() and model.exists():
            said = json.loads(answer.read_text())
            if "results" in said:
                (other / f"{name}.pb").write_bytes(model.read_bytes())
                asked = {key: said[key] for key in ("inputs", "outputs")} | {"feeds": _plain(source.feeds)}
                (other / f"{name}.json").write_text(json.dumps(asked))
                names.append(name)
    _ask(also, other, names)


def _take(
    kind: str, source: Source, answer: dict[str, Any], folder: pathlib.Path, name: str,
    counts: Counter[str], finds: dict[str, str], keep: str,
) -> None:  # fmt: skip
    key = f"{kind} {source.form}"
    counts[key] += 1
    if "error" in answer:
        counts[f"{key} refused"] += 1
        finds.setdefault(f"{key} refused", answer["error"] + "\n" + source.text)
        return
    model = folder / (f"{name}.saved" if source.form == "saved" else f"{name}.pb")
    said = folder / "other" / f"{name}.answer.json"
    other = json.loads(said.read_text()) if said.exists() else {}
    if "results" in other:
        counts[f"{key}, {'both' if _are_alike(answer, other) else 'versions differ'}"] += 1
    for engine in ("reference", None):
        text = _differs(model, source, answer, engine)
        if text and "results" in other and not _differs(model, source, other, engine):
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


def _are_alike(answer: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two TensorFlows say the same."""
    pairs = [
        (np.array(flat, dtype).reshape(shape), np.array(others, kind).reshape(sizes))
        for run, again in zip(answer["results"], other["results"], strict=True)
        for (dtype, shape, flat), (kind, sizes, others) in zip(run, again, strict=True)
    ]
    return not any(loose_difference(a, b, RELATIVE) for a, b in pairs)


def _keep(place: pathlib.Path, model: pathlib.Path, source: Source, answer: dict[str, Any], text: str) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / "find.txt").write_text(text)
    (place / "answer.json").write_text(json.dumps({**answer, "feeds": _plain(source.feeds), "size": source.size}))
    if model.is_file():
        (place / "model.pb").write_bytes(model.read_bytes())


def _differs(model: pathlib.Path, source: Source, answer: dict[str, Any], engine: str | None) -> str:
    """What is wrong; "" when nothing is."""
    with tempfile.TemporaryDirectory() as cache:
        for again in ("", "from the cache, ")[: 1 if source.form.endswith("varied") else 2]:
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
