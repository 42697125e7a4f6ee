"""Exports every shared graph that has TensorFlow's results to ONNX, and holds ONNX Runtime's results to them.

    python tools/onnx_goldens.py                    all of them: how many are equal, and why the others are not
    python tools/onnx_goldens.py kws_crnn_s         some, by a part of their names
    python tools/onnx_goldens.py --lift             with constants of the small graphs as inputs, so that nothing folds
    python tools/onnx_goldens.py --opset=13

Equal means: whole numbers, truth values and texts the same, others within 1e-4 of the output's largest magnitude.
POCKETGRAPH_SHARED names the folder of the models.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
Arrays = dict[str, np.ndarray]


class Case(NamedTuple):
    """A graph file with what goes in and what comes out."""

    name: str
    path: str
    golden: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    strides: dict[str, int]
    lifts: bool
    opset: int


def cases(lifts: bool, opset: int) -> Iterator[Case]:
    """All graphs with goldens."""
    base = pathlib.Path(os.environ.get("POCKETGRAPH_SHARED", ROOT.parent / "shared")) / "models"
    index = json.loads((base / "op_graphs" / "index.json").read_text())
    for name, info in index.items():
        folder = base / "op_graphs" / name
        yield Case(
            f"op_graphs/{name}", str(base / "op_graphs" / info["file"]), str(folder / "golden.npz"),
            tuple(info["inputs"]), tuple(info["outputs"]), {}, lifts, opset,
        )  # fmt: skip
    for file in sorted(base.glob("*/model.json")):
        info = json.loads(file.read_text())
        golden = file.parent / "golden.npz"
        if not golden.exists() or "file" not in info:
            continue
        yield Case(
            file.parent.name, str(file.parent / info["file"]), str(golden), tuple(info.get("inputs") or ()),
            tuple(info.get("outputs") or ()), info.get("golden_stride_hw", {}), False, opset,
        )  # fmt: skip


def verdict(case: Case) -> tuple[str, str, str]:
    """(name, what came of it, why); the second is "equal", "differs", "refused" or "failed"."""
    try:
        return (case.name, *compared(case))
    except Exception as error:
        if os.environ.get("POCKETGRAPH_DEBUG"):
            traceback.print_exc()
        kind = "refused" if type(error).__name__ == "LackingError" else "failed"
        return case.name, kind, f"{type(error).__name__}: {error}"


def compared(case: Case) -> tuple[str, str]:
    """Exports, runs and compares one graph."""
    import onnx
    import onnxruntime

    from pocketgraph.exporting.onnx.protobuf_writer import model_proto
    from pocketgraph.exporting.onnx.to_onnx import converted
    from pocketgraph.graph import DType, Shape

    graph, feeds, wanted = golden_arrays(case)
    types = {}
    for name, value in list(feeds.items()):
        node = graph.producer(name)
        dtype = node.attr("dtype") or DType.of_numpy(value.dtype)
        if dtype.name == "string" and value.dtype == np.uint8:
            feeds[name] = value = np.array(value.tobytes(), object)
        declared = node.shape() if node.op.startswith("Placeholder") else None
        fits = declared is not None and declared.dims is not None and declared.fits(value.shape)
        types[name] = (dtype, declared if fits and declared is not None else Shape(value.shape))
    made = converted(graph, types, list(wanted), opset=case.opset)
    proto = model_proto(made.body, made.opset, "model", "0")
    onnx.checker.check_model(proto, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])
    given = {item.name: value for item in session.get_inputs() for value in [_fed(feeds, item.name)]}
    results = session.run(None, given)
    for (name, expected), actual in zip(wanted.items(), results, strict=True):
        if name in case.strides:
            actual = actual[:, :: case.strides[name], :: case.strides[name]]
        said = difference(actual, expected)
        if said:
            return "differs", f"{name}: {said}"
    return "equal", ""


def golden_arrays(case: Case) -> tuple[Any, Arrays, Arrays]:
    """A graph with what goes in and what comes out, by tensor name."""
    from pocketgraph.formats import load
    from pocketgraph.graph import Node, Shape

    graph = load(case.path)
    with np.load(case.golden, allow_pickle=False) as data:
        arrays = {key: data[key] for key in data.files}
    feeds = {name: found for name in case.inputs for found in [_found(arrays, "in_", name)] if found is not None}
    wanted = {name: found for name in case.outputs for found in [_found(arrays, "out_", name)] if found is not None}
    graph, feeds = behind_recordings(graph, feeds)
    if case.lifts:
        lifted = []
        for node in graph:
            if node.op == "Const" and node.tensor.dtype.is_floating and node.tensor.size > 1:
                feeds[f"{node.name}:0"] = node.tensor.numpy()
                shape = Shape(node.tensor.shape)
                node = Node(node.name, "Placeholder", (), {"dtype": node.tensor.dtype, "shape": shape})
            lifted.append(node)
        graph = graph.replace(lifted)
    return graph, feeds, wanted


def behind_recordings(graph: Any, feeds: Arrays) -> tuple[Any, Arrays]:
    """The graph behind what reads WAV files, which no ONNX model can, with the samples as inputs."""
    from pocketgraph.graph import const
    from pocketgraph.kernels.registry import evaluate

    for node in list(graph):
        if node.op != "DecodeWav" or f"{node.name}:0" in feeds or node.data_inputs[0] + ":0" not in feeds:
            continue
        contents = feeds.pop(node.data_inputs[0] + ":0")
        samples, rate = evaluate(node, [np.array(contents.tobytes(), object)])
        feeds[f"{node.name}:0"] = samples
        fixed = const(f"{node.name}_rate", rate)
        graph = graph.map_nodes(
            lambda other, old=f"{node.name}:1", new=fixed.name: other.replace(
                inputs=[new if ref == old else ref for ref in other.inputs]
            )
        )
        graph = graph.replace([*graph, fixed])
    return graph, feeds


def _found(arrays: Arrays, prefix: str, name: str) -> np.ndarray | None:
    for spelled in (name.replace(":", "_"), name.replace(":", "_").replace("/", "_")):
        if prefix + spelled in arrays:
            return arrays[prefix + spelled]
    return None


def _fed(feeds: Arrays, name: str) -> np.ndarray:
    return feeds[name] if name in feeds else feeds[f"{name}:0"]


def difference(actual: Any, expected: np.ndarray) -> str:
    """What is different, "" where nothing is."""
    actual = np.asarray(actual)
    if expected.dtype == np.dtype("V2"):  # bfloat16, which the exported model gives as float32
        import ml_dtypes

        expected = expected.view(ml_dtypes.bfloat16).astype(np.float32)
    if actual.shape != expected.shape:
        return f"shape {actual.shape} instead of {expected.shape}"
    if expected.dtype.kind not in "fc":
        same = np.array_equal(actual, expected)
        return "" if same else f"{int((actual != expected).sum())} of {expected.size} differ"
    tame = np.isfinite(expected)
    if not np.array_equal(actual[~tame], expected[~tame], equal_nan=True):
        return "NaN or infinity elsewhere"
    away = np.max(np.abs(actual[tame].astype("f8") - expected[tame]), initial=0.0)
    peak = np.max(np.abs(expected[tame]), initial=0.0)
    return "" if away <= 1e-4 * max(peak, 1e-30) else f"by {away:.3g} with a peak of {peak:.3g}"


def options(description: str) -> argparse.ArgumentParser:
    """The options of a tool that holds exports to goldens."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("names", nargs="*", help="parts of names")
    parser.add_argument("--lift", action="store_true", help="constants of the small graphs become inputs")
    parser.add_argument("--jobs", type=int, default=2)
    return parser


def verdicts(arguments: argparse.Namespace, opset: int, judged: Callable[[Case], tuple[str, str, str]]) -> Counter[str]:
    """Judges the chosen cases, prints all that are not equal, and counts the verdicts."""
    chosen = [
        case for case in cases(arguments.lift, opset)
        if not arguments.names or any(part in case.name for part in arguments.names)
    ]  # fmt: skip
    if arguments.jobs < 2:
        found = list(map(judged, chosen))
    else:
        with ProcessPoolExecutor(arguments.jobs) as pool:
            found = list(pool.map(judged, chosen, chunksize=8))
    counts = Counter(kind for _, kind, _ in found)
    for name, kind, why in found:
        if kind != "equal":
            print(f"{kind:8} {name}: {why[:400]}")
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()), f"of {len(found)}")
    return counts


def main() -> int:
    parser = options("Holds exported ONNX models to TensorFlow's results.")
    parser.add_argument("--opset", type=int, default=17)
    arguments = parser.parse_args()
    counts = verdicts(arguments, arguments.opset, verdict)
    return 0 if counts["equal"] >= 0.9 * counts.total() else 1


if __name__ == "__main__":
    sys.exit(main())
