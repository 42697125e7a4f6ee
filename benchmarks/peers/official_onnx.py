"""Converts a model of the catalogue with tf2onnx: ``official_onnx.py FOLDER TARGET``.

TARGET is the .onnx file to write (see catalogue_graph.py). Needs TensorFlow 2 and tf2onnx. What the converter refuses
ends with status 1 and its reason, in one line, on stderr.
"""

from __future__ import annotations

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
OPSET = 15


def main() -> None:
    import tf2onnx
    from catalogue_graph import imported, keep

    folder, target = sys.argv[1], sys.argv[2]
    graph, fed, outputs = imported(folder)
    try:
        model, _ = tf2onnx.convert.from_graph_def(
            graph.as_graph_def(), input_names=list(fed), output_names=outputs, opset=OPSET,
            shape_override={name: list(value.shape) for name, value in fed.items()},
        )  # fmt: skip
    except Exception as error:  # the converter's exceptions have no family
        raise SystemExit(" ".join(str(error).split())[:400]) from None
    keep(target, model.SerializeToString(), list(fed))


main()
