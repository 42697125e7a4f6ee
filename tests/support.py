"""What tests of every floor share: where the shared models are, and how two graphs are held to be the same."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from types import FrameType, ModuleType
from typing import Any

import numpy as np
import pytest

from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse, print_graph

ROOT = pathlib.Path(__file__).resolve().parent.parent


def shared() -> pathlib.Path | None:
    """The folder of real models and oracle records: $POCKETGRAPH_SHARED, or ``shared`` beside the repository."""
    path = pathlib.Path(os.environ.get("POCKETGRAPH_SHARED", ROOT.parent / "shared"))
    return path if (path / "models" / "CATALOG.md").exists() else None


needs_shared = pytest.mark.skipif(
    shared() is None, reason="the shared models are not here (set POCKETGRAPH_SHARED to their folder)"
)


def model_dir(name: str) -> pathlib.Path:
    """The folder of one shared model; only call it from tests marked with ``needs_shared``."""
    base = shared()
    assert base is not None
    return base / "models" / name


def model_info(name: str) -> dict[str, Any]:
    """The model.json of a shared model."""
    info = json.loads((model_dir(name) / "model.json").read_text())
    assert isinstance(info, dict)
    return info


def golden(folder: pathlib.Path) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(feeds, expected outputs) of a model folder, by true tensor name."""
    info = json.loads((folder / "model.json").read_text())
    with np.load(folder / "golden.npz", allow_pickle=False) as data:
        arrays = {key: data[key] for key in data.files}
    names = [*(info.get("inputs") or {}), *(info.get("outputs") or {})]
    spelled = {name.replace(":", "_").replace("/", "_"): name for name in names}
    spelled |= {name.replace(":", "_"): name for name in names}
    feeds = {spelled[k[3:]]: v for k, v in arrays.items() if k.startswith("in_") and k[3:] in spelled}
    wanted = {spelled[k[4:]]: v for k, v in arrays.items() if k.startswith("out_") and k[4:] in spelled}
    return feeds, wanted


def script(path: pathlib.Path) -> ModuleType:
    """A file outside of the package as a module, with its folder's other files to import."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def default_signals() -> None:
    """As ``preexec_fn``: what nohup or the background of a shell started has signals ignored, and hands that on."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def in_threads(work: Callable[..., object], arguments: Iterable[tuple[Any, ...]]) -> None:
    """Calls ``work`` with each of these arguments in a thread of its own, and waits for all."""
    threads = [threading.Thread(target=work, args=given) for given in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def lines_taken(work: Callable[[], object]) -> int:
    """How many lines of Python a call executes in this thread: its work, whatever else the machine does."""
    count = 0

    def note(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def with_weights(text: str, **weights: Any) -> Graph:
    """The graph of a text, with these constants: in place of nodes of their names, or behind the others."""
    graph = parse(text)
    made = {name: const(name, value) for name, value in weights.items()}
    kept = [made.get(node.name, node) for node in graph]
    return graph.replace([*kept, *(node for name, node in made.items() if name not in graph.nodes)])


def assert_text(graph: Graph, text: str) -> None:
    """The graph is the one that the text describes, node for node, in its order."""
    assert print_graph(graph).split("\n") == print_graph(parse(text)).split("\n")


def assert_close(actual: Any, expected: Any, relative_to_peak: float = 1e-4) -> None:
    """|difference| at most ``relative_to_peak`` times the largest expected magnitude; exact for non-floats."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"shape {actual.shape} instead of {expected.shape}"
    assert actual.dtype == expected.dtype, f"dtype {actual.dtype} instead of {expected.dtype}"
    if expected.dtype.kind != "f" or expected.size == 0:
        np.testing.assert_array_equal(actual, expected)
        return
    wild = ~np.isfinite(expected)
    np.testing.assert_array_equal(actual[wild], expected[wild])
    tame, wanted = actual[~wild].astype("f8"), expected[~wild].astype("f8")
    peak = np.max(np.abs(wanted), initial=0.0)
    difference = np.max(np.abs(tame - wanted), initial=0.0)
    assert difference <= relative_to_peak * max(peak, 1e-30), f"largest difference {difference}, peak {peak}"


def listed(numbers: Iterable[int]) -> str:
    """Numbers as an attribute's list in the text form."""
    return f"list[{','.join(map(str, numbers))}]"


def window_text(window: Mapping[str, Any]) -> str:
    """A convolution's window in the text form: ``strides`` and ``dilations`` of both axes, ``padding`` a name or
    pairs of pixels."""
    stride, padding, dilation = window["strides"], window["padding"], window["dilations"]
    border = "" if isinstance(padding, str) else f", explicit_paddings={listed([n for pair in padding for n in pair])}"
    kind = padding if isinstance(padding, str) else "EXPLICIT"
    return f'strides=list[1,{stride},{stride},1], padding="{kind}", dilations=list[1,{dilation},{dilation},1]{border}'
