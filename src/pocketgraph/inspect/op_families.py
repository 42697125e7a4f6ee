"""Sorts ops into a dozen families, by which pictures of graphs are coloured."""

from __future__ import annotations

import re
from functools import lru_cache

from pocketgraph.graph.model_file_graph import PREFIX
from pocketgraph.graph.op_traits import ops_with

COLORS = {
    "input": "#f2b134",
    "weights": "#b8bec6",
    "convolution": "#4c8dd6",
    "matrix product": "#3f5fbf",
    "pooling": "#6fb8d9",
    "normalization": "#58b09c",
    "activation": "#8cc152",
    "control flow": "#c678c9",
    "call": "#a05fc0",
    "quantization": "#e07a5f",
    "reduction": "#d9a5b3",
    "data movement": "#c9b79c",
    "arithmetic": "#a9cf9f",
    "text and files": "#d4c25a",
    "other": "#d5d8dc",
}
"""The families with the colour of each, light enough for black letters in a box of a tint of it."""

BY_TRAITS = (
    ("input", ("placeholder",)),
    ("weights", ("constant", "variable", "reference_variable")),
    ("convolution", ("convolution",)),
    ("matrix product", ("matrix_product",)),
    ("normalization", ("batch_norm",)),
    ("call", ("call", "branch", "loop")),
    ("control flow", ("control_flow",)),
    ("data movement", ("moves", "joins", "view", "passes", "shape")),
)
"""Families that the table of traits knows; the first that fits."""

BY_NAME = (
    ("weights", r"^(readvariable|varhandle|pseudoconst)"),
    ("quantization", r"quantize(?!d)|fakequant"),
    ("convolution", r"conv(?!ert)"),
    ("matrix product", r"matmul|fullyconnected|lstm|gru|rnn|einsum|svdf"),
    ("pooling", r"pool"),
    ("normalization", r"norm|^lrn"),
    ("activation", r"relu|sigmoid|tanh|softmax|softplus|softsign|elu$|logistic|hardswish|swish"),
    ("call", r"^(if|while|callonce|call|case)$"),
    ("reduction", r"^(reduce|sum|mean|max$|min$|prod|all$|any$|arg|topk|cumsum|segment|unsorted)"),
    ("data movement", r"reshape|transpose|concat|split|slice|pad|gather|scatter|pack|stack|tile|squeeze|expanddims|"
                      r"space|shape|cast|identity|fill|resize|reverse|onehot|broadcast"),
    ("text and files", r"string|regex|decode|encode|file|record|save|restore|table|summary|print|assert"),
    ("arithmetic", r"^(add|sub|mul|div|neg|abs|exp|log|pow|sqrt|rsqrt|square|maximum|minimum|less|greater|equal|"
                   r"notequal|logical|floor|ceil|round|sin|cos|sign|select|where|bias|realdiv|truncate|erf|rint)"),
)  # fmt: skip
"""Families by how an op is called, for those that no trait decides and for operators of LiteRT files."""


@lru_cache(maxsize=4096)
def family(op: str) -> str:
    """The family of an op, a key of ``COLORS``.

    >>> [family(op) for op in ("Conv2D", "tfl.conv_2d", "Const", "Relu6", "Unheard")]
    ['convolution', 'convolution', 'weights', 'activation', 'other']
    """
    for name, traits in BY_TRAITS:
        if op in ops_with(*traits):
            return name
    plain = op.removeprefix(PREFIX).replace("_", "").lower()
    return next((name for name, pattern in BY_NAME if re.search(pattern, plain)), "other")
