"""Private attributes by which a rewriting of the graph tells the lowering what it knows of a node."""

MAY_QUANTIZE = "_eight_bit"
"""True on nodes that may be computed with eight-bit weights and values."""

WHOLE_NUMBERS = "_whole_numbers"
"""The lowest and highest of the whole numbers in a node's operand, which eight-bit kernels multiply exactly; (0, 0)
where no bounds are known."""
