"""Shape rules of sparse tensors made dense."""

from __future__ import annotations

from pocketgraph.kernels.shapes.common_rules import held_by, of_input
from pocketgraph.kernels.shapes.rules import shape_rule

shape_rule("SparseTensorDenseAdd")(of_input(3))
shape_rule("SparseToDense")(held_by(1))
