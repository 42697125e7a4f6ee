"""How likely the end of a graph is a result that somebody wants: by its op, its name, and what training and recurrent
networks leave there."""

import re
from collections.abc import Iterable, Sequence

from pocketgraph.graph.node import Node

_STATE = re.compile(r"(?:^|[/_])(state|hidden|memory)(?:$|[/_\d])", re.I)


def state_ends(placeholders: Iterable[str], ends: Sequence[str]) -> list[str]:
    """The ends that give the next states of those that placeholders take; empty where there is not one for each.

    A network that goes on from run to run takes ``previous_state`` and gives ``new_state``: without that it would
    forget.

    Args:
        placeholders: the names of the model's inputs.
        ends: the names of what it could give.
    """
    taken = sorted(found[1].lower() for name in placeholders if (found := _STATE.search(name)))
    given = [(found[1].lower(), name) for name in ends if (found := _STATE.search(name))]
    return [name for _, name in given] if taken and sorted(word for word, _ in given) == taken else []


TRAINING_OPS = re.compile(
    r"(Resource|Sparse|ResourceSparse)?Apply[A-Z]|Assign|Save|Restore|MergeV2|Sharded|Scatter(Add|Sub|Update)$|"
    r"ResourceScatter|.*Summary|BroadcastGradientArgs|.*Grad(V\d)?$|.*Backprop(Filter|FilterV2)$|NoOp$|Assert|Print|"
    r"IsVariableInitialized|VarIsInitialized|ReportUninit|Queue(Enqueue|Close|Size)|.*Queue(Enqueue|Close|Size|Many)|"
    r"InitializeTable|RestoreV2|ControlTrigger|SoftmaxCrossEntropy|SparseSoftmaxCrossEntropy|L2Loss|CTCLoss"
)
TRAINING_SCOPES = re.compile(
    r"(^|/)(gradients(_\d+)?|save(_\d+)?|report_uninitialized_variables(_\d+)?|init(_\d+)?|Initializer|init_op|"
    r"global_step|ExponentialMovingAverage|AssignMovingAvg(_\d+)?|Regularizer|weight_decay|Assert(_\d+)?)(/|$)"
)
LOSS_SCOPES = re.compile(
    r"(^|/)((sparse_)?softmax_cross_entropy(_with_logits(_sg)?|_loss)|SparseSoftmaxCrossEntropyWithLogits|logistic_loss|"
    r"sigmoid_cross_entropy_loss|weighted_loss|hinge_loss|huber_loss|log_loss|cosine_distance_loss|sequence_loss|CTCLoss|"
    r"absolute_difference|mean_squared_error|nce_loss|sampled_losses|sampled_softmax_loss)(_\d+)?/"
)
"""Where TensorFlow's losses put what they compute."""
OF_SAVERS = re.compile(r"(^|/)save(_\d+)?/(Const|filename)(_\d+)?$|^saver_filename$")
"""The file names that checkpoints are saved under."""


def is_of_training(node: Node) -> bool:
    """Whether a node is training's own: it updates, saves, checks, or lies where TensorFlow puts such nodes."""
    return TRAINING_OPS.match(node.op) is not None or TRAINING_SCOPES.search(node.name) is not None


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
