"""Writes random Python programs down as graphs, in every form that TensorFlow has, and runs them there.

    python python_worker.py FOLDER NAME...

FOLDER/NAME.json has the program (``text``), its ``form``, the ``size`` of x and the ``feeds``. It makes
FOLDER/NAME.pb, or FOLDER/NAME.saved/ for a SavedModel, and FOLDER/NAME.answer.json: ``inputs`` and ``outputs`` by name,
and what came out of each run (``results``), or why TensorFlow refused (``error``).

With ``variants`` (a list of feeds) it makes as many more graphs of what it wrote, FOLDER/NAME.vN.pb: the same control
flow with other numbers, other arithmetic and other comparisons, so that other branches are taken; and their answers.

FOLDER/NAME.json with ``inputs`` and ``outputs`` asks what FOLDER/NAME.pb, which another TensorFlow wrote, gives here.

The forms: ``function`` (a call of the function), ``frozen`` (functional loops), ``lowered`` (Switch and Merge again),
``saved`` (a SavedModel) and ``v1`` (the control flow of TensorFlow 1). It runs in an environment with TensorFlow (1.15
or 2.x) and imports nothing else.
"""

import importlib.util
import json
import os
import pathlib
import random
import signal
import sys

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "4")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf

SECONDS = 60  # that a program may take, traced and run
EXCHANGED = (
    ("AddV2", "Sub", "Mul", "Maximum", "Minimum"),
    ("Tanh", "Sigmoid", "Abs", "Neg"),
    ("Relu", "Softplus", "Elu", "Softsign"),
    ("Less", "LessEqual", "Greater", "GreaterEqual"),
)
"""Ops of floats that a variant takes one for the other. Rounds are counted in integers, so that loops still end."""
v1 = tf.compat.v1
IS_FIRST = tf.__version__.startswith("1.")
if IS_FIRST:
    v1.logging.set_verbosity(v1.logging.ERROR)
else:
    tf.get_logger().setLevel("ERROR")
    tf.autograph.set_verbosity(0)


def main():
    folder = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:]:
        asked = json.loads((folder / (name + ".json")).read_text())
        signal.alarm(SECONDS)  # ends the process, which counts as having been brought down
        try:
            answer = answered(folder, name, asked)
        except Exception as error:
            answer = {"error": type(error).__name__ + ": " + str(error)[:600]}
        (folder / (name + ".answer.json")).write_text(json.dumps(answer))
        if "error" not in answer and (folder / (name + ".pb")).exists():
            for number, feeds in enumerate(asked.get("variants", ())):
                written = name + ".v" + str(number)
                asked_now = {"inputs": answer["inputs"], "outputs": answer["outputs"], "feeds": feeds}
                signal.alarm(SECONDS)
                try:
                    vary(folder / (name + ".pb"), folder / (written + ".pb"), written)
                    varied = of_file(folder / (written + ".pb"), asked_now)
                except Exception as error:
                    varied = {**asked_now, "error": type(error).__name__ + ": " + str(error)[:600]}
                (folder / (written + ".answer.json")).write_text(json.dumps(varied))


def vary(source, target, seed):
    """Writes a graph with other constants, arithmetic and comparisons of floats."""
    draw = random.Random(seed + str(len(source.read_bytes())))
    definition = v1.GraphDef.FromString(source.read_bytes())
    for nodes in (definition.node, *(function.node_def for function in definition.library.function)):
        for node in nodes:
            types = [node.attr[name].type for name in ("dtype", "T") if name in node.attr]  # asking makes an attribute
            if types != [tf.float32.as_datatype_enum] or draw.random() > 0.3:
                continue
            if node.op == "Const":
                value = tf.make_ndarray(node.attr["value"].tensor)
                factor = draw.choice((-1, 1, 1, 1)) * draw.uniform(0.3, 1.7)
                node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value * np.float32(factor)))
            else:
                node.op = draw.choice([op for ops in EXCHANGED if node.op in ops for op in ops] or [node.op])
    target.write_bytes(definition.SerializeToString())


