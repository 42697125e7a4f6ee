"""TensorFlow 1.15's TransformGraph on a file, run by benchmarks/transforms.py; needs nothing of pocketgraph.

    python transform_tf1.py GRAPH INPUTS OUTPUTS TRANSFORMS

Prints "ready", then for each line that comes in the seconds of one call, as "us N".
"""

import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
from tensorflow.tools.graph_transforms import TransformGraph

path, inputs, outputs, transforms = sys.argv[1:]
with open(path, "rb") as file:
    graph = tf.compat.v1.GraphDef.FromString(file.read())
print("ready", flush=True)
for _ in sys.stdin:
    start = time.perf_counter()
    TransformGraph(graph, inputs.split(","), outputs.split(","), transforms.split(";"))
    print(f"us {(time.perf_counter() - start) * 1e6}", flush=True)
