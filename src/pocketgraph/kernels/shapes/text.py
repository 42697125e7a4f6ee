"""Shape rules of texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

from pocketgraph.graph.shape import SCALAR, Shape
from pocketgraph.kernels.shapes.algebra import Dim, merge, of_rank
from pocketgraph.kernels.shapes.common_rules import VECTOR, scalar, unchanged
from pocketgraph.kernels.shapes.math import reduction
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule(
    "AsString", "DecodeBase64", "EncodeBase64", "RegexFullMatch", "RegexReplace", "StaticRegexFullMatch",
    "StaticRegexReplace", "StringLength", "StringLower", "StringStrip", "StringToHashBucket", "StringToHashBucketFast",
    "StringToHashBucketStrong", "StringToNumber", "StringUpper",
)(unchanged)  # fmt: skip
shape_rule("ReduceJoin")(reduction)
shape_rule("StringFormat")(scalar)


@shape_rule("StringJoin")
def joined(call: ShapeCall) -> Shape:
    """Scalars go with every element, so that they say nothing beside others."""
    wide = [shape for shape in call.inputs if shape.dims != ()]
    return reduce(merge, wide) if wide else SCALAR


shape_rule("UnicodeTranscode")(unchanged)


@shape_rule("UnicodeDecode", "UnicodeDecodeWithOffsets")
def decoded(call: ShapeCall) -> Sequence[Shape]:
    sizes = call.shape(0).dims
    count: Dim = None
    if sizes is not None and None not in sizes:
        count = math.prod(s for s in sizes if s is not None) + 1
    return [Shape((count,))] + [VECTOR] * (1 if call.node.op == "UnicodeDecode" else 2)


@shape_rule("UnicodeEncode")
def encoded(call: ShapeCall) -> Shape:
    splits = of_rank(call.shape(1), 1)[0]
    return VECTOR if splits is None else Shape((max(splits - 1, 0),))


shape_rule("StringNGrams")(lambda call: [VECTOR, Shape(of_rank(call.shape(1), 1))])
