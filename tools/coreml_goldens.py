"""Exports every shared graph that has TensorFlow's results to Core ML, and holds the packages' numbers to them.

    python tools/coreml_goldens.py                    all of them: how many are equal, and why the others are not
    python tools/coreml_goldens.py kws_crnn_s         some, by a part of their names
    python tools/coreml_goldens.py --lift             constants of the small graphs as inputs: nothing folds

The packages are read back and computed by exporting/coreml/evaluation.py, since Core ML itself runs on Apple's systems
alone. Equal means what it means in onnx_goldens.py.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from onnx_goldens import Case, cases, difference, golden_arrays


def verdict(case: Case) -> tuple[str, str, str]:
    """(name, what came of it, why); the second is "equal", "differs", "refused" or "failed"."""
    try:
        return (case.name, *compared(case))
    except Exception as error:
        if os.environ.get("POCKETGRAPH_DEBUG"):
            traceback.print_exc()
        kind = "refused" if type(error).__name__ in ("LackingError", "UsageError") else "failed"
        return case.name, kind, f"{type(error).__name__}: {error}"


def compared(case: Case) -> tuple[str, str]:
    """Exports, evaluates and compares one graph."""
    from pocketgraph.exporting.coreml.coreml_exporter import write
    from pocketgraph.exporting.opening import opened

    graph, feeds, wanted = golden_arrays(case)
    shapes = {name: value.shape for name, value in feeds.items()}
    model = opened(graph, inputs=list(feeds), outputs=list(wanted), shapes=shapes)
    with tempfile.TemporaryDirectory() as folder:
        written = write(model, os.path.join(folder, "model.mlpackage"), image=False)
        assert written.run is not None
        named = {port.name: value for port, value in zip(model.main.inputs, feeds.values(), strict=True)}
        found = written.run(model.main.name, {name: np.asarray(value) for name, value in named.items()})
    for (name, expected), port in zip(wanted.items(), model.main.outputs, strict=True):
        actual = found[port.name]
        if name in case.strides:
            actual = actual[:, :: case.strides[name], :: case.strides[name]]
        said = difference(actual, expected)
        if said:
            return "differs", f"{name}: {said}"
    return "equal", ""


def main() -> int:
    parser = argparse.ArgumentParser(description="Holds exported Core ML packages to TensorFlow's results.")
    parser.add_argument("names", nargs="*", help="parts of names")
    parser.add_argument("--lift", action="store_true", help="constants of the small graphs become inputs")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    chosen = [
        case for case in cases(arguments.lift, 17)
        if not arguments.names or any(part in case.name for part in arguments.names)
    ]  # fmt: skip
    if arguments.jobs < 2:
        found = list(map(verdict, chosen))
    else:
        with ProcessPoolExecutor(arguments.jobs) as pool:
            found = list(pool.map(verdict, chosen, chunksize=8))
    counts = Counter(kind for _, kind, _ in found)
    for name, kind, why in found:
        if kind != "equal":
            print(f"{kind:8} {name}: {why[:400]}")
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()), f"of {len(found)}")
    return 1 if counts["differs"] or counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
