"""Keeps graphs of TensorFlow 1.15 with its results, for the tests: what several make_…_graphs.py share.

tests/graph_files.py then makes text of the graphs.
"""

import os

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.graph_util import convert_variables_to_constants


def keep_all(folder, makers):
    """Writes NAME.pb, frozen, and NAME.npz for each function, called by its name, in a graph of its own.

    Args:
        folder: where; made if it does not exist.
        makers: functions that build a graph and give what is fetched, tensors, and the runs: the feeds of each, arrays
            by tensor name. The .npz has, for run number r, the feeds ``in_r_TENSOR`` and the results ``out_r_TENSOR``.
    """
    os.makedirs(folder, exist_ok=True)
    for make in makers:
        name = make.__name__
        with tf.Graph().as_default() as graph, tf.Session() as session:
            tf.set_random_seed(7)
            fetched, runs = make()
            session.run(tf.global_variables_initializer())
            arrays = {}
            for number, feeds in enumerate(runs):
                for tensor, value in feeds.items():
                    arrays[f"in_{number}_{tensor}"] = value
                for tensor, value in zip(fetched, session.run(fetched, feeds)):  # noqa: B905  (Python 3.7 has no strict)
                    arrays[f"out_{number}_{tensor.name}"] = value
            frozen = convert_variables_to_constants(session, graph.as_graph_def(), [t.op.name for t in fetched])
        with open(os.path.join(folder, name + ".pb"), "wb") as file:
            file.write(frozen.SerializeToString())
        np.savez_compressed(os.path.join(folder, name + ".npz"), **arrays)
        print(name, len(frozen.node))
