"""Converts a model of the catalogue with TensorFlow's own converter: ``official_tflite.py FOLDER TARGET``.

TARGET is the .tflite file to write (see catalogue_graph.py). Needs TensorFlow 2. What the converter refuses ends with
status 1 and its reason, in one line, on stderr.
"""

from __future__ import annotations

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"


def main() -> None:
    import tensorflow as tf
    from catalogue_graph import imported, keep

    folder, target = sys.argv[1], sys.argv[2]
    graph, fed, outputs = imported(folder)
    tf1 = tf.compat.v1
    with tf1.Session(graph=graph) as session:
        inputs = [graph.get_tensor_by_name(name) for name in fed]
        wanted = [graph.get_tensor_by_name(name) for name in outputs]
        converter = tf1.lite.TFLiteConverter.from_session(session, inputs, wanted)
        try:
            content = converter.convert()
        except Exception as error:  # the converter's exceptions have no family
            raise SystemExit(" ".join(str(error).split())[:400]) from None
    keep(target, content, list(fed))


main()
