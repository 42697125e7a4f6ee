"""Texts, as far as ONNX has words for them (most of them from opset 20 on)."""

from __future__ import annotations

from functools import reduce

import numpy as np

from pocketgraph.exporting.onnx.broadcasting import elementwise
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.graph import Node
from pocketgraph.graph.dtype import BOOL, FLOAT, STRING
from pocketgraph.litert.operands import attr_text


def _needs_texts(emit: OnnxEmit) -> None:
    """StringConcat, StringSplit and RegexFullMatch."""
    emit.since(20, "ONNX works on texts")


@converts("StringJoin")
def joined(emit: OnnxEmit, node: Node) -> OnnxValue:
    _needs_texts(emit)
    values = emit.inputs()
    separator = attr_text(node, "separator")
    parts = [values[0]]
    for value in values[1:]:
        if separator:
            parts.append(emit.const(np.array(separator.encode(), object)))
        parts.append(value)
    return reduce(lambda a, b: elementwise(emit, "StringConcat", [a, b]), parts)


@converts("StringLower", "StringUpper")
def cased(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    """ONNX's operator takes vectors: others are laid out as one."""
    action = "LOWER" if node.op == "StringLower" else "UPPER"
    flat = emit.reshape(value, [-1]) if value.rank != 1 else value
    made = emit.op(
        "StringNormalizer", [flat], flat.shape, STRING, case_change_action=action, is_case_sensitive=1, locale="C"
    )
    if value.rank != 1:
        made = emit.op("Reshape", [made, emit.dims(value)], value.shape)
    return made


@converts("StaticRegexFullMatch", "RegexFullMatch")
def matches(emit: OnnxEmit, node: Node) -> OnnxValue:
    _needs_texts(emit)
    if node.op == "RegexFullMatch":
        pattern = bytes(emit.static(1, "the pattern").reshape(-1)[0]).decode()
    else:
        pattern = attr_text(node, "pattern")
    value = emit.input(0)
    return emit.op("RegexFullMatch", [value], value.shape, BOOL, pattern=pattern)


converts("StringToNumber")(lambda emit, node: emit.cast(emit.input(0), node.dtype("out_type", FLOAT)))
