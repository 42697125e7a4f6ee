"""Runs TensorFlow 1.15.5's Graph Transform Tool on jobs and writes what it made, as digests.

For ``tools/oracle.py``, which starts it in an environment of Python 3.7 with that TensorFlow. Reads one JSON object
a line from standard input, ``{"file": PATH, "inputs": […], "outputs": […], "transforms": […]}``, and writes one a line,
the job with ``ok`` and ``nodes``, or ``ok`` and ``error``. A node is ``[name, op, inputs, device, attributes]``; an
attribute is ``[kind, text]``, a tensor ``["tensor", type, shape, hash, statistics]``. Each job has a process of its
own, because the tool ends it, or never ends, on some graphs.
"""

import hashlib
import json
import multiprocessing
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

SECONDS = 120  # that one job may take


def tensor_digest(message):
    import numpy as np
    import tensorflow as tf

    try:
        values = tf.make_ndarray(message)
    except Exception:  # a tensor that this TensorFlow cannot read
        return ["tensor", message.dtype, "?", short_hash(message.SerializeToString())]
    if values.dtype == object:
        return ["tensor", "string", list(values.shape), short_hash(repr(values.tolist()).encode()), []]
    found = []
    if values.size and values.dtype.kind in "fiub":
        flat = values.astype("f8").ravel()
        found = [flat.min(), flat.max(), flat.mean(), np.sqrt(np.square(flat).mean()), *flat[:4]]
    name = tf.DType(message.dtype).name
    return ["tensor", name, list(values.shape), short_hash(values.tobytes()), [float(x) for x in found]]


def short_hash(data):
    return hashlib.sha256(data).hexdigest()[:16]


def attribute_digest(value):
    kind = value.WhichOneof("value")
    if kind == "tensor":
        return tensor_digest(value.tensor)
    return [kind, "" if kind is None else str(getattr(value, kind)).strip()]


def read_graph(path):
    import tensorflow as tf
    from google.protobuf import text_format

    graph = tf.compat.v1.GraphDef()
    with open(path, "rb") as file:
        data = file.read()
    try:
        graph.ParseFromString(data)
    except Exception:
        graph = text_format.Parse(data.decode(), tf.compat.v1.GraphDef())
    return graph


def transformed(job, connection):
    """What the tool makes of a job; sent through a pipe."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)
    try:
        from tensorflow.tools.graph_transforms import TransformGraph

        graph = TransformGraph(read_graph(job["file"]), job["inputs"], job["outputs"], job["transforms"])
        nodes = []
        for node in graph.node:
            attributes = {key: attribute_digest(node.attr[key]) for key in sorted(node.attr)}
            nodes.append([node.name, node.op, list(node.input), node.device, attributes])
        connection.send({"ok": True, "nodes": nodes})
    except Exception as error:
        connection.send({"ok": False, "error": str(error)})


def record(job):
    """A job and its result."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=transformed, args=(job, theirs))
    process.start()
    theirs.close()
    result = {"ok": False, "error": "the original tool aborted"}
    try:
        if ours.poll(SECONDS):
            result = ours.recv()
    except EOFError:
        pass
    process.kill()
    process.join()
    return dict(job, **result)


def main():
    import tensorflow  # noqa: F401 - once, for all the processes that are forked from this one

    for line in sys.stdin:
        print(json.dumps(record(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
