"""Shape rules of optimizers' steps."""

from __future__ import annotations

from pocketgraph.kernels.shapes.common_rules import unchanged
from pocketgraph.kernels.shapes.rules import shape_rule

shape_rule(
    "ApplyGradientDescent", "ApplyMomentum", "ApplyAdam", "ApplyAdagrad", "ApplyRMSProp", "ApplyFtrl", "ApplyAdadelta",
    "ApplyCenteredRMSProp", "ApplyAdaMax", "ApplyAddSign", "ApplyPowerSign", "ApplyProximalGradientDescent",
    "ApplyProximalAdagrad", "ApplyAdagradDA", "ApplyAdagradV2", "ApplyFtrlV2", "SparseApplyAdadelta",
    "SparseApplyAdagrad", "SparseApplyAdagradDA", "SparseApplyAdagradV2", "SparseApplyCenteredRMSProp",
    "SparseApplyFtrl", "SparseApplyFtrlV2", "SparseApplyMomentum", "SparseApplyProximalAdagrad",
    "SparseApplyProximalGradientDescent", "SparseApplyRMSProp",
)(unchanged)  # fmt: skip
