"""Other programs on the same model and the same input: each in a process of its own, timed the same way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.errors import UsageError
from pocketgraph.formats import save
from pocketgraph.graph import Graph, node_name
from pocketgraph.graph.order import reachable
from pocketgraph.package_data import text_beside

if TYPE_CHECKING:
    from pocketgraph.inspect.benchmark_layers import BenchmarkLayer

PEERS = ("reference", "litert", "auto", "tensorflow", "onnxruntime", "openvino")
OURS = ("reference", "litert", "auto")
"""NumPy only, LiteRT only, and what a session does by default: LiteRT where it can, NumPy elsewhere."""
SECONDS = 5.0  # of runs, for each program
PATIENCE = 300  # seconds until a program is given up
MOST_RUNS = 1000  # timed runs of one program


@dataclass(frozen=True)
class PeerResult:
    """What one program did; times in microseconds.

    Attributes:
        name: the program.
        problem: why there are no figures; "" when there are.
        version: of the program.
        load_us: making it ready.
        first_us: its first run.
        median_us: the median of its further runs.
        runs: how many these were.
        peak_bytes: the most memory that its process had in use.
        difference: the largest difference of an output from the first program's, as a part of the largest value.
    """

    name: str
    problem: str = ""
    version: str = ""
    load_us: float = 0.0
    first_us: float = 0.0
    median_us: float = 0.0
    runs: int = 0
    peak_bytes: int | None = None
    difference: float | None = None


def compare(
    graph: Graph,
    layers: Sequence[BenchmarkLayer],
    outputs: Sequence[str],
    programs: Sequence[str],
    *,
    threads: int,
    max_runs: int,
    max_seconds: float,
    python: str = "",
    beside: str = "",
) -> list[PeerResult]:
    """Times the programs one after the other.

    Args:
        graph: a frozen graph.
        layers: what is fed.
        outputs: what is fetched.
        programs: of ``PEERS``.
        threads: for each of them.
        max_runs, max_seconds: when to stop; at most 1000 runs and 5 seconds each.
        python: the interpreter that has the other programs; this one by default.
        beside: the model's file; an ``.onnx`` file of the same name is what ONNX Runtime runs, without one tf2onnx
            converts.

    Raises:
        UsageError: an unknown program.
    """
    from pocketgraph.inspect.timed_program_worker import as_texts

    check_programs(programs)
    wanted = reachable(graph, [node_name(name) for name in outputs], stop={node_name(x.name) for x in layers})
    with tempfile.TemporaryDirectory(prefix="pocketgraph-compare-", ignore_cleanup_errors=True) as folder:
        model = os.path.join(folder, "model.pb")
        save(graph.replace([node for node in graph if node.name in wanted]), model)
        onnx = os.path.splitext(beside)[0] + ".onnx" if beside else ""
        arrays = {f"feed_{index}": as_texts(_spread(layer.array())) for index, layer in enumerate(layers)}
        np.savez(os.path.join(folder, "feeds.npz"), **arrays)
        job = {
            "folder": folder,
            "model": model,
            "onnx": os.path.abspath(onnx) if onnx and os.path.isfile(onnx) else "",
            "inputs": [layer.name for layer in layers],
            "outputs": list(outputs),
            "threads": threads,
            "runs": min(max_runs, MOST_RUNS) if max_runs > 0 else MOST_RUNS,
            "seconds": min(max_seconds, SECONDS) if max_seconds > 0 else SECONDS,
        }
        found = [_one(name, job, python) for name in programs]
        return _with_differences(found, folder)


def check_programs(programs: Sequence[str]) -> None:
    """Refuses names of programs that ``compare`` does not know.

    Raises:
        UsageError: names the first.
    """
    unknown = [name for name in programs if name not in PEERS]
    if unknown:
        raise UsageError(f"there is no program '{unknown[0]}' to compare with", hint=f"choose of {', '.join(PEERS)}")


def _spread(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The layer's values; floats that are all zero are spread over 0…1 and pictures' bytes over 0…255.

    Zeros hide differences, or show those of a detector that orders equal scores.
    """
    if array.size and not array.any() and (array.dtype.kind == "f" or array.dtype == np.uint8):
        scale = 1 if array.dtype.kind == "f" else 256
        spread: np.ndarray[Any, Any] = (np.random.default_rng(0).random(array.shape) * scale).astype(array.dtype)
        return spread
    return array


def _one(name: str, job: dict[str, Any], python: str) -> PeerResult:
    program = sys.executable if name in OURS or not python else python
    # As text and not as a file: a script's own folder would come before the standard library.
    worker = text_beside(__file__, "timed_program_worker.py")
    environment = dict(os.environ)
    if name in OURS:
        ours = str(Path(__file__).parents[2])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (ours, environment.get("PYTHONPATH"))))
    try:
        done = subprocess.run(
            [program, "-c", worker, name],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            check=False,
            cwd=job["folder"],
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return PeerResult(name, f"gave no answer in {PATIENCE} s")
    except OSError as error:
        return PeerResult(name, f"{program} cannot be started: {error.strerror}")
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        said = (done.stderr.strip() or "nothing").splitlines()[-1]
        return PeerResult(name, f"failed: {said[:200]}")
    answer = json.loads(lines[-1])
    if "problem" in answer:
        return PeerResult(name, str(answer["problem"])[:300])
    times = answer["times_us"]
    return PeerResult(
        name, "", answer["version"], answer["load_us"], answer["first_us"], float(np.median(times)), len(times),
        answer["peak_bytes"],
    )  # fmt: skip


def _with_differences(found: Sequence[PeerResult], folder: str) -> list[PeerResult]:
    first: dict[str, np.ndarray[Any, Any]] = {}
    results = []
    for result in found:
        path = os.path.join(folder, f"{result.name}.npz")
        if result.problem or not os.path.isfile(path):
            results.append(result)
            continue
        with np.load(path, allow_pickle=False) as data:
            arrays = {key: data[key] for key in data.files}
        if first:
            results.append(
                replace(result, difference=max((_difference(first[k], arrays[k]) for k in first), default=0.0))
            )
        else:
            first = arrays
            results.append(result)
    return results


def _difference(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """The largest difference as a part of the largest finite value; infinity where they have other shapes, texts or
    places of NaN and infinities."""
    if a.shape != b.shape or (a.dtype.kind == "U") != (b.dtype.kind == "U"):
        return float("inf")
    if a.dtype.kind not in "fiubc":
        return 0.0 if np.array_equal(a, b) else float("inf")
    wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    x, y = a.astype(wide), b.astype(wide)
    other = (x != y) & ~(np.isnan(x) & np.isnan(y))
    if not other.any():
        return 0.0
    x, y = x[other], y[other]
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return float("inf")
    peak = max(float(np.max(np.abs(a.astype(wide)), initial=0.0, where=np.isfinite(a))), 1e-30)
    return float(np.max(np.abs(x - y))) / peak
