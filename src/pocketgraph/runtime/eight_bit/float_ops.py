"""What each eight-bit op of the original computes, on floats: a table that looking for such ops takes alone."""

from __future__ import annotations

FLOAT_OPS = {
    "QuantizedConv2D": "Conv2D", "QuantizedMatMul": "MatMul", "QuantizedBiasAdd": "BiasAdd", "QuantizedAdd": "Add",
    "QuantizedMul": "Mul", "QuantizedRelu": "Relu", "QuantizedRelu6": "Relu6", "QuantizedMaxPool": "MaxPool",
    "QuantizedAvgPool": "AvgPool", "QuantizedConcat": "Concat", "QuantizedReshape": "Reshape",
    "QuantizedResizeBilinear": "ResizeBilinear",
    "QuantizedBatchNormWithGlobalNormalization": "BatchNormWithGlobalNormalization",
}  # fmt: skip
"""What each op computes, on floats."""
KEEPS_RANGE = frozenset((
    "QuantizedRelu", "QuantizedRelu6", "QuantizedMaxPool", "QuantizedAvgPool", "QuantizedReshape",
    "QuantizedResizeBilinear",
))  # fmt: skip
"""Not a trait: the original's eight-bit ops that hand the range of their input on."""
MOVES = ("Requantize", "QuantizeDownAndShrinkRange")
CANDIDATES = frozenset(FLOAT_OPS) | {"QuantizeV2", "RequantizationRange", *MOVES}
