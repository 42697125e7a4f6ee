"""What converters of a catalogue's models share: the graph in TensorFlow, with single booleans as constants."""

from __future__ import annotations

import json
import os
from typing import Any


def imported(folder: str) -> tuple[Any, dict[str, Any], list[str]]:
    """A TensorFlow graph of a model, its inputs' recorded values by name, and the names of its outputs.

    FOLDER has ``model.json`` and ``golden.npz`` (see catalogue_worker.py). Single booleans that the recorded inputs
    hold are put into the graph as constants, as other formats have no branches to switch by them; they are no inputs.
    """
    import numpy as np
    import tensorflow as tf

    with open(os.path.join(folder, "model.json")) as file:
        info = json.load(file)
    data = np.load(os.path.join(folder, "golden.npz"))
    given = {name: data["in_" + name.replace(":", "_")] for name in info["inputs"]}
    graph_def = tf.compat.v1.GraphDef()
    with open(os.path.join(folder, info["file"]), "rb") as source:
        graph_def.ParseFromString(source.read())
    fixed = {name: value for name, value in given.items() if value.dtype == bool and value.size == 1}
    with tf.Graph().as_default() as graph:
        constants = {name: tf.constant(value) for name, value in fixed.items()}
        tf.import_graph_def(graph_def, input_map=constants, name="")
    fed = {name: value for name, value in given.items() if name not in fixed}
    for name, value in fed.items():
        graph.get_tensor_by_name(name).set_shape(value.shape)
    return graph, fed, list(info["outputs"])


def keep(target: str, content: bytes, inputs: list[str]) -> None:
    """Writes a converted model, and beside it which inputs it takes."""
    with open(target + ".part", "wb") as file:
        file.write(content)
    os.replace(target + ".part", target)
    with open(target + ".json", "w") as about:
        json.dump({"inputs": inputs}, about)
