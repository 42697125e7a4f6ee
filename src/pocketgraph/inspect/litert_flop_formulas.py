"""What each operator of LiteRT files costs, counted as flop_formulas.py counts TensorFlow's.

Operators' options are not part of the graph that is read from such a file, so that what follows from them alone is not
known: a pool counts its input once, which is exact where windows do not overlap.
"""

from __future__ import annotations

import math

from pocketgraph.graph import Node
from pocketgraph.graph.model_file_graph import PREFIX
from pocketgraph.inspect.flop_formulas import REDUCED, Formula, Sizes, elements, multiply_adds, per_input, per_output


def product(node: Node, inputs: list[Sizes], outputs: list[Sizes]) -> int:
    """out · k · 2; whether a factor is transposed is not known, and k follows from how many elements all have."""
    batches = elements(outputs[0][:-2])
    ones, others = (elements(shape[-2:]) for shape in inputs[:2])
    rows = elements(outputs[0][-2:])
    return batches * rows * math.isqrt(ones * others // rows) * 2 if rows else 0


def recurrent(node: Node, inputs: list[Sizes], outputs: list[Sizes]) -> int:
    """Each weight of a matrix once a step and sample, · 2; the first input is [batch, time, …] or [time, batch, …]."""
    matrices = sum(elements(shape) for shape in inputs[1:] if len(shape) == len(("rows", "columns")))
    return elements(inputs[0][:-1]) * matrices * 2


def _table(formula: Formula, operators: str) -> dict[str, Formula]:
    return {f"{PREFIX}{name}": formula for name in operators.split()}


LITERT_FORMULAS = {
    # Weights are [out, height, width, in], depthwise [1, height, width, out], of full connections [out, in].
    **_table(multiply_adds(lambda i, o: o[0], lambda i, o: i[1][1:]), "conv_2d conv_3d"),
    **_table(multiply_adds(lambda i, o: o[0], lambda i, o: i[1][1:3]), "depthwise_conv_2d"),
    **_table(multiply_adds(lambda i, o: i[2], lambda i, o: i[1][:-1]), "transpose_conv"),  # given a shape first
    **_table(multiply_adds(lambda i, o: o[0], lambda i, o: i[1][-1:]), "fully_connected"),
    **_table(product, "batch_matmul"),
    **_table(recurrent, "unidirectional_sequence_lstm unidirectional_sequence_rnn"),
    **_table(per_input(1), "average_pool_2d max_pool_2d l2_pool_2d mean cumsum segment_sum"),
    **_table(REDUCED, "sum reduce_max reduce_min reduce_prod reduce_any reduce_all arg_max arg_min"),
    **_table(per_output(9), "resize_bilinear"),
    **_table(per_output(5), "softmax log_softmax"),
    **_table(per_output(2), "quantize dequantize rsqrt squared_difference l2_normalization prelu"),
    **_table(per_output(3), "hard_swish"),
    **_table(
        per_output(1),
        "add sub mul div floor floor_div floor_mod maximum minimum pow neg abs exp log sqrt square sin cos round ceil "
        "sign relu relu6 relu_n1_to_1 relu_0_to_1 leaky_relu elu gelu logistic tanh equal not_equal less less_equal "
        "greater greater_equal logical_and logical_or logical_not atan2 range",
    ),
}
"""The formula of each operator that costs something and whose cost its shapes tell."""

LITERT_FREE = frozenset(
    _table(
        per_output(0),
        "reshape squeeze expand_dims shape rank cast pack unpack concatenation split split_v slice "
        "strided_slice gather gather_nd embedding_lookup fill zeros_like transpose pad padv2 mirror_pad reverse_v2 "
        "reverse_sequence one_hot tile broadcast_to broadcast_args space_to_batch_nd batch_to_space_nd space_to_depth "
        "depth_to_space resize_nearest_neighbor select select_v2 where scatter_nd sparse_to_dense matrix_diag "
        "matrix_set_diag dynamic_update_slice var_handle read_variable assign_variable call_once bitcast densify",
    )
)
"""Operators that only move values."""
