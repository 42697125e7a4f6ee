"""Holds an .onnx file in one program and times runs of it: ``onnx_worker.py PROGRAM ONNX THREADS FOLDER|SIZE``.

PROGRAM is onnxruntime or openvino, both in float32. FOLDER is a model of a catalogue, whose ``golden.npz`` has the
inputs (``ONNX.json`` names those that the file takes); SIZE is as for worker.py. The protocol is worker.py's.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any


def onnxruntime_runner(path: str, threads: int, feeds: Mapping[str, Any]) -> Callable[[], object]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    named = by_name([each.name for each in session.get_inputs()], feeds)
    return lambda: session.run(None, named)


def openvino_runner(path: str, threads: int, feeds: Mapping[str, Any]) -> Callable[[], object]:
    import openvino

    core = openvino.Core()
    model = core.read_model(path)
    named = by_name([port.get_any_name() for port in model.inputs], feeds)
    model.reshape({name: list(value.shape) for name, value in named.items()})
    hints = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(model, "CPU", hints)
    request = compiled.create_infer_request()
    given = [named[port.get_any_name()] for port in compiled.inputs]
    return lambda: [array.copy() for array in request.infer(given, share_inputs=True, share_outputs=True).values()]


def by_name(names: list[str], feeds: Mapping[str, Any]) -> dict[str, Any]:
    """The feeds under the file's own names: with or without a port, or the only one."""
    if len(names) == len(feeds) == 1:
        return {names[0]: next(iter(feeds.values()))}
    found = {name.partition(":")[0]: value for name, value in feeds.items()}
    return {name: found[name.partition(":")[0]] for name in names}


def inputs(path: str, place: str) -> dict[str, Any]:
    """What the model is fed with."""
    import numpy as np

    if place.replace("x", "").isdigit():
        from worker import image

        return {"input": image(np, place)}
    with open(path + ".json") as file:
        names = json.load(file)["inputs"]
    with np.load(os.path.join(place, "golden.npz"), allow_pickle=False) as data:
        return {name: data["in_" + name.replace(":", "_")] for name in names}


def main() -> None:
    from serving import serve

    program, path, threads, place = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    make = {"onnxruntime": onnxruntime_runner, "openvino": openvino_runner}[program]
    once = make(path, threads, inputs(path, place))
    once()
    once()
    serve(once)


if __name__ == "__main__":
    main()
