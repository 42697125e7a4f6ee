"""Writes the networks of measure.NETWORKS with an open batch: ``batch_models.py FOLDER [NAME …]``, in TensorFlow 2.

For each there are NAME_batch.pb (frozen, random weights), NAME_batch.tflite (the official converter's, float32) and
NAME_batch.onnx (tf2onnx).
"""

from __future__ import annotations

import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_USE_LEGACY_KERAS"] = "1"


def write(name: str, folder: pathlib.Path) -> None:
    import tensorflow as tf
    import tf2onnx
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    applications = tf.keras.applications
    makers = {
        "mobilenet_v1": applications.MobileNet,
        "resnet50": applications.ResNet50,
        "inception_v3": applications.InceptionV3,
    }
    tf.keras.utils.set_random_seed(7)
    model = makers[name](weights=None)
    spec = tf.TensorSpec([None, *model.input_shape[1:]], tf.float32, name="input")
    call = tf.function(lambda x: model(x, training=False)).get_concrete_function(spec)
    frozen = convert_variables_to_constants_v2(call)
    graph = frozen.graph.as_graph_def()
    (folder / f"{name}_batch.pb").write_bytes(graph.SerializeToString())
    converter = tf.lite.TFLiteConverter.from_concrete_functions([call], model)
    (folder / f"{name}_batch.tflite").write_bytes(converter.convert())
    output = frozen.outputs[0].name
    onnx, _ = tf2onnx.convert.from_graph_def(graph, input_names=["input:0"], output_names=[output], opset=17)
    (folder / f"{name}_batch.onnx").write_bytes(onnx.SerializeToString())
    print(name, output, flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    from measure import NETWORKS

    for wanted in sys.argv[2:] or NETWORKS:
        write(wanted, pathlib.Path(sys.argv[1]))
