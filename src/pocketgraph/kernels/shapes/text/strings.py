"""Shape rules of strings."""

from __future__ import annotations

from pocketgraph.kernels.shapes.common_rules import scalar, unchanged
from pocketgraph.kernels.shapes.math.reductions import reduction
from pocketgraph.kernels.shapes.rules import shape_rule

shape_rule(
    "AsString", "DecodeBase64", "EncodeBase64", "RegexFullMatch", "RegexReplace", "StaticRegexFullMatch",
    "StaticRegexReplace", "StringLength", "StringLower", "StringStrip", "StringToHashBucket", "StringToHashBucketFast",
    "StringToHashBucketStrong", "StringToNumber", "StringUpper",
)(unchanged)  # fmt: skip
shape_rule("ReduceJoin")(reduction)
shape_rule("StringFormat")(scalar)
