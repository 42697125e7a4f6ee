"""Takes a trained TensorFlow model to the small, fast, verified form that ships, without TensorFlow.

The names below load what they need when they are first used; the commands' options are their arguments:

* ``load(path) -> Graph`` and ``save(graph, path)``: any model file, looked at by content; ``identify(path)``: what it
  is.
* ``freeze(graph_or_path, outputs=None, checkpoint=None) -> Graph``: variables become constants.
* ``transform(graph_or_path, transforms, inputs=None, outputs=None) -> Graph`` and the original tool's
  ``TransformGraph(graph_def, inputs, outputs, transforms)``: rewriting rules.
* ``Session(graph, threads=None).run(fetches, feeds) -> list of arrays``: run it.
* ``InferenceInterface(model)``: the same by Android's calls, feed, run and fetch.
* ``kernel(op, inputs=…, outputs=…)``: what computes an op of your own.
* ``ship(model, folder, data)``: from a trained model and data to the file that ships, in one call.
* ``quantize(graph_or_path, samples) -> QuantizedModel``: eight bits; ``evaluate(models, samples)``: what they lose.
* ``export(graph, path)``: a .tflite file or another form that a device runs, checked against the graph.
* ``summarize(model)``, ``plan(model)`` and ``view(model)``: look at it; ``benchmark(model)``: time it;
  ``verify(a, b, …)``: prove it right; ``label_image(model, pictures)``: what it sees.
* ``gradients(graph_or_path, ys, xs) -> Graph``: gradient nodes.
* ``trainable(graph)``, ``add_loss(graph, predictions)``, ``minimize(graph, loss, optimizer)``: a training graph;
  ``add_regularization``, ``add_schedule``, ``add_signatures``: more of it; ``train(session, batches)``: its steps.
* ``formats.open_checkpoint(prefix)``: a mapping of variable name to Tensor.

>>> import pocketgraph
>>> from pocketgraph.graph.text_format import parse, print_graph
>>> graph = parse('''
...     x = Placeholder(dtype=float, shape=[2])
...     kept = Identity(x, T=float)
...     y = Relu(kept, T=float)
... ''')
>>> small = pocketgraph.transform(graph, "remove_nodes(op=Identity)", inputs="x", outputs="y")
>>> print(print_graph(small), end="")
x = Placeholder(dtype=float, shape=[2])
y = Relu(x, T=float)
>>> pocketgraph.save(small, "small.pb")
>>> with pocketgraph.Session("small.pb") as session:
...     session.run("y", {"x": [-1.0, 2.0]})
[array([0., 2.], dtype=float32)]
>>> pocketgraph.verify(graph, "small.pb").passed
True
"""

from __future__ import annotations

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pocketgraph.lazy_members import lazy_members
from pocketgraph.version import VERSION

if TYPE_CHECKING:
    from pocketgraph import formats
    from pocketgraph.apps.label_image import label_image
    from pocketgraph.apps.model_comparison import verify
    from pocketgraph.apps.model_plan import plan
    from pocketgraph.apps.model_timing import benchmark
    from pocketgraph.apps.quantizing import quantize
    from pocketgraph.apps.shipping.ship import ship
    from pocketgraph.differentiation import (
        add_loss,
        add_regularization,
        add_schedule,
        add_signatures,
        gradients,
        minimize,
        trainable,
    )
    from pocketgraph.errors import PocketgraphError
    from pocketgraph.exporting import export
    from pocketgraph.formats import load, save
    from pocketgraph.freezing import freeze
    from pocketgraph.graph import Graph, Node, Tensor
    from pocketgraph.inspect import summarize
    from pocketgraph.inspect.identify import identify
    from pocketgraph.inspect.view.viewing import view
    from pocketgraph.quantization import QuantizedModel, evaluate
    from pocketgraph.runtime import InferenceInterface, Session, kernel, train
    from pocketgraph.transforms import TransformGraph, transform

__version__ = VERSION

_HOME = {
    "export": "exporting", "load": "formats", "save": "formats", "freeze": "freezing", "transform": "transforms",
    "TransformGraph": "transforms", "InferenceInterface": "runtime", "Session": "runtime",
    "kernel": "runtime", "train": "runtime",
    "add_loss": "differentiation", "add_regularization": "differentiation", "add_schedule": "differentiation",
    "add_signatures": "differentiation", "gradients": "differentiation", "minimize": "differentiation",
    "trainable": "differentiation",
    "benchmark": "apps.model_timing", "label_image": "apps.label_image", "plan": "apps.model_plan",
    "ship": "apps.shipping.ship", "verify": "apps.model_comparison",
    "summarize": "inspect", "identify": "inspect.identify", "view": "inspect.view.viewing",
    "QuantizedModel": "quantization", "evaluate": "quantization", "quantize": "apps.quantizing",
    "Graph": "graph", "Node": "graph", "Tensor": "graph", "PocketgraphError": "errors",
}  # fmt: skip

__all__ = [
    "Graph", "InferenceInterface", "Node", "PocketgraphError", "QuantizedModel", "Session", "Tensor", "TransformGraph",
    "__version__", "add_loss", "add_regularization", "add_schedule", "add_signatures", "benchmark", "evaluate",
    "export", "formats", "freeze", "gradients", "identify", "kernel", "label_image", "load", "minimize", "plan",
    "quantize", "save", "ship", "summarize", "train", "trainable", "transform", "verify", "view",
]  # fmt: skip


_member = lazy_members(__name__, _HOME)


def __getattr__(name: str) -> Any:
    if name in ("formats", "graph", "runtime", "transforms", "inspect", "kernels"):
        return import_module(f"pocketgraph.{name}")
    collects = gc.isenabled()
    gc.disable()  # what modules make stays, and would be looked at again and again
    try:
        return _member(name)
    finally:
        if collects:
            gc.enable()


def __dir__() -> list[str]:
    return sorted(__all__)
