"""Which nodes are training's own, by their ops and by the scopes that TensorFlow puts them into."""

import re

from pocketgraph.graph.node import Node

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
