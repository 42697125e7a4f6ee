"""How likely the end of a graph is a result that somebody wants, by the op that it ends in and by its name."""

import re

_ENDINGS = {
    "Softmax": (3.0, "ends in Softmax"), "LogSoftmax": (2.5, "ends in LogSoftmax"), "Sigmoid": (2.5, "ends in Sigmoid"),
    "Tanh": (2.0, "ends in Tanh"), "MatMul": (1.5, "ends in a dense layer"), "BiasAdd": (1.5, "ends in a layer's bias"),
    "Add": (1.5, "ends in a sum"), "AddV2": (1.5, "ends in a sum"), "Conv2D": (1.5, "ends in a convolution"),
    "NonMaxSuppressionV3": (2.0, "ends in box selection"), "ResizeBilinear": (1.0, "ends in an image"),
}  # fmt: skip
GOOD_NAME = re.compile(
    r"(final_result|softmax|predict|prob|output|logits|detection|embedding|result|classes|scores|boxes|heatmap)", re.I
)
"""Of results that somebody wants."""
_POOR_NAME = re.compile(
    r"(^|[/_-])(loss|losses|cost|accuracy|metrics?|correct|error|PSNR|SSIM|learning_rate|Aux\w*)[^/]*(/|$)", re.I
)
_STATISTICS = re.compile(r"(^|/)(moments(_\d+)?|BatchNorm(_\d+)?/cond(_\d+)?|batchnorm(_\d+)?)/", re.I)
"""Where batch norms leave the mean and variance of the batch over."""
POOR_OPS = frozenset({
    "Shape", "Rank", "Size", "Range", "Equal", "NotEqual", "Prod", "Less", "LogicalAnd", "Fill", "ZerosLike", "Enter",
    "Switch", "LoopCond", "Const", "Pack", "Mean", "Sum", "InTopK", "InTopKV2", "Where", "RandomUniform",
})  # fmt: skip
"""Not a trait: ends that nobody wants as results, because graphs leave them over."""
OWN_NAME = re.compile(r"(?!(Identity|concat)(_\d+)?$)[^/]+$")
"""tf.identity(result, name="answer"), in no scope; tf.concat of one value makes an Identity, too."""
_WATCHED = POOR_OPS | {"Max", "Min", "All", "Any"}
"""Not a trait: ends that get names to be watched during training."""


def likelihood(name: str, op: str, *, is_handed_on: bool = False) -> tuple[float, str]:
    """A score, the higher the likelier, and the reason in a few words.

    Args:
        name: of the node.
        op: that makes the value, behind nodes that only hand it on.
        is_handed_on: whether the node itself is an Identity, which gives a value a name.
    """
    score, why = _ENDINGS.get(op, (0.5, f"ends in {op}"))
    if is_handed_on and OWN_NAME.match(name) and op not in _WATCHED:
        score += 2
        why += ", handed on under a name of its own"
    if GOOD_NAME.search(name):
        score += 2
        why += ", named like a result"
    if _POOR_NAME.search(name):
        score -= 4
        why += ", named like a measure of training"
    if _STATISTICS.search(name):
        score -= 4
    return score, why
