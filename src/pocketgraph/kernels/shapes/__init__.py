"""Static shapes, types and small values of every tensor of a graph, in TensorFlow's manner."""

from pocketgraph.kernels.shapes.infer import Inferred, infer
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

__all__ = ["Inferred", "ShapeCall", "infer", "shape_rule"]
