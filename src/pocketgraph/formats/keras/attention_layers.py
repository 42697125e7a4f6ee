"""Attention of Keras: products of queries with keys choose among values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pocketgraph.formats.keras.activation_functions import scaled
from pocketgraph.formats.keras.layer_writer import KerasTensor, LayerWriter, Rule
from pocketgraph.formats.keras.operations import OperationCall
from pocketgraph.graph.dtype import FLOAT


def projected(writer: LayerWriter, value: KerasTensor, part: str) -> KerasTensor:
    """What a head has of a tensor, [batch, heads, time, size]."""
    kernel = writer.array(f"{part}/kernel")
    width, heads, size = kernel.shape
    matrix = writer.const(kernel.reshape(width, heads * size), f"{part}_kernel", FLOAT)
    rows = writer.add("MatMul", writer.reshaped(value, (None, width)), matrix, dims=(None, heads * size))
    if writer.config.get("use_bias", True):
        rows = writer.add("BiasAdd", rows, writer.const(np.ravel(writer.array(f"{part}/bias")), f"{part}_bias", FLOAT))
    split = writer.reshaped(rows, (*value.dims[:2], heads, size), value)
    dims = (split.dims[0], heads, split.dims[1], size)
    return writer.add("Transpose", split, writer.const([0, 2, 1, 3], "order"), dims=dims)


def multi_head_attention(writer: LayerWriter, inputs: Sequence[KerasTensor]) -> KerasTensor:
    """Of a query, values and, where they differ, keys: [batch, time, width] each."""
    call = OperationCall(writer, writer.given, writer.named)
    query, value = call.argument(0, "query"), call.argument(1, "value")
    key = call.argument(2, "key", default=value)
    if not all(isinstance(one, KerasTensor) and len(one.dims) == 3 for one in (query, value, key)):
        raise writer.refuse("takes other than sequences, which is not read")
    if call.argument(3, "attention_mask") is not None or call.argument(7, "use_causal_mask"):
        raise writer.refuse("has a mask, which is not read")
    if call.argument(4, "return_attention_scores"):
        raise writer.refuse("returns its scores, which is not read")
    queries, keys, values = (
        projected(writer, one, part) for one, part in ((query, "query"), (key, "key"), (value, "value"))
    )
    queries = scaled(writer, queries, 1 / math.sqrt(float(queries.dims[-1] or 1)))
    dims = (*queries.dims[:3], keys.dims[2])
    scores = writer.add("Softmax", writer.add("BatchMatMulV2", queries, keys, dims=dims, adj_y=True))
    made = writer.add("BatchMatMulV2", scores, values, dims=(*queries.dims[:3], values.dims[3]))
    order = writer.const([0, 2, 1, 3], "order")
    made = writer.add("Transpose", made, order, dims=tuple(made.dims[axis] for axis in (0, 2, 1, 3)))
    kernel = writer.array("attention_output/kernel")
    matrix = writer.const(kernel.reshape(-1, kernel.shape[-1]), "output_kernel", FLOAT)
    rows = writer.reshaped(made, (None, kernel.shape[0] * kernel.shape[1]))
    rows = writer.add("MatMul", rows, matrix, dims=(None, kernel.shape[-1]))
    if writer.config.get("use_bias", True):
        rows = writer.add("BiasAdd", rows, writer.weight("attention_output/bias"))
    return writer.reshaped(rows, (*query.dims[:2], kernel.shape[-1]), query)


RULES: dict[str, Rule] = {"MultiHeadAttention": multi_head_attention}
