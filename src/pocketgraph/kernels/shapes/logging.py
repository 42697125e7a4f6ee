"""Shape rules of prints and summaries."""

from __future__ import annotations

from pocketgraph.kernels.shapes.common_rules import scalar, unchanged
from pocketgraph.kernels.shapes.rules import shape_rule

shape_rule("Print", "PrintV2")(unchanged)
shape_rule(
    "ScalarSummary", "HistogramSummary", "MergeSummary", "TensorSummary", "TensorSummaryV2", "AudioSummary",
    "AudioSummaryV2", "ImageSummary",
)(scalar)  # fmt: skip
