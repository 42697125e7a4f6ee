"""Exports every shared graph that has TensorFlow's results to Core ML, and holds the packages' numbers to them.

    python tools/coreml_goldens.py                    all of them: how many are equal, and why the others are not
    python tools/coreml_goldens.py kws_crnn_s         some, by a part of their names
    python tools/coreml_goldens.py --lift             constants of the small graphs as inputs: nothing folds

The packages are read back and computed by exporting/coreml/evaluation.py, since Core ML itself runs on Apple's systems
alone. Equal means what it means in onnx_goldens.py.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback

import numpy as np

from onnx_goldens import Case, difference, golden_arrays, options, verdicts


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
    from pocketgraph.exporting.coreml import write
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
    arguments = options("Holds exported Core ML packages to TensorFlow's results.").parse_args()
    counts = verdicts(arguments, 17, verdict)
    return 1 if counts["differs"] or counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
