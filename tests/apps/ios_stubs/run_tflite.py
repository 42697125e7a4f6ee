"""One run of a .tflite file for the stand-in of TensorFlowLite: arrays and their description as files of a folder."""

import json
import pathlib
import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter

folder = pathlib.Path(sys.argv[2])
run = Interpreter(sys.argv[1])
entering, leaving = run.get_input_details(), run.get_output_details()
for index, shape in json.loads((folder / "shapes.json").read_text()).items():
    run.resize_tensor_input(entering[int(index)]["index"], shape)
run.allocate_tensors()
for place, detail in enumerate(run.get_input_details()):
    if (folder / f"in_{place}.bin").exists():
        run.set_tensor(
            detail["index"], np.fromfile(folder / f"in_{place}.bin", detail["dtype"]).reshape(detail["shape"])
        )
run.invoke()
for place, detail in enumerate(leaving):
    run.get_tensor(detail["index"]).tofile(folder / f"out_{place}.bin")
told = {
    name: [
        {
            "type": np.dtype(detail["dtype"]).name,
            "shape": [int(size) for size in detail["shape"]],
            "scale": float(detail["quantization"][0]),
            "zero": int(detail["quantization"][1]),
        }
        for detail in details
    ]
    for name, details in (("inputs", entering), ("outputs", leaving))
}
(folder / "told.json").write_text(json.dumps(told))
