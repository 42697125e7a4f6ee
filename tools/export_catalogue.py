"""Exports every model of a catalogue and holds what was written to the numbers that TensorFlow gave.

    python tools/export_catalogue.py MODELS [--op-graphs] [--target tflite] [--option NAME=VALUE]… [--only NAME,…]

MODELS holds a folder a model with ``model.json`` and ``golden.npz``; with ``--op-graphs`` its folder ``op_graphs`` of
tiny graphs is gone through instead. Single numbers among the inputs are set for good. Prints a line a model and the
sum; what does not export stands there with the reason. A model is "random" whose numbers TensorFlow drew: a dropout was
left on, which is not written.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import sys
import tempfile
from dataclasses import replace
from typing import Any

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.exporting import export_model, opened
from pocketgraph.exporting.model import ExportModel, Run
from pocketgraph.exporting.target_options import arguments_of
from pocketgraph.exporting.targets import TARGETS
from pocketgraph.freezing.ready_models import read_model
from pocketgraph.graph.dtype import STRING
from pocketgraph.passes.training_switches import dropout_share
from pocketgraph.runtime import Session
from pocketgraph.runtime.random_answers import drawing_nodes

TOLERANCE = 1e-4
"""Of the peak."""


class Item:
    """A model with what TensorFlow made of some inputs."""

    def __init__(
        self, name: str, path: pathlib.Path, golden: pathlib.Path, inputs: list[str], outputs: list[str]
    ) -> None:
        with np.load(golden, allow_pickle=False) as data:
            arrays = {_key(key): data[key] for key in data.files}
        self.name, self.path = name, path
        self.feeds = {tensor: arrays[f"in_{_key(tensor)}"] for tensor in inputs}
        self.wanted = {tensor: arrays[f"out_{_key(tensor)}"] for tensor in outputs if f"out_{_key(tensor)}" in arrays}
        self.stride: dict[str, int] = {}
        self.is_random = False


def _key(tensor: str) -> str:
    return tensor.replace("/", "_").replace(":", "_")


def items(folder: pathlib.Path, *, op_graphs: bool) -> list[Item]:
    """What there is to export."""
    found = []
    if op_graphs:
        base = folder / "op_graphs"
        for name, info in json.loads((base / "index.json").read_text()).items():
            if info["golden"] == "TF 2.21" and not info["uses_random"] and not info["nondeterministic"]:
                outputs = list(info["outputs"])
                found.append(Item(name, base / info["file"], base / name / "golden.npz", list(info["inputs"]), outputs))
        return found
    for place in sorted(folder.glob("*/golden.npz")):
        info = json.loads((place.parent / "model.json").read_text())
        if "inputs" not in info or "file" not in info:
            continue
        with np.load(place, allow_pickle=False) as data:
            known = {_key(key) for key in data.files}
        if not all(f"in_{_key(tensor)}" in known for tensor in info["inputs"]):
            continue
        item = Item(place.parent.name, place.parent / info["file"], place, list(info["inputs"]), list(info["outputs"]))
        item.stride = info.get("golden_stride_hw", {})
        found.append(item)
    return found


def prepared(item: Item) -> tuple[ExportModel, dict[str, np.ndarray[Any, Any]]]:
    """The model ready for an exporter, with the golden inputs as its samples, and these by public name."""
    graph = read_model(item.path, list(item.wanted))
    for name, value in item.feeds.items():
        if graph.producer(name).attr("dtype") is STRING and value.dtype == np.uint8:
            item.feeds[name] = np.array(value.tobytes(), object)
    values = {
        name: value
        for name, value in item.feeds.items()
        if value.dtype != object and (not value.ndim or value.dtype == bool) and dropout_share(graph, name) is None
    }
    item.is_random = bool(drawing_nodes(graph, list(item.wanted), item.feeds))
    fed = {
        name: value
        for name, value in item.feeds.items()
        if (value.ndim or value.dtype == object) and name not in values
    }
    is_recording = any(value.dtype.kind in "SUO" for value in fed.values())
    model = opened(
        graph, inputs=None if is_recording or not fed else list(fed), outputs=list(item.wanted), values=values,
        shapes=None if is_recording else {name: value.shape for name, value in fed.items()},
    )  # fmt: skip
    tensors = {port.tensor: port.name for entry in model.entries for port in entry.inputs}
    if model.front is not None:
        with Session(graph) as session:
            made = session.run(list(tensors), {name: _plain(value) for name, value in item.feeds.items()})
        fed = dict(zip(tensors, made, strict=True))
    feeds = {tensors[name]: value for name, value in fed.items() if name in tensors}
    return replace(model, samples=lambda: iter([feeds]), sample_count=1), feeds


def tried(item: Item, target: str, options: dict[str, str], folder: str) -> tuple[float, str]:
    """(the largest difference as a share of the peak, what is to be said); raises where it does not export."""
    chosen = TARGETS[target]
    model, feeds = prepared(item)
    runs: list[Run] = []
    write = chosen.write

    def watched(*arguments: Any, **named: Any) -> Any:
        written = write(*arguments, **named)
        if written.run is not None:
            runs.append(written.run)
        return written

    spied = chosen._replace(module=_Module.name)
    _Module.write = staticmethod(watched)
    path = os.path.join(folder, "model" + (chosen.suffixes[0] if chosen.suffixes else ""))
    made_of = export_model(model, path, spied, arguments_of(chosen, options), tolerance=1e300, force=True)
    if not runs:
        return 0.0, made_of.unchecked
    results = runs[0](model.main.name, feeds)
    worst = 0.0
    for tensor, value in item.wanted.items():
        name = next(port.name for port in model.main.outputs if port.tensor == tensor)
        given = results[name]
        if tensor in item.stride:
            given = given[:, :: item.stride[tensor], :: item.stride[tensor]]
        worst = max(worst, _apart(value, given))
    return worst, f"{made_of.bytes:,} bytes" + ("; " + made_of.notes[0] if made_of.notes else "")


class _Module:
    """Stands for an exporter's module, so that what it gives can be run once more."""

    name = "export_catalogue_spy"
    write: Any = None


