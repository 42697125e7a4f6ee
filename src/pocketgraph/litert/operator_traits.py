"""What is true of LiteRT's operators: sets that passes, quantization and exporters ask for."""

ARITHMETIC = frozenset(("ADD", "DIV", "MUL", "SUB"))
"""Element by element of two operands, with an activation behind it."""
BOUNDS = frozenset(("MAXIMUM", "MINIMUM"))
"""Element by element of two operands, without one."""
CONVOLUTIONS = frozenset(("CONV_2D", "DEPTHWISE_CONV_2D"))
WEIGHTED = CONVOLUTIONS | {"FULLY_CONNECTED"}
"""Sums of products with weights of their own."""
HYBRID = frozenset(("CONV_2D", "FULLY_CONNECTED"))
"""With int8 weights they take a float operand too, which they quantize themselves, anew for each input."""
POOLS = frozenset(("AVERAGE_POOL_2D", "MAX_POOL_2D"))
WEIGHT_AXIS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0, "TRANSPOSE_CONV": 0}
"""The axis of the weights that goes along output channels."""
