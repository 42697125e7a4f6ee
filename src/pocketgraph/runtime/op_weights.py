"""Which ops take long, and which take nothing, where all that is known of a node is its op."""

HEAVY = frozenset((
    "Conv2D", "DepthwiseConv2dNative", "Conv2DBackpropInput", "Conv3D", "MatMul", "BatchMatMul", "BatchMatMulV2",
    "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "MaxPool", "AvgPool", "ResizeBilinear",
    "ResizeNearestNeighbor", "LRN", "Softmax", "LSTMBlockCell", "BlockLSTM", "BlockLSTMV2", "GRUBlockCell",
    "MaxPool3D", "AvgPool3D", "Conv3DBackpropInputV2", "MaxPoolWithArgmax", "Einsum",
    "MaxPoolGrad", "AvgPoolGrad", "LRNGrad", "FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3",
    "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter",
))  # fmt: skip
"""What one call computes is worth the way into another engine."""
FREE = frozenset((
    "Const", "Identity", "StopGradient", "Snapshot", "PreventGradient", "NoOp", "PlaceholderWithDefault", "Reshape",
    "Squeeze", "ExpandDims", "Shape",
))  # fmt: skip
"""What gives on what it took, or what a plan has at hand."""