sys.modules[_Module.name] = _Module  # type: ignore[assignment]


def _plain(value: np.ndarray[Any, Any]) -> Any:
    return value.astype(object) if value.dtype.kind == "S" else value


def _apart(wanted: np.ndarray[Any, Any], given: np.ndarray[Any, Any]) -> float:
    if wanted.dtype.kind == "V":
        wanted = (wanted.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if wanted.shape != given.shape:
        return float("inf")
    if wanted.dtype.kind in "SUO":
        return 0.0 if (wanted.astype(object) == given.astype(object)).all() else float("inf")
    a, b = wanted.astype(np.complex128), given.astype(np.complex128)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        distance = np.where(same, 0, np.abs(a - b))
    distance[np.isnan(distance)] = np.inf
    finite = np.abs(a[np.isfinite(a)])
    return float(distance.max(initial=0) / (finite.max(initial=0) or 1.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--op-graphs", action="store_true")
    parser.add_argument("--target", default="tflite", choices=TARGETS)
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    options = dict(text.split("=", 1) for text in given.option)
    only = [name for name in given.only.split(",") if name]
    counts: collections.Counter[str] = collections.Counter()
    for item in items(given.models, op_graphs=given.op_graphs):
        if only and item.name not in only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                apart, said = tried(item, given.target, options, folder)
                verdict = "random" if item.is_random else "equal" if apart <= TOLERANCE else "DIFFERS"
                line = f"{apart:.2g} of the peak; {said}"
            except PocketgraphError as error:
                verdict, line = "no", str(error)
            except Exception as error:  # the table goes on
                verdict, line = "BROKEN", f"{type(error).__name__}: {error}"
        counts[verdict] += 1
        print(f"{verdict:8}{item.name:32} {line[:400]}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()), "of", counts.total())


if __name__ == "__main__":
    main()
