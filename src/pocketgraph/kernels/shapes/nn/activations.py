"""Shape rules of activation functions and their gradients."""

from __future__ import annotations

from pocketgraph.kernels.shapes.common_rules import merged, unchanged
from pocketgraph.kernels.shapes.rules import shape_rule

shape_rule(
    "Elu", "EluGrad", "LeakyRelu", "LogSoftmax", "Relu", "Relu6", "Selu", "Softmax", "Softplus", "Softsign",
)(unchanged)  # fmt: skip
shape_rule("LeakyReluGrad", "Relu6Grad", "ReluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad")(merged)