def answered(folder, name, asked):
    if "inputs" in asked:
        return of_file(folder / (name + ".pb"), asked)
    path = folder / (name + "_program.py")
    path.write_text(asked["text"])
    spec = importlib.util.spec_from_file_location(name + "_program", str(path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    feeds = [(np.array(x, np.float32), np.array(n, np.int32)) for x, n in asked["feeds"]]
    if asked["form"] == "v1" or IS_FIRST:
        return by_graph(folder / (name + ".pb"), tf.autograph.to_graph(module.main), asked["size"], feeds)
    signature = [tf.TensorSpec([asked["size"]], tf.float32, name="x"), tf.TensorSpec([], tf.int32, name="n")]
    function = tf.function(module.main, input_signature=signature)
    if asked["form"] == "function":
        return by_graph(folder / (name + ".pb"), function, asked["size"], feeds)
    concrete = function.get_concrete_function()
    results = [[plain(value) for value in concrete(tf.constant(x), tf.constant(n))] for x, n in feeds]
    if asked["form"] == "saved":
        kept = tf.Module()
        kept.run = tf.function(
            lambda x, n: {f"r{i}": v for i, v in enumerate(module.main(x, n))}, input_signature=signature
        )
        tf.saved_model.save(kept, str(folder / (name + ".saved")), signatures=kept.run.get_concrete_function())
        return {"inputs": ["x", "n"], "outputs": [f"r{i}" for i in range(len(results[0]))], "results": results}
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=asked["form"] == "lowered")
    (folder / (name + ".pb")).write_bytes(frozen.graph.as_graph_def().SerializeToString())
    return {"inputs": [t.name for t in frozen.inputs], "outputs": [t.name for t in frozen.outputs], "results": results}


def by_graph(path, function, size, feeds):
    """The function called in a graph of TensorFlow 1."""
    if not IS_FIRST:
        v1.disable_control_flow_v2()
    with tf.Graph().as_default() as graph:
        x, n = v1.placeholder(tf.float32, [size], name="x"), v1.placeholder(tf.int32, [], name="n")
        outputs = [tf.identity(value, name=f"r{i}") for i, value in enumerate(function(x, n))]
        with v1.Session() as session:
            results = [[plain(v) for v in session.run(outputs, {x: fx, n: fn})] for fx, fn in feeds]
    path.write_bytes(graph.as_graph_def().SerializeToString())
    if not IS_FIRST:
        v1.enable_control_flow_v2()
    return {"inputs": [x.name, n.name], "outputs": [t.name for t in outputs], "results": results}


def of_file(path, asked):
    """What a graph of another TensorFlow gives."""
    definition = v1.GraphDef()
    definition.ParseFromString(path.read_bytes())
    if IS_FIRST:
        forget_new_attributes(definition)
    with tf.Graph().as_default(), v1.Session() as session:
        tf.import_graph_def(definition, name="")
        runs = [dict(zip(asked["inputs"], (np.array(x, np.float32), np.array(n, np.int32)))) for x, n in asked["feeds"]]  # noqa: B905
        return {**asked, "results": [[plain(v) for v in session.run(asked["outputs"], feeds)] for feeds in runs]}


def forget_new_attributes(definition):
    """Takes from nodes what only a later TensorFlow says of such ops; it says so of nodes that do not need it, too."""
    from tensorflow.python.framework import op_def_registry

    known = op_def_registry.get_registered_ops()
    for nodes in (definition.node, *(function.node_def for function in definition.library.function)):
        for node in nodes:
            if node.op in known:
                attributes = {attribute.name for attribute in known[node.op].attr}
                for name in [name for name in node.attr if name not in attributes and not name.startswith("_")]:
                    del node.attr[name]


def plain(value):
    array = np.asarray(value)
    return [array.dtype.name, list(array.shape), array.ravel().tolist()]


if __name__ == "__main__":
    main()
