"""The shape rule of a product that was fused, apart from those of convolutions, which models without products need."""

from __future__ import annotations

from pocketgraph.kernels.shapes.math.matrix_product import matmul
from pocketgraph.kernels.shapes.rules import shape_rule

shape_rule("_FusedMatMul")(matmul)
