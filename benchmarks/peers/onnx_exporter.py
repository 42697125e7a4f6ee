"""Exports a model of the catalogue to ONNX again and again: ``onnx_exporter.py PROGRAM FOLDER OUT``.

PROGRAM is pocketgraph or tf2onnx. FOLDER has ``model.json``, which names the file, the inputs and the outputs. Writes
OUT, prints ``ready``, then for every line with a number n that it reads, ``us T``: the median time in microseconds of n
exports from the file to the file, without imports.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
OPSET = 17


def ours(
    path: str, inputs: Sequence[str], outputs: Sequence[str], out: str, given: Mapping[str, Sequence[int]]
) -> Callable[[], object]:
    from pocketgraph.exporting.onnx.protobuf_writer import model_proto
    from pocketgraph.exporting.onnx.to_onnx import converted
    from pocketgraph.formats import load
    from pocketgraph.graph import Shape
    from pocketgraph.graph.dtype import FLOAT
    from pocketgraph.kernels.shapes import infer

    def export() -> None:
        graph = load(path)
        types = {}
        declared = infer(graph, outputs=inputs)
        for name in inputs:
            shape = declared.shape(name)
            types[name] = declared.dtype(name) or FLOAT, shape if shape.dims is not None else Shape(given[name])
        found = converted(graph, types, outputs, opset=OPSET)
        with open(out, "wb") as file:
            file.write(model_proto(found.body, found.opset, "model", "0").SerializeToString())

    return export


def theirs(
    path: str, inputs: Sequence[str], outputs: Sequence[str], out: str, given: Mapping[str, Sequence[int]]
) -> Callable[[], object]:
    import logging

    import tensorflow as tf
    import tf2onnx
    from google.protobuf import text_format

    logging.disable(logging.ERROR)

    def export() -> None:
        graph = tf.compat.v1.GraphDef()
        with open(path, "rb") as file:
            data = file.read()
        try:
            graph.ParseFromString(data)
        except Exception:
            text_format.Parse(data.decode(), graph)
        tf2onnx.convert.from_graph_def(
            graph,
            input_names=list(inputs),
            output_names=list(outputs),
            opset=OPSET,
            output_path=out,
        )

    return export


def main() -> None:
    program, folder, out = sys.argv[1:4]
    with open(os.path.join(folder, "model.json")) as file:
        info = json.load(file)
    path = os.path.join(folder, info["file"])
    work = ours if program == "pocketgraph" else theirs
    given = {name: about["shape"] if isinstance(about, dict) else about[1] for name, about in info["inputs"].items()}
    export = work(path, list(given), list(info["outputs"]), out, given)
    export()
    print("ready", flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            export()
            times.append(time.perf_counter() - start)
        print("us", statistics.median(times) * 1e6, flush=True)


if __name__ == "__main__":
    main()
