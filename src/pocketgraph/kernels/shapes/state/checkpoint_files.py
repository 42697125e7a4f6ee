"""Shape rules of files read and written."""

from __future__ import annotations

from pocketgraph.kernels.shapes.common_rules import no_outputs, scalar
from pocketgraph.kernels.shapes.rules import shape_rule

shape_rule("ReadFile")(scalar)
shape_rule("SaveV2", "Save", "SaveSlices", "MergeV2Checkpoints")(no_outputs)
