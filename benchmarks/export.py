"""Our LiteRT files beside the official converter's: bytes, time in LiteRT, and time to export, as ratios.

    python benchmarks/export.py MODELS --tensorflow PYTHON_WITH_TENSORFLOW [--only NAME,…] [--mode float32]

MODELS holds a folder a model with ``model.json`` and ``golden.npz``. Both files take the golden inputs in LiteRT's
interpreter on one thread, in turn, in many short rounds, so that a drifting machine drifts for both; the time is the
processor's, of which other programs take none, and the ratio is that of the fastest tenths of the rounds. Wanted: bytes
and time at most 1.00 of the converter's.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))

from export_catalogue import Item, items, prepared  # noqa: E402
from pocketgraph.errors import PocketgraphError  # noqa: E402
from pocketgraph.exporting import export_model  # noqa: E402
from pocketgraph.exporting.targets import TARGETS  # noqa: E402

ROUNDS, SLICE = 200, 0.002
FASTEST = 0.1


def fastest(ours: pathlib.Path, theirs: pathlib.Path, feeds: dict[str, np.ndarray]) -> tuple[float, float]:
    """The microseconds of a run of each file, where the fastest tenth of many rounds in turn ends."""
    from ai_edge_litert.interpreter import Interpreter

    interpreters = [Interpreter(model_path=str(path), num_threads=1) for path in (ours, theirs)]
    took: list[list[float]] = [[], []]
    for interpreter in interpreters:
        for detail in interpreter.get_input_details():
            name = detail["name"].removesuffix(":0")
            value = next(array for key, array in feeds.items() if key == name or name.endswith(key))
            if tuple(detail["shape"]) != value.shape:
                interpreter.resize_tensor_input(detail["index"], value.shape)
        interpreter.allocate_tensors()
        for detail in interpreter.get_input_details():
            name = detail["name"].removesuffix(":0")
            value = next(array for key, array in feeds.items() if key == name or name.endswith(key))
            interpreter.set_tensor(detail["index"], value.astype(detail["dtype"]))
        interpreter.invoke()
    for turn in range(ROUNDS):
        for at in (0, 1) if turn % 2 else (1, 0):
            count, begun = 0, time.thread_time()
            while time.thread_time() - begun < SLICE or not count:
                interpreters[at].invoke()
                count += 1
            took[at].append((time.thread_time() - begun) / count * 1e6)
    ours_took, theirs_took = (float(np.quantile(times, FASTEST)) for times in took)
    return ours_took, theirs_took


def compared(item: Item, tensorflow: str, mode: str, folder: pathlib.Path) -> str:
    """A line of the table."""
    ours, theirs = folder / "ours.tflite", folder / "theirs.tflite"
    begun = time.perf_counter()
    model, feeds = prepared(item)
    export_model(model, str(ours), TARGETS["tflite"], {"mode": mode}, tolerance=1e300)
    our_seconds = time.perf_counter() - begun
    begun = time.perf_counter()
    command = [tensorflow, str(HERE / "peers" / "official_tflite.py"), str(item.path.parent), str(theirs)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return f"{ours.stat().st_size:>12,}  the converter refuses it: {done.stderr.strip().splitlines()[-1][:80]}"
    their_seconds = time.perf_counter() - begun
    sizes = ours.stat().st_size, theirs.stat().st_size
    times = fastest(ours, theirs, {**{name.removesuffix(":0"): a for name, a in item.feeds.items()}, **feeds})
    return (
        f"{sizes[0]:>12,} {sizes[1]:>12,} {sizes[0] / sizes[1]:>7.3f} {times[0]:>10.1f} {times[1]:>10.1f} "
        f"{times[0] / times[1]:>7.3f} {our_seconds / their_seconds:>7.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--tensorflow", default=sys.executable)
    parser.add_argument("--only", default="")
    parser.add_argument("--mode", default="float32", choices=("float32", "float16", "dynamic"))
    given = parser.parse_args()
    only = [name for name in given.only.split(",") if name]
    print(
        f"{'model':28} {'our bytes':>12} {'theirs':>12} {'ratio':>7} {'our us':>10} {'theirs':>10} {'ratio':>7} "
        f"{'export':>7}"
    )
    for item in items(given.models, op_graphs=False):
        if only and item.name not in only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                line = compared(item, given.tensorflow, given.mode, pathlib.Path(folder))
            except (PocketgraphError, StopIteration) as error:
                line = f"{type(error).__name__}: {str(error)[:100]}"
        print(f"{item.name:28} {line}", flush=True)


if __name__ == "__main__":
    main()
